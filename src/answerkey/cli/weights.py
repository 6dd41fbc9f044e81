"""`answerkey weights`: do the weights say what people think?"""

from pathlib import Path

import click

from answerkey.cli.flags import FILE, flag, opened_store, store_flag
from answerkey.cli.outcome import Answer, answers
from answerkey.config import load_settings


@click.command()
@click.argument("labelled", required=False, type=FILE)
@flag("--seed", "Seed of the resampling.", type=int, default=0, show_default=True)
@store_flag
@answers
def weights(labelled: Path | None, seed: int, store: str | None) -> Answer:
    """Say how well the weights in force predict people's verdicts, and which weights would.

    Verdicts come from the store's feedback, or from a file with one object a line:
    {"id": …, "components": {"tool_usage": 1, …}, "verdict": true}.

    \b
    Examples:
      answerkey weights
      answerkey weights labelled.jsonl --json
    """
    from answerkey.report.planning_text import print_weights
    from answerkey.stats.weights_fit import fit_weights

    rows = _rows(labelled, store)
    found = fit_weights(
        [components for _, components, _ in rows],
        [verdict for _, _, verdict in rows],
        dict(load_settings().scoring.weights),
        clusters=[question for question, _, _ in rows],
        seed=seed,
    )
    return Answer(found, lambda: print_weights(found))


def _rows(labelled: Path | None, store: str | None) -> list[tuple[str, dict[str, float], float]]:
    if labelled is not None:
        from answerkey.datasets.labelled_replies import read_labelled

        return list(read_labelled(labelled))
    from answerkey.store.feedback_book import FeedbackBook

    with opened_store(store) as opened:
        return [(row.question, row.components, row.value) for row in FeedbackBook(opened).scored_verdicts()]
