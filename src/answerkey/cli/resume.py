"""`answerkey resume`: ask only what a run is missing."""

import click

from answerkey.cli.flags import JudgeFlags, budget_flag, flag, judge_flags, store_flag
from answerkey.cli.outcome import ends_with_run
from answerkey.config import Settings
from answerkey.evaluation.waiting import Progress
from answerkey.model.run import Run


@click.command()
@click.argument("run", default="latest")
@flag("--target T", "The chatbot, if the run asked a Python object that has no name.")
@flag("--wait", "If another process is asking the run, wait for its end.", is_flag=True)
@flag(
    "--accept-changes",
    "If the chatbot, the golden set or the scoring has changed, make a new run from the replies that still hold.",
    is_flag=True,
)
@budget_flag
@judge_flags
@store_flag
@ends_with_run("asking")
def resume(
    run: str,
    target: str | None,
    wait: bool,
    accept_changes: bool,
    budget: float | None,
    judge: JudgeFlags,
    store: str | None,
    settings: Settings,
    progress: Progress,
) -> Run:
    """Ask the questions of a run that have no reply yet; judge what is not judged.

    \b
    Examples:
      answerkey resume
      answerkey resume 4f2a --json
      answerkey resume 4f2a --budget 5.00
      answerkey resume production --accept-changes
    """
    from answerkey.evaluation.api import resume as resume_run

    return resume_run(
        run,
        target=target,
        judge=judge.settings,
        store=store,
        settings=settings,
        progress=progress,
        wait=wait,
        accept_changes=accept_changes,
        budget=budget,
    )
