"""`answerkey resume`: ask only what a run is missing."""

from pathlib import Path

import click

from answerkey.cli.flags import JudgeFlags, json_flag, judge_flags, output_flag, store_flag

__all__ = ["resume"]


@click.command()
@click.argument("run", default="latest")
@click.option("--target", metavar="T", help="The chatbot, if the run asked a Python object that has no name.")
@judge_flags
@store_flag
@output_flag
@json_flag
def resume(
    run: str,
    target: str | None,
    judge: JudgeFlags,
    store: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Ask the questions of a run that have no reply yet, and those that were edited since; judge what is not judged.

    \b
    Examples:
      answerkey resume
      answerkey resume 4f2a --json
    """
    from answerkey.cli.outcome import conclude
    from answerkey.cli.progress import progress_for_terminal
    from answerkey.config import load_settings
    from answerkey.evaluation.api import resume as resume_run
    from answerkey.report.files import check_output

    settings = load_settings()
    for path in outputs:
        check_output(path)
    finished = resume_run(
        run,
        target=target,
        judge=judge.settings,
        store=store,
        settings=settings,
        progress=progress_for_terminal(quiet=as_json),
    )
    return conclude(finished, outputs=outputs, as_json=as_json)
