"""HTML and Markdown: the report of a run, a static site of many runs, GitHub job summaries, annotations and comments.

An HTML report is one file that loads nothing. Chatbot replies are untrusted: every value is escaped, and in HTML stripped of
control characters, so that it cannot become markup or a workflow command; a content security policy allows only the page's own
style and script, by their hashes. A large run shows a bounded number of questions.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

import msgspec

from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison
from answerkey.model.run import GateResult, Latency, Run, Summary
from answerkey.report.detail import Limits
from answerkey.report.markup import (
    Chart,
    TrendPoint,
    compact_css,
    policy_hash,
    report_asset,
    report_style,
    report_template,
    trend_charts,
)
from answerkey.report.result_files import atomic_file
from answerkey.report.sheets import (
    SheetTable,
    changes_table,
    comparison_sheet,
    sheet_heading,
    sheet_markdown,
    table_markdown,
    trend_table,
    write_sheet,
)
from answerkey.report.view import (
    ReportView,
    build_view,
    compared_causes,
    failures_of,
    own_causes,
    phases_sentence,
    story_sentences,
)
from answerkey.report.wording import (
    change_words,
    comparison_headline,
    cost_line,
    count,
    critical_line,
    gate_value,
    gate_words,
    grade_words,
    judge_line,
    metric_range_text,
    metric_text,
    milliseconds,
    name_words,
    passed_texts,
    percent,
    range_text,
    score_percent,
    score_text,
    suspected_lines,
    time_range_text,
)
from answerkey.store.sql import RunFilter, RunRow, RunTable, SqlStore
from answerkey.text.normalise import for_markdown, for_terminal, one_line

if TYPE_CHECKING:
    from answerkey.comparison.columns import Columns

# A pull request's comment is limited to 65,536 characters; this many questions fit easily.
_WORST = 25
_PARTS = 40
# Characters of a name or a text.
_WIDTH = 200


def write_markdown(run: Run, file: BinaryIO) -> None:
    file.write(markdown_report(run).encode("utf-8"))


def markdown_report(run: Run) -> str:
    """The report of a run as Markdown; failed gates and why points were lost come first, then a comparison."""
    view = build_view(run, worst=_WORST)
    first = [*gate_lines(view.failed_gates), *(f"- {_safe(line, 400)}" for line in view.reasons)]
    if first:
        first = [*_critical(view.summary), *first]
    verdict = "".join(f"{line}\n" for line in [*first, *([""] if first else [])])
    if run.comparison is not None:
        sheet = comparison_sheet(run.comparison, causes=not view.reasons)
        verdict += sheet_markdown(sheet) + "\n"
    lines = [*_lines(view)]
    if (trend := trend_table(run)) is not None:
        lines[-2:-2] = _section(trend)
    return verdict + "\n".join(lines) + "\n"


def _lines(view: ReportView) -> Iterator[str]:
    summary = view.summary
    interval = (
        f" ({summary.interval.level:.0%} interval {range_text(summary.interval)})" if summary.interval else ""
    )
    words = grade_words(summary)
    weak = f" — {words}" if words.startswith("but ") else ""
    yield f"# {_safe(view.title)}: {summary.grade or '–'} · {score_text(summary.score)}{interval}{weak}"
    yield ""
    if not view.failed_gates:
        yield from _critical(summary)
    yield _safe(" ".join((*story_sentences(view), *view.key)), 2000)
    if view.later_causes:
        yield ""
        yield from (f"- {_safe(line, 400)}" for line in view.later_causes)
    if view.warnings:
        yield ""
        yield from (f"> ⚠️ {_safe(warning, 500)}  " for warning in view.warnings)
    if view.gates:
        yield ""
        yield "## Gates"
        yield ""
        yield from gate_lines(view.gates)
    yield from _section(_components(view))
    yield from _section(_categories(view))
    if summary.suspected_errors:
        yield ""
        yield f"Suspected errors, not charged: {count(summary.suspected_errors, 'reply', 'replies')}"
        yield ""
        yield from (f"- {_safe(words, 300)}" for words in suspected_lines(summary))
    yield from _section(_metrics(summary))
    if line := cost_line(summary.cost):
        yield ""
        yield f"Cost: {line}."
    if line := judge_line(view.info.judge):
        yield ""
        yield _safe(line[:1].upper() + line[1:], 300) + "."
    yield from _section(_latency(view))
    yield from _worst(view)
    yield ""
    passed = " · ".join(passed_texts(summary))
    asked = f"{passed} · coverage {score_percent(summary.coverage)}"
    yield f"<sub>run {_safe(view.info.id)} · {asked}</sub>"


def _components(view: ReportView) -> SheetTable:
    rows = (
        (
            name_words(part.name),
            percent(part.weight, 0),
            score_text(part.score) if part.measured else "not measured",
            range_text(part.interval) if part.measured else "",
        )
        for part in view.components
    )
    return SheetTable("Components", ("component", "weight", "score", "95% interval"), tuple(rows))


def _categories(view: ReportView) -> SheetTable:
    rows = (
        (
            one_line(part.name, _WIDTH),
            part.grade or "–",
            score_text(part.score),
            range_text(part.interval),
            f"{part.passed:,}/{part.questions:,}",
            milliseconds(part.latency_ms.p95 if part.latency_ms else None),
        )
        for part in view.categories[:_PARTS]
    )
    heads = ("category", "grade", "score", "95% interval", "passed", "p95")
    return SheetTable("Categories, weakest first", heads, tuple(rows))


def _critical(summary: Summary) -> Iterator[str]:
    """The critical questions that failed."""
    if critical := critical_line(summary):
        yield f"> 🛑 **{_safe(critical, 1500)}**"
        yield ""


def gate_lines(gates: Iterable[GateResult]) -> Iterator[str]:
    """Gates as a list, with their values."""
    for gate in gates:
        value = _safe(gate_value(gate.value))
        sign, outcome = ("✅", "passed") if gate.passed else ("❌", "failed")
        yield f"- {sign} {_safe(gate.gate)} {outcome}: {value}{_safe(gate.because)}"


def _safe(text: str, width: int = _WIDTH) -> str:
    return for_markdown(one_line(text, width))


def _section(table: SheetTable) -> Iterator[str]:
    """A table under its title, unless it is empty."""
    if table.rows:
        yield from ("", f"## {table.title}", *table_markdown(table))


def _metrics(summary: Summary) -> SheetTable:
    rows = (
        (
            one_line(name_words(name), _WIDTH),
            metric_text(value),
            metric_range_text(summary.metric_intervals.get(name)).strip(" ()"),
        )
        for name, value in summary.metrics.items()
    )
    return SheetTable("Other metrics", ("metric", "mean", "95% interval"), tuple(rows))


def _latency(view: ReportView) -> SheetTable:
    rows = []
    for name, taken in view.latencies:
        mean, *rest = (milliseconds(getattr(taken, figure)) for figure in Latency.FIGURES)
        rows.append((name, mean, time_range_text(taken.mean_interval), *rest))
    return SheetTable("Latency", ("", "mean", "95% interval", *Latency.FIGURES[1:]), tuple(rows))


def _worst(view: ReportView) -> Iterator[str]:
    if not view.worst:
        return
    yield ""
    more = f" ({len(view.worst)} of {view.imperfect:,})" if view.imperfect > len(view.worst) else ""
    yield f"## {'Replies' if view.lists_replies else 'Questions'} that lost points{more}"
    yield ""
    for question in view.worst:
        trials = f" ({question.trials_passed}/{question.trials} trials passed)" if question.trials > 1 else ""
        head = f"**{question.grade or '–'} {score_text(question.score)}** {_safe(question.id, 60)}"
        critical = "🛑 critical: " if question.critical else ""
        line = "" if question.line is None else f" (line {question.line})"
        yield f"- {critical}{head}{trials}{line}: {_safe(question.question, 160)}"
        if view.lists_replies and question.reply:
            yield f"  - “{_safe(question.reply, 160)}”"
        for loss in question.losses[:10]:
            yield f"  - {_safe(loss.words, 300)} {loss.cost}".rstrip()


# GitHub: a line that begins with `::` would be a command to the runner, and Markdown could hide or fake results.

# GitHub shows ten annotations of a step and drops the rest.
MOST_ANNOTATIONS = 10
# GitHub refuses a job summary above one mebibyte.
_LONGEST_SUMMARY = 900_000


def write_to_github(run: Run, stream: TextIO) -> None:
    """Write annotations to a stream that the runner reads, and append the job summary to its file."""
    for line in annotations(run):
        stream.write(line + "\n")
    stream.flush()
    summary_file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary_file:
        return
    text = markdown_report(run)
    if len(text.encode()) > _LONGEST_SUMMARY:
        text = (
            text.encode()[:_LONGEST_SUMMARY].decode(errors="ignore")
            + "\n\n… truncated; the report files have the rest\n"
        )
    try:
        with Path(summary_file).open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        stream.write(
            _command("warning", "answerkey", f"cannot write the job summary: {error.strerror}") + "\n"
        )


def annotations(run: Run) -> list[str]:
    """Workflow commands: the largest causes, failed gates, then questions that got worse, then the worst of the failed ones."""
    comparison = run.comparison
    level = "notice" if run.passed else "error"
    # GitHub shows the first annotation first.
    found = [_command(level, "Cause", line[:600]) for line in compared_causes(run)[:2]]
    found += [_command("error", "Gate failed", gate_words(gate)) for gate in run.gates if not gate.passed]
    found += [_command(level, "Cause", line[:600]) for line in own_causes(run)[:2]]
    named: set[str] = set()
    if comparison is not None:
        if comparison.regression:
            found.append(_command("error", "Regression", comparison_headline(comparison)))
        for change in comparison.fallen:
            if change.kind != "flaky":
                named.add(change.id)
                title = f"{change.kind.capitalize()}: {change.id}"
                found.append(_command("warning", title, change_words(change)[:600]))
    if len(found) < MOST_ANNOTATIONS:
        found += _failure_annotations(run, named, MOST_ANNOTATIONS - len(found))
    if len(found) > MOST_ANNOTATIONS:
        more = len(found) - MOST_ANNOTATIONS + 1
        found = [
            *found[: MOST_ANNOTATIONS - 1],
            _command("notice", "answerkey", f"{more} more in the job summary"),
        ]
    return found


def _failure_annotations(run: Run, listed: set[str], most: int) -> Iterator[str]:
    failed = (question for question in failures_of(run) if question.id not in listed)
    for question in nsmallest(most, failed, key=lambda question: question.score or 0.0):
        reasons = "; ".join(map(str, question.losses))
        message = f"score {score_text(question.score)}: {reasons}"[:600]
        yield _command("warning", f"Failed: {question.id}", message)


def _command(level: str, title: str, message: str) -> str:
    """A workflow command, with GitHub's escapes for special characters."""
    return f"::{level} title={_escape(title, property_value=True)}::{_escape(message)}"


