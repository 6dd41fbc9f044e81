"""`--map FIELD=JMESPATH`: where the rows of another tool's file have answerkey's fields."""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import msgspec

from answerkey.errors import BinaryFileError, InputError, MissingExtraError, UsageError
from answerkey.model.reply import Json, JsonObject
from answerkey.transcripts.files import PROBE, decode_text, is_binary, open_bytes, reading_errors, shown_path
from answerkey.transcripts.json_values import (
    TEXT_NAMES,
    NestingError,
    as_dict,
    decode_python_json,
    decode_strict_json,
    decode_yaml,
    type_in_words,
)
from answerkey.transcripts.payloads import NAMES_READ
from answerkey.transcripts.tables import FIELDS_OF, LIST_FIELDS, Purpose, read_columns, refuse

# Not a field: where a document has its rows.
ROWS = "rows"
_FIELDS = (*FIELDS_OF["replies"], ROWS)
# Names under which answerkey itself would read something.
_READ = NAMES_READ.union(_FIELDS, TEXT_NAMES)
# A field that none of so many rows has is not there.
_ENOUGH = 1000


def read_map(texts: Iterable[str]) -> dict[str, str]:
    """FIELD → expression, from "FIELD=JMESPATH" as the command line gives it."""
    expressions: dict[str, str] = {}
    for text in texts:
        field, equals, expression = (part.strip() for part in text.partition("="))
        if not (field and equals and expression):
            raise UsageError(f"--map {text!r}: write FIELD=JMESPATH, as answer=response.text")
        if field in expressions:
            raise UsageError(f"--map {field} is given twice; keep one")
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
            close = get_close_matches(field, _FIELDS, n=1, cutoff=0.75)
            known = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(_FIELDS)}"
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
        self, rows: Iterable[tuple[int | None, JsonObject]], path: Path, *, has_cells: bool
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
                yield line, self._mapped(row, has_cells)

    def _mapped(self, row: JsonObject, has_cells: bool) -> JsonObject:
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


# Rows of JSON Lines, JSON, YAML, CSV, Excel and Parquet files and Inspect logs, each with the line it stands on.
#
# What a file holds decides how it is read; its name is looked at only where the content could be two things.


Row = tuple[int | None, JsonObject]

_LINES = (".jsonl", ".ndjson")
# Keys under which people and tools put a file's rows, the likelier first.
_LISTS = (
    *("questions", "tests", "cases", "replies", "feedback", "scores", "annotations", "data"),
    *("results", "items", "rows", "examples", "records", "samples", "test_cases", "goldens", "eval_cases"),
)
# An object with one of these is a row itself, whatever lists it has.
_ROW_MARKS = ("question", "turns", "messages", "input", "inputs", "vars", "id", "ground_truth")


# What is looked for in replies.
_SOUGHT = frozenset({"expected_keywords", "forbidden_keywords", "expected_content"})
_SURROGATE = re.compile("[\ud800-\udfff]")
# What is told of a row that cannot be read, and the row; what it raises ends the reading.
Bad = Callable[[InputError, object], None]
# What is wrong with a row whose lists and objects no reader can follow.


class RowFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file's rows, and how they were read."""

    rows: Iterator[Row]
    # What was guessed of the file, for the user to know; empty: nothing was.
    guesses: tuple[str, ...] = ()
    # Cells of text under a header.
    is_table: bool = False
    # The same with cells of any type.
    is_typed: bool = False
    # Of JSON Lines, in the place of `rows`: what has been read of the bytes, and the rest of them.
    unread: tuple[bytes, io.BufferedReader] | None = None

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
) -> RowFile:
    """A file's rows under answerkey's names for `purpose`, with `fields` found where their expressions say.

    A row that cannot be read ends the reading, or goes to `bad` in the place of the rows.
    """
    path = Path(path)
    shown, mapping = shown_path(path), FieldMap(fields) if fields else None
    found = _recognised(path, shown, mapping, bad)
    rows = found.rows if mapping is None else mapping.over(found.rows, shown, has_cells=found.is_table)
    # Recorded replies may be millions: they are streamed where their cells need no guessing.
    has_columns = found.is_table or (found.is_typed and purpose == "questions")
    if not has_columns or purpose == "records":
        unread = None if fields else found.unread
        return msgspec.structs.replace(found, rows=rows, unread=unread)
    read, said = read_columns(list(rows), purpose, shown, bad)
    return RowFile(rows=iter(read), guesses=(*found.guesses, *said), is_table=True)


