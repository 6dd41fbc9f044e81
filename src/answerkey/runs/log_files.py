"""Files of a log: which they are, the blocks of rows that they are read in, and the side file for rows that cannot be scored."""

import glob
import io
import os
import re
import stat
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NamedTuple
from zlib import adler32, crc32

import msgspec

from answerkey.errors import BinaryFileError, InputError, UsageError
from answerkey.model.run import BAD_ROW
from answerkey.text.patterns import lazy
from answerkey.transcripts.files import (
    STANDARD_INPUT,
    database_url,
    find_remote,
    open_bytes,
    reading_errors,
    remote_stamp,
    remote_url,
    shown_path,
    shown_url,
)
from answerkey.transcripts.row_files import RowFile, open_rows
from answerkey.transcripts.tables import Row

# Bytes of lines, or rows, that go together: large enough that handing them over costs little, small enough for memory.
_BYTES = 2 * 1024 * 1024
_ROWS = 4000
SIDE_FILE_ENDING = ".bad.jsonl"
# What differs between reasons that are the same otherwise: a position in the bytes, a row's fields, an id.
_DIFFERENT = lazy(r" \(byte \d+\)| \(the row has .*?\)")
_UNKNOWN_ID = lazy(r"(?<=^the golden set has no question with )id .*(?=; check --questions$)", re.DOTALL)
# Characters of a bad row that the side file shows.
_ROW_SHOWN = 2000
# A row that could not be read: line, reason and the row.
_Bad = tuple[int | None, str, bytes]


class FilePart(msgspec.Struct, frozen=True):
    """Where some lines are in a file, so that a process that can read the file needs only this."""

    path: str
    # Identify the file, should another one have been put there instead.
    device: int
    inode: int
    start: int
    length: int

    def read(self) -> bytes | None:
        """The lines; None if they are no longer there."""
        try:
            with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123  # a third of the time of Path.open
                found = os.fstat(file.fileno())
                if (found.st_dev, found.st_ino) != (self.device, self.inode):
                    return None
                lines = os.pread(file.fileno(), self.length, self.start)
        except OSError:
            return None
        return lines if len(lines) == self.length else None


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Some rows of a log, one after the other."""

    # Its number among all blocks, and the position of its first row among all rows of the log.
    number: int
    first: int
    # The file as messages name it, and the line before its first; None: its rows have no lines.
    path: str
    line: int | None = None
    # JSON Lines, or rows of another format, each with its line.
    lines: bytes = b""
    # Where the lines are, if they are in a plain file.
    part: FilePart | None = None
    rows: list[tuple[int | None, dict[str, Any]]] = []
    # Rows that could not be read: line, reason and the row.
    bad: list[tuple[int | None, str, bytes]] = []
    # What is wrong with the file after these rows.
    problem: str = ""
    # Whether its rows are scored one by one, since a batch exceeded the time limit of one row.
    one_by_one: bool = False
    # The positions of rows whose scoring exceeded its time limit before.
    too_costly: tuple[int, ...] = ()

    def row_checksums(self) -> bytes:
        """A number of eight bytes for each row, sorted, by which exact copies are found."""
        lines = self.lines.split(b"\n") if self.lines else [repr(row).encode() for _, row in self.rows]
        # Two checksums, of which one alone would take a few of a million different rows for copies.
        checksums = [crc32(line) << 32 | adler32(line) for line in lines if line and not line.isspace()]
        return array("Q", sorted(checksums)).tobytes()

    def sent(self) -> "Block":
        """For another process: without lines that it can read itself."""
        return self if self.part is None else msgspec.structs.replace(self, lines=b"")

    def arrived(self) -> "Block | None":
        """In the other process: with its lines; None if they cannot be read there and must be sent."""
        lines = self.lines if self.part is None else self.part.read()
        return None if lines is None else msgspec.structs.replace(self, lines=lines)


class LogFiles(NamedTuple):
    """The files of a log."""

    paths: list[Path]
    # What was left out, in words.
    notes: list[str]


def log_files(paths: Iterable[str | Path], golden: str | None = None) -> LogFiles:
    """The files that paths, folders and patterns name, each once.

    Of a folder or pattern, the golden set, results that answerkey wrote and files that cannot be logs are left out.
    """
    found: dict[Path, None] = {}
    own: list[Path] = []
    others: list[Path] = []
    for given in map(Path, paths):
        url = remote_url(given)
        if url is not None:
            found |= dict.fromkeys(find_remote(url))
            continue
        if given.is_dir():
            inside = [path for path in given.rglob("*") if path.is_file() and not _is_hidden(path, given)]
            none = "is a folder without files"
        elif given != STANDARD_INPUT and not given.exists() and glob.has_magic(str(given)):
            matching = glob.glob(str(given), recursive=True)  # noqa: PTH207  # a pattern may be absolute
            inside = [Path(path) for path in matching if Path(path).is_file()]
            none = "no file matches this pattern"
        else:
            found[given] = None
            continue
        if not inside:
            raise InputError(none, path=given)
        for path in sorted(inside):
            is_golden = golden is not None and str(path.resolve()) == golden
            if is_golden or path.suffix.lower() in _NO_LOGS:
                others.append(path)
            elif has_own_results(path):
                own.append(path)
            elif not is_side_file(path):
                found[path] = None
    notes = []
    if own:
        notes.append(
            f"left out: {_list_paths(own)}, results that answerkey wrote; to score them again, name the file itself"
        )
    if others:
        notes.append(f"left out: {_list_paths(others)}, not recorded replies")
    if not found and notes:
        raise InputError(f"no recorded replies; {'; '.join(notes)}")
    return LogFiles(list(found), notes)


# Files beside a log that are never one: reports, notes, configuration, programs.
_NO_LOGS = frozenset(
    (
        *(".md", ".markdown", ".html", ".htm", ".xml", ".pdf", ".docx", ".svg", ".css"),
        *(".toml", ".ini", ".cfg", ".env", ".lock", ".py", ".sh", ".js", ".ts", ".ipynb"),
    )
)
_NAMED = 3


def _list_paths(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return ", ".join(str(shown_path(path)) for path in paths[:_NAMED]) + more


def _is_hidden(path: Path, folder: Path) -> bool:
    """Hidden files, and markers such as _SUCCESS."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


