"""`answerkey lint`: is a golden set well written?"""

from pathlib import Path

import click

from answerkey.cli.flags import json_flag, map_flag, print_read_as, questions_argument
from answerkey.cli.outcome import print_document
from answerkey.config import load_settings

__all__ = ["lint"]


@click.command()
@questions_argument
@map_flag
@click.option("--strict", is_flag=True, help="Exit with code 1 on warnings too, not only on errors.")
@json_flag
def lint(questions: Path | None, fields: dict[str, str], strict: bool, as_json: bool) -> int:
    """Check a golden set: keyword guidelines, echoes, duplicates, tools that look mistyped, thin categories.

    Without QUESTIONS, the configured or bundled set is checked. Exits with code 1 if there are errors (with --strict:
    or warnings), and with code 2 if the set cannot be read.

    \b
    Examples:
      answerkey lint golden.jsonl
      answerkey lint golden.jsonl --strict --json
      answerkey lint colleagues.xlsx --map question="What to ask"
    """
    from answerkey.evaluation.assembly import golden_set
    from answerkey.golden.findings import worst_severity
    from answerkey.golden.lint_questions import lint_questions
    from answerkey.report.golden_text import print_findings

    chosen = golden_set(questions, load_settings(), fields)
    print_read_as(chosen.read_as)
    findings = lint_questions(chosen)
    if as_json:
        print_document({"findings": findings})
    else:
        print_findings(findings, chosen)
    worst = worst_severity(findings)
    return 1 if worst == "error" or (strict and worst == "warning") else 0