def _recognised(path: Path, shown: Path, mapping: FieldMap | None, bad: Bad) -> RowFile:
    with reading_errors(shown):
        stream = open_bytes(path)
        head = stream.peek(4)[:4]
        if head == b"PAR1" or (_ending(path) == ".parquet" and head):
            return RowFile(rows=_parquet(_seekable(stream), shown), is_typed=True)
        if head == b"PK\x03\x04":
            return _archive(_seekable(stream), shown)
        if is_binary(stream.peek(PROBE)[:PROBE]):
            raise BinaryFileError("is a binary file, not text or a table", path=shown)
        said: tuple[str, ...] = ()
        if head[:1] in (b"\xff", b"\xfe") or b"\x00" in head:
            text, encoding = decode_text(stream.read())
            stream, said = io.BufferedReader(cast("io.RawIOBase", io.BytesIO(text.encode()))), _in(encoding)
        first_lines = _first_lines(stream)
        if _are_json_lines(first_lines, path):
            said = said if path.suffix.lower() in _LINES else (*said, "JSON Lines")
            lines = _json_lines(chain(first_lines, stream), shown, bad)
            return RowFile(rows=lines, guesses=said, unread=(b"".join(first_lines), stream))
        text, encoding = decode_text(b"".join(first_lines) + stream.read())
        stream.close()
    found = _text_rows(text, path, shown, mapping, bad)
    return msgspec.structs.replace(found, guesses=(*said, *_in(encoding), *found.guesses))


