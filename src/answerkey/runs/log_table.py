"""The table in which a log is added up: what its blocks came to, on disk when it is large, resumable when it has a path."""

import errno
import marshal
import os
import pickle
import sqlite3
import time
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple
from zlib import adler32, crc32

import msgspec

from answerkey.errors import StoreFullError
from answerkey.model.question_totals import (
    ListedValues,
    QuestionSlices,
    QuestionTotals,
    SharedValues,
    SingleTrial,
    TrialValues,
)
from answerkey.model.scorecard import Trial
from answerkey.model.tally import AlikeTrials, Tally
from answerkey.runs.log_files import BadRow

# Questions are partitioned by their unit, so that no more than one partition is in memory at a time.
_PARTITIONS = 64
# Single trials that are counted together.
_MOST_SINGLES = 50_000
# Checksums of rows that are in memory at a time.
_CHECKSUMS_AT_ONCE = 250_000
# What the name of the file with the rows of results ends in, beside a journal.
_LINES = "-lines"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# Journals older than this are deleted.
_MAX_AGE_SECONDS = 7 * 24 * 3600
_TABLES = """
CREATE TABLE IF NOT EXISTS blocks (number INTEGER PRIMARY KEY, summary BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS totals (partition INTEGER NOT NULL, block INTEGER NOT NULL, questions BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS shared (block INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS row_checksums (block INTEGER PRIMARY KEY, checksums BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS lines
    (first INTEGER PRIMARY KEY, block INTEGER NOT NULL, indices BLOB NOT NULL,
     start INTEGER NOT NULL, length INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS results
    (place INTEGER PRIMARY KEY, block INTEGER, question TEXT, score REAL, packed BLOB NOT NULL);
"""


class LowScore(msgspec.Struct, frozen=True, order=True):
    """A reply that lost points: its score, -1 if unscored, its position in the log, and the trial, packed."""

    score: float
    index: int
    packed: bytes

    def trial(self) -> Trial:
        """The trial itself."""
        return msgspec.msgpack.decode(self.packed, type=Trial)


class NotedRows(msgspec.Struct):
    """Rows that are scored, but about which there is something to say."""

    count: int = 0
    # The first of them, and its block.
    first: BadRow | None = None
    block: int = 0

    def add(self, row: BadRow) -> None:
        """Count a row."""
        self.count += 1
        self.first = self.first or row

    def merge(self, other: "NotedRows") -> None:
        """Count the rows of another block, in any order of blocks."""
        self.count += other.count
        if other.first is not None and (self.first is None or other.block < self.block):
            self.first, self.block = other.first, other.block


class BlockSummary(msgspec.Struct, kw_only=True):
    """What one block of a log came to, besides its questions and results."""

    number: int
    # Trials that were graded, errors among them, and the sum of their scores, for progress.
    trials: int = 0
    errors: int = 0
    points: float = 0.0
    tally: Tally
    worst: list[LowScore] = []
    # Replies that lost points, and replies that did not pass.
    imperfect: int = 0
    failed: int = 0
    bad: list[BadRow] = []
    # Columns to keep that some row has.
    columns: set[str] = set()
    # Rows that have no field for the text of a reply.
    without_text: NotedRows
    # Rows that ask something else than the question of the golden set that has their id.
    asked_otherwise: NotedRows


class BlockResult(NamedTuple):
    """A result of a block, where trials are kept."""

    # Its position among all rows of the log.
    row_index: int
    question: str
    # None: unscored.
    score: float | None
    # The trial as MessagePack.
    packed: bytes


class ResultLines(msgspec.Struct, frozen=True):
    """Some results as rows of the run document, where these are kept."""

    # Of each row, its position among all rows of the log.
    indices: "array[int]"
    # JSON.
    lines: bytes


class PackedQuestions(msgspec.Struct, frozen=True):
    """The totals of a block's questions, by partition: the questions of a unit are all in one partition."""

    # What the questions of all partitions refer to by number.
    shared: bytes
    # Of each partition, packed: the single trials, and the totals of other questions.
    partitions: dict[int, bytes]

    @classmethod
    def of(cls, questions: Iterable[SingleTrial | QuestionTotals], shared: SharedValues) -> "PackedQuestions":
        """Pack the questions of a block; `shared` are the slices and values that single trials refer to."""
        singles: list[list[SingleTrial]] = [[] for _ in range(_PARTITIONS)]
        others: dict[int, list[tuple[object, ...]]] = {}
        for one in questions:
            if isinstance(one, QuestionTotals):
                others.setdefault(_partition(one.unit), []).append(one.to_plain(shared))
            else:
                singles[_partition(f"q {one[0]}")].append(one)
        packed = {
            number: marshal.dumps((some, others.get(number, [])))
            for number, some in enumerate(singles)
            if some or number in others
        }
        return cls(shared.listed.packed(), packed)


