"""`answerkey rescore`: new scores from stored replies."""

from pathlib import Path

import click

from answerkey.cli.flags import FILE, JudgeFlags, flag, judge_flags, match_flag, scoring_for, store_flag
from answerkey.cli.outcome import ends_with_run
from answerkey.config import Settings
from answerkey.evaluation.waiting import Progress
from answerkey.model.run import Run


@click.command()
@click.argument("run", default="latest")
@match_flag
@flag("--questions", "Score against this golden set's expectations instead.", type=FILE)
@judge_flags
@store_flag
@ends_with_run("scoring")
def rescore(
    run: str,
    match: str | None,
    questions: Path | None,
    judge: JudgeFlags,
    store: str | None,
    settings: Settings,
    progress: Progress,
) -> Run:
    """Score the stored replies of a run anew, under the scoring configured now; the chatbot is not asked again.

    \b
    Examples:
      answerkey rescore latest --match smart
      answerkey rescore latest --judge gpt-4o-mini
      answerkey rescore production --questions golden-v2.jsonl --json
    """
    from answerkey.datasets.golden_sets import read_questions
    from answerkey.evaluation.api import rescore as rescore_run

    return rescore_run(
        run,
        scoring=scoring_for(settings, match),
        questions=None if questions is None else read_questions(questions),
        judge=judge.settings,
        store=store,
        settings=settings,
        progress=progress,
    )