# What rows of answerkey's own results have in every format, and how its JSON document begins.
_OWN_FIELDS = frozenset({"reply", "components", "grade", "passed"})
_OWN_DOCUMENT = re.compile(rb'\s*{\s*"schema"\s*:\s*\d+\s*,\s*"run"\s*:\s*{')
_OWN_SHEETS = frozenset({"Summary", "Categories", "Results"})
_SHEET_NAME = re.compile(rb'<sheet [^>]*?name="(\w+)"')


def has_own_results(path: Path) -> bool:
    """Whether answerkey wrote this file: the results of a run, as rows in any format or as the run document."""
    try:
        with open_bytes(path) as stream:
            head = stream.peek(4)[:4]
            if head == b"PAR1":
                return _parquet_columns(path) >= _OWN_FIELDS
            if head == b"PK\x03\x04":
                return _sheets(path) >= _OWN_SHEETS
            line = stream.readline(_BYTES).removeprefix(b"\xef\xbb\xbf")
    except (OSError, EOFError, InputError):
        # What is wrong with the file is reported when it is read.
        return False
    if line.lstrip().startswith(b"{"):
        if _OWN_DOCUMENT.match(line):
            return True
        try:
            return msgspec.json.decode(line, type=dict[str, msgspec.Raw]).keys() >= _OWN_FIELDS
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
    return set(line.decode("utf-8", "replace").strip().split(",")) >= _OWN_FIELDS


def _sheets(path: Path) -> set[str]:
    import zipfile  # slow to load

    try:
        with zipfile.ZipFile(path) as archive:
            names = _SHEET_NAME.findall(archive.read("xl/workbook.xml"))
    except (KeyError, zipfile.BadZipFile):
        return set()
    return {name.decode() for name in names}


def _parquet_columns(path: Path) -> set[str]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return set()
    try:
        return set(parquet.read_schema(path).names)
    except ArrowException:
        return set()


