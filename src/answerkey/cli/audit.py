"""`answerkey audit`: what would bots that know nothing score?"""

import sys
from pathlib import Path

import click

from answerkey.cli.flags import json_flag, match_flag

__all__ = ["audit"]


@click.command()
@click.argument("questions", required=False, type=click.Path(path_type=Path))
@match_flag
@click.option(
    "--max-floor", type=click.FloatRange(0, 1), metavar="F", help="Exit with code 1 if the floor is above F."
)
@json_flag
def audit(questions: Path | None, match: str | None, max_floor: float | None, as_json: bool) -> int:
    """Let bots that know nothing answer a golden set, and say what gives its answers away.

    The bots: silent (no text), echo (repeats the question), refuser, every-tool (calls all tools, says nothing) and
    parrot (recites the keywords of the other questions). The floor is the best of their scores.

    \b
    Examples:
      answerkey audit golden.jsonl
      answerkey audit golden.jsonl --max-floor 0.65 --json
    """
    from answerkey.cli.flags import scoring_for
    from answerkey.config import load_settings
    from answerkey.evaluation.assembly import golden_set
    from answerkey.evaluation.audit import audit_document, audit_questions
    from answerkey.report.result_rows import encode

    settings = load_settings()
    chosen = golden_set(questions, settings)
    result = audit_questions(chosen, scoring_for(settings, match))
    if as_json:
        sys.stdout.buffer.write(encode(audit_document(result)) + b"\n")
        sys.stdout.buffer.flush()
    else:
        from answerkey.report.golden_text import print_audit

        print_audit(result, chosen)
    return 1 if max_floor is not None and result.floor > max_floor else 0
