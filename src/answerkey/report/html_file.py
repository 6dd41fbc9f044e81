"""A comparison or a ranking as a sheet of words and tables, and the sheet as Markdown, HTML or JSON."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from answerkey.comparison.run_comparison import Columns, columns_from_store, compare_runs
from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison, Flip, Measure
from answerkey.model.result_rows import encode
from answerkey.model.run import EarlierRun, Run, RunInfo
from answerkey.model.summary import Latency, Summary
from answerkey.report.charts import Chart, trend_charts, trend_point
from answerkey.report.detail import Limits
from answerkey.report.files import atomic_file
from answerkey.report.markup import compact_css, policy_hash, report_asset, report_style, report_template
from answerkey.report.view import ReportView, build_view, phases_sentence, story_sentences
from answerkey.report.wording import (
    comparison_facts,
    comparison_headline,
    confirmation_lines,
    count,
    gate_words,
    measure_words,
    metric_range_text,
    metric_text,
    milliseconds,
    money,
    name_words,
    percent,
    range_text,
    score_text,
)
from answerkey.stats.intervals import Interval
from answerkey.store.run_list import RunFilter, RunRow, RunTable
from answerkey.store.sql import SqlStore
from answerkey.text.dates import local_time
from answerkey.text.normalise import for_markdown, one_line

if TYPE_CHECKING:
    from answerkey.comparison.run_ranking import Mean, Ranked, Ranking


_ENDINGS = (".html", ".md", ".json")
_FLIPS_SHOWN = 50
_NAME = 40
# Of a reply that flipped.
_REPLY = 400


class SheetTable(msgspec.Struct, frozen=True):
    """A table of texts; the first column names the rows."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    # Whether its cells are sentences rather than figures.
    wordy: bool = False


class Sheet(msgspec.Struct, frozen=True):
    """What a comparison says."""

    title: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    tables: tuple[SheetTable, ...]


def comparison_sheet(comparison: Comparison) -> Sheet:
    """Two runs."""
    base, candidate = comparison.base, comparison.candidate
    lines = (
        f"{base.name} ({base.id}) → {candidate.name} ({candidate.id})",
        *comparison_facts(comparison),
        *comparison.reasons,
        *confirmation_lines(comparison),
    )
    heads = ("", "base → candidate", "points", "95% interval", "p", "corrected verdict")
    measures = (comparison.score, *comparison.components, *comparison.categories)
    tables = [SheetTable("", heads, tuple(map(_measure_row, measures)))]
    if comparison.flips:
        tables.append(flips_table(comparison, _FLIPS_SHOWN, _REPLY))
    if comparison.metrics:
        rows = tuple(map(_measure_row, comparison.metrics))
        tables.append(SheetTable("Beside the score", (*heads[:2], "change", *heads[3:]), rows))
    title = comparison_headline(comparison)
    if comparison.regression and comparison.verdict != "worse":
        title = f"worse: {count(comparison.broken, 'question')} broken for sure; of the mean {title}"
    return Sheet(title, lines, comparison.notes, tuple(tables))


def _measure_row(measure: Measure) -> tuple[str, ...]:
    """The interval and the p-value are of this measure alone; the verdict is corrected for all of its kind."""
    return (one_line(measure.name, _NAME), *measure_words(measure), measure.verdict)


def flips_table(comparison: Comparison, most: int, width: int) -> SheetTable:
    """Questions that flipped, with both replies side by side, so much of each."""
    broken = len(comparison.flips) - comparison.fixed
    title = f"{broken} broken, {comparison.fixed} fixed"
    said = (f"{comparison.base.name} said", f"{comparison.candidate.name} says")
    rows = tuple(_flip_row(flip, width) for flip in comparison.flips[:most])
    return SheetTable(title, ("question", "", "score", *said, "because"), rows, wordy=True)


def trend_table(run: Run) -> SheetTable | None:
    """The runs before this one and itself, the oldest first; None where it is the first."""
    if not run.earlier:
        return None
    runs: list[tuple[RunInfo | EarlierRun, Summary | EarlierRun]] = [(one, one) for one in run.earlier]
    rows = tuple(
        (
            f"{one_line(one.name, _NAME)} ({one.id})",
            local_time(one.created_at),
            f"{score_text(figures.score)} {figures.grade or ''}".rstrip(),
            range_text(figures.interval),
            f"{figures.passed:,}/{figures.questions:,}",
            milliseconds(figures.latency_ms.p95 if figures.latency_ms else None),
            ""
            if one.question_set_hash == run.info.question_set_hash
            else "another version of the golden set",
        )
        for one, figures in [*runs, (run.info, run.summary)]
    )
    return SheetTable("The runs before", ("run", "", "score", "95% interval", "passed", "p95", ""), rows)


