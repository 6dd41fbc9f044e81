"""The Excel workbook: sheets Summary, Categories and Results, and Comparison where the run has a baseline."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison
from answerkey.model.run import Run
from answerkey.model.summary import Latency, Slice
from answerkey.report.comparison_sheet import comparison_sheet, trend_table
from answerkey.report.excel_sheet import MOST_ROWS, Book, Figure, excel_book
from answerkey.report.rows_file import flat_columns, flat_row
from answerkey.report.value_wording import gate_value, judge_line, list_words, name_words
from answerkey.report.view import worst_first
from answerkey.stats.intervals import Interval
from answerkey.text.moments import local_time

# In characters; columns that are not named here are figures.
_WIDTHS = {"id": 18, "category": 18, "question": 50, "lost_points": 50, "error_message": 30, "reply": 80}
_WIDTHS |= {"tools_used": 24, "components": 24, "error": 24, "metrics": 24}
_FIGURE = 14
_NAME = 28
_ENDS = ("95% low", "95% high")


def write_excel(run: Run, file: BinaryIO) -> None:
    """Write a run's report; memory does not grow with the number of results."""
    with excel_book(file) as book:
        # When the run was made, so that the same run gives the same file.
        book.workbook.set_properties({"created": datetime.fromisoformat(run.info.created_at)})
        _write_summary(book, run)
        _write_categories(book, run)
        if run.comparison is not None:
            _write_comparison(book, run, run.comparison)
        _write_results(book, run)


class _Table(NamedTuple):
    title: str
    heads: tuple[str, ...]
    rows: Iterable[tuple[object, ...]]


def _write_summary(book: Book, run: Run) -> None:
    sheet = book.sheet("Summary", [_NAME, 40, *[_FIGURE] * 7])
    for table in (*_outcome_tables(run), *_measured_tables(run)):
        rows = list(table.rows)
        if not rows:
            continue
        sheet.title(table.title)
        if table.heads:
            sheet.head(table.heads)
        for row in rows:
            sheet.row(row)
        sheet.gap()


def _outcome_tables(run: Run) -> Iterator[_Table]:
    """What the run was, and how it ended."""
    info, summary = run.info, run.summary
    score = ("score", _score(summary.score), *_ends(summary.interval))
    rate = ("pass rate", _score(summary.pass_rate), *_ends(summary.pass_interval))
    rows: list[tuple[object, ...]] = [score, ("grade", summary.grade), rate]
    rows += [("passed", summary.passed), ("questions", summary.questions), ("replies", summary.replies)]
    rows += [("error rate", _score(summary.error_rate), *_ends(summary.error_interval))]
    rows += [("coverage", _score(summary.coverage)), ("errors", list_words(summary.errors) or "none")]
    yield _Table("Result", ("", "value", *_ENDS), rows)
    what = {
        "name": info.name,
        "run": info.id,
        "when": local_time(info.created_at),
        "target": info.target,
        "golden set": info.question_set,
        "status": info.status,
        "trials of a question": info.repeat,
        "pass mark": info.pass_mark,
        "judge": judge_line(info.judge) or None,
    }
    yield _Table("Run", (), ((name, value) for name, value in what.items() if value is not None))
    yield _Table("Warnings", (), ((warning,) for warning in run.warnings))
    gates = ((gate.gate, _seen(gate.value), gate.passed, gate.reason) for gate in run.gates)
    yield _Table("Gates", ("gate", "value", "passed", "reason"), gates)


