"""Rows of JSON Lines, JSON, YAML, CSV and Parquet files and Inspect logs, each with the line it stands on."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import msgspec

from answerkey.errors import InputError, MissingExtraError
from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.inspect_files import is_inspect_log, read_eval_archive, sample_row

__all__ = ["FORMATS", "Row", "read_rows", "read_text"]

FORMATS = (".jsonl", ".ndjson", ".json", ".yaml", ".yml", ".csv", ".parquet", ".eval")

# Where a file that is one object has its records.
_LISTS = ("questions", "tests", "cases", "replies", "feedback", "scores", "annotations", "data")

Row = tuple[int | None, JsonObject]


def read_rows(path: str | Path) -> Iterator[Row]:
    """Yield (line number, object) for every record of a file; the line is None where the format has none."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"unknown format {suffix or '(no extension)'!r}; use one of {' '.join(FORMATS)}", path=path
        )
    match suffix:
        case ".jsonl" | ".ndjson":
            return _jsonl(path)
        case ".json":
            return _json(path)
        case ".yaml" | ".yml":
            return _yaml(path)
        case ".csv":
            return _csv(path)
        case ".eval":
            return ((None, row) for row in read_eval_archive(path))
        case _:
            return _parquet(path)


def read_text(path: Path) -> str:
    """A text file as UTF-8, with or without a byte order mark."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError("not UTF-8 text; save the file as UTF-8", path=path, line=line) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("no such file", path=path)
    if isinstance(error, IsADirectoryError):
        return InputError("is a folder, not a file", path=path)
    return InputError(f"cannot be read: {error.strerror or error}", path=path)


def _jsonl(path: Path) -> Iterator[Row]:
    decode = msgspec.json.Decoder().decode
    try:
        with path.open("rb") as stream:
            for number, raw in enumerate(stream, start=1):
                line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                if not line.strip():
                    continue
                try:
                    value = decode(line)
                except msgspec.DecodeError as error:
                    value = _with_lone_surrogates(line)
                    if value is None:
                        raise InputError(f"not valid JSON: {error}", path=path, line=number) from None
                except UnicodeDecodeError:
                    raise InputError(
                        "not UTF-8 text; save the file as UTF-8", path=path, line=number
                    ) from None
                yield number, _object(value, path, number)
    except OSError as error:
        raise _unreadable(path, error) from None


def _with_lone_surrogates(line: bytes) -> Json:
    """A line that is JSON but for halves of surrogate pairs, which become replacement characters; None if it is not."""
    if b"\\u" not in line:
        return None
    import json  # unlike msgspec, it reads half a surrogate pair

    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    decoded: Json = msgspec.json.decode(text.encode("utf-8", "replace"))
    return decoded


def _object(value: object, path: Path, line: int | None) -> JsonObject:
    if not isinstance(value, dict):
        raise InputError(f"expected an object, got {_type_name(value)}", path=path, line=line)
    if not all(isinstance(key, str) for key in value):
        raise InputError("field names must be text", path=path, line=line)
    return value


def _type_name(value: object) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true/false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "null" if value is None else type(value).__name__)


def _json(path: Path) -> Iterator[Row]:
    import json  # the standard parser names line and column of a mistake in a multi-line file

    text = read_text(path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg}", path=path, line=error.lineno) from None
    except RecursionError:
        raise InputError("not valid JSON: nested too deeply", path=path) from None
    yield from _listed(value, path)


def _listed(value: object, path: Path) -> Iterator[Row]:
    if isinstance(value, dict):
        if is_inspect_log(value):
            for sample in value["samples"]:
                yield None, sample_row(_object(sample, path, None))
            return
        # {"questions": [...]} is how people write a set with a title.
        lists = [key for key in _LISTS if isinstance(value.get(key), list)]
        if not lists:
            raise InputError(
                "expected a list of objects, or an object with a list under 'questions'", path=path
            )
        value = value[lists[0]]
    if not isinstance(value, list):
        raise InputError(f"expected a list of objects, got {_type_name(value)}", path=path)
    for number, item in enumerate(value, start=1):
        if not isinstance(item, dict):
            raise InputError(f"item {number}: expected an object, got {_type_name(item)}", path=path)
        yield None, _object(item, path, None)


def _yaml(path: Path) -> Iterator[Row]:
    import yaml

    text = read_text(path)
    try:
        # The node tree knows the line of every item; the values come from the safe constructor only.
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise InputError(
            f"not valid YAML: {problem}", path=path, line=mark.line + 1 if mark else None
        ) from None
    if isinstance(node, yaml.MappingNode):
        node = next(
            (child for key, child in node.value if key.value in _LISTS),
            node,
        )
    lines = [child.start_mark.line + 1 for child in node.value] if isinstance(node, yaml.SequenceNode) else []
    for index, (_, item) in enumerate(_listed(value, path)):
        yield (lines[index] if index < len(lines) else None), item


def _csv(path: Path) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        header = next(reader, None)
        if not header:
            raise InputError("is empty; the first line must name the columns", path=path)
        if len(set(header)) != len(header):
            raise InputError("two columns have the same name", path=path, line=1)
        begin = reader.line_num + 1
        for cells in reader:
            line, begin = begin, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{len(cells)} cells where the header has {len(header)}", path=path, line=line
                )
            yield line, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
    except csv.Error as error:
        raise InputError(f"not valid CSV: {error}", path=path, line=reader.line_num) from None


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("reading Parquet", "parquet") from None
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    yield None, {name: cell for name, cell in row.items() if cell is not None}
    except (pyarrow.ArrowInvalid, pyarrow.ArrowException) as error:
        raise InputError(f"not valid Parquet: {str(error).splitlines()[0]}", path=path) from None
    except OSError as error:
        raise _unreadable(path, error) from None
