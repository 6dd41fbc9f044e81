"""Excel workbooks: the sheet and the header row that hold questions or replies, with every cell as it is displayed."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple
from xml.etree import ElementTree

from answerkey.errors import InputError
from answerkey.model.question import ReadNote
from answerkey.model.reply import JsonObject
from answerkey.transcripts.number_formats import (
    BUILT_IN_FORMATS,
    SYSTEM_DATE_FORMATS,
    displayed_number,
)
from answerkey.transcripts.tables import Bad, HeaderNames, Row, column_names

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
# Limit of an unpacked sheet.
_MAX_SHEET_BYTES = 500_000_000
# A spreadsheet stores this many digits of a number; the others are zeros.
_MAX_DIGITS = 15
_REFERENCE = re.compile(r"([A-Z]+)(\d+)")


class WorkbookRows(NamedTuple):
    """The rows of the chosen sheet, and how it was chosen."""

    rows: Iterator[Row]
    guesses: tuple[str, ...]
    # Filled while the rows are read.
    notes: list[ReadNote]


def is_workbook(stream: IO[bytes]) -> bool:
    """Whether a ZIP archive is an Excel workbook."""
    try:
        with zipfile.ZipFile(stream) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return False


def read_workbook(
    stream: IO[bytes], path: Path, header: HeaderNames, bad: Bad, sheet: str | None = None
) -> WorkbookRows:
    """The rows of the named sheet, or of the first one that has a header row; else of the first sheet."""
    try:
        with zipfile.ZipFile(stream) as archive:
            workbook = _Workbook(archive)
            chosen, first = _choose_sheet(workbook, header, path, sheet)
    except (zipfile.BadZipFile, ElementTree.ParseError, KeyError, IndexError, ValueError) as error:
        raise InputError(
            f"not a readable Excel workbook ({error}); save it again as .xlsx", path=path
        ) from None
    guesses = [f"the sheet {chosen.name!r} of a workbook"]
    if first:
        guesses.append(f"the header in row {chosen.rows[first].number}")
    reader = _SheetReader(chosen, first, path, bad)
    return WorkbookRows(reader.read(), tuple(guesses), reader.notes)


def _choose_sheet(
    workbook: "_Workbook", header: HeaderNames, path: Path, requested: str | None
) -> tuple["_Sheet", int]:
    """A sheet and the index of its header row."""
    names = list(workbook.sheets)
    if requested is not None:
        match = next((name for name in names if name.casefold() == requested.casefold()), None)
        if match is None:
            raise InputError(f"has no sheet {requested!r}; it has {', '.join(names)}", path=path)
        names = [match]
    elif len(names) > 1:
        names = [name for name in names if name not in workbook.hidden] or names
    sheets = [workbook.sheet(name) for name in names]
    for sheet in sheets:
        found = header.find([list(row.cells.values()) for row in sheet.rows])
        if found is not None:
            return sheet, found
    if len(sheets) > 1 and header.is_required:
        raise InputError(
            f"no sheet has a column 'question' (sheets: {', '.join(names)}); "
            f"name the sheet as {path.name}#SHEET, or the column with --map question=COLUMN",
            path=path,
        )
    return sheets[0], 0


class _Cell(NamedTuple):
    text: str
    # What is wrong with it, what is worth a look.
    problem: str = ""
    note: tuple[str, str, str] | None = None


class _SheetRow(NamedTuple):
    number: int
    # Column letters → displayed text; without empty cells.
    cells: dict[str, str]
    # Column letters → what the cell has beside its text.
    marked: dict[str, _Cell]


class _Sheet(NamedTuple):
    name: str
    rows: list[_SheetRow]


class _SheetReader:
    """Yields the rows below the header."""

    def __init__(self, sheet: _Sheet, header: int, path: Path, bad: Bad) -> None:
        self._sheet = sheet
        self._header = header
        self._path = path
        self._bad = bad
        self.notes: list[ReadNote] = []

    def read(self) -> Iterator[Row]:
        rows = self._sheet.rows
        if not rows:
            return
        top = rows[self._header]
        columns = column_names(list(top.cells.values()), self._path, top.number)
        names = dict(zip(top.cells, columns, strict=True))
        for row in rows[self._header + 1 :]:
            problems = [
                f"cell {letters}{row.number} {cell.problem}"
                for letters, cell in row.marked.items()
                if cell.problem and names.get(letters)
            ]
            named: JsonObject = {
                names[letters]: text for letters, text in row.cells.items() if names.get(letters)
            }
            if problems:
                self._bad(InputError("; ".join(problems), path=self._path, line=row.number), named)
                continue
            for letters, cell in row.marked.items():
                if cell.note and names.get(letters):
                    code, message, remedy = cell.note
                    where = f"cell {letters}{row.number} "
                    self.notes.append(
                        ReadNote(code=code, line=row.number, message=where + message, remedy=remedy)
                    )
            if named:
                yield row.number, named


class _Workbook:
    """The parts of a workbook that all its sheets share."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        document = self._xml("xl/workbook.xml")
        targets = {
            relation.get("Id"): relation.get("Target", "")
            for relation in self._xml("xl/_rels/workbook.xml.rels")
        }
        # Name → file in the archive.
        self.sheets: dict[str, str] = {}
        self.hidden: set[str] = set()
        for sheet in document.iter(f"{_SHEET}sheet"):
            target = targets[sheet.get(_RELATION)].lstrip("/")
            name = sheet.get("name", "")
            self.sheets[name] = target if target.startswith("xl/") else f"xl/{target}"
            if sheet.get("state") in ("hidden", "veryHidden"):
                self.hidden.add(name)
        if not self.sheets:
            raise ValueError("it has no sheet")
        properties = document.find(f"{_SHEET}workbookPr")
        self._from_1904 = properties is not None and properties.get("date1904") in ("1", "true")
        self._texts = self._shared_texts()
        self._formats = self._cell_formats()

    def _xml(self, name: str) -> ElementTree.Element:
        if self._archive.getinfo(name).file_size > _MAX_SHEET_BYTES:
            raise ValueError(f"{name} is too large")
        content = self._archive.read(name)
        if b"<!DOCTYPE" in content[:1000] or b"<!ENTITY" in content:
            # Entities are how a small file unpacks to a huge one; Excel writes none.
            raise ValueError(f"{name} declares entities")
        return ElementTree.fromstring(content)  # noqa: S314  # without entities there is nothing to expand

    def _optional_xml(self, name: str) -> ElementTree.Element:
        return self._xml(name) if name in self._archive.namelist() else ElementTree.Element("none")

    def _shared_texts(self) -> list[str]:
        return [_entry_text(item) for item in self._optional_xml("xl/sharedStrings.xml").iter(f"{_SHEET}si")]

    def _cell_formats(self) -> list[tuple[int, str]]:
        """Of every cell style: the number and the code of its format."""
        styles = self._optional_xml("xl/styles.xml")
        codes = dict(BUILT_IN_FORMATS)
        for custom in styles.iter(f"{_SHEET}numFmt"):
            codes[int(custom.get("numFmtId", "0"))] = custom.get("formatCode", "General")
        listed = styles.find(f"{_SHEET}cellXfs")
        numbers = [int(style.get("numFmtId", "0")) for style in listed] if listed is not None else []
        return [(number, codes.get(number, "General")) for number in numbers]

    def sheet(self, name: str) -> _Sheet:
        """The rows of a sheet that have a value, with merged cells filled downwards."""
        content = self._xml(self.sheets[name])
        merged = _merged_below(content)
        # (column letters, row) → text, for the merged cells below.
        values: dict[tuple[str, int], str] = {}
        rows: list[_SheetRow] = []
        for position, element in enumerate(content.iter(f"{_SHEET}row"), start=1):
            number = int(element.get("r") or position)
            cells: dict[str, str] = {}
            marked: dict[str, _Cell] = {}
            for cell_element in element.iter(f"{_SHEET}c"):
                letters = (cell_element.get("r") or "").rstrip("0123456789") or _letters(len(cells))
                cell = self._cell(cell_element)
                if cell.text.strip():
                    cells[letters] = cell.text
                if cell.problem or cell.note:
                    marked[letters] = cell
            if cells:
                for letters, first in merged.get(number, {}).items():
                    cells.setdefault(letters, values.get((letters, first), ""))
            values |= {(letters, number): text for letters, text in cells.items()}
            if cells or marked:
                rows.append(_SheetRow(number, cells, marked))
        return _Sheet(name, rows)

    def _cell(self, cell: ElementTree.Element) -> _Cell:
        """A cell as it is displayed."""
        inline = cell.find(f"{_SHEET}is")
        if inline is not None:
            return _Cell(_entry_text(inline))
        value = cell.findtext(f"{_SHEET}v") or ""
        kind = cell.get("t", "n")
        if not value and kind != "str" and cell.find(f"{_SHEET}f") is not None:
            remedy = "open the file in a spreadsheet program and save it, or paste the value"
            return _Cell("", f"has a formula without a stored value; {remedy}")
        if kind == "s":
            return _Cell(self._texts[int(value)] if value.isdigit() and int(value) < len(self._texts) else "")
        if kind == "b":
            return _Cell("TRUE" if value == "1" else "FALSE")
        if kind == "e":
            return _Cell("", f"shows the error {value}; correct its formula")
        if kind == "n" and value:
            return self._number(float(value), value, int(cell.get("s") or 0))
        return _Cell(value)

    def _number(self, number: float, written: str, style: int) -> _Cell:
        identity, code = self._formats[style] if style < len(self._formats) else (0, "General")
        text = displayed_number(number, code, from_1904=self._from_1904)
        if identity in SYSTEM_DATE_FORMATS:
            note = (
                "system-date",
                f"has the computer's own date format; it is read as {text}",
                "list the date under expected_dates, or give the cell a fixed date format",
            )
            return _Cell(text, note=note)
        if len(written.partition("E")[0].replace(".", "").strip("-0")) > _MAX_DIGITS and abs(number) >= 1e15:
            note = (
                "rounded-number",
                f"has a number of more than {_MAX_DIGITS} digits, which the spreadsheet has rounded to {text}",
                "format the cell as text and enter the number again",
            )
            return _Cell(text, note=note)
        return _Cell(text)


def _entry_text(item: ElementTree.Element) -> str:
    """The text of an entry, without how East Asian words are pronounced."""
    runs = [item, *item.findall(f"{_SHEET}r")]
    return "".join(part.text or "" for run in runs for part in run.findall(f"{_SHEET}t"))


def _letters(index: int) -> str:
    """The letters of a column by its index, for files that do not name their cells."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _merged_below(sheet: ElementTree.Element) -> dict[int, dict[str, int]]:
    """Row → column letters of merged ranges that began above it, each with the row that has the range's value."""
    below: dict[int, dict[str, int]] = {}
    for merge in sheet.iter(f"{_SHEET}mergeCell"):
        corners = _REFERENCE.findall(merge.get("ref") or "")
        if len(corners) == 2:
            (letters, first), (_, last) = corners
            for row in range(int(first) + 1, int(last) + 1):
                below.setdefault(row, {})[letters] = int(first)
    return below
