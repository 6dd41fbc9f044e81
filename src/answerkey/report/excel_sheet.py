"""Sheets of an Excel workbook: rows of values, in which no text can become a formula, a link or markup."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal, NamedTuple

import xlsxwriter
from xlsxwriter.exceptions import FileCreateError

from answerkey.model.scorecard import grade, round_score
from answerkey.text.sanitise import for_terminal

# What Excel takes: rows of a sheet below its head, and UTF-16 units of a cell's text.
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
    """A number with how it is shown."""

    value: float | None
    kind: Literal["score", "metric", "ms", "money"]


class Book:
    """A workbook that is being written."""

    def __init__(self, workbook: Any) -> None:
        self.workbook = workbook
        self.formats = {name: workbook.add_format({"num_format": shown}) for name, shown in _FORMATS.items()}
        self.bold = workbook.add_format({"bold": True})
        self.head = workbook.add_format({"bold": True, "bottom": 1})

    def sheet(self, name: str, widths: Iterable[int]) -> "ExcelSheet":
        """Another sheet, with the widths of its columns in characters."""
        return ExcelSheet(self, self.workbook.add_worksheet(name), widths)


@contextmanager
def excel_book(file: BinaryIO) -> Iterator[Book]:
    """A workbook that is written to a file at the end; rows wait on disk, so that memory does not grow with them."""
    with TemporaryDirectory(prefix="answerkey-") as folder:
        options = {
            "constant_memory": True,
            "tmpdir": folder,
            "use_zip64": True,
            "strings_to_formulas": False,
            "strings_to_numbers": False,
            "strings_to_urls": False,
        }
        # Copied when it is whole: a ZIP archive that fails half-way complains once more when it is forgotten.
        whole = Path(folder) / "whole.xlsx"
        workbook = xlsxwriter.Workbook(whole, options)
        yield Book(workbook)
        try:
            workbook.close()
        except FileCreateError as error:
            # It wraps the system's error, which is told like that of any other file.
            raise error.args[0] from None
        with whole.open("rb") as content:
            shutil.copyfileobj(content, file)


class ExcelSheet:
    """A sheet, written row by row."""

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
        """Texts, numbers, booleans and figures; nothing for None and empty texts."""
        self._write(cells, None)

    def gap(self) -> None:
        """An empty row."""
        self._next += 1

    def filter_by_head(self, columns: int) -> None:
        """Keep the first row in view and let readers filter by it; called when all rows are written."""
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
            # XlsxWriter takes such text for markup of its own and would not escape it; in pieces, it does.
            self._worksheet.write_rich_string(self._next, column, text[:1], text[1:2], text[2:])
        else:
            self._worksheet.write_string(self._next, column, text, style)


def _score_format(score: float) -> str:
    """Excel rounds what it shows: a B of 0.899999 would read 0.900, so that such a score shows all its digits."""
    score = round_score(score)
    shown = round(score + 1e-9, 3)
    return "exact" if score < shown and (grade(score) != grade(shown) or shown == 1) else "score"


def _cell_text(text: str) -> str:
    """Text without controls, which XML cannot hold, that says where it had to be cut."""
    safe = for_terminal(text)
    units = safe.encode("utf-16-le")
    if len(units) <= 2 * _LONGEST_TEXT:
        return safe
    mark = f" … [cut: {len(safe):,} characters]"
    return units[: 2 * (_LONGEST_TEXT - len(mark))].decode("utf-16-le", "ignore") + mark
