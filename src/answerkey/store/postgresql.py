"""A store in a PostgreSQL database, through psycopg 3."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from answerkey.errors import MissingExtraError, StoreAwayError, StoreError
from answerkey.store.database import BATCH, Connection, Database, Row
from answerkey.store.sql import SqlStore

try:
    import psycopg
except ImportError:
    raise MissingExtraError("a PostgreSQL store", "postgres") from None

__all__ = ["PostgresqlDatabase", "open_postgresql"]

# Seconds after which an idle connection is asked whether it still works.
_FRESH = 5.0


def open_postgresql(url: str, *, folder: Path | None = None, create: bool = True) -> SqlStore:
    """The store in the database at `postgresql://…`; its tables are made if need be."""
    return SqlStore(PostgresqlDatabase(url))


@cache
def _translated(sql: str) -> str:
    """With the driver's own sign for a value."""
    return sql.replace("%", "%%").replace("?", "%s")


class _Connection(Connection):
    def __init__(self, opened: "psycopg.Connection[Any]") -> None:
        self._opened = opened

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._opened.execute(_translated(sql), values)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._opened.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)

    def batches(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        # Named: the server keeps the rows that have not been fetched yet.
        with self._opened.cursor(name=f"stream_{time.monotonic_ns()}") as cursor:
            cursor.execute(_translated(sql), values)
            while rows := cursor.fetchmany(BATCH):
                yield rows


class PostgresqlDatabase(Database):
    """A database on a server."""

    kind = "postgresql"
    like = "ILIKE"
    error = psycopg.Error
    clock = "EXTRACT(EPOCH FROM clock_timestamp())::double precision"

    def __init__(self, url: str) -> None:
        super().__init__()
        # A driver's name after a plus sign is understood, and is psycopg's anyway.
        scheme, _, rest = url.partition("://")
        self._url = f"{scheme.partition('+')[0]}://{rest}"
        self.address = _without_password(self._url)
        self._used: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    def tables(self, connection: Connection) -> set[str]:
        """The tables there are."""
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        return {name for (name,) in connection.run(query)}

    def explain(self, error: Exception, reason: str) -> StoreError:
        """An error of the driver as one line with a remedy."""
        said = f"store {self.address}: {reason}"
        # A server that is gone, starts, has no room, or broke a deadlock: the same may work a little later.
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreAwayError(f"{said}; check the address and that the server runs")
        return StoreError(f"{said}; check the address and that the server runs")

    def json_text(self, expression: str, field: str) -> str:
        """SQL for a text in a JSON object."""
        return f"({expression}::json ->> '{field}')"

    def json_texts(self, expression: str, field: str) -> str:
        """A query for the texts of a list in a JSON object."""
        return f"SELECT json_array_elements_text({expression}::json -> '{field}')"

    def journal_path(self, run_id: str) -> Path | None:
        """In the user's folder of states, by the database's address: the server may be gone when it is needed."""
        folder = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        place = blake2b(self.address.encode(), digest_size=6).hexdigest()
        return Path(folder).expanduser() / "answerkey" / "journals" / f"{place}-{run_id}.journal"

    def _connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(self._url, connect_timeout=30)

    def _connection(self, opened: "psycopg.Connection[Any]") -> Connection:
        return _Connection(opened)

    def _begin(self, opened: "psycopg.Connection[Any]", *, writing: bool) -> None:
        """The driver begins with the first statement."""
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
