"""`answerkey plan`: how many questions and repeats a difference needs."""

from pathlib import Path

import click

from answerkey.cli.flags import flag, opened_store, store_flag
from answerkey.cli.outcome import Answer, answers
from answerkey.errors import UsageError

_ENDINGS = (".jsonl", ".json", ".yaml", ".yml", ".csv", ".parquet")


@click.command()
@click.argument("sources", nargs=-1, metavar="[QUESTIONS | RUN [RUN]]")
@flag("--difference", "The smallest difference that matters.", type=float, default=0.05, show_default=True)
@flag("--power", "The wanted chance to show it.", type=float, default=0.8, show_default=True)
@flag("--deviation", "Without a run: the spread of question scores (0.3).", type=float)
@flag("--correlation", "Without two runs: how alike two versions do on a question (0.5).", type=float)
@store_flag
@answers
def plan(
    sources: tuple[str, ...],
    difference: float,
    power: float,
    deviation: float | None,
    correlation: float | None,
    store: str | None,
) -> Answer:
    """Say how many questions and repeats a difference needs, and what those at hand can show.

    Best from two runs over the same questions; one run tells the spread of scores, and with --repeat also how much
    of it is noise and which questions are flaky; a golden set alone gives a guess. Without arguments: the latest run.

    \b
    Examples:
      answerkey plan latest~1 latest --difference 0.03
      answerkey plan latest --difference 0.02 --power 0.9
      answerkey plan golden.jsonl --json
    """
    from answerkey.comparison.columns import columns_from_store
    from answerkey.comparison.planning import (
        GUESSED_CORRELATION,
        GUESSED_DEVIATION,
        plan_from_pair,
        plan_from_run,
    )
    from answerkey.comparison.planning import plan as plan_questions
    from answerkey.datasets.golden_sets import read_questions
    from answerkey.report.planning_text import print_plan

    _check(difference, power, deviation, correlation)
    if len(sources) > 2:
        raise UsageError("a plan is made from a golden set, from one run or from two; not from more")
    deviation = GUESSED_DEVIATION if deviation is None else deviation
    correlation = GUESSED_CORRELATION if correlation is None else correlation
    aim = {"wanted": difference, "power": power}
    first = sources[0] if sources else "latest"
    if len(sources) == 1 and (first.endswith(_ENDINGS) or Path(first).is_file()):
        made = plan_questions(
            read_questions(first),
            deviation=deviation,
            correlation=correlation,
            difference=difference,
            power=power,
        )
    else:
        with opened_store(store) as opened:
            columns = columns_from_store(opened, map(opened.find_run, sources or (first,)))
        if len(columns) == 2:
            made = plan_from_pair(columns[0], columns[1], **aim)
        else:
            made = plan_from_run(columns[0], correlation=correlation, **aim)
    return Answer(made, lambda: print_plan(made))


def _check(difference: float, power: float, deviation: float | None, correlation: float | None) -> None:
    """Refuse figures that mean nothing."""
    if not 0 < difference < 1:
        raise UsageError(
            f"--difference {difference:g}: write points as a share, between 0 and 1; 0.05 is five points"
        )
    if not 0 < power < 1:
        raise UsageError(f"--power {power:g}: must be between 0 and 1")
    if deviation is not None and not 0 < deviation <= 0.5:
        raise UsageError(f"--deviation {deviation:g}: scores between 0 and 1 spread by at most 0.5")
    if correlation is not None and not -1 < correlation < 1:
        raise UsageError(f"--correlation {correlation:g}: must be between -1 and 1")
