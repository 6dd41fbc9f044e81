"""`--map FIELD=JMESPATH`: where the rows of another tool's file have answerkey's fields."""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import msgspec

from answerkey.errors import BinaryFileError, InputError, MissingExtraError, UsageError, nearest_name
from answerkey.model.question import ReadNote
from answerkey.model.reply import Json, JsonObject
from answerkey.text.patterns import lazy
from answerkey.transcripts.files import (
    PROBE,
    STANDARD_INPUT,
    database_url,
    decode_text,
    input_path,
    is_binary,
    open_bytes,
    read_database,
    reading_errors,
    shown_path,
    shown_url,
)
from answerkey.transcripts.json_values import (
    TEXT_NAMES,
    NestingError,
    as_dict,
    as_json,
    decode_cell,
    decode_json,
    decode_python_json,
    decode_strict_json,
    limit_depth,
    outline_json,
    type_in_words,
    words,
)
from answerkey.transcripts.payloads import NAMES_READ
from answerkey.transcripts.tables import (
    FIELDS_OF,
    LIST_FIELDS,
    SEPARATOR_NAMES,
    Bad,
    HeaderNames,
    Purpose,
    Row,
    guess_separator,
    looks_like_table,
    read_columns,
    read_delimited,
    refuse,
)

# Not a field: where a document has its rows.
ROWS = "rows"
_FIELDS = (*FIELDS_OF["replies"], ROWS)
# Names under which answerkey itself would read something.
_READ = NAMES_READ.union(_FIELDS, TEXT_NAMES)
# How columns of seconds are called.
_SECONDS = lazy(r"(?:^|[._])(?:s|secs?|seconds)$", re.IGNORECASE)
# A field that none of this many first rows has is not there.
_ENOUGH = 1000


def read_map(texts: Iterable[str]) -> dict[str, str]:
    """FIELD → expression, from "FIELD=JMESPATH" as the command line gives it."""
    expressions: dict[str, str] = {}
    for text in texts:
        field, equals, expression = (part.strip() for part in text.partition("="))
        if not (field and equals and expression):
            raise UsageError(f"--map {text!r}: write FIELD=JMESPATH, e.g. answer=response.text")
        if field in expressions:
            raise UsageError(f"--map {field} is given twice; keep one")
        if field == "latency_ms" and _SECONDS.search(expression):
            raise UsageError(
                f"--map {text}: latency_ms is in milliseconds; for seconds write --map latency_s={expression}"
            )
        expressions[field] = expression
    return expressions


class FieldMap:
    """Expressions over the rows of one file; one that is a row's own field or column need not be JMESPath."""

    def __init__(self, expressions: Mapping[str, str]) -> None:
        self._given = dict(expressions)
        self._rows = self._given.pop(ROWS, None)
        self._find = {field: finder(expression) for field, expression in expressions.items()}
        self._lists = [field for field in self._given if field in LIST_FIELDS]
        for field in self._given:
            if field in _READ:
                continue
            close = nearest_name(field, _FIELDS, cutoff=0.75)
            known = f"did you mean {close!r}?" if close else f"use one of {', '.join(_FIELDS)}"
            raise UsageError(f"--map {field}={self._given[field]}: answerkey has no field {field!r}; {known}")

    def __bool__(self) -> bool:
        return bool(self._given) or self._rows is not None

    @property
    def fields(self) -> frozenset[str]:
        """What has an expression."""
        return frozenset(self._given)

    def rows_in(self, document: object, path: Path) -> list[Any] | None:
        """The rows that `rows` finds in a document; None if it is not given."""
        if self._rows is None:
            return None
        found = self._find[ROWS](document) if isinstance(document, dict | list) else None
        if not isinstance(found, list):
            finds = "finds no list in it" if is_expression(self._rows) else "is not valid JMESPath"
            raise InputError(f"--map rows={self._rows} {finds}{_seen(document)}", path=path)
        return found

    def over(
        self, rows: Iterable[tuple[int | None, JsonObject]], path: str | Path, *, has_cells: bool
    ) -> Iterator[tuple[int | None, JsonObject]]:
        """The rows with every field where it belongs; an expression that finds nothing in any row is refused.

        A single value of a list's field becomes a list, except in cells of a table, which are parted later.
        """
        if not self._given:
            yield from rows
            return
        missing, rows = set(self._given), iter(rows)
        first = list(islice(rows, _ENOUGH))
        for _, row in first:
            missing = {field for field in missing if self._find[field](row) is None}
        if missing and first:
            field = next(field for field in self._given if field in missing)
            expression = self._given[field]
            finds = "finds nothing in any row"
            if not is_expression(expression):
                finds = "is not valid JMESPath, and no row has a field of that name"
            raise InputError(f"--map {field}={expression} {finds}{_seen(first[0][1])}", path=path)
        for block in (first, rows):
            for line, row in block:
                yield line, self.mapped(row, has_cells)

    def mapped(self, row: JsonObject, has_cells: bool) -> JsonObject:
        """One row with every field where it belongs; an expression that finds nothing is left out."""
        found = {field: self._find[field](row) for field in self._given}
        if not has_cells:
            found |= {field: _as_list(found[field]) for field in self._lists}
        # What a field was taken from is the other tool's, and not to be read once more under a name of answerkey's.
        taken = {_root(expression) for expression in self._given.values()}
        kept = {
            name: value
            for name, value in row.items()
            if name not in found and not (name in taken and (name in _READ or name in self._given.values()))
        }
        return {**kept, **{field: value for field, value in found.items() if value is not None}}


