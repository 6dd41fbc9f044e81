"""`answerkey report`: a stored run's report as files."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import flag, output_flag, with_store
from answerkey.cli.outcome import Answer, answers
from answerkey.errors import UsageError

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore


@click.command()
@click.argument("run", default="latest")
@output_flag
@flag(
    "--site DIR",
    "Write a static site of the newest runs: an index with trends, a page a run, neighbours compared.",
    type=click.Path(path_type=Path, file_okay=False),
)
@flag("--runs", "Runs of a site.", "most", type=click.IntRange(1, 1000), default=50, show_default=True)
@with_store()
@answers
def report(run: str, outputs: tuple[Path, ...], site: Path | None, most: int, store: "SqlStore") -> Answer:
    """Write the report of a run to files; their endings choose the formats.

    A run that was made with a baseline or gates is held against them anew.

    \b
    Examples:
      answerkey report latest -o report.html
      answerkey report latest -o answerkey.comment.md
      answerkey report production -o report.html -o results.csv -o junit.junit.xml
      answerkey report --site public --runs 30
    """
    from answerkey.evaluation.verdicts import decided_run
    from answerkey.report.files import check_output, report_endings, write_report

    if site is not None:
        if outputs or run != "latest":
            raise UsageError("--site is of many runs: name neither a run nor -o with it")
        from answerkey.report.site import write_site

        pages = write_site(store, site, most=most)
        written = [str(path) for path in pages]
        said = f"wrote {len(pages)} pages; open {pages[0]}"
        return Answer({"site": str(site), "written": written}, partial(click.echo, said, err=True))
    if not outputs:
        raise UsageError(f"no file is named; add -o report.html (or {' '.join(report_endings())})")
    for path in outputs:
        check_output(path)
    found = decided_run(store, run)
    for path in outputs:
        write_report(found, path)
    written = [str(path) for path in outputs]
    said = "\n".join(f"wrote {path}" for path in written)
    return Answer({"run": found.id, "written": written}, partial(click.echo, said, err=True))
