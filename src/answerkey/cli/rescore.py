"""`answerkey rescore`: new scores from stored replies."""

from pathlib import Path

import click

from answerkey.cli.options import (
    JudgeFlags,
    json_flag,
    judge_flags,
    match_flag,
    output_flag,
    store_flag,
    store_opener,
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
    from answerkey.cli.options import scoring_for
    from answerkey.cli.outcome import conclude
    from answerkey.cli.progress import progress_for_terminal
    from answerkey.config import load_settings
    from answerkey.datasets.questions import read_questions
    from answerkey.evaluation.rescoring import kept_judge, rescore_run
    from answerkey.report.files import check_output

    settings = load_settings()
    for path in outputs:
        check_output(path)
    golden = None if questions is None else read_questions(questions)
    with store_opener(settings, store)() as opened:
        info = opened.find_run(run)
        own = kept_judge(info)
        finished = rescore_run(
            info,
            opened,
            scoring_for(settings, match),
            settings,
            questions=golden,
            judge=judge.settings(own if own.models else settings.judge),
            progress=progress_for_terminal(quiet=as_json, doing="scoring"),
        )
        return conclude(finished, store=opened, outputs=outputs, as_json=as_json)
