"""The journal of a log's scoring: what came of each block, on disk, so that an interrupted scoring goes on where it stopped.

It is also where the parts wait for being added up: the memory of a scoring does not grow with its log.
"""

import os
import pickle
import struct
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

try:
    import fcntl
except ImportError:  # Windows, where no journal outlives its command
    fcntl = None  # type: ignore[assignment]

from answerkey.model.question_lines import AddedUp, add_up
from answerkey.model.result_rows import RowLines
from answerkey.model.scorecard import Trial
from answerkey.runs.shard_tally import ShardPart

# Start and length of some records in a journal.
Places = Sequence[tuple[int, int]]
# Length of a part's header and of what follows it, and the checksum of both.
_LENGTHS = struct.Struct("<QQI")
# Nobody goes on from one that was last written so many seconds ago.
_FORGOTTEN_AFTER = 7 * 24 * 3600
# So much is read at once to look whether it is as it was written.
_CHECKED_AT_ONCE = 1024 * 1024
_read_lines = msgspec.msgpack.Decoder(RowLines).decode
_read_trials = msgspec.msgpack.Decoder(list[tuple[int, Trial]]).decode


class ScoreJournal:
    """Parts appended as they come; closed properly or not, whole ones can be read again."""

    def __init__(self, path: Path | None = None) -> None:
        # Why the next command cannot go on from it, although it was to.
        self.not_kept = ""
        file: IO[bytes] | None = None
        if path is not None:
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = _open_alone(path)
                self.not_kept = "" if file else "another command was scoring the same"
                _forget_old(path.parent)
            except OSError as error:
                self.not_kept = f"{path.parent} cannot be written ({error.strerror})"
        # Without a path it is gone with the process, whatever happens.
        self.path = None if file is None else path
        self._file = file or tempfile.NamedTemporaryFile(prefix="answerkey-")  # noqa: SIM115  # lives as long as the journal
        # Block → where its records begin, and the lengths of each partition's.
        self._records: dict[int, tuple[int, Sequence[int]]] = {}
        # Block → where its results begin, and the lengths of each packed list.
        self._results: dict[int, tuple[int, Sequence[int]]] = {}

    @property
    def done(self) -> set[int]:
        """The blocks that it has."""
        return set(self._records)

    def recovered(self) -> Iterator[ShardPart]:
        """The parts that it had, without their records and results; what cannot be read is cut off, with all behind it."""
        position, size = 0, os.fstat(self._file.fileno()).st_size
        while position + _LENGTHS.size <= size:
            self._file.seek(position)
            header_length, rest, checksum = _LENGTHS.unpack(self._file.read(_LENGTHS.size))
            header = position + _LENGTHS.size
            if header + header_length + rest > size or checksum != self._checksum(header_length + rest):
                break
            self._file.seek(header)
            try:
                part, records, results = pickle.loads(self._file.read(header_length))  # noqa: S301  # our own file, which only its owner can write
            except Exception:  # noqa: BLE001  # written by other code, which may fail in any way
                break
            self._place(part.number, header + header_length, records, results)
            position = header + header_length + rest
            yield part
        self._file.truncate(position)

    def _checksum(self, length: int) -> int:
        """That of so many bytes from here on."""
        found = 0
        while length > 0:
            piece = self._file.read(min(length, _CHECKED_AT_ONCE))
            if not piece:
                break
            found = zlib.crc32(piece, found)
            length -= len(piece)
        return found

    def append(self, part: ShardPart) -> None:
        """Keep a part; what it has of records and results is taken off it."""
        records, results = part.records, part.results
        part.records, part.results = [], []
        lengths = ([len(packed) for packed in records], [len(packed) for packed in results])
        header = pickle.dumps((part, *lengths), protocol=pickle.HIGHEST_PROTOCOL)
        checksum = zlib.crc32(header)
        for packed in (*records, *results):
            checksum = zlib.crc32(packed, checksum)
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(_LENGTHS.pack(len(header), sum(map(sum, lengths)), checksum) + header)
        self._file.writelines([*records, *results])
        self._file.flush()
        self._place(part.number, start + _LENGTHS.size + len(header), *lengths)

    def _place(self, number: int, start: int, records: Sequence[int], results: Sequence[int]) -> None:
        self._records[number] = (start, records)
        self._results[number] = (start + sum(records), results)

    def partition(self, number: int) -> Places:
        """Where in the file the records of a partition are."""
        found = []
        for start, lengths in self._records.values():
            if lengths[number]:
                found.append((start + sum(lengths[:number]), lengths[number]))
        return found

    @property
    def file_number(self) -> int:
        """The system's number of its file: whoever holds that open holds its lock."""
        return self._file.fileno()

    @property
    def name(self) -> str:
        """Where it is, for other processes to read."""
        return str(self.path or self._file.name)

    def results(self) -> Iterator[tuple[int, Trial]]:
        """The kept results with their places, in the log's order."""
        return (found for packed in self._packed() for found in _read_trials(packed))

    def lines(self) -> Iterator[RowLines]:
        """The same, where they were kept as lines."""
        return map(_read_lines, self._packed())

    def _packed(self) -> Iterator[bytes]:
        for number in sorted(self._results):
            start, lengths = self._results[number]
            for length in lengths:
                self._file.seek(start)
                start += length
                yield self._file.read(length)

    def forget(self) -> None:
        """Nothing will go on from here; what it has can be read as long as it lives."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another command have it."""
        # What was to be written, and could not be, is not written now either.
        with suppress(OSError):
            self._file.close()


def _open_alone(path: Path) -> IO[bytes] | None:
    """The file, made if need be, for this process alone; None: another one has it."""
    while fcntl is not None:
        # Made so that nobody else can read or write it.
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        except OSError:
            # A file system without locks.
            file.close()
            raise
        # Whoever had it before may have deleted it in the meantime: what is locked then is not what others find there.
        if _is_at(file, path):
            return file
        file.close()
    return None


def _forget_old(folder: Path) -> None:
    """Delete the journals that nobody has come back for; those of commands that run are locked."""
    for path in folder.glob("*.journal"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _FORGOTTEN_AFTER and (file := _open_alone(path)):
                with file:
                    path.unlink()


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def read_batches(journal: str, places: Places) -> Iterator[bytes]:
    """The records at these places of a journal."""
    with Path(journal).open("rb") as file:
        for start, length in places:
            file.seek(start)
            yield file.read(length)


def add_up_partitions(
    journal: str, partitions: Iterable[Places], pass_mark: float, given: int = 0
) -> AddedUp:
    """Add up some partitions of a journal, one after the other: no more than one is in memory."""
    found = AddedUp(pass_mark)
    for places in partitions:
        found.merge(add_up(read_batches(journal, places), pass_mark, given))
    return found