def _escape(text: str, *, property_value: bool = False) -> str:
    safe = " ".join(for_terminal(text).split())
    safe = safe.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return safe.replace(":", "%3A").replace(",", "%2C") if property_value else safe


# Changed questions in a comment.
_CHANGES = 10
# Characters of each reply.
_REPLY = 160


def _fallen_lines(comparison: Comparison) -> Iterator[str]:
    """The questions that got worse, each with its reason."""
    fallen = comparison.fallen
    for change in fallen[:_CHANGES]:
        yield f"- {change.kind}: **{_safe(change.id, 60)}** {_safe(change_words(change), 300)}"
    if len(fallen) > _CHANGES:
        yield f"- … and {len(fallen) - _CHANGES} more"


def write_comment(run: Run, file: BinaryIO) -> None:
    file.write(("\n".join(_comment_lines(run)) + "\n").encode("utf-8"))


def _comment_lines(run: Run) -> Iterator[str]:
    info, summary, comparison = run.info, run.summary, run.comparison
    # Hidden, and the same for every run of a golden set and a chatbot, so that a bot can update its earlier comment.
    marker = sha256(f"{info.question_set}\0{info.target}".encode("utf-8", "replace")).hexdigest()[:12]
    yield f"<!-- answerkey {marker} -->"
    interval = f" ({range_text(summary.interval)})" if summary.interval else ""
    name = for_markdown(one_line(info.name or info.id, 60))
    words = grade_words(summary)
    weak = f" — {words}" if words.startswith("but ") else ""
    result = f"{summary.grade or '–'} · {score_text(summary.score)}{interval}{weak}"
    passed = "; ".join(passed_texts(summary))
    sheet = None if comparison is None else comparison_sheet(comparison)
    yield f"### {name}: {result}" if sheet is None else sheet_heading(sheet)
    # The reason comes first: critical questions, causes, failed gates, and what got worse.
    yield from _critical(summary)
    if reasons := (compared_causes(run) or own_causes(run)):
        yield ""
        yield from (f"- **{_safe(line, 300)}**" for line in reasons)
    if run.gates:
        yield ""
        yield from gate_lines(sorted(run.gates, key=lambda gate: gate.passed))
    for warning in run.warnings:
        yield f"\n> ⚠️ {for_markdown(one_line(warning, 300))}"
    if comparison is not None and comparison.fallen:
        yield ""
        yield from _fallen_lines(comparison)
    yield f"\n{passed}." if sheet is None else f"\n**{name}: {result}**, {passed}."
    if sheet is not None and comparison is not None:
        yield "\n<details><summary>Figures and replies</summary>\n"
        yield from (f"{for_markdown(line)}  " for line in (*sheet.lines, *sheet.warnings))
        if (changes := changes_table(comparison, _CHANGES, _REPLY)) is not None:
            yield f"\n{for_markdown(changes.title)}"
            yield from table_markdown(changes)
        yield "\n</details>"
    if run.earlier:
        scores = " → ".join(map(score_text, [*(one.score for one in run.earlier), summary.score]))
        yield f"\nScores of earlier runs and this one: {scores}"
    yield f"\n<sub>answerkey · run {info.id}</sub>"


