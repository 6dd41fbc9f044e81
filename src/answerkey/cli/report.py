"""`answerkey report`: a stored run's report as files."""

from pathlib import Path

import click

from answerkey.cli.flags import json_flag, opened_store, output_flag, store_flag
from answerkey.cli.outcome import print_document

__all__ = ["report"]


@click.command()
@click.argument("run", default="latest")
@output_flag
@store_flag
@json_flag
def report(run: str, outputs: tuple[Path, ...], store: str | None, as_json: bool) -> int:
    """Write the report of a run to files; their endings choose the formats.

    A run that was made with a baseline or gates is held against them anew.

    \b
    Examples:
      answerkey report latest -o report.html
      answerkey report latest -o answerkey.comment.md
      answerkey report production -o report.html -o results.csv -o junit.junit.xml
    """
    from answerkey.errors import UsageError
    from answerkey.evaluation.verdicts import decided_run
    from answerkey.report.files import check_output, report_endings, write_report

    if not outputs:
        raise UsageError(f"no file is named; add -o report.html (or {' '.join(report_endings())})")
    for path in outputs:
        check_output(path)
    with opened_store(store) as opened:
        found = decided_run(opened, run)
        for path in outputs:
            write_report(found, path)
            if not as_json:
                click.echo(f"wrote {path}", err=True)
    if as_json:
        print_document({"run": found.id, "written": [str(path) for path in outputs]})
    return 0