def _as_list(value: Any) -> Any:
    """One name, keyword or number as a list; anything else as it is."""
    single = isinstance(value, str | int | float) and not isinstance(value, bool)
    return ([] if value == "" else [value]) if single else value


def _root(expression: str) -> str:
    """The field of a row that an expression begins with."""
    return expression.partition(".")[0].partition("[")[0].partition("|")[0].strip().strip('"')


def _seen(row: object) -> str:
    return f"; there are {', '.join(list(row)[:20])}" if isinstance(row, dict) else ""


def is_expression(expression: str) -> bool:
    """Whether it is JMESPath."""
    import jmespath  # only where there is a map

    try:
        jmespath.compile(expression)
    except ValueError:
        return False
    return True


def finder(expression: str) -> Callable[[Any], Any]:
    """How an expression finds a value: as a row's own field or column, else as JMESPath; None if there is none."""
    import jmespath  # only where there is a map

    try:
        search = jmespath.compile(expression).search
    except ValueError:
        # It can only be a column's name.
        search = None

    def find(row: Any) -> Any:
        if isinstance(row, dict) and expression in row:
            return row[expression]
        try:
            return None if search is None else search(row)
        except (TypeError, ValueError):
            return None

    return find


# Rows of JSON Lines, JSON, YAML, CSV, Excel and Parquet files and Inspect logs, each with its line.
#
# What a file holds decides how it is read; its name is looked at only where the content could be two things.


_LINES = (".jsonl", ".ndjson")
# Keys under which people and tools put a file's rows, the likelier first.
_LISTS = (
    *("questions", "tests", "cases", "replies", "feedback", "scores", "annotations", "data"),
    *("results", "items", "rows", "examples", "records", "samples", "test_cases", "goldens", "eval_cases"),
)
# An object with one of these is a row itself, whatever lists it has.
_ROW_MARKS = ("question", "turns", "messages", "input", "inputs", "vars", "id", "ground_truth")


# An object under an id is a row if it has one of these.
_NAMED_ROW = frozenset((*TEXT_NAMES, "question", "turns", "messages", "tools_used"))

# What is looked for in replies.
_SOUGHT = frozenset({"expected_keywords", "forbidden_keywords", "expected_content"})
_SURROGATE = lazy("[\ud800-\udfff]")
# Fields of golden sets and recorded replies whose YAML values are texts, whatever they look like.
YAML_TEXTS = frozenset(
    words(
        """id question category group context persona tags reference_answer severity
        expected_tools forbidden_tools tools name relevant_documents expected_sources
        expected_keywords expected_content forbidden_keywords expected_dates expected_entities
        accept_regex text any regex date contains rubric
        answer response tools_used conversation_id response_id trace_id"""
    )
)
_WORKBOOKS = (".xlsx", ".xlsm")
# Endings of text that need not be a table.
_PROSE = (".txt", ".log", ".md", ".markdown", "")
# The part of a value in its row: a field's name and, in a list, the item's number from 1.
ValuePath = tuple[str | int, ...]


