"""A store in a PostgreSQL database, through psycopg 3."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from answerkey.errors import MissingExtraError, StoreAwayError, StoreError
from answerkey.store.database import BATCH, TABLES, Connection, Database, Row
from answerkey.store.sql import SqlStore

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
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        return {name for (name,) in connection.run(query)}

    def explain(self, error: Exception, reason: str) -> StoreError:
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
        return f"({expression}::json ->> '{field}')"

    def json_texts(self, expression: str, field: str) -> str:
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