def _partition(unit: str) -> int:
    return crc32(unit.encode("utf-8", "replace")) % _PARTITIONS


class BlockPart(msgspec.Struct):
    """All that comes of one block; plain data, so that any process can make it."""

    summary: BlockSummary
    questions: PackedQuestions
    results: list[BlockResult]
    lines: list[ResultLines]
    # Of each row, sorted; see `Block.row_checksums`.
    row_checksums: bytes = b""


class LogTable:
    """Parts of a log, added in any order.

    Without a path the table is temporary: SQLite keeps it in memory and moves it to disk when it grows. With one it is also the
    journal from which an interrupted scoring resumes. Rows of results are in a plain file beside it, which takes a fifth of the
    time of a database.
    """

    def __init__(self, path: Path | None = None) -> None:
        # Why an interrupted scoring could not be resumed, although it should be.
        self.not_resumable = ""
        self.path: Path | None = None
        journal = None if path is None else self._open_journal(path)
        self._database = _connect("", "OFF") if journal is None else journal
        # The file of rows, once it is used.
        self._opened: FileIO | None = None
        # Blocks that were added, in this scoring or before.
        self.done: set[int] = set()

    def _open_journal(self, path: Path) -> sqlite3.Connection | None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _delete_old(path.parent)
            # Only its owner may read replies, or write what is read again.
            path.touch(mode=0o600)
            database = _open_checked(path)
        except OSError as error:
            self.not_resumable = f"{path.parent} cannot be written ({error.strerror})"
            return None
        except sqlite3.Error as error:
            locked = "locked" in str(error)
            self.not_resumable = "another command is scoring the same log" if locked else str(error)
            return None
        self.path = path
        return database

    def recover(self) -> Iterator[BlockSummary]:
        """The blocks that an interrupted scoring has left."""
        for number, packed, checksum in self._rows("SELECT number, summary, checksum FROM blocks"):
            summary = _unpickle(packed) if crc32(packed) == checksum else None
            if not isinstance(summary, BlockSummary) or not self._has_lines(number):
                self._delete_block(number)
                continue
            self.done.add(number)
            yield summary

    @property
    def _lines(self) -> FileIO:
        if self._opened is None:
            self._opened = _open_lines(self.path)
        return self._opened

    def _has_lines(self, block: int) -> bool:
        """Whether the rows of a block are in the file; after a power failure some may be missing."""
        places = self._rows("SELECT start, length, checksum FROM lines WHERE block = ?", block)
        return all(adler32(self._read(start, length)) == checksum for start, length, checksum in places)

    def _read(self, start: int, length: int) -> bytes:
        return os.pread(self._lines.fileno(), length, start)

    def _write(self, some: ResultLines) -> tuple[int, int, int]:
        """Write rows behind the others; returns where they are, and their checksum."""
        start = self._lines.seek(0, os.SEEK_END)
        rest = memoryview(some.lines)
        while rest:
            rest = rest[self._lines.write(rest) :]
        return start, len(some.lines), adler32(some.lines)

    def _delete_block(self, number: int) -> None:
        with self._database as database:
            database.execute("DELETE FROM blocks WHERE number = ?", (number,))
            for table in ("totals", "shared", "lines", "results", "row_checksums"):
                database.execute(f"DELETE FROM {table} WHERE block = ?", (number,))  # noqa: S608  # our own names

    def add(self, part: BlockPart) -> None:
        """Add what came of a block; all of it or nothing is stored."""
        number = part.summary.number
        summary = pickle.dumps(part.summary, protocol=pickle.HIGHEST_PROTOCOL)
        try:
            with self._database as database:
                database.executemany(
                    "INSERT INTO totals VALUES (?, ?, ?)",
                    [(partition, number, packed) for partition, packed in part.questions.partitions.items()],
                )
                database.execute("INSERT INTO shared VALUES (?, ?)", (number, part.questions.shared))
                database.executemany(
                    "INSERT INTO results VALUES (?, ?, ?, ?, ?)",
                    [
                        (result.row_index, number, result.question, result.score, result.packed)
                        for result in part.results
                    ],
                )
                database.executemany(
                    "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (some.indices[0], number, some.indices.tobytes(), *self._write(some))
                        for some in part.lines
                    ],
                )
                database.execute("INSERT INTO row_checksums VALUES (?, ?)", (number, part.row_checksums))
                database.execute("INSERT INTO blocks VALUES (?, ?, ?)", (number, summary, crc32(summary)))
        except (sqlite3.OperationalError, OSError) as error:
            if "full" in str(error) or (isinstance(error, OSError) and error.errno in _NO_SPACE):
                raise StoreFullError(f"no space left for the log's table: {error}") from None
            raise
        self.done.add(number)

    def questions(self) -> Iterator[list[QuestionTotals] | AlikeTrials]:
        """Every question with all of its trials: lists that hold whole units, and questions of one plain reply each."""
        alike = _AlikeQuestions(
            {
                block: ListedValues.unpack(packed)
                for block, packed in self._rows("SELECT block, packed FROM shared")
            }
        )
        for (partition,) in self._rows("SELECT DISTINCT partition FROM totals ORDER BY partition"):
            rows = self._rows("SELECT block, questions FROM totals WHERE partition = ?", partition)
            yield _merged(rows, alike)
            yield from alike.take(_MOST_SINGLES)
        yield from alike.take(0)

    def copied_rows(self) -> int:
        """How many rows are exact copies of another one; looked at in ranges of checksums that fit in memory."""
        [(size,)] = self._rows("SELECT COALESCE(SUM(LENGTH(checksums)), 0) FROM row_checksums")
        ranges = 1 + size // 8 // _CHECKSUMS_AT_ONCE
        copies = 0
        for number in range(ranges):
            lowest, end = 2**64 * number // ranges, 2**64 * (number + 1) // ranges
            different: set[int] = set()
            for (packed,) in self._rows("SELECT checksums FROM row_checksums"):
                checksums = array("Q", packed)
                some = checksums[bisect_left(checksums, lowest) : bisect_left(checksums, end)]
                copies += len(some)
                different.update(some)
            copies -= len(different)
        return copies

    def results(self) -> Iterator[tuple[int, bytes]]:
        """Place and packed result, in the order of the log."""
        return iter(self._rows("SELECT place, packed FROM results ORDER BY place"))

    def lines(self) -> Iterator[ResultLines]:
        """Results as rows of the run document, in the order of the log."""
        for indices, start, length in self._rows("SELECT indices, start, length FROM lines ORDER BY first"):
            yield ResultLines(array("q", indices), self._read(start, length))

    def worst_results(self) -> Iterator[tuple[int, bytes]]:
        """The same, the worst first: unscored ones, then by score."""
        return iter(self._rows("SELECT place, packed FROM results ORDER BY score NULLS FIRST, place"))

    def results_by_question(self) -> Iterator[tuple[int, bytes]]:
        """The same, question by question, in the order in which the log first answers them."""
        with self._database as database:
            database.execute(
                "CREATE TEMP TABLE IF NOT EXISTS firsts AS "
                "SELECT question, MIN(place) AS first FROM results GROUP BY question"
            )
        return iter(
            self._rows("SELECT place, packed FROM results JOIN firsts USING (question) ORDER BY first, place")
        )

    def _rows(self, query: str, *values: int) -> Iterable[tuple[Any, ...]]:
        return self._database.execute(query, values)

    def discard(self) -> None:
        """Nothing will resume from here; what it holds can be read until it is closed."""
        if self.path is not None:
            _delete(self.path)

    def close(self) -> None:
        """Let another command have it."""
        with suppress(sqlite3.Error):
            self._database.close()
        if self._opened is not None:
            self._opened.close()


