"""The journal of a log's scoring: what came of each block, on disk, so that an interrupted scoring goes on where it stopped.

It is also where the parts wait for being added up: the memory of a scoring does not grow with its log.
"""

import os
import pickle
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from answerkey.evaluation.shard_tally import ShardPart
from answerkey.model.question_lines import AddedUp, add_up
from answerkey.model.result_rows import RowLines
from answerkey.model.trial import Trial

# Start and length of some records in a journal.
Places = Sequence[tuple[int, int]]
_LENGTHS = struct.Struct("<QQ")
_read_lines = msgspec.msgpack.Decoder(RowLines).decode
_read_trials = msgspec.msgpack.Decoder(list[tuple[int, Trial]]).decode


class ScoreJournal:
    """Parts appended as they come; closed properly or not, whole ones can be read again."""

    def __init__(self, path: Path | None = None) -> None:
        # Without a path it is gone with the process, whatever happens.
        self.path = path
        if path is None:
            self._file: IO[bytes] = tempfile.NamedTemporaryFile(prefix="answerkey-")  # noqa: SIM115  # lives as long as the journal
        else:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made so that nobody else can read or write it.
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        # Block → where its records begin, and the lengths of each partition's.
        self._records: dict[int, tuple[int, Sequence[int]]] = {}
        # Block → where its results begin, and the lengths of each packed list.
        self._results: dict[int, tuple[int, Sequence[int]]] = {}

    @property
    def done(self) -> set[int]:
        """The blocks that it has."""
        return set(self._records)

    def recovered(self) -> Iterator[ShardPart]:
        """The parts that it had already, without their records and results; what was half written is cut off."""
        position, size = 0, os.fstat(self._file.fileno()).st_size
        while position + _LENGTHS.size <= size:
            self._file.seek(position)
            header_length, rest = _LENGTHS.unpack(self._file.read(_LENGTHS.size))
            body = position + _LENGTHS.size + header_length
            if body + rest > size:
                break
            part, *lengths = pickle.loads(self._file.read(header_length))  # noqa: S301  # our own file, which only its owner can write
            self._place(part.number, body, *lengths)
            position = body + rest
            yield part
        self._file.truncate(position)

    def append(self, part: ShardPart) -> None:
        """Keep a part; what it has of records and results is taken off it."""
        records, results = part.records, part.results
        part.records, part.results = [], []
        lengths = ([len(packed) for packed in records], [len(packed) for packed in results])
        header = pickle.dumps((part, *lengths), protocol=pickle.HIGHEST_PROTOCOL)
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(_LENGTHS.pack(len(header), sum(map(sum, lengths))) + header)
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
