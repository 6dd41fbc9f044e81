"""Results in files of tables: an Excel workbook, and Parquet.

The workbook has the sheets Summary, Categories, Results and Comparison. Text never becomes a formula, link or markup. Parquet
has one row per reply, nested as in the run document, written in batches.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal, NamedTuple

from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison
from answerkey.model.run import Latency, Run, Slice
from answerkey.model.run_document import table_lines
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.report.result_files import flat_columns, flat_row
from answerkey.report.sheets import comparison_sheet, trend_table
from answerkey.report.view import worst_first
from answerkey.report.wording import gate_value, judge_line, list_words, name_words
from answerkey.stats.intervals import Interval
from answerkey.text.dates import local_time
from answerkey.text.normalise import for_terminal

# Excel's limits: rows of a sheet below its head, and UTF-16 units of a cell.
MOST_ROWS = 1_048_575
_LONGEST_TEXT = 32_767

_FORMATS = {
    "score": "0.000",
    "exact": "0.000######",
    "metric": "#,##0.000",
    "ms": "#,##0.0",
    "money": "$#,##0.000000",
}


class Figure(NamedTuple):
    """A number and its format."""

    value: float | None
    kind: Literal["score", "metric", "ms", "money"]


class Book:
    """A workbook while it is written."""

    def __init__(self, workbook: Any) -> None:
        self.workbook = workbook
        self.formats = {name: workbook.add_format({"num_format": shown}) for name, shown in _FORMATS.items()}
        self.bold = workbook.add_format({"bold": True})
        self.head = workbook.add_format({"bold": True, "bottom": 1})

    def sheet(self, name: str, widths: Iterable[int]) -> "ExcelSheet":
        """Add a sheet; widths are in characters."""
        return ExcelSheet(self, self.workbook.add_worksheet(name), widths)


@contextmanager
def excel_book(file: BinaryIO) -> Iterator[Book]:
    """A workbook that is copied to a file at the end; rows are buffered on disk, not in memory."""
    import xlsxwriter
    from xlsxwriter.exceptions import FileCreateError

    with TemporaryDirectory(prefix="answerkey-") as folder:
        options = {
            "constant_memory": True,
            "tmpdir": folder,
            "use_zip64": True,
            "strings_to_formulas": False,
            "strings_to_numbers": False,
            "strings_to_urls": False,
        }
        # Copied when complete: a ZIP archive that failed half-way raises again when it is garbage-collected.
        whole = Path(folder) / "whole.xlsx"
        workbook = xlsxwriter.Workbook(whole, options)
        yield Book(workbook)
        try:
            workbook.close()
        except FileCreateError as error:
            # It wraps the system's error, which is reported like that of any other file.
            raise error.args[0] from None
        with whole.open("rb") as content:
            shutil.copyfileobj(content, file)


class ExcelSheet:
    """A sheet that is written row by row."""

    def __init__(self, book: Book, worksheet: Any, widths: Iterable[int]) -> None:
        self._book = book
        self._worksheet = worksheet
        self._next = 0
        for column, width in enumerate(widths):
            worksheet.set_column(column, column, width)

    def title(self, text: str) -> None:
        """A line in bold."""
        self._write([text], self._book.bold)

    def head(self, names: Sequence[str]) -> None:
        """The names of the columns below."""
        self._write(names, self._book.head)

    def row(self, cells: Iterable[object]) -> None:
        """Write texts, numbers, booleans and figures; None and empty texts stay blank."""
        self._write(cells, None)

    def gap(self) -> None:
        """An empty row."""
        self._next += 1

    def filter_by_head(self, columns: int) -> None:
        """Freeze the first row and add filters; call this after the last row."""
        self._worksheet.freeze_panes(1, 0)
        self._worksheet.autofilter(0, 0, max(self._next - 1, 0), columns - 1)

    def _write(self, cells: Iterable[object], style: Any) -> None:
        for column, cell in enumerate(cells):
            value, kind = cell if isinstance(cell, Figure) else (cell, None)
            if value is None or value == "":
                continue
            if isinstance(value, bool):
                self._worksheet.write_boolean(self._next, column, value, style)
            elif isinstance(value, int | float) and isfinite(value):
                shown = _score_format(value) if kind == "score" else kind
                self._worksheet.write_number(
                    self._next, column, value, self._book.formats[shown] if shown else style
                )
            else:
                self._text(column, _cell_text(str(value)), style)
        self._next += 1

    def _text(self, column: int, text: str, style: Any) -> None:
        if text.startswith("<r>") and text.endswith("</r>"):
            # XlsxWriter would take this text for its own markup; in pieces it escapes it.
            self._worksheet.write_rich_string(self._next, column, text[:1], text[1:2], text[2:])
        else:
            self._worksheet.write_string(self._next, column, text, style)


def _score_format(score: float) -> str:
    """Excel rounds: a B of 0.899999 would read 0.900, so such a score is shown with all its digits."""
    score = round_score(score)
    shown = round(score + 1e-9, 3)
    return (
        "exact" if score < shown and (letter_grade(score) != letter_grade(shown) or shown == 1) else "score"
    )


def _cell_text(text: str) -> str:
    """Text without control characters, which XML forbids, cut to Excel's limit with a note."""
    safe = for_terminal(text)
    # A character has one or two units.
    if 2 * len(safe) <= _LONGEST_TEXT:
        return safe
    units = safe.encode("utf-16-le")
    if len(units) <= 2 * _LONGEST_TEXT:
        return safe
    mark = f" … [cut: {len(safe):,} characters]"
    return units[: 2 * (_LONGEST_TEXT - len(mark))].decode("utf-16-le", "ignore") + mark


