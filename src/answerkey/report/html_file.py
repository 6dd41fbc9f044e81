"""HTML: the report of a run in one file that loads nothing, and a static site of many runs.

Chatbot replies are untrusted: every value is escaped and stripped of control characters, and a content security policy
allows only the page's own style and script, by their hashes. A large run shows a bounded number of questions.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from answerkey.comparison.columns import Columns, columns_from_store
from answerkey.comparison.run_comparison import compare_runs
from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison
from answerkey.model.run import Latency, Run
from answerkey.report.charts import Chart, TrendPoint, trend_charts
from answerkey.report.detail import Limits
from answerkey.report.files import atomic_file
from answerkey.report.markup import compact_css, policy_hash, report_asset, report_style, report_template
from answerkey.report.sheets import comparison_sheet, trend_table, write_sheet
from answerkey.report.view import ReportView, build_view, phases_sentence, story_sentences
from answerkey.report.wording import score_percent
from answerkey.store.sql import RunFilter, RunRow, RunTable, SqlStore

# Questions shown in full; the row formats have all of them.
MOST_ROWS = 500
# With more questions than this, less of each is shown, to keep the file small enough to mail.
_MANY = 100
# The id of a scored log that is not in the store.
_UNSTORED_LOG = "recorded"
# Categories in the latency table.
_MOST_CATEGORIES = 20
_SHORT = Limits(reply=3_000, tool_text=400, source_text=300, calls=8, sources=6, turns=8, spans=100)


def write_html(run: Run, file: BinaryIO, *, rows: int = MOST_ROWS, home: str | None = None) -> None:
    """Write the report of a run; `home` is the address of the index of a site."""
    limits = _SHORT if run.summary.questions > _MANY else Limits()
    view = build_view(run, worst=0, rows=rows, limits=limits)
    sheet = None if run.comparison is None else comparison_sheet(run.comparison, score_percent)
    changes = [] if sheet is None else [table for table in sheet.tables if table.wordy]
    trend = trend_table(run, score_percent)
    tables = [] if trend is None else [trend]
    for part in report_template("report.html.j2").generate(
        **_context(view), comparison=run.comparison, sheet=sheet, changes=changes, tables=tables, home=home
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
        "rows_left_out": _rows_left_out(view),
        "latencies": _latencies(view),
        "phases": phases_sentence(view.summary.phases_ms),
    }


def _rows_left_out(view: ReportView) -> str:
    """Which rows a large run's page shows, and where the others are; empty if it shows all."""
    if view.total <= len(view.rows):
        return ""
    failures = sum(not row.passed for row in view.rows)
    which = "all" if failures == view.failed else "the worst"
    passed = ", then the first that passed" if failures < len(view.rows) else ""
    # Only a stored run can be reported again.
    command = "add `-o all.csv` to the same command"
    if view.info.id != _UNSTORED_LOG:
        command = f"use `answerkey report {view.info.id} -o all.csv`"
    return (
        f"This run has {view.counted(view.total)}; to stay small, this page shows {len(view.rows):,}: "
        f"{which} {failures:,} of the {view.failed:,} that failed{passed}. To get everything, {command}."
    )


def _latencies(view: ReportView) -> list[tuple[str, Latency]]:
    """The rows of the latency table: all replies, each tool, the first categories."""
    categories = [
        (part.name, part.latency_ms)
        for part in view.categories[:_MOST_CATEGORIES]
        if part.latency_ms is not None
    ]
    return [*view.latencies, *categories]


# A static site: an index with the trend of each experiment, a page per run, and each run compared with the one before.
# It overwrites only files that an earlier site wrote, which are listed in this file.
_LIST = ".answerkey-site.json"
_AT_ONCE = 200


class _SiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the index."""

    row: RunRow
    # The addresses of its pages; None if there is nothing to compare it with.
    page: str
    compared: str | None
    versus: Comparison | None


class _SiteExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a golden set and a chatbot, newest first."""

    question_set: str
    target: str
    runs: tuple[_SiteRun, ...]
    charts: tuple[tuple[str, Chart], ...]


