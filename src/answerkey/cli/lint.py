"""`answerkey lint`: is a golden set well written?"""

from pathlib import Path

import click
import msgspec

from answerkey.cli.flags import FILE, flag, map_flag, print_read_as
from answerkey.cli.outcome import Answer, answers
from answerkey.config import load_settings
from answerkey.text.sanitise import for_terminal


@click.command()
@click.argument("questions", nargs=-1, type=FILE)
@map_flag
@flag("--strict", "Exit with code 1 on warnings too, not only on errors.", is_flag=True)
@answers
def lint(questions: tuple[Path, ...], fields: dict[str, str], strict: bool) -> Answer:
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
    from answerkey.golden.lint_set import lint_questions
    from answerkey.report.golden_text import print_findings

    settings = load_settings()
    sets = [golden_set(path, settings, fields) for path in questions or (None,)]
    found = [lint_questions(chosen) for chosen in sets]
    # Of several sets each finding says which one it is of.
    named = [
        msgspec.to_builtins(finding) | ({"file": str(path)} if len(sets) > 1 else {})
        for path, findings in zip(questions or ("",), found, strict=True)
        for finding in findings
    ]

    def show() -> None:
        for chosen, findings in zip(sets, found, strict=True):
            if len(sets) > 1:
                click.echo(for_terminal(f"{chosen.path or chosen.name}:"))
            print_findings(findings, chosen)

    for chosen in sets:
        print_read_as(chosen.read_as)
    worst = {worst_severity(findings) for findings in found}
    refused = "error" in worst or (strict and "warning" in worst)
    return Answer({"findings": named}, show, int(refused))
