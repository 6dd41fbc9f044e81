"""Opening a database: which one a URL means, durability settings, migrations, and errors in one clear line."""

import sqlite3
from pathlib import Path

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import StaticPool

from answerkey.config import DEFAULT_STORE
from answerkey.errors import MissingExtraError, StoreError
from answerkey.store.location import make_room, sqlite_error
from answerkey.store.migrations import migrate

__all__ = ["connect", "explain"]


def connect(url: str | None, *, folder: Path | None = None, create: bool = True) -> Engine:
    """An engine on an up-to-date store."""
    location = _location(url, folder)
    if location.get_backend_name() == "sqlite":
        engine = _sqlite(location, create=create)
    elif location.get_backend_name() == "postgresql":
        engine = _postgres(location)
    else:
        raise StoreError(
            f"store {_shown(location)}: unknown kind of database; use a file path or postgresql://…"
        )
    try:
        with engine.begin() as connection:
            migrate(connection.exec_driver_sql)
    except DBAPIError as error:
        engine.dispose()
        raise explain(error, location) from None
    except StoreError as error:
        engine.dispose()
        raise StoreError(f"store {_shown(location)}: {error}") from None
    return engine


def _location(url: str | None, folder: Path | None) -> URL:
    text = url or DEFAULT_STORE
    if "://" not in text:
        path = Path(text)
        if text != ":memory:" and not path.is_absolute() and folder is not None:
            path = folder / path
        return URL.create("sqlite", database=str(path))
    try:
        return make_url(text)
    except ArgumentError:
        raise StoreError(
            f"store {text!r}: not a database address; use a file path or postgresql://…"
        ) from None


def _sqlite(location: URL, *, create: bool) -> Engine:
    database = location.database or ":memory:"
    if database == ":memory:":
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        make_room(Path(database), create=create)
        engine = create_engine(location, connect_args={"timeout": 30})
    event.listen(engine, "connect", lambda connection, _record: prepare_sqlite(connection))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _postgres(location: URL) -> Engine:
    if location.drivername == "postgresql":
        location = location.set(drivername="postgresql+psycopg")
    try:
        return create_engine(location, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise MissingExtraError("a PostgreSQL store", "postgres") from None


def prepare_sqlite(connection: sqlite3.Connection) -> None:
    """What every connection to a store is set to."""
    # Begin is ours: the driver's own habit of opening transactions late would let a migration run half.
    connection.isolation_level = None
    # Write-ahead logging lets readers go on while a run writes; FULL keeps commits over a power cut.
    connection.execute("PRAGMA journal_mode=WAL").close()
    connection.execute("PRAGMA synchronous=FULL").close()


def explain(error: DBAPIError, location: URL) -> StoreError:
    """A database error as one line with a remedy and without a password."""
    reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    if location.get_backend_name() == "sqlite":
        return sqlite_error(reason, _shown(location))
    return StoreError(f"store {_shown(location)}: {reason}; check the address and that the server runs")


def _shown(location: URL) -> str:
    if location.get_backend_name() == "sqlite":
        return location.database or ":memory:"
    return location.render_as_string(hide_password=True)