def write_site(store: SqlStore, folder: Path, *, most: int) -> list[Path]:
    """Write the newest finished runs; returns the paths written, the index first."""
    written = _written_before(folder)
    experiments = [_planned(store, rows) for rows in _experiments(store, most)]
    if not experiments:
        raise UsageError("the store has no finished run; start one with: answerkey run")
    made = ["index.html"]
    made += [
        name
        for one in experiments
        for run in one.runs
        for name in (run.page, run.compared)
        if name is not None
    ]
    for name in made:
        if name not in written and (folder / name).exists():
            raise UsageError(f"{folder / name}: exists and was not written by answerkey; name another folder")
    for part in ("", "runs", "compare"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    # Before the pages, so that an interrupted site can be written again.
    _write_list(folder, sorted({*written, *made}))
    for experiment in experiments:
        for run in experiment.runs:
            _write_run(store, folder, run)
    _write_index(folder, experiments)
    for name in written - set(made):
        (folder / name).unlink(missing_ok=True)
    _write_list(folder, sorted(made))
    return [folder / name for name in made]


def _written_before(folder: Path) -> set[str]:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; name a folder")
    kept = folder / _LIST
    if kept.exists():
        try:
            names = msgspec.json.decode(kept.read_bytes(), type=list[str])
        except msgspec.DecodeError:
            raise UsageError(f"{kept}: cannot be read; delete it, or name another folder") from None
        # Only pages of a site: nothing else is ever deleted.
        return {name for name in names if _is_site_page(name)}
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty and not a site of answerkey; name an empty or new folder")
    return set()


def _is_site_page(name: str) -> bool:
    part, _, file = name.rpartition("/")
    return name == "index.html" or (
        part in ("runs", "compare")
        and file.endswith(".html")
        and not file.startswith(".")
        and "\\" not in file
    )


def _write_list(folder: Path, names: Sequence[str]) -> None:
    with atomic_file(folder / _LIST) as file:
        file.write(msgspec.json.format(msgspec.json.encode(names), indent=1))


def _experiments(store: SqlStore, most: int) -> Iterator[list[RunRow]]:
    """Finished runs, newest first, grouped by golden set and chatbot."""
    listed = RunTable(store)
    found: dict[tuple[str, str], list[RunRow]] = {}
    start = kept = 0
    while kept < most and (rows := listed.page(RunFilter(), limit=_AT_ONCE, offset=start)[0]):
        start += _AT_ONCE
        for row in rows:
            if kept < most and row.figures is not None and row.info.status != "running":
                found.setdefault((row.info.question_set, row.info.target), []).append(row)
                kept += 1
    yield from found.values()


def _planned(store: SqlStore, rows: Sequence[RunRow]) -> _SiteExperiment:
    columns: dict[str, Columns] = {}
    runs = []
    for number, row in enumerate(rows):
        before = rows[number + 1] if number + 1 < len(rows) else None
        versus = None if before is None else _versus(store, before, row, columns)
        name = (
            f"compare/{before.info.id}--{row.info.id}.html"
            if before is not None and versus is not None
            else None
        )
        runs.append(_SiteRun(row=row, page=f"runs/{row.info.id}.html", compared=name, versus=versus))
    points = [
        TrendPoint(run.row, run.row.figures, None if run.versus is None else run.versus.verdict)
        for run in reversed(runs)
        if run.row.figures and run.row.figures.score is not None
    ]
    info = rows[0].info
    return _SiteExperiment(
        question_set=info.question_set,
        target=info.target,
        runs=tuple(runs),
        charts=trend_charts(points, lambda run: f"runs/{run}.html", info.options.gates),
    )


def _versus(
    store: SqlStore, base: RunRow, candidate: RunRow, columns: dict[str, Columns]
) -> Comparison | None:
    """The comparison with the run before; None if they have no question in common."""
    for row in (base, candidate):
        if row.info.id not in columns:
            columns[row.info.id] = columns_from_store(store, [row.info])[0]
    try:
        return compare_runs(columns[base.info.id], columns.pop(candidate.info.id))
    except UsageError:
        return None


def _write_run(store: SqlStore, folder: Path, run: _SiteRun) -> None:
    with atomic_file(folder / run.page) as file:
        write_html(store.load_run(run.row.info), file, home="../index.html")
    if run.compared is not None and run.versus is not None:
        sheet = comparison_sheet(run.versus, score_percent)
        write_sheet(sheet, run.versus, folder / run.compared, home="../index.html")


def _write_index(folder: Path, experiments: Sequence[_SiteExperiment]) -> None:
    style = report_style() + compact_css(report_asset("charts.css"))
    page = report_template("site.html.j2").render(
        experiments=experiments, style=style, style_hash=policy_hash(style)
    )
    with atomic_file(folder / "index.html") as file:
        file.write(page.encode())
