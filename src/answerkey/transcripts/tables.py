"""A table's columns as answerkey's fields: headers as people write them, and cells that hold several values."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from answerkey.errors import InputError
from answerkey.model.question import Question, ReadNote
from answerkey.model.reply import Json, JsonObject
from answerkey.text.dates import parse_date
from answerkey.text.numbers import parse_number
from answerkey.text.patterns import lazy
from answerkey.transcripts.fields import says_no_tool, says_nothing_of_tools
from answerkey.transcripts.json_values import (
    TEXT_NAMES,
    decode_cell,
    decode_strict_json,
    read_duration,
    read_number,
)

if TYPE_CHECKING:
    from _csv import Reader


# What the rows of a file are for: a golden set, recorded replies, or something whose fields are not answerkey's.
Purpose = Literal["questions", "replies", "records"]

# Fields with expectations of the text, each by its own kind.
_EXPECTATION_LISTS = (
    *("expected_keywords", "expected_content", "forbidden_keywords"),
    *("expected_numbers", "expected_dates", "expected_entities"),
)
_QUESTION_FIELDS = (
    *Question.__struct_fields__[:-2],
    *_EXPECTATION_LISTS[3:],
    *("expected_content", "expected_sources", "accept_regex"),
)
_REPLY_FIELDS = (
    *("answer", "tools_used", "tool_calls", "sources", "error", "latency_ms", "usage", "cost", "trial"),
    *("messages", "replies", "conversation_id", "response_id", "trace_id"),
)
FIELDS_OF: Mapping[Purpose, Sequence[str]] = {
    "questions": _QUESTION_FIELDS,
    "replies": (*_QUESTION_FIELDS, *_REPLY_FIELDS),
    "records": (),
}


@cache
def _other_names(purpose: Purpose) -> Mapping[str, str]:
    """What others call a field, without case, spaces and underscores → the field: `column_names.toml`."""
    if purpose == "records":
        return {}
    import tomllib  # few files are tables

    tables = tomllib.loads(Path(__file__).with_name("column_names.toml").read_text("utf-8"))
    return {
        name: field
        for table in ("common", purpose)
        for field, names in tables[table].items()
        for name in names
    }


# Fields that hold lists.
LIST_FIELDS = (
    *_EXPECTATION_LISTS,
    *("expected_tools", "forbidden_tools", "tags", "relevant_documents", "expected_sources"),
    "checks",
)
# Fields that can only be written as JSON.
_JSON_FIELDS = ("turns", "tool_calls", "usage", "messages", "replies", "sources")
# The first of these that a column has in a cell splits all its cells.
_SPLIT_AT = {
    "semicolons": lazy(";"),
    "line breaks": lazy(r"\r?\n"),
    "bars": lazy(r"(?<!\|)\|(?!\|)"),
    "commas": lazy(","),
}
# In an expectation, a comma between digits may belong to a number: 16,144 or 4,90 or 1.200,50, but not 900,9th or 1,2,3.
_DECIMALS = r"(?<!,\d,)(?<!,\d\d,)(?<!,\d\d\d,)\d{1,2}(?![\w,])|(?<=\d\.\d{3},)\d{1,2}(?!\d)"
_SPLIT_EXPECTATIONS_AT = {
    **_SPLIT_AT,
    "commas": lazy(rf"(?<!\d),|,(?!\d{{3}}(?!\d))(?!{_DECIMALS})"),
}
# What programs write in an empty cell.
_PLACEHOLDERS = frozenset(("nan", "n/a", "#n/a", "na", "none", "null", "nil", "-", "–", "—"))
_YEAR = lazy(r"(?:1[0-9]|20)[0-9][0-9]")
# "Smith, John" and "Portland, OR": perhaps one value.
_LIKE_ONE_VALUE = lazy(r"([A-Z][\w'’.-]+), ?([A-Z][\w'’.-]*)(?: [A-Z]\.)?")


# Called with what is wrong with a row, and the row; what it raises ends the reading.
Bad = Callable[[InputError, object], None]


def refuse(error: InputError, row: object = None) -> None:
    """End the reading at a bad row."""
    raise error


def plain_name(name: str) -> str:
    """A name without case, spaces and punctuation."""
    return "".join(filter(str.isalnum, name)).casefold()


def read_columns(
    rows: Sequence[tuple[int | None, JsonObject]],
    purpose: Purpose,
    path: Path,
    bad: Bad = refuse,
    notes: list[ReadNote] | None = None,
) -> tuple[list[tuple[int | None, JsonObject]], list[str]]:
    """The rows under answerkey's names with their lists split, and what was guessed.

    Rows that cannot be read go to `bad`, values that were perhaps meant otherwise to `notes`.
    """
    names = dict.fromkeys(name for _, row in rows for name in row)
    fields = _fields(names, purpose)
    guesses = [f"column {name!r} as {field}" for name, field in fields.items() if name != field]
    renamed = [(line, {fields.get(name, name): cell for name, cell in row.items()}) for line, row in rows]
    separators = {}
    for name in LIST_FIELDS:
        cells = [cell for _, row in renamed if isinstance(cell := row.get(name), str)]
        separators[name] = _separator(cells, name)
        if separators[name] not in ("", "semicolons"):
            guesses.append(f"{name} split at {separators[name]}")
    if purpose == "replies" and any(row.get("tools_used") for _, row in renamed):
        # The column says which tools were used, so an empty cell says that none was.
        for _, row in renamed:
            if row.keys().isdisjoint({"tools_used", "tool_calls", "messages", "replies"}):
                row["tools_used"] = "none"
    if purpose == "replies":
        _say_empty_replies([row for _, row in renamed])
        unread = [cell for _, row in renamed if (cell := _read_figures(row)) is not None]
        if unread:
            guesses.append(
                f"latency_ms of {len(unread)} row{'s'[: len(unread) > 1]} not read ({unread[0]!r})"
            )
    read = []
    for line, row in renamed:
        if notes is not None:
            notes += [
                note for name in _EXPECTATION_LISTS for note in _ambiguous(row, name, separators[name], line)
            ]
        try:
            read.append((line, split_cells(row, separators)))
        except ValueError as error:
            bad(InputError(str(error), path=path, line=line), row)
    return read, guesses


def _fields(names: Iterable[str], purpose: Purpose) -> dict[str, str]:
    """Column → field; a column that is called like the field goes before one that others call so."""
    listed = set(FIELDS_OF[purpose])
    if listed.isdisjoint({"tools_used", "tool_calls"} & set(names)) and "expected_tools" not in names:
        # People call it so; as a field of answerkey's, it would only say "none".
        listed.discard("tools")
    known = {plain_name(field): field for field in FIELDS_OF[purpose] if field in listed}
    fields: dict[str, str] = {name: name for name in names if name in listed}
    for table in (known, _other_names(purpose)):
        for name in names:
            field = table.get(plain_name(name))
            if field is not None and name not in fields and field not in fields.values():
                fields[name] = field
    return fields


def _patterns(field: str) -> Mapping[str, re.Pattern[str]]:
    return _SPLIT_EXPECTATIONS_AT if field in _EXPECTATION_LISTS else _SPLIT_AT


def _separator(cells: Iterable[str], field: str) -> str:
    """What splits the cells of a column; empty: nothing does."""
    plain = [cell for cell in cells if cell.lstrip()[:1] not in ("[", "{")]
    return next(
        (
            name
            for name, at in _SPLIT_AT.items()
            if any(at.search(cell) and _is_split(cell, field, name) for cell in plain)
        ),
        "",
    )


def _is_split(cell: str, field: str, separator: str) -> bool:
    return separator != "commas" or len(_parts(cell, field, separator)) > 1


def _parts(cell: str, field: str, separator: str) -> list[str]:
    """The values in a cell. Commas do not split dates."""
    pieces = [part.strip() for part in _patterns(field)[separator].split(cell)]
    parts: list[str] = []
    for part in filter(None, pieces):
        if parts and separator == "commas" and _YEAR.fullmatch(part) and _is_day(parts[-1], part):
            parts[-1] = f"{parts[-1]}, {part}"
        else:
            parts.append(part)
    return parts


def _is_day(text: str, year: str) -> bool:
    """Whether a text is the day of a year: "March 5", but not "March"."""
    wanted = parse_date(f"{text}, {year}")
    return wanted is not None and wanted.date is not None and wanted.date.day is not None


def _ambiguous(row: JsonObject, field: str, separator: str, line: int | None) -> Iterator[ReadNote]:
    """A name that was read as two keywords, or a list that was read as one since other cells have another separator."""
    cell = row.get(field)
    if isinstance(cell, str) and cell.strip().casefold() in _PLACEHOLDERS:
        yield ReadNote(
            code="placeholder",
            line=line,
            message=f"the cell “{cell.strip()}” was read as a keyword",
            remedy="leave the cell empty if nothing is expected",
        )
    if not isinstance(cell, str) or "," not in cell or cell.lstrip()[:1] in ("[", "{"):
        return
    cell = cell.strip()
    name = _LIKE_ONE_VALUE.fullmatch(cell)
    if separator == "commas" and name is not None and parse_date(f"{name[1]} 2000") is None:
        yield ReadNote(
            code="split-at-comma",
            line=line,
            message=f"the cell “{cell}” was read as two keywords, “{name[1]}” and “{name[2]}”",
            remedy=f'if it is one keyword, write ["{cell}"] in the cell',
        )
    is_single = separator not in ("", "commas") and not _patterns(field)[separator].search(cell)
    if is_single and name is None and len(parts := _parts(cell, field, "commas")) > 1:
        yield ReadNote(
            code="not-split",
            line=line,
            message=f"the cell “{cell}” was read as one keyword: other cells of the column are split at {separator}",
            remedy=f"if it is {len(parts)} keywords, part them with {separator} too",
        )


_TRIAL = lazy(r"\s*([0-9]{1,10})(?:\.0)?\s*")
_TENTHS = lazy(r"[0-9]+,[0-9]")
_LATENCY = lazy(r"\s*([0-9][0-9.,' ]*?)\s*(ms|s|)\s*", re.IGNORECASE)


def _read_figures(row: JsonObject) -> str | None:
    """Put the numbers that cells of text are in place of them; the latency that cannot be read is returned, and left out."""
    trial, latency = row.get("trial"), row.get("latency_ms")
    if isinstance(trial, str) and (found := _TRIAL.fullmatch(trial)):
        row["trial"] = int(found[1])
    if not isinstance(latency, str):
        return None
    row["latency_ms"] = _read_latency(latency)
    return latency if row["latency_ms"] is None else None


def _read_latency(cell: str) -> float | None:
    """Milliseconds as people write them ("350 ms", "1.2 s", "1,350"); None where they cannot be read, or in two ways."""
    found = _LATENCY.fullmatch(cell)
    if found is None:
        return read_duration(cell)
    digits, in_seconds = found[1], found[2].lower() == "s"
    # 0,350 and 1,350 s may be decimals.
    if "," in digits and "." not in digits and (in_seconds or digits[0] == "0"):
        return None
    # One digit behind a comma is a fraction: of thousands there would be three.
    digits = digits.replace(",", ".") if _TENTHS.fullmatch(digits) else parse_number(digits) or digits
    number = read_number(digits)
    return read_duration(number * 1000 if number is not None and in_seconds else number)


def _say_empty_replies(rows: Sequence[JsonObject]) -> None:
    """A table leaves out empty cells, but an empty cell of the replies is an empty reply."""
    column = next((name for name in TEXT_NAMES if any(row.get(name) for row in rows)), None)
    if column is None:
        return
    for row in rows:
        if row.keys().isdisjoint({*TEXT_NAMES, "error", "messages", "replies"}):
            row[column] = ""


def split_cells(row: Mapping[str, object], separators: Mapping[str, str] | None = None) -> JsonObject:
    """A row with its cells of text as lists and objects; raises ValueError for a cell that is not valid JSON.

    `tools_used` stays a text: it means the same in a table as in any other reply.
    """
    cells: JsonObject = dict(row)  # type: ignore[arg-type]
    for field in (*LIST_FIELDS, *_JSON_FIELDS):
        cell = cells.get(field)
        if not isinstance(cell, str):
            continue
        try:
            cells[field] = _read_cell(field, cell, (separators or {}).get(field) or "semicolons")
        except ValueError as error:
            raise ValueError(f"'{field}' is not valid JSON: {error}") from None
    # How a table says that no tool is to be used, or that any may be.
    if says_no_tool(tools := cells.get("expected_tools")):
        cells["tools"] = "none"
    if says_no_tool(tools) or says_nothing_of_tools(tools):
        del cells["expected_tools"]
    return cells


def _read_cell(field: str, cell: str, separator: str) -> Json:
    """A cell that is JSON as its value, that of a list field as a list, any other as its text."""
    parts = _parts(cell, field, separator)
    if cell.lstrip()[:1] in ("[", "{"):
        try:
            value = decode_cell(cell)
            return [value] if field in _EXPECTATION_LISTS and isinstance(value, dict) else value
        except ValueError:
            # Several objects may follow each other.
            if field not in _EXPECTATION_LISTS or len(parts) < 2:
                raise
    if field not in LIST_FIELDS:
        return cell
    return [*map(_read_part, parts)] if field in _EXPECTATION_LISTS else [*parts]


# What a part of a cell may say beside its value: must: 16144, land || plot, 3960 ± 1%, 3900..4000.
_MUST = lazy(r"must:\s*(?=\S)", re.IGNORECASE)
_FIGURE = r"\s*([^\w\s.±]?\d[\d.,]*\s*%?)\s*"
_TOLERANCE = lazy(rf"{_FIGURE}(?:±|\+/-|\+-){_FIGURE}")
_RANGE = lazy(rf"{_FIGURE}\.\.{_FIGURE}")


def _read_part(text: str) -> Json:
    """One expectation in a cell, as the value that JSON would have."""
    marked = _MUST.match(text)
    value = _read_unmarked(text[marked.end() :] if marked else text)
    if marked is None:
        return value
    if isinstance(value, list):
        return {"any": value, "must": True}
    return {**(value if isinstance(value, dict) else {"text": value}), "must": True}


def _read_unmarked(text: str) -> Json:
    if text.startswith("{"):
        return decode_strict_json(text)
    if "||" in text:
        return [_read_unmarked(option) for option in map(str.strip, text.split("||")) if option]
    if found := _TOLERANCE.fullmatch(text):
        return {"number": found[1].strip(), "tolerance": found[2].strip()}
    if found := _RANGE.fullmatch(text):
        return {"range": [found[1].strip(), found[2].strip()]}
    return text


# Tables as people save them: CSV with any separator, and titles above the header.


SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# Records at the beginning by which the separator is guessed.
_PROBE_RECORDS = 30
# The share of records with as many cells as the header from which a text without known columns is a table.
_ALIKE = 0.9
# A line that Excel writes to say which separator it used.
_STATED = lazy(r"sep=(.)\r?\n", re.IGNORECASE)
# Rows among which the header is looked for.
_HEADER_ROWS = 20

Row = tuple[int | None, JsonObject]


class HeaderNames(msgspec.Struct, frozen=True):
    """The names of columns by which a header row is recognised; without any, the first row is the header."""

    # Without case, spaces and punctuation: one of these must be there.
    names: frozenset[str]
    # Of several such rows, the one with the most of these is the header: a title may be "Questions".
    fields: frozenset[str]
    # Whether a table without such a column cannot be read.
    is_required: bool

    @classmethod
    def of(cls, purpose: Purpose, mapped: Iterable[str] = ()) -> "HeaderNames":
        """The names for a purpose, and the columns that `--map` names."""
        if purpose == "records":
            return cls(frozenset(), frozenset(), False)
        fields = {"question"} if purpose == "questions" else {"question", "id", "answer", "messages"}
        others = {name for name, field in _other_names(purpose).items() if field in fields}
        names = {*map(plain_name, (*fields, *mapped)), *others} - {""}
        known = {*names, *map(plain_name, FIELDS_OF[purpose]), *_other_names(purpose)}
        return cls(frozenset(names), frozenset(known), purpose == "questions" and not mapped)

    def find(self, rows: Iterable[Sequence[str]]) -> int | None:
        """The index of the header row; None if no row is one."""
        ranks = [self.rank(cells) for cells in islice(rows, _HEADER_ROWS)]
        best = max(ranks, default=0)
        return ranks.index(best) if best else None

    def rank(self, cells: Sequence[str]) -> int:
        """How many fields a row names as a header does; 0 if it is none."""
        plain = {plain_name(cell) for cell in cells}
        return 0 if self.names.isdisjoint(plain) else len(self.fields & plain)


def guess_separator(text: str, header: HeaderNames) -> str:
    """The character between the cells: the one that splits every record into as many cells as the header has."""
    stated = _STATED.match(text)
    if stated:
        return stated[1]
    return max(SEPARATOR_NAMES, key=lambda separator: _fit(text, separator, header))


def _fit(text: str, separator: str, header: HeaderNames) -> tuple[bool, float, int]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        records = [cells for cells in islice(reader, _PROBE_RECORDS) if any(map(str.strip, cells))]
    except csv.Error:
        return False, 0.0, 0
    counts = [len(cells) for cells in records[header.find(records) or 0 :]]
    if not counts or counts[0] < 2:
        return False, 0.0, 0
    return True, sum(count == counts[0] for count in counts) / len(counts), counts[0]


def looks_like_table(text: str, separator: str, header: HeaderNames) -> bool:
    """Whether a text has the header of a table, or at least lines of as many cells each."""
    first = next(_records(text, separator), [])
    if header.find(_records(text, separator)) is not None:
        return True
    has_cells, alike, _ = _fit(text, separator, header)
    return has_cells and alike > _ALIKE and not any("?" in cell for cell in first)


def read_delimited(
    text: str, path: Path, separator: str, header: HeaderNames, bad: Bad = refuse
) -> Iterator[Row]:
    """The records under the names of the header, without empty cells; `bad` is called for those that cannot be read."""
    stated = _STATED.match(text)
    text = text[stated.end() :] if stated else text
    skipped, titles = (1 if stated else 0), header.find(_records(text, separator)) or 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for _ in range(titles):
        next(reader)
    begin = reader.line_num + 1 + skipped
    names, problem = _record(reader, path, skipped)
    if problem is not None:
        raise problem
    if not names:
        raise InputError("is empty; the first line must name the columns", path=path)
    names = column_names(names, path, begin)
    while True:
        line = reader.line_num + 1 + skipped
        cells, problem = _record(reader, path, skipped)
        if cells is None and problem is None:
            return
        if cells is not None and not any(cell.strip() for cell in cells):
            continue
        if cells is not None and len(cells) > len(names) and not any(map(str.strip, cells[len(names) :])):
            # A separator at the end of a line.
            cells = cells[: len(names)]
        if cells is not None and len(cells) != len(names):
            problem = InputError(
                f"{len(cells)} cells where the header has {len(names)} ({', '.join(filter(None, names))}), "
                f"read with {SEPARATOR_NAMES.get(separator, repr(separator))} between cells; "
                "put quotes around a cell that holds one",
                path=path,
                line=line,
            )
        if problem is not None:
            bad(problem, cells)
        elif cells is not None:
            yield line, {name: cell for name, cell in zip(names, cells, strict=True) if name and cell != ""}


def _records(text: str, separator: str) -> Iterator[list[str]]:
    """The records up to the first that is not valid CSV."""
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    except csv.Error:
        return


def _record(reader: "Reader", path: Path, skipped: int = 0) -> tuple[list[str] | None, InputError | None]:
    """The next record, None at the end; or what is wrong with it, after which reading can continue."""
    begin = reader.line_num + 1 + skipped
    try:
        return next(reader, None), None
    except csv.Error as error:
        line = reader.line_num + skipped
        begun = "" if line == begin else f" (in a record that begins on line {begin})"
        reason = f"not valid CSV: {error}{begun}; double the quotes inside a quoted cell"
        return None, InputError(reason, path=path, line=line)


def column_names(header: list[str], path: Path, line: int) -> list[str]:
    """The names of the columns; a column without a name is skipped."""
    names = [name.strip() for name in header]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two columns have the same name, {twice!r}; rename one", path=path, line=line)
    return names