# Column widths in characters; other columns are figures.
_WIDTHS = {"id": 18, "category": 18, "question": 50, "lost_points": 50, "error_message": 30, "reply": 80}
_WIDTHS |= {"tools_used": 24, "components": 24, "error": 24, "metrics": 24}
_FIGURE = 14
_NAME = 28
_ENDS = ("95% low", "95% high")


def write_excel(run: Run, file: BinaryIO) -> None:
    """Write a run's report; memory does not grow with the number of results."""
    with excel_book(file) as book:
        # The run's own time, so that the same run gives the same file.
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
    """The run and its result."""
    info, summary = run.info, run.summary
    score = ("score", _score(summary.score), *_ends(summary.interval))
    rate = ("pass rate of questions", _score(summary.pass_rate), *_ends(summary.pass_interval))
    rows: list[tuple[object, ...]] = [score, ("grade", summary.grade), rate]
    rows += [("questions passed", summary.passed), ("questions", summary.questions)]
    rows += [("replies passed", summary.trials_passed), ("replies", summary.replies)]
    rows += [("error rate", _score(summary.error_rate), *_ends(summary.error_interval))]
    rows += [("coverage", _score(summary.coverage)), ("errors", list_words(summary.errors) or "none")]
    rows += [("suspected errors", summary.suspected_errors)]
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
    """Components, metrics, latency and cost."""
    info, summary = run.info, run.summary
    parts, ends = summary.components, summary.component_intervals
    components = (
        (name_words(name), "not measured", None, None, Figure(weight, "score"))
        if name in summary.unmeasured
        else (name_words(name), _score(parts.get(name)), *_ends(ends.get(name)), Figure(weight, "score"))
        for name, weight in info.weights.items()
    )
    yield _Table("Components", ("component", "score", *_ENDS, "weight"), components)
    metrics = (
        (name_words(name), Figure(value, "metric"), *_ends(summary.metric_intervals.get(name), "metric"))
        for name, value in summary.metrics.items()
    )
    yield _Table("Other metrics", ("metric", "mean", *_ENDS), metrics)
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
            ("questions with known cost", cost.questions),
        ]
        yield _Table("Cost in dollars", ("", "value", *_ENDS), rows)
    used = (
        (name_words(name), Figure(amount, "money") if name == "cost" else amount)
        for name, amount in summary.usage.items()
    )
    yield _Table("Usage", (), used)


def _score(value: float | None) -> Figure:
    return Figure(value, "score")


def _ends(interval: Interval | None, kind: Any = "score") -> tuple[Figure | None, Figure | None]:
    return (None, None) if interval is None else (Figure(interval.low, kind), Figure(interval.high, kind))


def _times(latency: Latency | None, names: Iterable[str]) -> list[Figure]:
    return [Figure(None if latency is None else getattr(latency, name), "ms") for name in names]


def _seen(value: Any) -> object:
    """A gate's value, as a number if it is one."""
    if isinstance(value, float):
        return Figure(value, "metric")
    return value if isinstance(value, int) and not isinstance(value, bool) else gate_value(value)


