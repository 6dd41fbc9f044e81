"""Copying a store to another one, of either kind: every row as it is, or of a damaged one every row that is sound."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from answerkey.errors import UsageError
from answerkey.store import open_store
from answerkey.store.checking import check_store, problem_of, readable_rows
from answerkey.store.database import BATCH, Connection, Row
from answerkey.store.production_sums import add_up_all
from answerkey.store.schema import TABLES, Table
from answerkey.store.sql import SqlStore

# Nobody owns a run in another store, nor is signed in there; what has come over is added up there.
_NOT_COPIED = ("leases", "sessions", "production_sums")


class StoreCopy(msgspec.Struct, kw_only=True):
    """What a copy holds."""

    store: str
    rows: dict[str, int] = {}
    # Rows that were read and are not what was written, by table.
    left_out: dict[str, int] = {}


def copy_store(source: SqlStore, to: SqlStore, *, salvage: bool = False) -> StoreCopy:
    """Copy everything into an empty store, in one transaction; with `salvage`, what is sound of a damaged one."""
    if to.count_runs() or next(to.database.stream("SELECT key FROM questions LIMIT 1"), None) is not None:
        raise UsageError(f"store {to.address}: there are runs in it; copy to a new one")
    copied = StoreCopy(store=to.address)
    with to.database.transaction() as writing, source.database.reading() as reading:
        if source.database.kind == "postgresql":
            # All tables as of the same moment, while runs go on.
            reading.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for table in TABLES.values():
            if table.name in _NOT_COPIED:
                continue
            rows = _sound_rows(source, table, copied) if salvage else _all_rows(reading, table)
            copied.rows[table.name] = _write(writing, table, rows)
            if to.database.kind == "postgresql" and "number" in table.columns.values():
                # The next row's number comes after those that were given elsewhere.
                writing.run(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', 'key'), MAX(key)) FROM {table.name}"
                )
        add_up_all(writing)
    to.database.keep_statistics()
    return copied


def _all_rows(reading: Connection, table: Table) -> Iterator[Row]:
    for rows in reading.batches(f"SELECT {', '.join(table.columns)} FROM {table.name}"):
        yield from rows


def _sound_rows(source: SqlStore, table: Table, copied: StoreCopy) -> Iterator[Row]:
    for row in readable_rows(source.database, table):
        if problem_of(table, row) is None:
            yield row
        else:
            copied.left_out[table.name] = copied.left_out.get(table.name, 0) + 1


def _write(writing: Connection, table: Table, rows: Iterator[Row]) -> int:
    count = 0
    while batch := list(islice(rows, BATCH)):
        writing.insert(table.name, batch, columns=tuple(table.columns))
        count += len(batch)
    return count


def back_up(source: SqlStore, path: Path) -> StoreCopy:
    """A copy in a new SQLite file, which appears under its name once it is whole and checked."""
    if path.exists():
        raise UsageError(f"{path}: there is such a file; name a new one")
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