class LogBlocks:
    """The blocks of some files, in order."""

    def __init__(
        self,
        paths: Iterable[Path],
        fields: Mapping[str, str] | None = None,
        sql: str = "",
        golden: str | None = None,
    ) -> None:
        # Files given by name, not found in a folder or by a pattern.
        given = list(paths)
        self._named = set(given)
        # What was guessed in order to read a file, and what was not read.
        self.paths, self.notes = log_files(given, golden)
        if sql and not any(database_url(path) for path in self.paths):
            raise UsageError(
                "--sql reads a database; give sqlite:///FILE or postgresql://… instead of a file"
            )
        self._sql = sql
        self._fields = fields
        # Bytes on disk, None if unknown, and how many of them have been read.
        self.size = _size(self.paths)
        self.bytes_read = 0
        self._number = self._rows_read = 0

    def __iter__(self) -> Iterator[Block]:
        for path in self.paths:
            try:
                yield from self._of_file(path)
            except BinaryFileError as error:
                # A picture in a folder of logs is skipped.
                if path in self._named:
                    raise
                self.notes.append(f"{error}; skipped")
            except InputError as error:
                # A damaged file counts as a bad row; a missing one ends the scoring.
                if not path.is_file():
                    raise
                yield self._block(str(path), 0, line=error.line, problem=error.reason)

    def _of_file(self, path: Path) -> Iterator[Block]:
        bad: list[_Bad] = []
        file = open_rows(
            path, "replies", self._fields, lambda error, row: bad.append(_bad_row(error, row)), self._sql
        )
        url = database_url(path)
        shown = shown_url(url) if url else remote_url(path) or str(shown_path(path))
        if file.read_as:
            self.notes.append(f"{shown} was read as: {file.read_as}")
        before = self.bytes_read
        yield from (
            self._of_lines(file, shown) if file.unread is not None else self._of_rows(file.rows, bad, shown)
        )
        self.bytes_read = before + (_size([path]) or 0)

    def _of_lines(self, file: RowFile, path: str) -> Iterator[Block]:
        rest, stream = file.unread  # type: ignore[misc]  # the caller looked
        line, problem, packed = 0, "", type(stream) is not io.BufferedReader
        file_part = _file_part(stream, len(rest))
        with stream:
            while not problem:
                pieces, length, piece = [rest], len(rest), b"."
                # Piece by piece, so that what precedes the damage in an archive is not lost.
                try:
                    with reading_errors(Path(path)):
                        while length < _BYTES and piece:
                            pieces.append(piece := stream.read1(_BYTES))
                            length += len(piece)
                except InputError as error:
                    problem, piece = str(error).removeprefix(f"{path}: "), b""
                    problem = f"the file is truncated; the amount of missing data is unknown: {problem}"
                    self.notes.append(f"{path}: {problem}; the coverage does not include it")
                lines = b"".join(pieces)
                # What follows the last line break belongs to the next block.
                end = lines.rfind(b"\n") + 1 if piece else len(lines)
                lines, rest = lines[:end], lines[end:]
                if lines:
                    count = lines.count(b"\n") + (not lines.endswith(b"\n"))
                    self.bytes_read += 0 if packed else len(lines)
                    part = file_part and msgspec.structs.replace(file_part, length=len(lines))
                    yield self._block(path, count, line=line, lines=lines, part=part)
                    if file_part is not None:
                        file_part = msgspec.structs.replace(file_part, start=file_part.start + len(lines))
                    line += count
                if problem:
                    # The line is unknown.
                    yield self._block(path, 0, problem=problem)
                if not piece:
                    return

    def _of_rows(self, rows: Iterator[Row], bad: list[_Bad], path: str) -> Iterator[Block]:
        """Blocks of rows; `bad` receives those that cannot be read."""
        damage: InputError | None = None
        while damage is None:
            some: list[Row] = []
            # One by one, so that what precedes damage is not lost.
            try:
                for row in islice(rows, _ROWS):
                    some.append(row)
            except InputError as error:
                damage = error
            if some or bad:
                yield self._block(path, len(some) + len(bad), rows=some, bad=list(bad))
                bad.clear()
            elif damage is None:
                return
        raise damage

    def _block(self, path: str, count: int, **fields: object) -> Block:
        block = Block(number=self._number, first=self._rows_read, path=path, **fields)  # type: ignore[arg-type]  # as named above
        self._number += 1
        self._rows_read += count
        return block

    def stamps(self) -> list[tuple[str, int | None, str]] | None:
        """Path, size and modification time of each file; None if one of them is unknown."""
        found = []
        for path in self.paths:
            url = remote_url(path)
            if url is not None:
                stamp = remote_stamp(url)
            elif path.is_file():
                stamp = (str(path.resolve()), path.stat().st_size, str(path.stat().st_mtime_ns))
            else:
                # Standard input, a pipe, or a missing file, which fails when it is opened.
                return None
            if not all(stamp):
                return None
            found.append(stamp)
        return found

    @property
    def rows_read(self) -> int:
        """How many rows and lines have been read."""
        return self._rows_read


