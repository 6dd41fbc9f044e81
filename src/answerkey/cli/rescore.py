"""`answerkey rescore`: new scores from stored replies."""

from pathlib import Path

import click

from answerkey.cli.options import json_flag, match_flag, output_flag, store_flag, store_opener

__all__ = ["rescore"]


@click.command()
@click.argument("run", default="latest")
@match_flag
@click.option(
    "--questions",
    type=click.Path(path_type=Path),
    help="Score against this golden set's expectations instead.",
)
@store_flag
@output_flag
@json_flag
def rescore(
    run: str,
    match: str | None,
    questions: Path | None,
    store: str | None,
    outputs: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Score the stored replies of a run anew, under the scoring configured now; nothing is asked again.

    \b
    Examples:
      answerkey rescore latest --match smart
      answerkey rescore production --questions golden-v2.jsonl --json
    """
    from answerkey.cli.options import scoring_for
    from answerkey.cli.outcome import conclude
    from answerkey.config import load_settings
    from answerkey.datasets.questions import read_questions
    from answerkey.evaluation.rescoring import rescore_run
    from answerkey.report.writers import check_output

    settings = load_settings()
    for path in outputs:
        check_output(path)
    golden = None if questions is None else read_questions(questions)
    with store_opener(settings, store)() as opened:
        info = opened.find_run(run)
        finished = rescore_run(info, opened, scoring_for(settings, match), settings, questions=golden)
        return conclude(finished, store=opened, outputs=outputs, as_json=as_json)
