"""Maintenance of a store: check, copy, back up, delete."""

from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import StoreError, UnknownNameError, UsageError
from answerkey.model.question import Question
from answerkey.model.run import RunInfo, Summary
from answerkey.store import open_store
from answerkey.store.database import BATCH, TABLES, Connection, Database, Row, TableSchema, in_list, sql
from answerkey.store.production import add_up_all, recounted
from answerkey.store.run_rows import check_details, read_run_info, reply_checksum, unpack_replies
from answerkey.store.sql import SqlStore

# Findings that are listed.
_MOST_LISTED = 20
# Rows that are looked for one by one where a table cannot be read through.
_MOST_LOOKUPS = 1_000_000

_decode_question = msgspec.json.Decoder(Question).decode
_decode_summary = msgspec.json.Decoder(Summary).decode


class StoreCheck(msgspec.Struct, kw_only=True):
    """The result of a check."""

    store: str
    # Rows that could be read, by table.
    rows: dict[str, int] = {}
    # How many of those were changed since they were written.
    damaged: dict[str, int] = {}
    # The first of them, and the database's own integrity errors.
    findings: list[str] = []
    # Journals of resumable runs, with replies that the store does not have yet.
    journals: list[str] = []
    # Journals of runs that the store does not have, e.g. since its write-ahead log was lost.
    lost_journals: list[str] = []

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def check_store(store: SqlStore) -> StoreCheck:
    """Read and verify every row."""
    found = StoreCheck(store=store.address)
    if store.database.dialect == "sqlite":
        found.findings += _pages(store.database)
    for table in TABLES.values():
        rows = 0
        try:
            for row in readable_rows(store.database, table):
                rows += 1
                problem = problem_of(table, row)
                if problem is not None:
                    found.damaged[table.name] = found.damaged.get(table.name, 0) + 1
                    if len(found.findings) < _MOST_LISTED:
                        found.findings.append(f"{table.name}: {problem}")
        except StoreError as error:
            found.findings.append(f"{table.name}: {error}")
        found.rows[table.name] = rows
    try:
        own = {store.database.journal_path(info.id) for info in store.list_infos()}
        found.journals += sorted(str(path) for path in own if path is not None and path.exists())
        found.lost_journals += [str(path) for path in store.database.journals() if path not in own]
    except (StoreError, msgspec.DecodeError):
        found.findings.append("runs: cannot be listed")
    return found


def _pages(database: Database) -> list[str]:
    try:
        with database.reading() as connection:
            said = [row[0] for row in islice(connection.run(f"PRAGMA integrity_check({_MOST_LISTED})"), 20)]
    except StoreError as error:
        return [str(error)]
    return [] if said == ["ok"] else [" ".join(line.split()) for line in said]


def problem_of(table: TableSchema, row: Row) -> str | None:
    """What is wrong with a row; None if nothing is."""
    check = _CHECKS.get(table.name)
    if check is None:
        return None
    try:
        return check(**dict(zip(table.columns, row, strict=True)))
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        return f"a row cannot be decoded: {' '.join(str(error).split())[:120]}"


def _check_reply(
    ask_hash: bytes, trial: int, text: str | None, payload: str, checksum: int, **_: Any
) -> str | None:
    unpack_replies(text, payload)
    if reply_checksum(ask_hash, trial, text, payload) != checksum:
        return f"the reply to question {ask_hash.hex()[:10]}, trial {trial}, was changed since it was written"
    return None


def _check_question(content_hash: bytes, payload: str, **_: Any) -> str | None:
    question = _decode_question(payload)
    if bytes.fromhex(question.content_hash) != content_hash:
        return f"question {question.id[:60]!r} was changed since it was written"
    return None


def _check_run(info: str, summary: str | None, **_: Any) -> str | None:
    read_run_info(info)
    if summary is not None:
        _decode_summary(summary)
    return None


def _check_details(payload: bytes, **_: Any) -> str | None:
    check_details(payload)
    return None


_CHECKS: dict[str, Callable[..., str | None]] = {
    "replies": _check_reply,
    "questions": _check_question,
    "runs": _check_run,
    "scorecard_details": _check_details,
}


def readable_rows(database: Database, table: TableSchema) -> Iterator[Row]:
    """Every readable row of a table; a damaged SQLite file is read around the damage."""
    if database.dialect != "sqlite":
        yield from database.stream(f"SELECT {', '.join(table.columns)} FROM {table.name}")
        return
    keys = list(table.identity) if table.ordered else ["rowid"]
    reader = _Reader(database, table, keys)
    first = yield from reader.read("")
    if not reader.broken:
        return
    # Read from the other end, up to the damage.
    reader.broken = False
    last = yield from reader.read("DESC", until=first)
    if reader.broken and not table.ordered:
        yield from reader.look_up(first, last)