def _flip_row(flip: Flip, width: int) -> tuple[str, ...]:
    asks = f"{flip.id}: {flip.question}" if flip.question else flip.id
    change = f"{score_text(flip.score_from)} → {score_text(flip.score_to)}"
    said = (one_line(text, width) for text in (flip.reply_from, flip.reply_to, flip.because))
    return (one_line(asks, 120), flip.kind, change, *said)


def ranking_sheet(ranking: "Ranking") -> Sheet:
    """Many runs: a column for each, the best first."""
    left_out = f", {ranking.left_out:,} left out because a run lacks them" if ranking.left_out else ""
    grouped = f" in {ranking.units:,} units" if ranking.units < ranking.questions else ""
    lines = (
        f"{count(ranking.questions, 'question')}{grouped} in all runs{left_out}.",
        "Runs that share a letter cannot be told apart; ● no other run is clearly better in score, latency or cost "
        "without being clearly worse in another of these. Intervals of 95% in brackets.",
    )
    heads = ("", *(f"{run.rank}. {one_line(run.name, 24)}" for run in ranking.runs))
    return Sheet(
        f"{len(ranking.runs)} runs, best first",
        lines,
        (*ranking.notes, *_failed_gates(ranking.runs)),
        (SheetTable("", heads, tuple(_matrix(ranking.runs))),),
    )


def _matrix(runs: "Sequence[Ranked]") -> Iterator[tuple[str, ...]]:
    """A row for everything that is known of a run."""

    def row(name: str, cells: Sequence[str]) -> tuple[str, ...]:
        return (one_line(name, _NAME), *cells)

    yield row("run", [run.id for run in runs])
    yield row("score", [f"{score_text(run.score)} ({range_text(run.interval)})" for run in runs])
    yield row("grade", [run.grade for run in runs])
    yield row("group", [run.groups + (" ●" if run.pareto else "") for run in runs])
    yield row("p50 a question", [milliseconds(run.latency_p50_ms) for run in runs])
    yield row("p95 a question", [milliseconds(run.latency_p95_ms) for run in runs])
    yield row("errors", [f"{percent(run.error_rate)}{_rates(run.error_interval)}" for run in runs])
    if any(run.cost is not None for run in runs):
        yield row("cost a question", [_cost_text(run.cost) for run in runs])
        yield row("cost a point", [_cost_text(run.cost_per_point) for run in runs])
    for name in dict.fromkeys(name for run in runs for name in run.categories):
        yield row(f"· {name}", [_mean_text(run.categories.get(name)) for run in runs])
    for name in dict.fromkeys(name for run in runs for name in run.measures):
        yield row(name_words(name), [_mean_text(run.measures.get(name)) for run in runs])
    if any(run.judge_reliable is not None for run in runs):
        words = {True: "reliable", False: "UNRELIABLE", None: "–"}
        yield row("the judge is", [words[run.judge_reliable] for run in runs])
    for gate in dict.fromkeys(result.gate for run in runs for result in run.gates):
        passed = [{result.gate: result.passed for result in run.gates}.get(gate) for run in runs]
        yield row(f"gate {gate}", [{True: "passed", False: "FAILED", None: "–"}[result] for result in passed])


def _failed_gates(runs: "Sequence[Ranked]") -> Iterator[str]:
    """Why a gate failed on which run."""
    for run in runs:
        for result in run.gates:
            if not result.passed:
                yield f"gate FAILED on {one_line(run.name, 24)}: {gate_words(result)}"


def _rates(interval: Interval | None) -> str:
    return "" if interval is None else f" ({percent(interval.low)}–{percent(interval.high)})"


def _cost_text(cost: "Mean | None") -> str:
    if cost is None:
        return "–"
    if cost.interval is None:
        return money(cost.mean)
    return f"{money(cost.mean)} ({money(max(0.0, cost.interval.low))}–{money(cost.interval.high)})"


def _mean_text(mean: "Mean | None") -> str:
    return "–" if mean is None else f"{metric_text(mean.mean)}{metric_range_text(mean.interval)}"


def check_sheet_output(path: Path) -> None:
    """Refuse a file whose ending no comparison can be written in."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{path}: a comparison is written as one of {' '.join(_ENDINGS)}")


def write_sheet(sheet: Sheet, document: Any, path: Path, *, home: str | None = None) -> None:
    """Write a sheet, or the document it is of, in the format of the path's ending; `home` is the page of all runs."""
    check_sheet_output(path)
    ending = path.suffix.lower()
    if ending == ".json":
        content = encode(document) + b"\n"
    elif ending == ".md":
        content = sheet_markdown(sheet).encode()
    else:
        style = report_style()
        page = report_template("comparison.html.j2").render(
            sheet=sheet, style=style, style_hash=policy_hash(style), home=home
        )
        content = page.encode()
    with atomic_file(path) as file:
        file.write(content)