def _line_of_row(line: int | None, path: ValuePath) -> int | None:
    return line


class RowFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file's rows, and how they were read."""

    rows: Iterator[Row]
    # What was guessed of the file, for the user to know; empty: nothing was.
    guesses: tuple[str, ...] = ()
    # Cells of text under a header.
    is_table: bool = False
    # The same with cells of any type.
    is_typed: bool = False
    # For JSON Lines, instead of `rows`: the bytes that have been read, and the stream with the rest of them.
    unread: tuple[bytes, io.BufferedReader] | None = None
    # Values that are probably not what the author meant; complete when the rows have been read.
    notes: list[ReadNote] = []
    # (a row's line, part of its value) → the line of that part, where the format has one.
    locate: Callable[[int | None, ValuePath], int | None] = _line_of_row

    @property
    def read_as(self) -> str:
        """The guesses in a line."""
        return "; ".join(self.guesses)


def read_rows(path: str | Path) -> Iterator[Row]:
    """Yield (line number, object) for every record of a file; the line is None where the format has none."""
    return open_rows(path).rows


def open_rows(
    path: str | Path,
    purpose: Purpose = "records",
    fields: Mapping[str, str] | None = None,
    bad: Bad = refuse,
    sql: str = "",
) -> RowFile:
    """A file's rows under answerkey's names for `purpose`, with `fields` found where their expressions say.

    A row that cannot be read ends the reading, or goes to `bad`. The rows of a database are those that `sql` selects.
    """
    path, sheet = split_sheet(input_path(path))
    shown, mapping = shown_path(path), FieldMap(fields) if fields else None
    url = database_url(path)
    if url is not None:
        texts = [column for field, column in (fields or {}).items() if field in TEXT_NAMES]
        selected = read_database(url, sql, texts)
        return RowFile(
            rows=selected if mapping is None else mapping.over(selected, shown_url(url), has_cells=False),
            is_typed=True,
        )
    found = _FileReader(path, shown, sheet, purpose, fields or {}, mapping, bad).read()
    rows = found.rows if mapping is None else mapping.over(found.rows, shown, has_cells=found.is_table)
    # Recorded replies may be millions: they are streamed where their cells need no guessing.
    has_columns = found.is_table or (found.is_typed and purpose == "questions")
    if not has_columns or purpose == "records":
        unread = None if fields else found.unread
        return msgspec.structs.replace(found, rows=rows, unread=unread)
    read, guesses = read_columns(list(rows), purpose, shown, bad, found.notes)
    return RowFile(rows=iter(read), guesses=(*found.guesses, *guesses), is_table=True, notes=found.notes)


def split_sheet(path: Path) -> tuple[Path, str | None]:
    """A workbook and the sheet that is named behind it, as in golden.xlsx#Questions."""
    name, mark, sheet = path.name.partition("#")
    if not (mark and sheet) or Path(name).suffix.lower() not in _WORKBOOKS or path.exists():
        return path, None
    return path.with_name(name), sheet


