"""`answerkey resume`: ask only what a run is missing."""

import click

from answerkey.cli.flags import JudgeFlags, judge_flags, store_flag
from answerkey.cli.outcome import ends_with_run
from answerkey.config import Settings
from answerkey.evaluation.progress import Progress
from answerkey.model.run import Run

__all__ = ["resume"]


@click.command()
@click.argument("run", default="latest")
@click.option("--target", metavar="T", help="The chatbot, if the run asked a Python object that has no name.")
@judge_flags
@store_flag
@ends_with_run("asking")
def resume(
    run: str,
    target: str | None,
    judge: JudgeFlags,
    store: str | None,
    settings: Settings,
    progress: Progress,
) -> Run:
    """Ask the questions of a run that have no reply yet, and those that were edited since; judge what is not judged.

    \b
    Examples:
      answerkey resume
      answerkey resume 4f2a --json
    """
    from answerkey.evaluation.api import resume as resume_run

    return resume_run(
        run, target=target, judge=judge.settings, store=store, settings=settings, progress=progress
    )