def sheet_markdown(sheet: Sheet) -> str:
    """The sheet for job summaries and pull requests."""
    lines = [sheet_heading(sheet)]
    lines += [f"\n{for_markdown(line)}" for line in (*sheet.lines, *sheet.warnings)]
    for table in sheet.tables:
        lines += ["", f"**{for_markdown(table.title)}**"] if table.title else []
        lines += table_markdown(table)
    return "\n".join(lines) + "\n"


def sheet_heading(sheet: Sheet) -> str:
    """The verdict with a sign that can be seen from afar."""
    signs = {"better": "🟢 ", "worse": "🔴 ", "same": "🟰 ", "no clear difference": "⚪ "}
    return f"### {signs.get(sheet.title.partition(':')[0], '')}{for_markdown(sheet.title)}"


def table_markdown(table: SheetTable) -> Iterator[str]:
    """A table's lines, the first one empty."""
    yield from ("", f"| {' | '.join(map(for_markdown, table.heads))} |", "|---" * len(table.heads) + "|")
    yield from (f"| {' | '.join(map(for_markdown, row))} |" for row in table.rows)


# The HTML report: one file that opens anywhere, loads nothing, and in which no chatbot's text can run.
#
# Every value is escaped and stripped of controls on its way into the page, and a content security policy allows only the
# page's own style and script, by their hashes. Failures come first; a large run shows a bounded number of questions and
# says so.


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


# A static site of many runs: an index with the trend of each experiment, a page a run, and neighbours compared.
#
# It works from a folder without a server. It overwrites only what an earlier one of its own wrote, which a list in the
# folder says.


# What an earlier site of this program consists of.
_LIST = ".answerkey-site.json"
_AT_ONCE = 200


class _SiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the index."""

    row: RunRow
    # Where its pages are; None: there is nothing to compare it with.
    page: str
    compared: str | None
    versus: Comparison | None


class _SiteExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """A golden set asked of a chatbot, its runs newest first."""

    question_set: str
    target: str
    runs: tuple[_SiteRun, ...]
    charts: tuple[tuple[str, Chart], ...]


def write_site(store: SqlStore, folder: Path, *, most: int) -> list[Path]:
    """Write the newest finished runs; what was written is returned, the index first."""
    written = _written_before(folder)
    experiments = [_planned(store, rows) for rows in _experiments(store, most)]
    if not experiments:
        raise UsageError("no finished run is in the store; `answerkey run` makes one")
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
            raise UsageError(
                f"{folder / name}: there is such a file, which no site of ours wrote; name another folder"
            )
    for part in ("", "runs", "compare"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    # Before the pages: what is interrupted can be written again.
    _keep_list(folder, sorted({*written, *made}))
    for experiment in experiments:
        for run in experiment.runs:
            _write_run(store, folder, run)
    _write_index(folder, experiments)
    for name in written - set(made):
        (folder / name).unlink(missing_ok=True)
    _keep_list(folder, sorted(made))
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
        # Only what a site can consist of: nothing else is ever deleted.
        return {name for name in names if _is_ours(name)}
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty, and no site of ours; name an empty folder or a new one")
    return set()


def _is_ours(name: str) -> bool:
    part, _, file = name.rpartition("/")
    return name == "index.html" or (
        part in ("runs", "compare")
        and file.endswith(".html")
        and not file.startswith(".")
        and "\\" not in file
    )


def _keep_list(folder: Path, names: Sequence[str]) -> None:
    with atomic_file(folder / _LIST) as file:
        file.write(msgspec.json.format(msgspec.json.encode(names), indent=1))


def _experiments(store: SqlStore, most: int) -> Iterator[list[RunRow]]:
    """Finished runs, newest first, those of one set and one chatbot together."""
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
        trend_point(row, row.figures)
        for row in reversed(rows)
        if row.figures and row.figures.score is not None
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
    """The comparison with the run before; None where they have nothing in common."""
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
        write_sheet(comparison_sheet(run.versus), run.versus, folder / run.compared, home="../index.html")


def _write_index(folder: Path, experiments: Sequence[_SiteExperiment]) -> None:
    style = report_style() + compact_css(report_asset("charts.css") + report_asset("site.css"))
    page = report_template("site.html.j2").render(
        experiments=experiments, style=style, style_hash=policy_hash(style)
    )
    with atomic_file(folder / "index.html") as file:
        file.write(page.encode())
