"""Excel workbooks: the sheet and the header row that hold questions or replies, with every cell as it is displayed."""

import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple
from xml.etree import ElementTree

from answerkey.errors import InputError
from answerkey.model.question import ReadNote
from answerkey.model.reply import JsonObject
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
    """The rows of the named sheet, or of the one whose header row names the most fields; else of the first sheet."""
    try:
        with zipfile.ZipFile(stream) as archive:
            workbook = _Workbook(archive)
            chosen, first, alike = _choose_sheet(workbook, header, path, sheet)
    except (zipfile.BadZipFile, ElementTree.ParseError, KeyError, IndexError, ValueError) as error:
        raise InputError(
            f"not a readable Excel workbook ({error}); save it again as .xlsx", path=path
        ) from None
    guesses = [f"the sheet {chosen.name!r} of a workbook"]
    if alike:
        others = ", ".join(map(repr, alike))
        guesses.append(f"not the sheet {others} with the same columns, to be named as {path.name}#{alike[0]}")
    if first:
        guesses.append(f"the header in row {chosen.rows[first].number}")
    reader = _SheetReader(chosen, first, path, bad)
    return WorkbookRows(reader.read(), tuple(guesses), reader.notes)


def _choose_sheet(
    workbook: "_Workbook", header: HeaderNames, path: Path, requested: str | None
) -> tuple["_Sheet", int, list[str]]:
    """A sheet, the index of its header row, and the names of others whose header fits as well."""
    names = list(workbook.sheets)
    if requested is not None:
        match = next((name for name in names if name.casefold() == requested.casefold()), None)
        if match is None:
            raise InputError(f"has no sheet {requested!r}; it has {', '.join(names)}", path=path)
        names = [match]
    elif len(names) > 1:
        names = [name for name in names if name not in workbook.hidden] or names
    sheets = [workbook.sheet(name) for name in names]
    ranked: list[tuple[int, _Sheet, int]] = []
    for sheet in sheets:
        rows = [list(row.cells.values()) for row in sheet.rows]
        found = header.find(rows)
        if found is not None:
            ranked.append((header.rank(rows[found]), sheet, found))
    if ranked:
        most = max(rank for rank, _, _ in ranked)
        (_, best, found), *others = [one for one in ranked if one[0] == most]
        return best, found, [sheet.name for _, sheet, _ in others]
    if len(sheets) > 1 and header.is_required:
        raise InputError(
            f"no sheet has a column 'question' (sheets: {', '.join(names)}); "
            f"name the sheet as {path.name}#SHEET, or the column with --map question=COLUMN",
            path=path,
        )
    return sheets[0], 0, []


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
        codes = dict(_BUILT_IN_FORMATS)
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
        if identity in _SYSTEM_DATE_FORMATS:
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


# Numbers as a spreadsheet displays them: dates, times, percentages, leading zeros and currencies by the cell's format code.
#
# Covers what people see in cells: sections for positive, negative and zero, literals, thousands, decimals, scientific and
# fraction formats, dates and elapsed times. Names of months and days are English. The system's own date format, which
# differs between computers, is written YYYY-MM-DD.


# Formats that a workbook uses by number; 14 and 22 follow the system's settings.
_BUILT_IN_FORMATS = {
    **dict(enumerate(("General", "0", "0.00", "#,##0", "#,##0.00"))),
    **dict(
        enumerate(("0%", "0.00%", "0.00E+00", "# ?/?", "# ??/??", "yyyy-mm-dd", "d-mmm-yy", "d-mmm"), start=9)
    ),
    **dict(
        enumerate(("mmm-yy", "h:mm AM/PM", "h:mm:ss AM/PM", "h:mm", "h:mm:ss", "yyyy-mm-dd h:mm"), start=17)
    ),
    **dict.fromkeys((37, 38), "#,##0;(#,##0)"),
    **dict.fromkeys((39, 40), "#,##0.00;(#,##0.00)"),
    **dict(enumerate(("mm:ss", "[h]:mm:ss", "mm:ss.0", "##0.0E+0", "@"), start=45)),
}
_SYSTEM_DATE_FORMATS = frozenset({14, 22})
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]|\[(?P<elapsed>h+|m+|s+)\]'
    r"|\[(?P<condition>[<>=]+)(?P<limit>[-\d.]+)\]|\[[^\]]*\]|(?P<general>General)|(?P<half>AM/PM|A/P)"
    r"|(?P<date>y+|m+|d+|h+|s+)|(?P<exponent>E[+-]0+)|(?P<digit>[0#?])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_COMPARE = {
    "<": Decimal.__lt__,
    "<=": Decimal.__le__,
    ">": Decimal.__gt__,
    ">=": Decimal.__ge__,
    "=": Decimal.__eq__,
    "<>": Decimal.__ne__,
}