def _measured_tables(run: Run) -> Iterator[_Table]:
    """Components, metrics, time and money."""
    info, summary = run.info, run.summary
    parts, ends = summary.components, summary.component_intervals
    components = (
        (name_words(name), _score(parts.get(name)), *_ends(ends.get(name)), Figure(weight, "score"))
        for name, weight in info.weights.items()
    )
    yield _Table("Components", ("component", "score", *_ENDS, "weight"), components)
    metrics = (
        (name_words(name), Figure(value, "metric"), *_ends(summary.metric_intervals.get(name), "metric"))
        for name, value in summary.metrics.items()
    )
    yield _Table("Beside the score", ("metric", "mean", *_ENDS), metrics)
    taken = {} if summary.latency_ms is None else {"replies": summary.latency_ms}
    taken |= {f"tool {name}": latency for name, latency in summary.tool_latency_ms.items()}
    latencies = (
        (
            name,
            *_times(latency, ("mean",)),
            *_ends(latency.mean_interval, "ms"),
            *_times(latency, Latency.FIGURES[1:]),
        )
        for name, latency in taken.items()
    )
    yield _Table("Latency in milliseconds", ("", "mean", *_ENDS, *Latency.FIGURES[1:]), latencies)
    if (cost := summary.cost) is not None:
        rows: list[tuple[object, ...]] = [
            ("a question", Figure(cost.question, "money"), *_ends(cost.interval, "money")),
            ("a point", Figure(cost.point, "money")),
            ("questions whose cost is known", cost.questions),
        ]
        yield _Table("Cost in dollars", ("", "value", *_ENDS), rows)
    used = (
        (name_words(name), Figure(amount, "money") if name == "cost" else amount)
        for name, amount in summary.usage.items()
    )
    yield _Table("Used in all", (), used)


def _score(value: float | None) -> Figure:
    return Figure(value, "score")


def _ends(interval: Interval | None, kind: Any = "score") -> tuple[Figure | None, Figure | None]:
    return (None, None) if interval is None else (Figure(interval.low, kind), Figure(interval.high, kind))


def _times(latency: Latency | None, names: Iterable[str]) -> list[Figure]:
    return [Figure(None if latency is None else getattr(latency, name), "ms") for name in names]


def _seen(value: Any) -> object:
    """What a gate saw: a number where it is one."""
    if isinstance(value, float):
        return Figure(value, "metric")
    return value if isinstance(value, int) and not isinstance(value, bool) else gate_value(value)


def _write_categories(book: Book, run: Run) -> None:
    components = tuple(run.info.weights)
    heads = ["category", "questions", "passed", "pass_rate", "grade", "score", "low_95", "high_95"]
    heads += [*components, "error_rate", "p50_ms", "p95_ms", "cost_a_question"]
    sheet = book.sheet("Categories", [_NAME, *[_FIGURE] * (len(heads) - 1)])
    sheet.head(heads)
    for part in worst_first(run.summary.categories):
        sheet.row(_category(part, components))
    sheet.filter_by_head(len(heads))


def _category(part: Slice, components: Iterable[str]) -> tuple[object, ...]:
    return (
        part.name,
        part.questions,
        part.passed,
        _score(part.pass_rate),
        part.grade,
        _score(part.score),
        *_ends(part.interval),
        *(_score(part.components.get(name)) for name in components),
        _score(part.error_rate),
        *_times(part.latency_ms, ("p50", "p95")),
        None if part.cost is None else Figure(part.cost.question, "money"),
    )


def _write_comparison(book: Book, run: Run, comparison: Comparison) -> None:
    said = comparison_sheet(comparison)
    sheet = book.sheet("Comparison", [50, 18, 18, 40, 40, 40])
    sheet.title(said.title)
    for line in (*said.lines, *said.warnings):
        sheet.row([line])
    trend = trend_table(run)
    for table in (*said.tables, *([] if trend is None else [trend])):
        sheet.gap()
        if table.title:
            sheet.title(table.title)
        sheet.head(table.heads)
        for row in table.rows:
            sheet.row(row)


def _write_results(book: Book, run: Run) -> None:
    columns = flat_columns(run.info)
    kinds: Mapping[str, Any] = {"score": "score", "latency_ms": "ms"} | dict.fromkeys(
        run.info.weights, "score"
    )
    sheet = book.sheet("Results", [_WIDTHS.get(name, _FIGURE) for name in columns])
    sheet.head(columns)
    for number, result in enumerate(run.results, start=1):
        # The number of scored trials tells it before a million rows are written.
        if max(number, run.summary.trials) > MOST_ROWS:
            raise UsageError(
                f"a sheet of Excel holds {MOST_ROWS:,} replies, and the run has more; use .parquet or .csv"
            )
        row = zip(columns, flat_row(result, run.info), strict=True)
        sheet.row(
            Figure(value, kinds[name]) if name in kinds and isinstance(value, int | float) else value
            for name, value in row
        )
    sheet.filter_by_head(len(columns))
