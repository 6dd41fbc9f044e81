"""Whole logs of Inspect, as recorded replies: a `.eval` archive, or the same as one JSON document."""

import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from answerkey.errors import InputError
from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict, as_str
from answerkey.transcripts.message_reading import read_messages

# Inspect's archives are compressed with Zstandard, which Python's zipfile reads from 3.14 on.
_ZSTANDARD = 93
_LOCAL_HEADER = 30


def is_inspect_log(document: object) -> bool:
    """Whether a JSON document is a whole log."""
    log = as_dict(document)
    return isinstance(log.get("samples"), list) and isinstance(log.get("eval"), dict)


def sample_row(sample: JsonObject) -> JsonObject:
    """A sample as a row: what was asked, in which trial, and its target as the reference answer."""
    given = sample.get("input")
    asked = given if isinstance(given, str) else _last_asked(given)
    row: JsonObject = {**sample, "question": asked, "trial": sample.get("epoch")}
    target = as_str(sample.get("target"))
    return row if target is None else {**row, "reference_answer": target}


def _last_asked(messages: Json) -> str | None:
    said = [message.text for message in read_messages(messages) if message.role == "user"]
    return said[-1] if said else None


def is_eval_archive(stream: IO[bytes]) -> bool:
    """Whether an archive is a log of Inspect."""
    try:
        with zipfile.ZipFile(stream) as archive:
            return any(name.startswith(("samples/", "_journal/")) for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def read_eval_archive(stream: IO[bytes], path: Path) -> Iterator[JsonObject]:
    """The samples of an archive, in the order of their ids and epochs."""
    try:
        with zipfile.ZipFile(stream) as archive:
            members = [one for one in archive.infolist() if one.filename.startswith("samples/")]
            for member in members:
                content = _content(archive, member, path)
                try:
                    sample = msgspec.json.decode(content)
                except msgspec.DecodeError:
                    # Inspect writes NaN, which is not JSON.
                    sample = json.loads(content)
                yield sample_row(as_dict(sample))
    except (zipfile.BadZipFile, ValueError, RecursionError) as error:
        raise InputError(f"not a log of Inspect: {str(error).splitlines()[0]}", path=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path) from None


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> bytes:
    if member.compress_type != _ZSTANDARD:
        return archive.read(member)
    try:
        import pyarrow
    except ImportError:
        remedy = "pip install 'answerkey[parquet]', or: inspect log convert --to json"
        raise InputError(f"is compressed with Zstandard; {remedy}", path=path) from None
    stream = archive.fp
    if stream is None or member.file_size > 1 << 31:
        raise InputError(f"{member.filename} is too large", path=path)
    stream.seek(member.header_offset)
    header = stream.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER:
        raise zipfile.BadZipFile("an entry is cut off")
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    stream.seek(member.header_offset + _LOCAL_HEADER + name_length + extra_length)
    packed = stream.read(member.compress_size)
    try:
        found: bytes = pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd").read(
            member.file_size
        )
    except (pyarrow.ArrowException, OSError) as error:
        raise zipfile.BadZipFile(f"{member.filename}: {error}") from None
    return found
