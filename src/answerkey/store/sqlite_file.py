"""SqliteFile: an SQLite store as a run writes it, without SQLAlchemy, which takes longer to load than a run to ask.

What is read goes through an SqlStore on the same file, which is opened when it is first needed.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from answerkey.errors import StoreError
from answerkey.model.run import RunInfo
from answerkey.model.trial import Trial
from answerkey.store.location import make_room, sqlite_error
from answerkey.store.migrations import migrate
from answerkey.store.writing import LEAST_COLUMNS, RunWriter

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = ["SqliteFile", "prepare_sqlite"]

# Seconds to wait for another program that writes.
_PATIENCE = 30


def prepare_sqlite(connection: sqlite3.Connection) -> None:
    """What every connection to a store is set to."""
    # Begin is ours: the driver's own habit of opening transactions late would let a migration run half.
    connection.isolation_level = None
    # Write-ahead logging lets readers go on while a run writes; FULL keeps commits over a power cut.
    connection.execute("PRAGMA journal_mode=WAL").close()
    connection.execute("PRAGMA synchronous=FULL").close()


class _Statements:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(sql, values)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)


class SqliteFile(RunWriter):
    """A store in a file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> "SqliteFile":
        """Open and, if need be, make or migrate a store."""
        make_room(path, create=True)
        try:
            # Written by one thread at a time, which need not be the one that opened it.
            connection = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False)
        except sqlite3.Error as error:
            raise sqlite_error(str(error), str(path)) from None
        opened = cls(path, connection)
        try:
            prepare_sqlite(connection)
            with opened.statements() as statements:
                migrate(statements.run)
        except sqlite3.Error as error:
            connection.close()
            raise sqlite_error(str(error), str(path)) from None
        except StoreError as error:
            connection.close()
            said = str(error)
            raise (error if said.startswith("store ") else StoreError(f"store {path}: {said}")) from None
        return opened

    @contextmanager
    def statements(self) -> Iterator[_Statements]:
        """A transaction whose database errors come out as one clear line."""
        connection = self._connection
        try:
            # At once for writing: a transaction that first reads could find that another has written meanwhile.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _Statements(connection)
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
        except sqlite3.Error as error:
            raise sqlite_error(str(error), str(self.path)) from None

    @cached_property
    def full(self) -> "SqlStore":
        """The same store with everything that can be read."""
        from answerkey.store.sql import SqlStore

        return SqlStore.open(str(self.path))

    def results(self, info: RunInfo) -> "Iterator[Trial]":
        """The run's results in the set's order, trial by trial."""
        return self.full.results(info)

    def keep_columns(self, info: RunInfo) -> None:
        """Keep what comparisons read of a run that has ended; that of a small one is nothing."""
        count = self._connection.execute(
            "SELECT COUNT(*) FROM scorecards WHERE run_id = ? AND scoring_hash = ?",
            (info.id, info.scoring_hash),
        ).fetchone()[0]
        if count >= LEAST_COLUMNS:
            self.full.keep_columns(info)

    def close(self) -> None:
        """Give the connections back."""
        self._connection.close()
        if "full" in self.__dict__:
            self.full.close()

    def __enter__(self) -> "SqliteFile":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
