"""`answerkey weights`: do the weights say what people think?"""

from pathlib import Path

import click

from answerkey.cli.flags import json_flag, opened_store, store_flag
from answerkey.cli.outcome import print_document
from answerkey.config import load_settings

__all__ = ["weights"]


@click.command()
@click.argument("labelled", required=False, type=click.Path(path_type=Path))
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the resampling.")
@store_flag
@json_flag
def weights(labelled: Path | None, seed: int, store: str | None, as_json: bool) -> int:
    """Say how well the weights in force predict people's verdicts, and which weights would.

    Verdicts come from the store's feedback, or from a file with one object a line:
    {"id": …, "components": {"tool_usage": 1, …}, "verdict": true}.

    \b
    Examples:
      answerkey weights
      answerkey weights labelled.jsonl --json
    """
    from answerkey.stats.weights_fit import fit_weights

    rows = _rows(labelled, store)
    found = fit_weights(
        [components for _, components, _ in rows],
        [verdict for _, _, verdict in rows],
        dict(load_settings().scoring.weights),
        clusters=[question for question, _, _ in rows],
        seed=seed,
    )
    if as_json:
        print_document(found)
        return 0
    from answerkey.report.weights_text import print_weights

    print_weights(found)
    return 0


def _rows(labelled: Path | None, store: str | None) -> list[tuple[str, dict[str, float], float]]:
    if labelled is not None:
        from answerkey.datasets.labelled_replies import read_labelled

        return list(read_labelled(labelled))
    from answerkey.store.feedback_book import FeedbackBook

    with opened_store(store) as opened:
        return [(row.question, row.components, row.value) for row in FeedbackBook(opened).scored_verdicts()]