class _Token(NamedTuple):
    # literal, digit, date, elapsed, half (AM/PM), exponent, general or other (. , % / @ and the rest)
    kind: str
    text: str


class _Section(NamedTuple):
    tokens: tuple[_Token, ...]
    # (comparison, limit) of a section such as [>=100].
    condition: tuple[str, Decimal] | None

    @property
    def is_date(self) -> bool:
        return any(token.kind in ("date", "elapsed", "half") for token in self.tokens)


def displayed_number(value: float, code: str, *, from_1904: bool = False) -> str:
    """A number as a cell with this format code displays it."""
    number = Decimal(repr(value))
    sections = _sections(code)
    section, magnitude = _choose(sections, number)
    if not section.tokens:
        return ""
    if any(token.kind == "general" or token.text == "@" for token in section.tokens):
        shown = _general(value if magnitude == number else abs(value))
        return "".join(
            shown if token.kind == "general" or token.text == "@" else token.text for token in section.tokens
        )
    if section.is_date:
        return _date(section.tokens, value, from_1904) if value >= 0 else _general(value)
    shown = _number(section.tokens, abs(magnitude))
    return f"-{shown}" if magnitude < 0 and re.search(r"[1-9]", shown) else shown


@lru_cache(maxsize=500)
def _sections(code: str) -> tuple[_Section, ...]:
    sections: list[_Section] = []
    tokens: list[_Token] = []
    condition: tuple[str, Decimal] | None = None
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup
        if found[0] == ";":
            sections.append(_Section(tuple(tokens), condition))
            tokens, condition = [], None
        elif kind == "limit":
            condition = (found["condition"], Decimal(found["limit"]))
        elif kind in ("quoted", "escaped", "currency"):
            tokens.append(_Token("literal", found[kind]))
        elif kind == "elapsed":
            tokens.append(_Token("elapsed", found[kind].lower()))
        elif kind == "date":
            tokens.append(_Token("date", found[0].lower()))
        elif kind is not None:
            tokens.append(_Token(kind, found[0]))
        elif found[0].startswith("_"):
            tokens.append(_Token("literal", " "))
    sections.append(_Section(tuple(tokens), condition))
    return tuple(sections)


def _choose(sections: tuple[_Section, ...], number: Decimal) -> tuple[_Section, Decimal]:
    """The section for a number, and the number that it shows: a section for negative numbers writes its own sign."""
    conditional = [section for section in sections if section.condition is not None]
    if conditional:
        for section in conditional:
            comparison, limit = section.condition or ("=", Decimal())
            if comparison in _COMPARE and _COMPARE[comparison](number, limit):
                return section, number
        others = [section for section in sections if section.condition is None]
        return (others or list(sections))[0], number
    if number < 0 and len(sections) > 1:
        return sections[1], -number
    if number == 0 and len(sections) > 2:
        return sections[2], number
    return sections[0], number


def _general(value: float) -> str:
    """Up to 15 significant digits, which is what a spreadsheet stores."""
    if value == int(value) and abs(value) < 1e20:
        return str(int(value))
    plain = f"{value:.15g}"
    return plain if "e" not in plain else format(Decimal(plain), "f") if abs(value) > 1e-9 else plain.upper()


