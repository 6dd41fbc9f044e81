"""Checking a store: whether every row can be read and still says what was written."""

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import Any

import msgspec

from answerkey.errors import StoreError
from answerkey.model.question import Question
from answerkey.model.summary import Summary
from answerkey.store.database import Database, Row
from answerkey.store.packing import check_details, read_run_info, reply_checksum, unpack_replies
from answerkey.store.schema import TABLES, Table
from answerkey.store.sql import SqlStore

# Findings that are listed.
_MOST_LISTED = 20
# Rows that are looked for one by one where a table cannot be read through.
_MOST_LOOKUPS = 1_000_000

_decode_question = msgspec.json.Decoder(Question).decode
_decode_summary = msgspec.json.Decoder(Summary).decode


class StoreCheck(msgspec.Struct, kw_only=True):
    """What a check found."""

    store: str
    # Rows that could be read, by table.
    rows: dict[str, int] = {}
    # Of those, how many do not say what was written.
    damaged: dict[str, int] = {}
    # The first of them, and what the database says of its own pages.
    findings: list[str] = []
    # Journals of runs that can go on: replies that the store does not have yet.
    journals: list[str] = []

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def check_store(store: SqlStore) -> StoreCheck:
    """Read every row there is."""
    found = StoreCheck(store=store.address)
    if store.database.kind == "sqlite":
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
        for info in store.list_infos():
            path = store.database.journal_path(info.id)
            if path is not None and path.exists():
                found.journals.append(str(path))
    except (StoreError, msgspec.DecodeError):
        found.findings.append("runs: they cannot be listed")
    return found


def _pages(database: Database) -> list[str]:
    try:
        with database.reading() as connection:
            said = [row[0] for row in islice(connection.run(f"PRAGMA integrity_check({_MOST_LISTED})"), 20)]
    except StoreError as error:
        return [str(error)]
    return [] if said == ["ok"] else [" ".join(line.split()) for line in said]


# What a row says of itself


def problem_of(table: Table, row: Row) -> str | None:
    """What is wrong with a row, as far as it can tell; None: nothing."""
    check = _CHECKS.get(table.name)
    if check is None:
        return None
    try:
        return check(**dict(zip(table.columns, row, strict=True)))
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        return f"a row cannot be understood: {' '.join(str(error).split())[:120]}"


def _check_reply(
    ask_hash: bytes, trial: int, text: str | None, payload: str, checksum: int, **_: Any
) -> str | None:
    unpack_replies(text, payload)
    if reply_checksum(ask_hash, trial, text, payload) != checksum:
        return f"the reply to question {ask_hash.hex()[:10]}, trial {trial}, is not what was written"
    return None


def _check_question(content_hash: bytes, payload: str, **_: Any) -> str | None:
    question = _decode_question(payload)
    if bytes.fromhex(question.content_hash) != content_hash:
        return f"question {question.id[:60]!r} is not what was written"
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


# Reading what can be read


def readable_rows(database: Database, table: Table) -> Iterator[Row]:
    """Every row of a table that can be read, its columns as declared; a damaged SQLite file is read around the damage."""
    if database.kind != "sqlite":
        yield from database.stream(f"SELECT {', '.join(table.columns)} FROM {table.name}")
        return
    keys = list(table.identity) if table.ordered else ["rowid"]
    reader = _Reader(database, table, keys)
    first = yield from reader.read("")
    if not reader.broken:
        return
    # From the other end, up to the damage.
    reader.broken = False
    last = yield from reader.read("DESC", until=first)
    if reader.broken and not table.ordered:
        yield from reader.look_up(first, last)


class _Reader:
    """Reads a table of SQLite by its key."""

    def __init__(self, database: Database, table: Table, keys: list[str]) -> None:
        self._database = database
        self._table = table
        self._keys = keys
        self._select = f"SELECT {', '.join([*keys, *table.columns])} FROM {table.name}"
        self.broken = False

    def read(self, direction: str, until: Row | None = None) -> Generator[Row, None, Row | None]:
        """Rows in order, until one cannot be read (`broken`) or was read before; returns the last key."""
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
        """Rows between two numbers, one by one."""
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