class _FileReader(msgspec.Struct, frozen=True):
    """Reads one file by what it holds."""

    path: Path
    # The name of the file in messages.
    display_path: Path
    sheet: str | None
    purpose: Purpose
    fields: Mapping[str, str]
    mapping: FieldMap | None
    bad: Bad

    def read(self) -> RowFile:
        """The rows, under the names that they have in the file."""
        path, shown = self.path, self.display_path
        with reading_errors(shown):
            stream = open_bytes(path)
            head = stream.peek(4)[:4]
            if head == b"PAR1" or (_ending(path) == ".parquet" and head):
                return RowFile(rows=_parquet(_seekable(stream), shown), is_typed=True)
            if head == b"PK\x03\x04":
                return self._archive(_seekable(stream))
            if stream.peek(16)[:16] == b"SQLite format 3\0":
                message = f'is a database; write sqlite:///{shown} --sql "SELECT …"'
                raise BinaryFileError(message, path=shown)
            if is_binary(stream.peek(PROBE)[:PROBE]):
                raise BinaryFileError("is a binary file, not text or a table", path=shown)
            guesses: tuple[str, ...] = ()
            if head[:1] in (b"\xff", b"\xfe") or b"\x00" in head:
                text, encoding = decode_text(stream.read())
                stream, guesses = (
                    io.BufferedReader(cast("io.RawIOBase", io.BytesIO(text.encode()))),
                    _in(encoding),
                )
            first_lines = _first_lines(stream)
            if _are_json_lines(first_lines, path):
                guesses = guesses if path.suffix.lower() in _LINES else (*guesses, "JSON Lines")
                lines = self._json_lines(chain(first_lines, stream))
                return RowFile(rows=lines, guesses=guesses, unread=(b"".join(first_lines), stream))
            text, encoding = decode_text(b"".join(first_lines) + stream.read())
            stream.close()
        found = self._text_rows(text)
        return msgspec.structs.replace(found, guesses=(*guesses, *_in(encoding), *found.guesses))

    def _archive(self, stream: io.BufferedReader | io.BytesIO) -> RowFile:
        # Archives and XML are loaded for those who have such files.
        from answerkey.transcripts.recorded_rows import is_eval_archive, read_eval_archive
        from answerkey.transcripts.workbooks import is_workbook, read_workbook

        if is_eval_archive(stream):
            return RowFile(rows=((None, row) for row in read_eval_archive(stream, self.display_path)))
        if not is_workbook(stream):
            message = "is an archive, but not an Excel workbook or an Inspect log; unpack it first"
            raise InputError(message, path=self.display_path)
        stream.seek(0)
        found = read_workbook(stream, self.display_path, self._header(), self.bad, self.sheet)
        return RowFile(rows=found.rows, guesses=found.guesses, is_table=True, notes=found.notes)

    def _prose_remedy(self) -> str:
        file = "-" if self.path == STANDARD_INPUT else self.display_path
        questions = (
            f"a list of questions becomes a golden set by: answerkey import list {file} -o golden.jsonl"
        )
        if self.purpose == "questions":
            return f"is plain text, not a golden set; {questions}"
        row = '{"question": "…", "answer": "…", "tools_used": ["…"]}'
        return f"is plain text, not recorded replies; write one object a line, such as {row} ({questions})"

    def _header(self) -> HeaderNames:
        return HeaderNames.of(self.purpose, self.fields.values())

    def _text_rows(self, text: str) -> RowFile:
        suffix = _ending(self.path)
        if not text.strip():
            return RowFile(rows=iter(()))
        if suffix in (".yaml", ".yml"):
            return self._yaml(text)
        if text.lstrip()[0] in "[{":
            return self._json(text, lines=suffix in _LINES)
        if suffix in _LINES or suffix == ".json":
            return RowFile(rows=self._json_lines(io.BytesIO(text.encode())))
        if text.lstrip().startswith("<"):
            raise BinaryFileError(
                "is a web page or XML, not rows; save the data as JSON Lines or CSV", path=self.display_path
            )
        if suffix not in (".csv", ".tsv", ".tab", ".psv") and _looks_like_yaml(text):
            return self._yaml(text)
        header = self._header()
        separator = guess_separator(text, header)
        is_prose = suffix in _PROSE and self.purpose != "records" and not self.fields
        if is_prose and not looks_like_table(text, separator, header):
            raise InputError(self._prose_remedy(), path=self.display_path)
        plain = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}.get(suffix) == separator
        named = SEPARATOR_NAMES.get(separator, repr(separator))
        guesses = () if plain else (f"a table with {named} between cells",)
        rows = read_delimited(text, self.display_path, separator, header, self.bad)
        return RowFile(rows=rows, guesses=guesses, is_table=True)

    def _json_lines(self, lines: Iterable[bytes]) -> Iterator[Row]:
        with reading_errors(self.display_path):
            for number, raw in enumerate(lines, start=1):
                line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                if not line.strip():
                    continue
                try:
                    row = decode_line(line)
                    if self.purpose == "questions":
                        _refuse_repeated_keys(line, row)
                except ValueError as error:
                    self.bad(InputError(str(error), path=self.display_path, line=number), line)
                    continue
                yield number, row

    def _json(self, text: str, *, lines: bool) -> RowFile:
        import json  # the standard parser names line and column of a mistake in a multi-line file

        try:
            value = decode_python_json(text)
        except json.JSONDecodeError as error:
            objects = _objects_in_a_row(text)
            if objects is not None:
                guesses = ("JSON objects over several lines",)
                items = [item for _, item in objects]
                return RowFile(rows=self._items(items, [line for line, _ in objects]), guesses=guesses)
            if _ending(self.path) in _PROSE and not isinstance(_first_of(text), dict | list):
                raise InputError(self._prose_remedy(), path=self.display_path) from None
            raise InputError(
                f"not valid JSON: {_json_mistake(text) or error.msg}",
                path=self.display_path,
                line=error.lineno,
            ) from None
        except NestingError as error:
            raise InputError(f"not valid JSON: {error}", path=self.display_path) from None
        keys, items = _listed(value, self.display_path, self.mapping)
        guesses = (*(("JSON",) if lines else ()), *_named_keys(keys))
        if self.purpose == "replies" and self.mapping is None:
            items = [_from_harness_report(item) for item in items]
        if self.purpose != "questions":
            return RowFile(rows=self._items(items), guesses=guesses)
        outline = outline_json(text, keys)
        for repeated in outline.repeated:
            message = f"{repeated.key!r} is given twice, here and on line {repeated.first_line}; remove one"
            self.bad(InputError(message, path=self.display_path, line=repeated.line), None)
        return RowFile(rows=self._items(items, [place.line for place in outline.items]), guesses=guesses)

    def _items(self, items: list[Any], lines: Sequence[int] = ()) -> Iterator[Row]:
        numbered = lines if len(lines) == len(items) else [None] * len(items)
        for number, (item, line) in enumerate(zip(items, numbered, strict=True), start=1):
            try:
                row = _object(item)
            except ValueError as error:
                self.bad(InputError(f"item {number}: {error}", path=self.display_path, line=line), item)
                continue
            yield line, row

    def _yaml(self, text: str) -> RowFile:
        from answerkey.transcripts.yaml_documents import line_of, read_yaml

        texts: frozenset[str] = frozenset()
        if self.purpose != "records":
            # What a map names may be a text as well.
            mapped = {name for expression in self.fields.values() for name in re.findall(r"\w+", expression)}
            texts = YAML_TEXTS | mapped
        try:
            document = read_yaml(text, texts)
            limit_depth(document.value)
        except NestingError as error:
            raise InputError(f"not valid YAML: {error}", path=self.display_path) from None
        for problem in document.problems:
            self.bad(
                InputError(f"not valid YAML: {problem}", path=self.display_path, line=problem.line), None
            )
        if document.problems and not document.value:
            return RowFile(rows=iter(()), notes=document.notes)
        keys, items = _listed(document.value, self.display_path, self.mapping)
        if self.purpose != "records" and items and all(isinstance(item, str) for item in items):
            raise InputError(self._prose_remedy(), path=self.display_path)
        nodes = document.item_nodes(keys)
        if len(nodes) != len(items):
            return RowFile(rows=self._items(items), guesses=_named_keys(keys), notes=document.notes)
        lines = [line_of(node) for node in nodes]
        by_line = dict(zip(lines, nodes, strict=True))

        def locate(line: int | None, path: ValuePath) -> int | None:
            return line if line not in by_line else line_of(by_line[line], path)

        rows = self._items(items, lines)
        return RowFile(rows=rows, guesses=_named_keys(keys), notes=document.notes, locate=locate)