def _ending(path: Path) -> str:
    """The ending of a file's name, without that of its compression: .jsonl of x.jsonl.gz."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    return Path(name).suffix


def _in(encoding: str) -> tuple[str, ...]:
    return (f"text in {encoding}",) if encoding else ()


def _text_rows(text: str, path: Path, shown: Path, mapping: FieldMap | None, bad: Bad) -> RowFile:
    suffix = _ending(path)
    if not text.strip():
        return RowFile(rows=iter(()))
    if suffix in (".yaml", ".yml"):
        return _yaml(text, shown, mapping, bad)
    if text.lstrip()[0] in "[{":
        return _json(text, shown, mapping, bad, lines=suffix in _LINES)
    if suffix in _LINES or suffix == ".json":
        return RowFile(rows=_json_lines(io.BytesIO(text.encode()), shown, bad))
    if suffix not in (".csv", ".tsv", ".tab", ".psv") and _looks_like_yaml(text):
        return _yaml(text, shown, mapping, bad)
    from answerkey.transcripts.tables import SEPARATOR_NAMES, guess_separator, read_delimited

    separator = guess_separator(text)
    plain = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".psv": "|"}.get(suffix) == separator
    said = () if plain else (f"a table with {SEPARATOR_NAMES.get(separator, repr(separator))} between cells",)
    return RowFile(rows=read_delimited(text, shown, separator, bad), guesses=said, is_table=True)


def _looks_like_yaml(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return first.startswith(("- ", "---")) or first.rstrip().endswith(":")


def _seekable(stream: io.BufferedReader) -> io.BufferedReader | io.BytesIO:
    """The stream itself, if it is a file on disk; otherwise its content."""
    return stream if type(stream) is io.BufferedReader and stream.seekable() else io.BytesIO(stream.read())


def _archive(stream: io.BufferedReader | io.BytesIO, path: Path) -> RowFile:
    # Archives and XML are loaded for those who have such files.
    from answerkey.transcripts.recorded_rows import is_eval_archive, read_eval_archive
    from answerkey.transcripts.tables import is_workbook, read_workbook

    if is_eval_archive(stream):
        return RowFile(rows=((None, row) for row in read_eval_archive(stream, path)))
    if not is_workbook(stream):
        raise InputError("is an archive, but no Excel workbook or Inspect log; unpack it first", path=path)
    stream.seek(0)
    rows, sheet = read_workbook(stream, path)
    return RowFile(rows=rows, guesses=(f"the sheet {sheet!r} of a workbook",), is_table=True)


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
        whole = isinstance(decode_strict_json(written[0]), dict)
    except NestingError:
        return named
    except ValueError:
        # The opening of one document over many lines, or a line that is wrong.
        return named and written[0][-1:] not in (b"{", b"[", b",")
    return named or (whole and len(written) > 1)


def _json_lines(lines: Iterable[bytes], path: Path, bad: Bad) -> Iterator[Row]:
    with reading_errors(path):
        for number, raw in enumerate(lines, start=1):
            line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if not line.strip():
                continue
            try:
                row = decode_line(line)
            except ValueError as error:
                bad(InputError(str(error), path=path, line=number), line)
                continue
            yield number, row


def decode_line(line: bytes) -> JsonObject:
    """The object on a line; ValueError says what it is instead."""
    try:
        value = decode_strict_json(line)
    except msgspec.DecodeError as error:
        value = _with_lone_surrogates(line)
        if value is None:
            raise ValueError(f"not valid JSON: {error}") from None
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text; save the file as UTF-8") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {type_in_words(value)}")
    return value


def _with_lone_surrogates(line: bytes) -> Json:
    """A line that is JSON but for halves of surrogate pairs, which become replacement characters; None if it is not."""
    if b"\\u" not in line:
        return None
    import json  # unlike msgspec, it reads half a surrogate pair

    try:
        value = decode_python_json(line)
        text = json.dumps(value, ensure_ascii=False)
    except ValueError:
        return None
    fields = as_dict(value)
    for name in _SOUGHT & fields.keys():
        if _SURROGATE.search(json.dumps(fields[name], ensure_ascii=False)):
            # A replacement character would be sought, or taken for punctuation, in the place of what was meant.
            raise ValueError(f"'{name}' holds half of a surrogate pair; write the whole character")
    decoded: Json = msgspec.json.decode(_SURROGATE.sub("\ufffd", text))
    return decoded


def _object(value: object) -> JsonObject:
    """A row; ValueError says what it is instead."""
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {type_in_words(value)}")
    if not all(isinstance(key, str) for key in value):
        raise ValueError("field names must be text")
    return value


def _json(text: str, path: Path, mapping: FieldMap | None, bad: Bad, *, lines: bool) -> RowFile:
    import json  # the standard parser names line and column of a mistake in a multi-line file

    try:
        value = decode_python_json(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg}", path=path, line=error.lineno) from None
    except NestingError as error:
        raise InputError(f"not valid JSON: {error}", path=path) from None
    keys, items = _listed(value, path, mapping)
    guesses = (*(("JSON",) if lines else ()), *_said_keys(keys))
    return RowFile(rows=_items(items, path, bad), guesses=guesses)


def _listed(value: object, path: Path, mapping: FieldMap | None) -> tuple[tuple[str, ...], list[Any]]:
    chosen = None if mapping is None else mapping.rows_in(value, path)
    if chosen is not None:
        return (), chosen
    from answerkey.transcripts.recorded_rows import is_inspect_log, sample_row  # not for JSON Lines

    if isinstance(value, dict) and is_inspect_log(value):
        # What is no sample is told when the rows are read.
        return (), [sample_row(one) if isinstance(one, dict) else one for one in value["samples"]]
    return _find_list(value, path)


def _find_list(value: object, path: Path) -> tuple[tuple[str, ...], list[Any]]:
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


def _said_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    return () if keys in ((), ("questions",), ("replies",)) else (f"the rows under {'.'.join(keys)!r}",)


def _items(
    items: list[Any], path: Path, bad: Bad, lines: Sequence[int | None] | None = None
) -> Iterator[Row]:
    for number, (item, line) in enumerate(zip(items, lines or [None] * len(items), strict=True), start=1):
        try:
            row = _object(item)
        except ValueError as error:
            bad(InputError(f"item {number}: {error}", path=path, line=line), item)
            continue
        yield line, row


def _yaml(text: str, path: Path, mapping: FieldMap | None, bad: Bad) -> RowFile:
    import yaml

    try:
        # The node tree knows the line of every item; the values come from the safe constructor only.
        value = decode_yaml(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except NestingError as error:
        raise InputError(f"not valid YAML: {error}", path=path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise InputError(
            f"not valid YAML: {problem}", path=path, line=mark.line + 1 if mark else None
        ) from None
    keys, items = _listed(value, path, mapping)
    for key in keys:
        node = next((child for name, child in node.value if name.value == key), node)
    lines = [child.start_mark.line + 1 for child in node.value] if isinstance(node, yaml.SequenceNode) else []
    numbered = lines if len(lines) == len(items) else [None] * len(items)
    return RowFile(rows=_items(items, path, bad, numbered), guesses=_said_keys(keys))


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