class _AlikeQuestions:
    """Questions of one plain reply each, those with equal slices and values together."""

    def __init__(self, shared: Mapping[int, ListedValues]) -> None:
        self.shared = shared
        # Equal slices, and equal values, of all blocks have one number.
        slices: dict[QuestionSlices, int] = {}
        values: dict[TrialValues, int] = {}
        self._numbers = {
            block: (
                [slices.setdefault(one, len(slices)) for one in listed.slices],
                [values.setdefault(one, len(values)) for one in listed.values],
            )
            for block, listed in shared.items()
        }
        self._slices, self._values = list(slices), list(values)
        self._alike: dict[tuple[int, int, int], AlikeTrials] = {}
        self._count = 0

    def add(self, singles: Collection[tuple[int, SingleTrial]]) -> None:
        """Add single trials, each with its block."""
        alike = self._alike
        self._count += len(singles)
        for block, (_, first, _, _, _, its_slices, its_values, errors, latency) in singles:
            slices, values = self._numbers[block]
            key = slices[its_slices], values[its_values], errors
            same = alike.get(key)
            if same is None:
                same = alike[key] = AlikeTrials(self._slices[key[0]], self._values[key[1]], errors)
            same.firsts.append(first)
            if latency is not None:
                same.latencies.append(latency)

    def take(self, at_least: int) -> Iterator[AlikeTrials]:
        """All of them, if there are many, so that they take no memory."""
        if self._count >= at_least:
            yield from self._alike.values()
            self._alike.clear()
            self._count = 0


