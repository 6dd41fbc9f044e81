"""The HTML report: one file that opens anywhere, loads nothing, and in which no chatbot's text can run.

Every value is escaped and stripped of controls on its way into the page, and a content security policy allows only the
page's own style and script, by their hashes. Failures come first; a large run shows a bounded number of questions and
says so.
"""

from typing import BinaryIO

from answerkey.model.run import Run
from answerkey.model.summary import Latency
from answerkey.report.comparison_sheet import comparison_sheet, trend_table
from answerkey.report.detail import Limits
from answerkey.report.markup import policy_hash, report_asset, report_style, report_template
from answerkey.report.story import phases_sentence, story_sentences
from answerkey.report.view import ReportView, build_view
from answerkey.text.sanitise import one_line

# Questions shown one by one; beyond, the row formats are the place to look.
MOST_ROWS = 500
# With more questions than this, less of each is shown, so that the file stays small enough to mail.
_MANY = 100
# Categories in the table of speed.
_MOST_CATEGORIES = 20
_SHORT = Limits(reply=3_000, tool_text=400, source_text=300, calls=8, sources=6, turns=8, spans=100)


def write_html(run: Run, file: BinaryIO, *, rows: int = MOST_ROWS, home: str | None = None) -> None:
    """Write the report of a run; `home` is the page of all runs, where there is one."""
    limits = _SHORT if run.summary.questions > _MANY else Limits()
    view = build_view(run, worst=0, rows=rows, limits=limits)
    sheet = None if run.comparison is None else comparison_sheet(run.comparison)
    tables = [] if sheet is None else [*sheet.tables]
    if (trend := trend_table(run)) is not None:
        tables.append(trend)
    for part in report_template("report.html.j2").generate(
        **_context(view), sheet=sheet, tables=tables, home=home
    ):
        file.write(part.encode("utf-8"))


def _context(view: ReportView) -> dict[str, object]:
    style, script = report_style(), report_asset("report.js")
    policy = (
        f"default-src 'none'; style-src '{policy_hash(style)}'; script-src '{policy_hash(script)}'; "
        "img-src 'none'; base-uri 'none'; form-action 'none'"
    )
    return {
        "view": view,
        "story": story_sentences(view),
        "style": style,
        "script": script,
        "policy": policy,
        "categories": sorted({row.category for row in view.rows}),
        "errors": sorted({row.error for row in view.rows if row.error}),
        "shown_failures": sum(not row.passed for row in view.rows),
        "latencies": _latencies(view),
        "phases": phases_sentence(view.summary.phases_ms),
    }


def _latencies(view: ReportView) -> list[tuple[str, Latency]]:
    """The rows of the table of speed: all replies, each tool, and the first categories; none where nothing was timed."""
    summary = view.summary
    if summary.latency_ms is None:
        return []
    tools = [(f"tool {one_line(name, 120)}", taken) for name, taken in summary.tool_latency_ms.items()]
    categories = [
        (part.name, part.latency_ms)
        for part in view.categories[:_MOST_CATEGORIES]
        if part.latency_ms is not None
    ]
    return [("All replies", summary.latency_ms), *tools, *categories]
