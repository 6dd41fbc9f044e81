"""A log cut into blocks of rows: lines of JSON as they stand, rows of other formats as they were read."""

import glob
import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from answerkey.errors import BinaryFileError, InputError
from answerkey.runs.bad_rows import is_side_file
from answerkey.runs.shard import Block, FilePart
from answerkey.transcripts.files import (
    STANDARD_INPUT,
    find_remote,
    reading_errors,
    remote_stamp,
    remote_url,
    shown_path,
)
from answerkey.transcripts.row_files import Row, RowFile, open_rows

# Bytes of lines, or rows, that go together: large enough that handing them over costs nothing, small enough for memory.
_BYTES = 2 * 1024 * 1024
_ROWS = 4000


# A row that could not be read: line, reason and the row.
_Bad = tuple[int | None, str, bytes]


def log_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files that are meant by files, folders and patterns, each once."""
    found: dict[Path, None] = {}
    for given in map(Path, paths):
        url = remote_url(given)
        if url is not None:
            found |= dict.fromkeys(find_remote(url))
        elif given.is_dir():
            inside = sorted(
                path for path in given.rglob("*") if path.is_file() and not _passed_over(path, given)
            )
            if not inside:
                raise InputError("is a folder without files", path=given)
            found |= dict.fromkeys(inside)
        elif given != STANDARD_INPUT and not given.exists() and glob.has_magic(str(given)):
            matching = sorted(glob.glob(str(given), recursive=True))  # noqa: PTH207  # a pattern may be absolute
            if not matching:
                raise InputError("no file matches this pattern", path=given)
            found |= dict.fromkeys(Path(path) for path in matching if Path(path).is_file())
        else:
            found[given] = None
    return list(found)


def _passed_over(path: Path, folder: Path) -> bool:
    """Hidden files, what writers of tables leave beside their parts (_SUCCESS), and the bad rows of an earlier scoring."""
    if any(part.startswith((".", "_")) for part in path.relative_to(folder).parts):
        return True
    return ".bad." in path.name and is_side_file(path)


class LogBlocks:
    """The blocks of some files, in order."""

    def __init__(
        self,
        paths: Iterable[Path],
        fields: Mapping[str, str] | None = None,
        named: Iterable[Path] | None = None,
    ) -> None:
        self.paths = list(paths)
        # Those that were given by name, not found in a folder or by a pattern; None: all.
        self._named = set(self.paths if named is None else named)
        self._fields = fields
        # What was guessed to read a file, for the user to know.
        self.notes: list[str] = []
        # Bytes on disk in all, and how many of these have been read; None: not known.
        self.size = _size(self.paths)
        self.bytes_read = 0
        self._number = self._place = 0

    @property
    def files(self) -> int:
        """How many files there are."""
        return len(self.paths)

    def __iter__(self) -> Iterator[Block]:
        for path in self.paths:
            try:
                yield from self._of_file(path)
            except BinaryFileError as error:
                # A picture beside the logs is none of them.
                if path in self._named:
                    raise
                self.notes.append(f"{error}: it was left out")
            except InputError as error:
                # Of several files one that is damaged is told among the bad rows; one that is not there ends it.
                if not path.is_file():
                    raise
                yield self._block(str(path), 0, line=error.line, problem=_reason(error))

    def _of_file(self, path: Path) -> Iterator[Block]:
        bad: list[_Bad] = []
        file = open_rows(path, "replies", self._fields, lambda error, row: bad.append(_told(error, row)))
        shown = remote_url(path) or str(shown_path(path))
        if file.read_as:
            self.notes.append(f"{shown} was read as: {file.read_as}")
        before = self.bytes_read
        yield from (
            self._of_lines(file, shown) if file.unread is not None else self._of_rows(file.rows, bad, shown)
        )
        self.bytes_read = before + (_size([path]) or 0)

    def _of_lines(self, file: RowFile, shown: str) -> Iterator[Block]:
        rest, stream = file.unread  # type: ignore[misc]  # the caller looked
        line, problem, packed = 0, "", type(stream) is not io.BufferedReader
        file_part = _file_part(stream, len(rest))
        with stream:
            while not problem:
                pieces, length, piece = [rest], len(rest), b"."
                # Piece by piece, so that what can be read before the place where an archive is damaged is not lost.
                try:
                    with reading_errors(Path(shown)):
                        while length < _BYTES and piece:
                            pieces.append(piece := stream.read1(_BYTES))
                            length += len(piece)
                except InputError as error:
                    problem, piece = str(error).removeprefix(f"{shown}: "), b""
                    problem = f"the file ends before its end, and how much is missing is not known: {problem}"
                    self.notes.append(f"{shown}: {problem}; coverage cannot count it")
                lines = b"".join(pieces)
                # What follows the last line break belongs to the next block, if there is one.
                end = lines.rfind(b"\n") + 1 if piece else len(lines)
                lines, rest = lines[:end], lines[end:]
                if lines:
                    count = lines.count(b"\n") + (not lines.endswith(b"\n"))
                    self.bytes_read += 0 if packed else len(lines)
                    part = file_part and msgspec.structs.replace(file_part, length=len(lines))
                    yield self._block(shown, count, line=line, lines=lines, part=part)
                    if file_part is not None:
                        file_part = msgspec.structs.replace(file_part, start=file_part.start + len(lines))
                    line += count
                if problem:
                    # On no line: nobody knows on which.
                    yield self._block(shown, 0, problem=problem)
                if not piece:
                    return

    def _of_rows(self, rows: Iterator[Row], bad: list[_Bad], shown: str) -> Iterator[Block]:
        """Blocks of rows; `bad` gets those that cannot be read while the others are."""
        damage: InputError | None = None
        while damage is None:
            some: list[Row] = []
            # One by one, so that what can be read before a place that is damaged is not lost.
            try:
                for row in islice(rows, _ROWS):
                    some.append(row)
            except InputError as error:
                damage = error
            if some or bad:
                yield self._block(shown, len(some) + len(bad), rows=some, bad=list(bad))
                bad.clear()
            elif damage is None:
                return
        raise damage

    def _block(self, path: str, count: int, **given: object) -> Block:
        block = Block(number=self._number, first=self._place, path=path, **given)  # type: ignore[arg-type]  # as named above
        self._number += 1
        self._place += count
        return block

    def stamps(self) -> list[tuple[str, int | None, str]] | None:
        """By what the files are known: path, size, time of change; None where that of one of them is not known."""
        found = []
        for path in self.paths:
            url = remote_url(path)
            if url is not None:
                stamp = remote_stamp(url)
            elif path.is_file():
                stamp = (str(path.resolve()), path.stat().st_size, str(path.stat().st_mtime_ns))
            else:
                # Standard input, a pipe, or a file that is not there, which opening it will tell.
                return None
            if not all(stamp):
                return None
            found.append(stamp)
        return found

    @property
    def places(self) -> int:
        """How many rows and lines have been read."""
        return self._place


def _told(error: InputError, row: object) -> _Bad:
    try:
        shown = row if isinstance(row, bytes) else msgspec.json.encode(row, enc_hook=str)
    except UnicodeEncodeError:
        shown = b""
    return error.line, _reason(error), shown.rstrip(b"\r\n")


def _reason(error: InputError) -> str:
    """What is wrong, without the place."""
    return str(error).removeprefix(f"{error.path}: ").removeprefix(f"{error.path}:{error.line}: ")


def _file_part(stream: io.BufferedReader, read: int) -> FilePart | None:
    """Where a stream is in its file without the bytes that were read last; None: others cannot read it there."""
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
    # Else standard input, or a file that is not there, which opening it will tell.
    return path.stat().st_size if path.exists() else None
