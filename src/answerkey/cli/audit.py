"""`answerkey audit`: what would bots that know nothing score?"""

from pathlib import Path

import click

from answerkey.cli.flags import flag, match_flag, questions_argument, scoring_for
from answerkey.cli.outcome import Answer, answers
from answerkey.config import load_settings


@click.command()
@questions_argument
@match_flag
@flag("--max-floor F", "Exit with code 1 if the floor is above F.", type=click.FloatRange(0, 1))
@answers
def audit(questions: Path | None, match: str | None, max_floor: float | None) -> Answer:
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
    from answerkey.report.golden_text import print_audit

    settings = load_settings()
    chosen = golden_set(questions, settings)
    result = audit_questions(chosen, scoring_for(settings, match))
    too_high = max_floor is not None and result.floor > max_floor
    return Answer(audit_document(result), lambda: print_audit(result, chosen), int(too_high))
