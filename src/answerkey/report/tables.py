"""Tables of the dashboard: typed columns and rows, shown on pages and written as CSV, JSON Lines or Parquet."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from answerkey.errors import UsageError
from answerkey.report.wording import (
    change_text,
    metric_text,
    milliseconds,
    milliseconds_change,
    money,
    points_change,
    score_percent,
)
from answerkey.text.dates import local_time
from answerkey.text.normalise import for_csv, for_terminal, one_line, without_surrogates
from answerkey.text.patterns import lazy

Kind = Literal[
    "text",
    "reply",
    "names",
    "grade",
    "why",
    "score",
    "change",
    "metric",
    "metric_change",
    "ms",
    "ms_change",
    "money",
    "count",
    "flag",
    "time",
    "status",
]
_NUMBERS = ("score", "change", "metric", "metric_change", "ms", "ms_change", "money", "count")
# Characters of a cell.
_WIDTH = 240
_ROWS = 2_000

# Marks of Markdown at the beginning of lines, the lines of tables, and pairs of marks around words.
_LINE_MARKS = lazy(r"^\s*(?:#{1,6}|[-*+])\s+|^[\s|:-]*-{3}[\s|:-]*$", re.MULTILINE)
_TABLE_LINE = lazy(r"^\s*\|.*\|\s*$", re.MULTILINE)
_WORD_MARKS = lazy(r"(?<![\w*])(\*{1,2}|__|`+)(\S(?:[^*`\n]*?\S)?)\1(?![\w*])")


def _without_markdown(text: str) -> str:
    # Twice what is shown, since marks and line ends go.
    text = _LINE_MARKS.sub(" ", text[: 2 * _WIDTH])
    text = _TABLE_LINE.sub(lambda line: line[0].replace("|", " "), text)
    return one_line(_WORD_MARKS.sub(r"\2", text), _WIDTH)


_SHOWN: dict[str, Callable[[Any], str]] = {
    "reply": _without_markdown,
    "names": lambda names: one_line(", ".join(names), _WIDTH),
    "score": score_percent,
    "change": points_change,
    "metric": metric_text,
    "metric_change": change_text,
    "ms": milliseconds,
    "ms_change": milliseconds_change,
    "money": money,
    "count": "{:,}".format,
    "flag": lambda flag: "yes" if flag else "no",
    # The head names the time zone.
    "time": lambda moment: local_time(moment, zone=False),
}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table."""

    name: str
    title: str
    kind: Kind = "text"
    # Tooltip of its head.
    note: str = ""
    # Whether it holds long texts.
    wide: bool = False
    # Sort key when its head is clicked, again to reverse; None: not sortable.
    sort: str | None = None

    @property
    def number(self) -> bool:
        """Whether it holds numbers, which are right-aligned."""
        return self.kind in _NUMBERS


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    # The page with all details.
    address: str
    # A value for each column.
    cells: tuple[Any, ...]
    # Id for links to its page or element.
    id: str = ""
    # Value of its checkbox, if rows can be selected.
    pick: str = ""
    # Name for screen readers.
    label: str = ""
    # better or worse: the row is highlighted.
    tone: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with the selected columns."""

    columns: tuple[Column, ...]
    # All columns that can be selected.
    offered: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    # Sort key; with a minus, largest first.
    sort: str

    @property
    def menu(self) -> tuple[Column, ...]:
        """All columns to choose from; those that are shown come first if the reader put them in another order."""
        usual = [column for column in self.offered if column in self.columns]
        if usual == list(self.columns):
            return self.offered
        return (*self.columns, *(column for column in self.offered if column not in self.columns))


def cell_text(value: Any, kind: str) -> str:
    """A value as shown on a page."""
    if value is None:
        return "–" if kind in _NUMBERS else ""
    return _SHOWN[kind](value) if kind in _SHOWN else one_line(str(value), _WIDTH)


def write_table(columns: Sequence[Column], rows: Iterable[Sequence[Any]], ending: str) -> Iterator[bytes]:
    """The content of a file with these columns and rows; `ending` is csv, jsonl or parquet."""
    return ENDINGS[ending](columns, rows)


def _csv(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    text = io.StringIO()
    write = csv.writer(text).writerow
    # With a byte order mark, Excel reads UTF-8.
    yield "\ufeff".encode()
    write([column.name for column in columns])
    for row in rows:
        write([_csv_cell(value) for value in row])
        yield text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        value = ", ".join(value)
    return for_csv(for_terminal(value)) if isinstance(value, str) else value


def _jsonl(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    names = [column.name for column in columns]
    for row in rows:
        yield msgspec.json.encode(without_surrogates(dict(zip(names, row, strict=True)))) + b"\n"


def _parquet(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'answerkey[parquet]'") from None
    text = pyarrow.string()
    types = {"names": pyarrow.list_(text), "count": pyarrow.int64(), "flag": pyarrow.bool_()}
    fields = [
        (column.name, types.get(column.kind, pyarrow.float64() if column.number else text))
        for column in columns
    ]
    file, schema = _Drained(), pyarrow.schema(fields)
    # pyarrow's own pool keeps the memory of the largest batch and more.
    pool = pyarrow.system_memory_pool()
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", memory_pool=pool) as writer:
        batch: list[Any] = []

        def flush() -> None:
            arrays = without_surrogates([list(values) for values in zip(*batch, strict=True)])
            arrays = arrays or [[] for _ in columns]
            writer.write_table(
                pyarrow.table(
                    [
                        pyarrow.array(values, kind, memory_pool=pool)
                        for values, (_, kind) in zip(arrays, fields, strict=True)
                    ],
                    schema=schema,
                )
            )
            batch.clear()

        for row in rows:
            batch.append(row)
            if len(batch) == _ROWS:
                flush()
                yield file.drain()
        flush()
    yield file.drain()


class _Drained(io.RawIOBase):
    """A file that is only written; what was written is taken out piece by piece."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True

    def tell(self) -> int:
        """How much was written."""
        return self._position

    def write(self, part: Any) -> int:
        """Keep a piece."""
        self._parts.append(bytes(part))
        self._position += len(self._parts[-1])
        return len(self._parts[-1])

    def drain(self) -> bytes:
        """What was written since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


ENDINGS: dict[str, Callable[[Sequence[Column], Iterable[Sequence[Any]]], Iterator[bytes]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
