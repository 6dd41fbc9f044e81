"""`answerkey score`: grade recorded replies."""

from pathlib import Path

import click

from answerkey.cli.options import json_flag, match_flag, output_flag, scoring_for

__all__ = ["score"]


@click.command()
@click.argument("replies", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--questions", type=click.Path(path_type=Path), help="The golden set, where rows carry no expectations."
)
@match_flag
@click.option("--gate", "gates", multiple=True, metavar="EXPR", help='A condition, as "score >= 0.85".')
@output_flag
@json_flag
def score(
    replies: tuple[Path, ...],
    questions: Path | None,
    match: str | None,
    gates: tuple[str, ...],
    outputs: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Grade replies that were recorded earlier, one object a line; nothing is asked and nothing is stored.

    \b
    Examples:
      answerkey score replies.jsonl --questions golden.jsonl
      answerkey score log.jsonl -o scored.parquet --json
    """
    from answerkey.cli.outcome import conclude
    from answerkey.config import load_settings
    from answerkey.datasets.questions import read_questions
    from answerkey.evaluation.recorded import score_recorded
    from answerkey.gate import parse_gate
    from answerkey.report.writers import check_output
    from answerkey.scorers.plan import make_grader

    settings = load_settings()
    for gate in gates:
        parse_gate(gate)
    for path in outputs:
        check_output(path)
    golden = None if questions is None else read_questions(questions)
    grader = make_grader(scoring_for(settings, match), settings)
    scored = score_recorded(replies, grader=grader, questions=golden)
    return conclude(scored, gates=gates, outputs=outputs, as_json=as_json)