class _Reader:
    """Reads an SQLite table in the order of its key."""

    def __init__(self, database: Database, table: TableSchema, keys: list[str]) -> None:
        self._database = database
        self._table = table
        self._keys = keys
        self._select = f"SELECT {', '.join([*keys, *table.columns])} FROM {table.name}"
        self.broken = False

    def read(self, direction: str, until: Row | None = None) -> Generator[Row, None, Row | None]:
        """Rows in order, until one cannot be read (`broken`) or was already read; returns the last key."""
        order = ", ".join(f"{key} {direction}" for key in self._keys)
        width, key = len(self._keys), None
        try:
            with self._database.reading() as connection:
                for row in connection.run(f"{self._select} ORDER BY {order}"):
                    if until is not None and row[:width] <= until:
                        break
                    key = row[:width]
                    yield row[width:]
        except StoreError:
            self.broken = True
        return key  # for `yield from`

    def look_up(self, after: Row | None, before: Row | None) -> Iterator[Row]:
        """Rows between two row ids, one by one."""
        begin = 1 if after is None else after[0] + 1
        end = begin + _MOST_LOOKUPS if before is None else before[0]
        for number in range(begin, min(end, begin + _MOST_LOOKUPS)):
            try:
                with self._database.reading() as connection:
                    row = connection.run(f"{self._select} WHERE rowid = ?", (number,)).fetchone()
            except StoreError:
                continue
            if row is not None:
                yield row[1:]


# Copies


# Leases and sessions are of one store only, and replies are counted again.
_NOT_COPIED = ("leases", "sessions", "production_counts")


class StoreCopy(msgspec.Struct, kw_only=True):
    """The content of a copy."""

    store: str
    rows: dict[str, int] = {}
    # Damaged rows that were not copied, by table.
    left_out: dict[str, int] = {}


def copy_store(source: SqlStore, to: SqlStore, *, salvage: bool = False) -> StoreCopy:
    """Copy everything into an empty store, in one transaction; with `salvage`, the intact rows of a damaged store."""
    if to.count_runs() or next(to.database.stream("SELECT key FROM questions LIMIT 1"), None) is not None:
        raise UsageError(f"store {to.address}: it is not empty; copy to a new store")
    copied = StoreCopy(store=to.address)
    with to.database.transaction() as writing, source.database.reading() as reading:
        if source.database.dialect == "postgresql":
            # All tables as of the same moment, while runs write.
            reading.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for table in TABLES.values():
            if table.name in _NOT_COPIED:
                continue
            rows = _sound_rows(source, table, copied) if salvage else _all_rows(reading, table)
            copied.rows[table.name] = _write(writing, table, rows)
            if to.database.dialect == "postgresql" and "number" in table.columns.values():
                # The next number follows the copied ones.
                writing.run(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', 'key'), MAX(key)) FROM {table.name}"
                )
        add_up_all(writing)
    to.database.update_statistics()
    return copied


def _all_rows(reading: Connection, table: TableSchema) -> Iterator[Row]:
    for rows in reading.batches(f"SELECT {', '.join(table.columns)} FROM {table.name}"):
        yield from rows


def _sound_rows(source: SqlStore, table: TableSchema, copied: StoreCopy) -> Iterator[Row]:
    for row in readable_rows(source.database, table):
        if problem_of(table, row) is None:
            yield row
        else:
            copied.left_out[table.name] = copied.left_out.get(table.name, 0) + 1


def _write(writing: Connection, table: TableSchema, rows: Iterator[Row]) -> int:
    count = 0
    while batch := list(islice(rows, BATCH)):
        writing.insert(table.name, batch, columns=tuple(table.columns))
        count += len(batch)
    return count


def back_up(source: SqlStore, path: Path) -> StoreCopy:
    """Copy into a new SQLite file, which gets its name once it is complete and checked."""
    if path.exists():
        raise UsageError(f"{path}: the file exists; use another name")
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with open_store(str(partial)) as to:
            copied = copy_store(source, to)
            found = check_store(to)
        if not found.sound:
            raise UsageError(
                f"store {source.address}: {found.findings[0]}; see: answerkey store check {source.address}"
            )
        partial.rename(path)
    finally:
        for ending in ("", "-wal", "-shm"):
            partial.with_name(partial.name + ending).unlink(missing_ok=True)
    copied.store = str(path)
    return copied


# Deletion


