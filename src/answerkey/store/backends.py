"""The kinds of stores: an SQLite file, through the standard library, and a PostgreSQL database, through psycopg 3."""

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from weakref import WeakKeyDictionary

from answerkey.errors import MissingExtraError, StoreAwayError, StoreError, StoreFullError, StoreMissingError
from answerkey.store.database import BATCH, TABLES, Connection, Database, Row, Sql
from answerkey.store.sql import SqlStore

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
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        # Whether this is a temporary copy of a file that cannot be read in its place.
        self._copied = False
        # The existing tables, including search indexes; None: not read yet.
        self._searchable: set[str] | None = None
        if name in ("", ":memory:"):
            # A temporary file instead of memory, so that several connections share it.
            self._temporary = tempfile.TemporaryDirectory(prefix="answerkey-", ignore_cleanup_errors=True)
            path, self.address = Path(self._temporary.name) / "store.db", ":memory:"
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

    def _copy_file(self) -> None:
        """Read a file that cannot be written through a temporary copy."""
        super().close()
        self._temporary = tempfile.TemporaryDirectory(prefix="answerkey-", ignore_cleanup_errors=True)
        place = Path(self._temporary.name) / "store.db"
        for ending in ("", "-wal"):
            if Path(f"{self._path}{ending}").exists():
                shutil.copyfile(f"{self._path}{ending}", f"{place}{ending}")
        self._path = place
        self._copied = True

    def tables(self, connection: Connection) -> set[str]:
        """The names of the existing tables."""
        return {name for (name,) in connection.run("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def tune_for_serving(self) -> None:
        """Wait less for locks."""
        self._lock_timeout = _PAGE_LOCK_TIMEOUT
        super().close()

    def explain(self, error: Exception, reason: str) -> StoreError:
        """An error of SQLite as one line with a remedy."""
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
        """SQL for a text in a JSON object."""
        return f"json_extract({expression}, '$.{field}')"

    def json_texts(self, expression: str, field: str) -> str:
        """A query for the texts of a list in a JSON object."""
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


try:
    import psycopg
except ImportError:
    raise MissingExtraError("a PostgreSQL store", "postgres") from None

# Seconds after which an idle connection is asked whether it still works.
_FRESH = 5.0
# Rows from which on a stream is quicker than statements.
_WORTH_STREAMING = 10
# The schema's types as the stream has them.
_STREAMED = {
    "text": "text",
    "integer": "int4",
    "number": "int4",
    "long": "int8",
    "real": "float8",
    "bytes": "bytea",
}
# Tables that are joined. Their statistics are refreshed when one of those that grow is three times as large as at the
# last refresh. The server does that itself a minute after a tenth was added: until then a first run of 10,000 replies
# would be joined as if it had a single one, taking seconds per thousand.
_JOINED = "runs, names, questions, set_items, replies, scorecards, scorecard_details"
_OUTGROWN = (
    "SELECT COUNT(*) FROM pg_class WHERE oid IN ('replies'::regclass, 'scorecards'::regclass) "
    "AND pg_relation_size(oid) > current_setting('block_size')::bigint * (3 * GREATEST(relpages, 0) + 16)"
)
# Arbitrary but constant: one process at a time refreshes statistics, and the others do not wait for it.
_STATISTICS_LOCK = 7216002
# The same for the indexes that only the dashboard needs.
_SEARCH_LOCK = 7216003


def open_postgresql(url: str, *, folder: Path | None = None, create: bool = True) -> SqlStore:
    """Open the store in the database at `postgresql://…`, creating its tables if needed."""
    return SqlStore(PostgresqlDatabase(url))


@cache
def _translated(sql: str) -> str:
    """SQL with the driver's own placeholders."""
    return sql.replace("%", "%%").replace("?", "%s")


@cache
def _copying(table: str, columns: tuple[str, ...] | None) -> tuple[str, list[str]]:
    """The COPY statement for a table, and the types of its columns."""
    declared = TABLES[table]
    names = columns or declared.written
    types = [_STREAMED[declared.columns[name].rstrip("?")] for name in names]
    return f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)", types


class _PostgresConnection(Connection):
    def __init__(self, opened: "psycopg.Connection[Any]") -> None:
        self._opened = opened

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._opened.execute(_translated(sql), values)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._opened.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)

    def insert(
        self,
        table: str,
        rows: Sequence[Sequence[Any]],
        *,
        columns: tuple[str, ...] | None = None,
        replace: bool = False,
    ) -> None:
        """Copy many rows as a stream, three times as fast; if one of them exists already, which is rare, insert them."""
        if len(rows) >= _WORTH_STREAMING:
            statement, types = _copying(table, columns)
            try:
                # A savepoint: rolled back alone if it fails.
                with self._opened.transaction(), self._opened.cursor().copy(statement) as copy:
                    copy.set_types(types)
                    for row in rows:
                        copy.write_row(row)
            except psycopg.errors.UniqueViolation:
                pass
            else:
                return
        super().insert(table, rows, columns=columns, replace=replace)

    def batches(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        # A named cursor leaves rows on the server until they are fetched.
        with self._opened.cursor(name=f"stream_{time.monotonic_ns()}") as cursor:
            cursor.execute(_translated(sql), values)
            while rows := cursor.fetchmany(BATCH):
                yield rows


class PostgresqlDatabase(Database):
    """A database on a server."""

    dialect = "postgresql"
    like = "ILIKE"
    error = psycopg.Error
    clock = "EXTRACT(EPOCH FROM clock_timestamp())::double precision"

    def __init__(self, url: str) -> None:
        super().__init__()
        # A driver's name after a plus sign is ignored.
        scheme, _, rest = url.partition("://")
        self._url = f"{scheme.partition('+')[0]}://{rest}"
        self.address = _without_password(self._url)
        self._used: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    def tables(self, connection: Connection) -> set[str]:
        """The names of the existing tables."""
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        return {name for (name,) in connection.run(query)}

    def explain(self, error: Exception, reason: str) -> StoreError:
        """An error of the driver as one line with a remedy."""
        said = f"store {self.address}: {reason}"
        # The server is unreachable, starting or full, or broke a deadlock: a retry may succeed.
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreAwayError(f"{said}; check the address and that the server runs")
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            # As during a failover.
            return StoreAwayError(f"{said}; the server is read-only: make it writable")
        return StoreError(f"{said}; check the address and that the server runs")

    def update_statistics(self) -> None:
        """Refresh the planner's statistics when the tables have outgrown them."""
        with self.transaction() as connection:
            if connection.value(_OUTGROWN) and connection.value(
                "SELECT pg_try_advisory_xact_lock(?)", (_STATISTICS_LOCK,)
            ):
                connection.run(f"ANALYZE {_JOINED}")

    def tune_for_serving(self) -> None:
        """Create the search index in the background, since it takes minutes for millions of rows."""
        Thread(target=self.index_texts, name="index texts", daemon=True).start()

    def index_texts(self) -> None:
        """Index the searched texts, if the server permits it; without the index a search reads all rows."""
        try:
            with psycopg.connect(self._url, connect_timeout=30, autocommit=True) as opened:
                if opened.execute("SELECT pg_try_advisory_lock(%s)", (_SEARCH_LOCK,)).fetchone() != (True,):
                    return
                opened.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
                for table in TABLES.values():
                    if table.searched is None:
                        continue
                    texts = table.searched.format(row=table.name)
                    index = f"{table.name}_words"
                    # An interrupted build leaves an invalid index that would never be used.
                    broken = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid"
                    if opened.execute(broken, (index,)).fetchone():
                        opened.execute(f"DROP INDEX {index}")
                    opened.execute(
                        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON {table.name} "
                        f"USING gin (({texts}) gin_trgm_ops)"
                    )
                    opened.execute(f"ANALYZE {table.name}")
        except psycopg.Error:
            # No extension, no permission, or the server is unreachable, which the next query reports.
            return

    def json_text(self, expression: str, field: str) -> str:
        """SQL for a text in a JSON object."""
        return f"({expression}::json ->> '{field}')"

    def json_texts(self, expression: str, field: str) -> str:
        """A query for the texts of a list in a JSON object."""
        return f"SELECT json_array_elements_text({expression}::json -> '{field}')"

    def journal_path(self, run_id: str) -> Path | None:
        """In the user's state folder, by the database's address: the server may be unreachable when it is needed."""
        folder = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        place = blake2b(self.address.encode(), digest_size=6).hexdigest()
        return Path(folder).expanduser() / "answerkey" / "journals" / f"{place}-{run_id}.journal"

    def _connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(self._url, connect_timeout=30)

    def _connection(self, opened: "psycopg.Connection[Any]") -> Connection:
        return _PostgresConnection(opened)

    def _begin(self, opened: "psycopg.Connection[Any]", *, writing: bool) -> None:
        """The driver begins a transaction with the first statement."""
        self._used[opened] = time.monotonic()

    def _usable(self, opened: "psycopg.Connection[Any]") -> bool:
        if opened.closed:
            return False
        if time.monotonic() - self._used.get(opened, 0.0) > _FRESH:
            try:
                opened.execute("SELECT 1")
                opened.rollback()
            except psycopg.Error:
                return False
        return True


def _without_password(url: str) -> str:
    try:
        password = urlsplit(url).password
    except ValueError:
        password = None
    return url if not password else url.replace(f":{password}@", ":***@")