def _ending(path: Path) -> str:
    """The ending of a file's name, without that of its compression: .jsonl of x.jsonl.gz."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    return Path(name).suffix


def _in(encoding: str) -> tuple[str, ...]:
    return (f"text in {encoding}",) if encoding else ()


def _looks_like_yaml(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return first.startswith(("- ", "---")) or first.rstrip().endswith(":")


def _seekable(stream: io.BufferedReader) -> io.BufferedReader | io.BytesIO:
    """The stream itself, if it is a file on disk; otherwise its content."""
    return stream if type(stream) is io.BufferedReader and stream.seekable() else io.BytesIO(stream.read())


def _first_lines(stream: io.BufferedReader) -> list[bytes]:
    """The beginning up to the second line that is not blank."""
    lines: list[bytes] = []
    written = 0
    while written < 2 and (line := stream.readline()):
        lines.append(line)
        written += bool(line.strip())
    return lines


def _are_json_lines(lines: list[bytes], path: Path) -> bool:
    """Whether a file that begins so has an object a line."""
    written = [line.removeprefix(b"\xef\xbb\xbf").strip() for line in lines if line.strip()]
    named = _ending(path) in _LINES
    if not written or written[0][:1] not in (b"{", b"["):
        return named and bool(written)
    try:
        first = decode_strict_json(written[0])
        if isinstance(first, list) and len(written) == 1:
            # The document on one line, whatever the file is called.
            return False
        whole = isinstance(first, dict)
    except NestingError:
        return named
    except ValueError:
        # The opening of one document over many lines, or a line that is wrong.
        return named and written[0][-1:] not in (b"{", b"[", b",")
    return named or (whole and len(written) > 1)


def _first_of(text: str) -> object:
    """The JSON value that a text begins with; None if it begins with none."""
    import json

    try:
        return json.JSONDecoder().raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError):
        return None


def _objects_in_a_row(text: str) -> list[tuple[int, Json]] | None:
    """Objects one after the other, as `jq` prints them, each with its line; None if the text is something else."""
    import json

    decoder, found, at = json.JSONDecoder(), list[tuple[int, Json]](), 0
    line = 1
    while (space := _BETWEEN_OBJECTS.match(text, at)) is not None and space.end() < len(text):
        line += text.count("\n", at, space.end())
        try:
            value, end = decoder.raw_decode(text, space.end())
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        found.append((line, limit_depth(value)))
        line += text.count("\n", space.end(), end)
        at = end
    return found or None


_BETWEEN_OBJECTS = lazy(r"[\s,]*")


def _json_mistake(text: str) -> str:
    """What is wrong with a JSON text, such as a trailing comma; empty if only the standard library can say."""
    try:
        decode_strict_json(text)
    except ValueError as error:
        return str(error)
    return ""


def decode_line(line: bytes) -> JsonObject:
    """The object on a line; ValueError says what it is instead."""
    try:
        value = decode_strict_json(line)
    except msgspec.DecodeError as error:
        value = _with_lone_surrogates(line) or _nearly_json(line)
        if value is None:
            raise ValueError(f"not valid JSON: {error}") from None
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text; save the file as UTF-8") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {type_in_words(value)}")
    return value


# What follows a key; between them there may be space.
_AFTER_KEY = re.compile(rb'"\s*:')


def _refuse_repeated_keys(line: bytes, row: JsonObject) -> None:
    # A line with as many keys as the decoded row, which has each once, repeats none.
    if len(_AFTER_KEY.findall(line)) == _count_keys(row):
        return
    try:
        decode_strict_json(line)
    except ValueError:
        # It was read although it is only nearly JSON.
        return
    repeated = outline_json(line.decode()).repeated
    if repeated:
        raise ValueError(f"{repeated[0].key!r} is given twice; remove one")


def _count_keys(row: JsonObject) -> int:
    count, values = 0, list[Json]([row])
    while values:
        value = values.pop()
        if isinstance(value, dict):
            count += len(value)
            values += value.values()
        elif isinstance(value, list):
            values += value
    return count


def _nearly_json(line: bytes) -> Json:
    """An object with a comma behind it, with NaN for null, or as Python prints it; None if the line is not one."""
    text = line.decode().strip().removesuffix(",")
    for decode in (decode_cell, decode_json):
        with suppress(ValueError):
            return decode(text)
    return None


def _with_lone_surrogates(line: bytes) -> Json:
    """A line that is JSON but for halves of surrogate pairs, which become replacement characters; None if it is not."""
    if b"\\u" not in line:
        return None
    import json  # unlike msgspec, it reads half a surrogate pair

    try:
        value = decode_python_json(line)
    except ValueError:
        return None
    fields = as_dict(value)
    for name in _SOUGHT & fields.keys():
        if _SURROGATE.search(json.dumps(fields[name], ensure_ascii=False)):
            # A replacement character would be sought, or taken for punctuation, instead of what was meant.
            raise ValueError(f"'{name}' holds half of a surrogate pair; write the whole character")
    return as_json(value)


def _object(value: object) -> JsonObject:
    """A row; ValueError says what it is instead."""
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {type_in_words(value)}")
    if not all(isinstance(key, str) for key in value):
        raise ValueError("field names must be text")
    return value


def _listed(value: object, path: Path, mapping: FieldMap | None) -> tuple[tuple[str, ...], list[Any]]:
    chosen = None if mapping is None else mapping.rows_in(value, path)
    if chosen is not None:
        return (), chosen
    from answerkey.transcripts.recorded_rows import is_inspect_log, sample_row  # not for JSON Lines

    if isinstance(value, dict) and is_inspect_log(value):
        # Items that are not samples are reported when the rows are read.
        return (), [sample_row(one) if isinstance(one, dict) else one for one in value["samples"]]
    return find_list(value, path)


# Names in `expected` of a report {"results": [{"question", "response", "expected": {…}, "checks": {…}}]} → fields.
_HARNESS_NAMES = {
    "tools": "expected_tools",
    "keywords": "expected_keywords",
    "content": "expected_keywords",
    "sources": "expected_sources",
    "answer": "reference_answer",
}


def _from_harness_report(row: Any) -> Any:
    """A result of such a report as a recorded reply with its expectations; any other row unchanged.

    The tools that were used are those that its check of tools lists under `actual`.
    """
    expected, checks = (row.get("expected"), row.get("checks")) if isinstance(row, dict) else (None, None)
    if not isinstance(expected, dict) or not isinstance(checks, dict):
        return row
    reply = {name: value for name, value in row.items() if name not in ("expected", "checks")}
    for name, value in expected.items():
        field = _HARNESS_NAMES.get(name, name)
        if field in FIELDS_OF["questions"]:
            reply.setdefault(field, value)
    used = [
        check.get("actual") for name, check in checks.items() if "tool" in name and isinstance(check, dict)
    ]
    for tools in used:
        if isinstance(tools, list):
            reply.setdefault("tools_used", tools)
    return reply


def find_list(value: object, path: Path) -> tuple[tuple[str, ...], list[Any]]:
    """The keys that lead to the rows, and the rows; an object that is a row itself is the only one."""
    if isinstance(value, list):
        return (), value
    if not isinstance(value, dict):
        raise InputError("expected a list of objects, or an object that holds one", path=path)
    for key in _LISTS:
        if _is_rows(value.get(key)):
            return (key,), value[key]
    if any(name in value for name in _ROW_MARKS):
        return (), [value]
    # One level further down: {"results": {"results": [...]}}.
    for key in (*_LISTS, *value):
        inner = value.get(key)
        if isinstance(inner, dict):
            deeper = next((name for name in _LISTS if _is_rows(inner.get(name))), None)
            if deeper is not None:
                return (key, deeper), inner[deeper]
    if value and all(isinstance(held, dict) and not _NAMED_ROW.isdisjoint(held) for held in value.values()):
        # {"q1": {"answer": …}, "q2": …}
        return (), [{"id": key, **held} for key, held in value.items()]
    others = [key for key, held in value.items() if held and _is_rows(held)]
    if len(others) == 1:
        return (others[0],), value[others[0]]
    holds = (
        f"it holds lists under {', '.join(others)}"
        if others
        else f"it has {', '.join(map(str, list(value)[:20]))}"
    )
    raise InputError(
        f"expected a list of objects, or an object with a list under 'questions'; {holds}; "
        "say which with --map rows=KEY",
        path=path,
    )


def _is_rows(value: object) -> bool:
    """Whether a list is one of objects; among many, some may be wrong."""
    return isinstance(value, list) and 2 * sum(isinstance(item, dict) for item in value) >= len(value)


def _named_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    return () if keys in ((), ("questions",), ("replies",)) else (f"the rows under {'.'.join(keys)!r}",)


def _parquet(stream: io.BufferedReader | io.BytesIO, path: Path) -> Iterator[Row]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("reading Parquet", "parquet") from None
    try:
        with reading_errors(path), parquet.ParquetFile(stream) as file:
            for batch in file.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    yield None, {name: cell for name, cell in row.items() if cell is not None}
    except (pyarrow.ArrowInvalid, pyarrow.ArrowException) as error:
        raise InputError(f"not valid Parquet: {str(error).splitlines()[0]}", path=path) from None