# Questions shown in full; the row formats have all of them.
MOST_ROWS = 500
# With more questions than this, less of each is shown, to keep the file small enough to mail.
_MANY = 100
# The id of a scored log that is not in the store.
_UNSTORED_LOG = "recorded"
# Categories in the latency table.
_MOST_CATEGORIES = 20
_SHORT = Limits(reply=3_000, tool_text=400, source_text=300, calls=8, sources=6, turns=8, spans=100)


def write_html(run: Run, file: BinaryIO, *, home: str | None = None) -> None:
    """Write the report of a run; `home` is the address of the index of a site."""
    limits = _SHORT if run.summary.questions > _MANY else Limits()
    view = build_view(run, worst=0, rows=MOST_ROWS, limits=limits)
    sheet = (
        None
        if run.comparison is None
        else comparison_sheet(run.comparison, score_percent, causes=not view.reasons)
    )
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


def _experiments(store: SqlStore, most: int) -> Iterable[list[RunRow]]:
    """Finished runs, newest first, grouped by golden set and chatbot."""
    found: dict[tuple[str, str], list[RunRow]] = {}
    rows = RunTable(store).every(RunFilter())
    finished = (row for row in rows if row.figures is not None and row.info.status != "running")
    for row in islice(finished, most):
        found.setdefault((row.info.question_set, row.info.target), []).append(row)
    return found.values()


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
    store: SqlStore, base: RunRow, candidate: RunRow, columns: "dict[str, Columns]"
) -> Comparison | None:
    """The comparison with the run before; None if they have no question in common."""
    from answerkey.comparison import compare_runs
    from answerkey.comparison.columns import columns_from_store

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
