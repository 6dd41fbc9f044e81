"""`answerkey report`: a stored run's report as files."""

from pathlib import Path

import click

from answerkey.cli.flags import json_flag, opened_store, output_flag, store_flag
from answerkey.cli.outcome import print_document

__all__ = ["report"]


@click.command()
@click.argument("run", default="latest")
@output_flag
@click.option(
    "--site",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a static site of the newest runs: an index with trends, a page a run, neighbours compared.",
)
@click.option(
    "--runs", "most", type=click.IntRange(1, 1000), default=50, show_default=True, help="Runs of a site."
)
@store_flag
@json_flag
def report(
    run: str, outputs: tuple[Path, ...], site: Path | None, most: int, store: str | None, as_json: bool
) -> int:
    """Write the report of a run to files; their endings choose the formats.

    A run that was made with a baseline or gates is held against them anew.

    \b
    Examples:
      answerkey report latest -o report.html
      answerkey report latest -o answerkey.comment.md
      answerkey report production -o report.html -o results.csv -o junit.junit.xml
      answerkey report --site public --runs 30
    """
    from answerkey.errors import UsageError
    from answerkey.evaluation.verdicts import decided_run
    from answerkey.report.files import check_output, report_endings, write_report

    if site is not None:
        if outputs or run != "latest":
            raise UsageError("--site is of many runs: name neither a run nor -o with it")
        from answerkey.report.site import write_site

        with opened_store(store) as opened:
            written = write_site(opened, site, most=most)
        if as_json:
            print_document({"site": str(site), "written": [str(path) for path in written]})
        else:
            click.echo(f"wrote {len(written)} pages; open {written[0]}", err=True)
        return 0
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