def _write_categories(book: Book, run: Run) -> None:
    components = tuple(run.info.weights)
    heads = [
        "category",
        "questions",
        "passed",
        "pass_rate",
        "replies",
        "replies_passed",
        "grade",
        "score",
        "low_95",
        "high_95",
    ]
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
        part.replies,
        part.trials_passed,
        part.grade,
        _score(part.score),
        *_ends(part.interval),
        *(_score(part.components.get(name)) for name in components),
        _score(part.error_rate),
        *_times(part.latency_ms, ("p50", "p95")),
        None if part.cost is None else Figure(part.cost.question, "money"),
    )


def _write_comparison(book: Book, run: Run, comparison: Comparison) -> None:
    compared = comparison_sheet(comparison)
    sheet = book.sheet("Comparison", [50, 18, 18, 40, 40, 40])
    sheet.title(compared.title)
    for line in (*compared.lines, *compared.warnings):
        sheet.row([line])
    trend = trend_table(run)
    for table in (*compared.tables, *([] if trend is None else [trend])):
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
    for number, result in enumerate(run.table_results(), start=1):
        # Checked against the number of scored trials too, before a million rows are written.
        if max(number, run.summary.trials) > MOST_ROWS:
            raise UsageError(f"an Excel sheet is limited to {MOST_ROWS:,} replies; use .parquet or .csv")
        row = zip(columns, flat_row(result, run.info), strict=True)
        sheet.row(
            Figure(value, kinds[name]) if name in kinds and isinstance(value, int | float) else value
            for name, value in row
        )
    sheet.filter_by_head(len(columns))


# Size of a batch, in bytes of JSON.
_BYTES = 8_000_000


def write_parquet(run: Run, file: BinaryIO) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = _schema(run)
    with pyarrow.parquet.ParquetWriter(
        file, schema, compression="zstd", memory_pool=pyarrow.system_memory_pool()
    ) as writer:
        for lines in _batches(run):
            writer.write_table(_table(lines, schema))


def _batches(run: Run) -> Iterator[bytes]:
    """The rows as lines of JSON."""
    batch: list[bytes] = []
    size = 0
    for lines in table_lines(run.results):
        batch.append(lines)
        size += len(lines)
        if size >= _BYTES:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)


def _table(lines: bytes, schema: Any) -> Any:
    import pyarrow
    import pyarrow.json

    wanted = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    # One block and one thread: other processes are scoring.
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    # pyarrow's own pool keeps the memory of the largest batch and more.
    pool = pyarrow.system_memory_pool()
    table = pyarrow.json.read_json(
        BytesIO(lines), read_options=reading, parse_options=wanted, memory_pool=pool
    )
    return table.select(schema.names).cast(schema)


def _schema(run: Run) -> Any:
    import pyarrow

    components, metrics = tuple(run.info.weights), tuple(run.summary.metrics)
    text, number, texts = pyarrow.string(), pyarrow.float64(), pyarrow.list_(pyarrow.string())
    error = _struct(kind=text, message=text)
    component = _struct(score=number, weight=number, reason=text, found=texts, missing=texts, extra=texts)
    call = _struct(name=text, arguments=text, result=text, error=text, start_ms=number, duration_ms=number)
    source = _struct(id=text, title=text, uri=text, text=text, score=number)
    reply = _struct(
        text=text,
        tools_used=texts,
        tool_calls=pyarrow.list_(call),
        sources=pyarrow.list_(source),
        error=error,
        latency_ms=number,
    )
    fields = {
        "id": text,
        "trial": pyarrow.int32(),
        "question": text,
        "category": text,
        "score": number,
        "grade": text,
        "passed": pyarrow.bool_(),
        "components": pyarrow.struct([(name, component) for name in components]),
        "error": error,
        "reply": reply,
    }
    if "checks" in (*components, *metrics):
        check = _struct(name=text, kind=text, score=number, weight=number, reason=text)
        fields["checks"] = pyarrow.list_(check)
    if run.info.is_log:
        fields["line"] = pyarrow.int64()
    if run.info.kept_columns:
        fields["columns"] = pyarrow.struct([(name, text) for name in run.info.kept_columns])
    if metrics:
        # A struct without fields cannot be written.
        fields["metrics"] = pyarrow.struct([(name, number) for name in metrics])
    return pyarrow.schema(fields)


def _struct(**fields: Any) -> Any:
    import pyarrow

    return pyarrow.struct(list(fields.items()))