def _bad_row(error: InputError, row: object) -> _Bad:
    try:
        shown = row if isinstance(row, bytes) else msgspec.json.encode(row, enc_hook=str)
    except UnicodeEncodeError:
        shown = b""
    return error.line, error.reason, shown.rstrip(b"\r\n")


def _file_part(stream: io.BufferedReader, read: int) -> FilePart | None:
    """Where a stream is in its file, before the last `read` bytes; None if other processes cannot read it there."""
    raw = getattr(stream, "raw", None)
    if not isinstance(raw, io.FileIO) or not isinstance(raw.name, str):
        # An archive, or standard input.
        return None
    found = os.fstat(raw.fileno())
    if not stat.S_ISREG(found.st_mode):
        return None
    return FilePart(str(Path(raw.name).absolute()), found.st_dev, found.st_ino, stream.tell() - read, 0)


def _size(paths: Iterable[Path]) -> int | None:
    sizes = [_size_of(path) for path in paths]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _size_of(path: Path) -> int | None:
    url = remote_url(path)
    if url is not None:
        return remote_stamp(url)[1]
    # Else standard input, or a missing file, which fails when it is opened.
    return path.stat().st_size if path.exists() else None


# Rows that cannot be scored go to a side file, each with its line and reason.


def general_reason(reason: str) -> str:
    """What is wrong with a row, in words that are the same for all rows with this problem."""
    return _UNKNOWN_ID.sub("its id", _DIFFERENT.sub("", reason))


class BadRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that could not be scored."""

    file: str
    line: int | None
    reason: str
    # The row as it is in the file, or its beginning.
    row: str = ""

    @classmethod
    def of(cls, path: str, line: int | None, reason: str, raw: bytes | dict[str, Any]) -> "BadRow":
        """A row as it is in the file, shortened."""
        try:
            shown = raw if isinstance(raw, bytes) else msgspec.json.encode(raw, enc_hook=str)
        except (RecursionError, UnicodeEncodeError):
            # Its reason says what is wrong with it.
            shown = b""
        return cls(path, line, reason, shown.decode("utf-8", "replace")[:_ROW_SHOWN])

    @property
    def counted_as(self) -> str:
        """The reason under which summaries count it."""
        return BAD_ROW + general_reason(self.reason)

    def error(self, rows: int = 1) -> InputError:
        """The error of a log in which this and all other `rows` cannot be scored."""
        more = f" (none of {rows:,} rows can be scored)" if rows > 1 else ""
        return InputError(self.reason + more, path=self.file, line=self.line)


class _SideFileRow(BadRow, frozen=True, forbid_unknown_fields=True):
    """A row of a side file, which has no other fields."""


_decode_bad = msgspec.json.Decoder(_SideFileRow).decode


def is_side_file(path: Path) -> bool:
    """Whether answerkey wrote this file as a side file: each of its lines is a bad row."""
    written = False
    try:
        with path.open("rb") as file:
            for line in file:
                _decode_bad(line)
                written = True
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return written


def write_bad_rows(path: Path, lines: bytes, read: Iterable[Path]) -> Path | None:
    """Write the side file of a log whose files were `read`, and return its path; without bad rows, remove an old one.

    A file of that name that is not a side file, or is itself part of the log, is left alone: the next free name is used.
    """
    path = _free_name(path, list(read))
    if lines:
        path.write_bytes(lines)
        return path
    path.unlink(missing_ok=True)
    return None


def _free_name(path: Path, read: list[Path]) -> Path:
    stem = path.name.removesuffix(SIDE_FILE_ENDING)
    others = (path.with_name(f"{stem}.bad.{number}.jsonl") for number in count(2))
    return next(chosen for chosen in chain([path], others) if _may_be_written(chosen, read))


def _may_be_written(path: Path, read: list[Path]) -> bool:
    if not path.exists():
        # A dangling link may be someone's file.
        return not path.is_symlink()
    return is_side_file(path) and not any(given.exists() and path.samefile(given) for given in read)