def _number(tokens: tuple[_Token, ...], number: Decimal) -> str:
    """A number that is not negative, by the placeholders of a section."""
    placeholders = [index for index, token in enumerate(tokens) if token.kind == "digit"]
    if not placeholders:
        return "".join(token.text for token in tokens).strip()
    if any(token.text == "/" for token in tokens[placeholders[0] : placeholders[-1]]):
        return _fraction(tokens, number)
    texts = [token.text for token in tokens]
    point = texts.index(".") if "." in texts else len(texts)
    decimals = [index for index in placeholders if index > point]
    whole = [index for index in placeholders if index < point]
    power = number.adjusted() if number and any(token.kind == "exponent" for token in tokens) else 0
    commas = [index for index, text in enumerate(texts) if text == ","]
    # Each comma directly behind the last placeholder divides by a thousand.
    thousands = 0
    while placeholders[-1] + thousands + 1 in commas:
        thousands += 1
    number = number.scaleb(-power) * 100 ** texts.count("%") / 1000**thousands
    rounded = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    digits, _, fraction = format(rounded, "f").partition(".")
    digits = ("" if digits == "0" else digits).zfill(_required(texts, whole[::-1]))
    if any(whole and whole[0] < index < whole[-1] for index in commas):
        # Nothing is written between the placeholders of such a format but commas, so that one can show all digits.
        shown = {whole[-1]: re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", digits)}
    else:
        # From the right; the first placeholder shows all that remains.
        head = max(0, len(digits) - len(whole)) + 1
        pieces = [digits[:head], *digits[head:]]
        shown = dict(zip(reversed(whole), reversed(pieces), strict=False))
    required = _required(texts, decimals)
    shown |= dict(zip(decimals, fraction[:required] + fraction[required:].rstrip("0"), strict=False))
    for index, token in enumerate(tokens):
        if token.kind == "exponent":
            sign = "-" if power < 0 else "+" if token.text[1] == "+" else ""
            shown[index] = f"E{sign}{abs(power):0{len(token.text) - 2}d}"
        elif index == point:
            shown[index] = "." if any(place in shown for place in decimals) else ""
        elif token.kind != "digit" and index not in commas:
            shown[index] = token.text
    return "".join(shown.get(index, "") for index in range(len(tokens))).strip()


def _required(texts: Sequence[str], positions: Sequence[int]) -> int:
    """How many digits are always shown: those up to the last placeholder that is a 0."""
    return max((number for number, index in enumerate(positions, start=1) if texts[index] == "0"), default=0)


def _fraction(tokens: tuple[_Token, ...], number: Decimal) -> str:
    """A mixed number such as 1 1/2."""
    text = "".join(token.text for token in tokens)
    fixed = re.search(r"/\s*(\d+)", text)
    width = len(re.findall(r"\?|#|0", text.partition("/")[2])) or 1
    whole = int(number) if re.search(r"[#0]\s+[?#0]", text) else 0
    part = Fraction(number) - whole
    if fixed:
        numerator, denominator = round(part * int(fixed[1])), int(fixed[1])
    else:
        near = part.limit_denominator(10**width - 1)
        numerator, denominator = near.numerator, near.denominator
    if not numerator:
        return str(whole)
    return f"{whole} {numerator}/{denominator}" if whole else f"{numerator}/{denominator}"


def _date(tokens: tuple[_Token, ...], value: float, from_1904: bool) -> str:
    has_parts = any(token.kind == "digit" for token in tokens)
    # Days are floats: 5:45 is 0.23958333…
    seconds = Decimal(repr(value)) * 86400
    seconds = seconds.quantize(Decimal("0.001") if has_parts else Decimal(1), ROUND_HALF_UP)
    # Excel counts a 29 February 1900 that never was.
    first_day = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 30 if value >= 60 else 31)
    try:
        moment = first_day + timedelta(milliseconds=int(seconds * 1000))
    except OverflowError:
        return _general(value)
    in_halves = any(token.kind == "half" for token in tokens)
    shown: list[str] = []
    parts = [index for index, token in enumerate(tokens) if token.kind in ("date", "elapsed")]
    for index, token in enumerate(tokens):
        if token.kind == "date":
            before = next((tokens[other].text for other in reversed(parts) if other < index), "")
            after = next((tokens[other].text for other in parts if other > index), "")
            is_minute = token.text in ("m", "mm") and (before[:1] == "h" or after[:1] == "s")
            shown.append(_date_part(token.text, moment, is_minute=is_minute, in_halves=in_halves))
        elif token.kind == "elapsed":
            unit = {"h": 3600, "m": 60, "s": 1}[token.text[0]]
            shown.append(str(int(seconds) // unit).zfill(len(token.text)))
        elif token.kind == "half":
            half = "AM" if moment.hour < 12 else "PM"
            shown.append(half if token.text.upper() == "AM/PM" else half[0])
        elif token.kind == "digit":
            # Parts of a second, as in ss.00.
            position = sum(other.kind == "digit" for other in tokens[:index])
            shown.append(f"{moment.microsecond:06d}"[position : position + 1])
        elif token.text != "@":
            shown.append(token.text)
    return "".join(shown).strip()


def _date_part(code: str, moment: datetime, *, is_minute: bool, in_halves: bool) -> str:
    if is_minute:
        number = moment.minute
    elif code[0] == "m" and len(code) > 2:
        name = moment.strftime("%B")
        return name[:3] if len(code) == 3 else name[0] if len(code) == 5 else name
    elif code[0] == "d" and len(code) > 2:
        return moment.strftime("%A")[: 3 if len(code) == 3 else None]
    elif code[0] == "y":
        return f"{moment.year:04d}" if len(code) > 2 else f"{moment.year % 100:02d}"
    elif code[0] == "h":
        number = (moment.hour - 1) % 12 + 1 if in_halves else moment.hour
    else:
        number = {"m": moment.month, "d": moment.day, "s": moment.second}[code[0]]
    return f"{number:02d}" if len(code) > 1 else str(number)
