"""A store in an SQLite file, through the standard library."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from answerkey.errors import StoreAwayError, StoreError, StoreFullError, StoreMissingError
from answerkey.store.database import BATCH, Connection, Database, Row, Sql
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

# Seconds to wait for another program that writes: for a run, and for a dashboard page.
_LOCK_TIMEOUT = 30.0
_PAGE_LOCK_TIMEOUT = 3.0
# Characters of the shortest text that a trigram index can find.
_SHORTEST = 3


def open_sqlite(url: str, *, folder: Path | None = None, create: bool = True) -> SqlStore:
    """Open the store at a path, which may be relative to a folder, or at `sqlite:///path`."""
    if url.startswith("sqlite:"):
        # The path follows the third slash, and is relative to where the command runs.
        name, folder = unquote(url.removeprefix("sqlite://").removeprefix("/").partition("?")[0]), None
    else:
        name = url
    return SqlStore(SqliteDatabase(name, folder=folder, create=create))


class _SqliteConnection(Connection):
    def __init__(self, opened: sqlite3.Connection) -> None:
        self._opened = opened

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._opened.execute(sql, values)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._opened.executemany(sql, rows)

    def batches(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        cursor = self._opened.execute(sql, values)
        try:
            while rows := cursor.fetchmany(BATCH):
                yield rows
        finally:
            cursor.close()


class SqliteDatabase(Database):
    """An SQLite file; a file or folder that cannot be written is opened read-only."""

    dialect = "sqlite"
    like = "LIKE"
    error = sqlite3.Error
    clock = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, name: str, *, folder: Path | None = None, create: bool = True) -> None:
        super().__init__()
        self._lock_timeout = _LOCK_TIMEOUT
        self._temporary: TemporaryDirectory[str] | None = None
        # Whether this is a temporary copy of a file that cannot be read in its place.
        self._copied = False
        # The existing tables, including search indexes; None: not read yet.
        self._searchable: set[str] | None = None
        if name in ("", ":memory:"):
            # A temporary file instead of memory, so that several connections share it.
            path, self.address = self._temporary_file(), ":memory:"
        else:
            path = Path(name) if folder is None else folder / name
            self.address = str(path)
        self._path = path
        if not create and not path.exists():
            raise StoreMissingError(
                f"store {path}: no such file; `answerkey run` makes it, or name another with --store"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"store {path}: its folder cannot be made: {error.strerror}; use another --store"
            ) from None
        self.read_only = path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
        # A write-ahead log cannot be read in a folder where SQLite cannot create its lock file.
        left = Path(f"{path}-wal")
        if self.read_only and left.exists() and left.stat().st_size and not Path(f"{path}-shm").exists():
            self._copy_file()

    def _temporary_file(self) -> Path:
        """The path of a file that is deleted when the store is closed."""
        from tempfile import TemporaryDirectory  # slow to load, and most stores are files

        self._temporary = TemporaryDirectory(prefix="answerkey-", ignore_cleanup_errors=True)
        return Path(self._temporary.name) / "store.db"

    def _copy_file(self) -> None:
        """Read a file that cannot be written through a temporary copy."""
        import shutil

        super().close()
        place = self._temporary_file()
        for ending in ("", "-wal"):
            if Path(f"{self._path}{ending}").exists():
                shutil.copyfile(f"{self._path}{ending}", f"{place}{ending}")
        self._path = place
        self._copied = True

    def tables(self, connection: Connection) -> set[str]:
        return {name for (name,) in connection.run("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def tune_for_serving(self) -> None:
        """Wait less for locks."""
        self._lock_timeout = _PAGE_LOCK_TIMEOUT
        super().close()

    def explain(self, error: Exception, reason: str) -> StoreError:
        code = getattr(error, "sqlite_errorname", None) or ""
        if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return StoreFullError(f"store {self.address}: {reason}; make room on its disk")
        remedy = "use another --store"
        if "readonly" in reason or "read-only" in reason or "unable to open" in reason:
            remedy = "it cannot be written; make it writable or use another --store"
        elif code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            remedy = "another program is writing to it; try again or use another --store"
            return StoreAwayError(f"store {self.address}: {reason}; {remedy}")
        elif code.startswith("SQLITE_CORRUPT"):
            remedy = f"see what is left of it: answerkey store check {self.address}"
        elif "not a database" in reason:
            remedy = "it is not an answerkey store; use another --store"
        return StoreError(f"store {self.address}: {reason}; {remedy}")

    def search(self, table: str, text: str) -> Sql:
        """Search the index, if the text is long enough for it."""
        words = text.replace("\0", "").casefold()
        if self._searchable is None:
            with self.reading() as connection:
                self._searchable = self.tables(connection)
        index = f"{table}_words"
        if len(words) < _SHORTEST or index not in self._searchable:
            return super().search(table, text)
        quoted = words.replace('"', '""')
        return Sql(f"SELECT rowid FROM {index} WHERE {index} MATCH ?", (f'"{quoted}"',))

    def json_text(self, expression: str, field: str) -> str:
        return f"json_extract({expression}, '$.{field}')"

    def json_texts(self, expression: str, field: str) -> str:
        return f"SELECT value FROM json_each({expression}, '$.{field}')"

    def journal_path(self, run_id: str) -> Path | None:
        """Beside the file."""
        return None if self._temporary is not None else Path(f"{self._path}.{run_id}.journal")

    def close(self) -> None:
        """Close the connections and delete a temporary file."""
        super().close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _connect(self) -> sqlite3.Connection:
        place = str(self._path)
        read_only = self.read_only and not self._copied
        if read_only:
            # Without a write-ahead log the file does not change, and no lock file is needed.
            alone = "" if Path(f"{place}-wal").exists() else "&immutable=1"
            place = f"file:{quote(place)}?mode=ro{alone}"
        # Used by one thread at a time, not always the one that opened it. Transactions begin explicitly: the driver would
        # begin them late.
        opened = sqlite3.connect(
            place,
            timeout=self._lock_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            uri=read_only,
        )
        try:
            if not read_only:
                # With write-ahead logging readers do not wait for writers; FULL makes commits survive a power cut.
                opened.execute("PRAGMA journal_mode=WAL").close()
                opened.execute("PRAGMA synchronous=FULL").close()
        except sqlite3.Error:
            opened.close()
            raise
        return opened

    def _connection(self, opened: sqlite3.Connection) -> Connection:
        return _SqliteConnection(opened)

    def _begin(self, opened: sqlite3.Connection, *, writing: bool) -> None:
        # IMMEDIATE, since a transaction that first reads could conflict with another writer.
        if writing and self.read_only:
            raise sqlite3.OperationalError("attempt to write a readonly database")
        opened.execute("BEGIN IMMEDIATE" if writing else "BEGIN")

    def _usable(self, opened: sqlite3.Connection) -> bool:
        return True
