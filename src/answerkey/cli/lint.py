"""`answerkey lint`: is a golden set well written?"""

from pathlib import Path

import click
import msgspec

from answerkey.cli.flags import FILE, json_flag, map_flag, print_read_as
from answerkey.cli.outcome import print_document
from answerkey.config import load_settings
from answerkey.text.sanitise import for_terminal

__all__ = ["lint"]


@click.command()
@click.argument("questions", nargs=-1, type=FILE)
@map_flag
@click.option("--strict", is_flag=True, help="Exit with code 1 on warnings too, not only on errors.")
@json_flag
def lint(questions: tuple[Path, ...], fields: dict[str, str], strict: bool, as_json: bool) -> int:
    """Check golden sets: keyword guidelines, echoes, duplicates, tools that look mistyped, thin categories.

    Without QUESTIONS, the configured or bundled set is checked. Exits with code 1 if there are errors (with --strict:
    or warnings), and with code 2 if the set cannot be read.

    \b
    Examples:
      answerkey lint golden.jsonl
      answerkey lint golden/*.jsonl
      answerkey lint golden.jsonl --strict --json
      answerkey lint colleagues.xlsx --map question="What to ask"
    """
    from answerkey.evaluation.assembly import golden_set
    from answerkey.golden.findings import worst_severity
    from answerkey.golden.lint_questions import lint_questions
    from answerkey.report.golden_text import print_findings

    settings = load_settings()
    sets = [golden_set(path, settings, fields) for path in questions or (None,)]
    found = [lint_questions(chosen) for chosen in sets]
    if as_json:
        # Of several sets each finding says which one it is of.
        named = [
            msgspec.to_builtins(finding) | ({"file": str(path)} if len(sets) > 1 else {})
            for path, findings in zip(questions or ("",), found, strict=True)
            for finding in findings
        ]
        print_document({"findings": named})
    for chosen, findings in zip(sets, found, strict=True):
        print_read_as(chosen.read_as)
        if not as_json:
            if len(sets) > 1:
                click.echo(for_terminal(f"{chosen.path or chosen.name}:"))
            print_findings(findings, chosen)
    worst = {worst_severity(findings) for findings in found}
    return 1 if "error" in worst or (strict and "warning" in worst) else 0