def _merged(rows: Iterable[tuple[int, bytes]], alike: _AlikeQuestions) -> list[QuestionTotals]:
    """The questions of one partition, from all blocks; those of one plain reply are added to `alike` instead."""
    singles: dict[str, tuple[int, SingleTrial]] = {}
    merged: dict[tuple[str | None, str], QuestionTotals] = {}

    def merge(totals: QuestionTotals) -> None:
        known = merged.setdefault((totals.group, totals.id), totals)
        if known is not totals:
            known.merge(totals)

    for block, packed in rows:
        some, others = marshal.loads(packed)  # noqa: S302  # our own table, which only its owner can write
        for single in some:
            known = singles.setdefault(single[0], (block, single))
            if known[1] is not single:
                merge(QuestionTotals.from_single(single, alike.shared[block]))
        for plain in others:
            merge(QuestionTotals.from_plain(plain, alike.shared[block]))
    # What other blocks have of a question is merged in any order.
    for _, identity in [*merged]:
        if (None, identity) in merged and identity in singles:
            block, single = singles.pop(identity)
            merge(QuestionTotals.from_single(single, alike.shared[block]))
    alike.add(singles.values())
    return list(merged.values())


def _connect(name: str, journal_mode: str) -> sqlite3.Connection:
    # Lines of a log that is being watched may be added from a thread of the progress display's.
    database = sqlite3.connect(name, timeout=0, check_same_thread=False)
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Rows of two kilobytes leave half of a smaller page empty.
        database.execute("PRAGMA page_size = 16384")
        # A rollback journal holds what changed pages had before: rows that are only ever added are written once.
        database.execute(f"PRAGMA journal_mode = {journal_mode}")
        # A killed process loses nothing; after a power failure, checksums find what is missing.
        database.execute("PRAGMA synchronous = OFF")
        # Also where there is nothing to create, no other command may have it.
        database.executescript(f"BEGIN EXCLUSIVE; {_TABLES} COMMIT;")
    except BaseException:
        database.close()
        raise
    return database


def _open_checked(path: Path) -> sqlite3.Connection:
    """The journal at a path; a damaged one is started again."""
    try:
        database = _connect(str(path), "TRUNCATE")
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict == "ok":
            return database
        database.close()
    except sqlite3.OperationalError:
        # Another command has it.
        raise
    except sqlite3.DatabaseError:
        pass
    _delete(path)
    path.touch(mode=0o600)
    return _connect(str(path), "TRUNCATE")


def _open_lines(journal: Path | None) -> FileIO:
    """The file of rows beside a journal, or a temporary one."""
    if journal is None:
        import tempfile  # slow to load, and few logs need it

        # As for SQLite, a folder on disk: /tmp may be in memory.
        folder = None if "TMPDIR" in os.environ or not os.access("/var/tmp", os.W_OK) else "/var/tmp"  # noqa: S108
        number, name = tempfile.mkstemp(dir=folder)
        Path(name).unlink()
        return FileIO(number, "r+")
    lines = Path(f"{journal}{_LINES}")
    lines.touch(mode=0o600)
    return FileIO(lines, "r+")


def _unpickle(packed: bytes) -> object:
    try:
        return pickle.loads(packed)  # noqa: S301  # our own file, which only its owner can write
    except Exception:  # noqa: BLE001  # written by another version of the code, which may fail in any way
        return None


def _delete_old(folder: Path) -> None:
    for path in folder.glob("*.journal"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _MAX_AGE_SECONDS and not _is_in_use(path):
                _delete(path)


def _is_in_use(path: Path) -> bool:
    try:
        _connect(str(path), "TRUNCATE").close()
    except sqlite3.OperationalError:
        return True
    except sqlite3.DatabaseError:
        pass  # Not a database: nothing can use it.
    return False


def _delete(path: Path) -> None:
    for ending in ("", "-journal", _LINES):
        Path(f"{path}{ending}").unlink(missing_ok=True)
