"""`answerkey rescore`: new scores from stored replies."""

from pathlib import Path

import click

from answerkey.cli.flags import (
    JudgeFlags,
    json_flag,
    judge_flags,
    match_flag,
    output_flag,
    scoring_for,
    store_flag,
)

__all__ = ["rescore"]


@click.command()
@click.argument("run", default="latest")
@match_flag
@click.option(
    "--questions",
    type=click.Path(path_type=Path),
    help="Score against this golden set's expectations instead.",
)
@judge_flags
@store_flag
@output_flag
@json_flag
def rescore(
    run: str,
    match: str | None,
    questions: Path | None,
    judge: JudgeFlags,
    store: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Score the stored replies of a run anew, under the scoring configured now; the chatbot is not asked again.

    \b
    Examples:
      answerkey rescore latest --match smart
      answerkey rescore latest --judge gpt-4o-mini
      answerkey rescore production --questions golden-v2.jsonl --json
    """
    from answerkey.cli.outcome import conclude
    from answerkey.cli.progress import progress_for_terminal
    from answerkey.config import load_settings
    from answerkey.datasets.questions import read_questions
    from answerkey.evaluation.api import rescore as rescore_run
    from answerkey.report.files import check_output

    settings = load_settings()
    for path in outputs:
        check_output(path)
    finished = rescore_run(
        run,
        scoring=scoring_for(settings, match),
        questions=None if questions is None else read_questions(questions),
        judge=judge.settings,
        store=store,
        settings=settings,
        progress=progress_for_terminal(quiet=as_json, doing="scoring"),
    )
    return conclude(finished, outputs=outputs, as_json=as_json)
