"""`answerkey audit`: what would bots that know nothing score?"""

from pathlib import Path

import click

from answerkey.cli.flags import json_flag, match_flag, questions_argument, scoring_for
from answerkey.cli.outcome import print_document
from answerkey.config import load_settings

__all__ = ["audit"]


@click.command()
@questions_argument
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
    from answerkey.evaluation.assembly import golden_set
    from answerkey.evaluation.audit import audit_document, audit_questions

    settings = load_settings()
    chosen = golden_set(questions, settings)
    result = audit_questions(chosen, scoring_for(settings, match))
    if as_json:
        print_document(audit_document(result))
    else:
        from answerkey.report.golden_text import print_audit

        print_audit(result, chosen)
    return 1 if max_floor is not None and result.floor > max_floor else 0