# A run with this tag is never pruned.
KEEP = "keep"


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """How much was deleted."""

    runs: int = 0
    production_replies: int = 0
    # Verdicts on the deleted replies.
    feedback: int = 0


def old_runs(store: SqlStore, *, older_than_days: float | None, keep: int | None) -> list[RunInfo]:
    """Runs that are older than a number of days and not among the newest `keep`; either may be None.

    Baselines, running runs and runs with the tag `keep` are never included.
    """
    if older_than_days is None and keep is None:
        raise UsageError("nothing to prune by; use --older-than DAYS, --keep N, or both")
    baselines = set(store.baselines().values())
    before = None if older_than_days is None else _days_ago(older_than_days)
    return [
        info
        for info in store.list_infos()[keep or 0 :]
        if (before is None or info.created_at < before)
        and info.id not in baselines
        and info.status != "running"
        and KEEP not in info.tags
    ]


def delete_runs(store: SqlStore, infos: Sequence[RunInfo]) -> Deleted:
    """Delete runs with their replies, scores and verdicts, and questions that no other run has."""
    names = {run_id: name for name, run_id in store.baselines().items()}
    for info in infos:
        if info.id in names:
            remedy = f"answerkey baseline remove {names[info.id]}"
            raise UsageError(f"run {info.id} is the baseline {names[info.id]!r}; first: {remedy}")
        if info.status == "running":
            raise UsageError(f"run {info.id} is running; stop it first")
    feedback = 0
    for info in infos:
        feedback += store.delete_run(info.id)
        journal = store.database.journal_path(info.id)
        if journal is not None:
            journal.unlink(missing_ok=True)
    if infos:
        _sweep_questions(store)
    return Deleted(runs=len(infos), feedback=feedback)


def delete_reply(store: SqlStore, identity: str) -> Deleted:
    """Delete a production reply and its feedback."""
    gone = _delete_replies(store, [identity])
    if not gone.production_replies:
        raise UnknownNameError(f"no production reply {identity[:120]!r} in this store")
    return gone


def delete_production(store: SqlStore, *, older_than_days: float) -> Deleted:
    """Delete production replies that are older than a number of days, with their feedback, and feedback of that age
    whose reply never arrived."""
    before = _days_ago(older_than_days)
    old = "SELECT id FROM production_replies WHERE created_at < ? ORDER BY created_at LIMIT ?"
    unmatched = "source <> 'review' AND production_id IS NULL AND run_id IS NULL AND created_at < ?"
    with store.database.transaction() as connection:
        said = connection.run(f"DELETE FROM feedback WHERE {unmatched}", (before,)).rowcount
    replies = 0
    # In batches, so that new replies do not wait.
    while ids := [row[0] for row in store.database.stream(old, (before, BATCH))]:
        gone = _delete_replies(store, ids)
        replies, said = replies + gone.production_replies, said + gone.feedback
    return Deleted(production_replies=replies, feedback=int(said))


def _delete_replies(store: SqlStore, ids: Sequence[str]) -> Deleted:
    with store.database.transaction() as connection, recounted(store.database, connection, ids) as locked:
        listed = in_list(locked)
        said = connection.run(*sql("DELETE FROM feedback WHERE production_id IN {ids}", ids=listed)).rowcount
        gone = connection.run(*sql("DELETE FROM production_replies WHERE id IN {ids}", ids=listed)).rowcount
    return Deleted(production_replies=int(gone), feedback=int(said))


def _sweep_questions(store: SqlStore) -> None:
    with store.database.transaction() as connection:
        if store.database.dialect == "postgresql":
            # A run that begins now is either seen below, or finds its questions deleted and writes them.
            connection.run("LOCK TABLE set_items IN ACCESS EXCLUSIVE MODE")
        for number in _unused_sets(connection):
            connection.run("DELETE FROM set_items WHERE question_set = ?", (number,))
        connection.run(
            "DELETE FROM questions WHERE key NOT IN (SELECT question FROM set_items) "
            "AND NOT EXISTS (SELECT 1 FROM scorecards c WHERE c.question = questions.key)"
        )


def _unused_sets(connection: Connection) -> list[int]:
    used = {
        msgspec.json.decode(info, type=_AskedSet).question_set_hash
        for (info,) in connection.run("SELECT info FROM runs")
    }
    query = "SELECT DISTINCT n.key, n.name FROM set_items i JOIN names n ON n.key = i.question_set"
    return [key for key, name in connection.run(query).fetchall() if name not in used]


class _AskedSet(msgspec.Struct):
    question_set_hash: str


def _days_ago(days: float) -> str:
    try:
        return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")
    except OverflowError:
        raise UsageError(f"{days:g} days is too long ago") from None
