"""Opening a database: which one a URL means, durability settings, migrations, and errors in one clear line."""

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import StaticPool

from answerkey.config import DEFAULT_STORE
from answerkey.errors import MissingExtraError, StoreError
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
            migrate(connection)
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
        path = Path(database)
        if not create and not path.exists():
            raise StoreError(
                f"store {path}: no such file; `answerkey run` makes it, or name another with --store"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"store {path}: its folder cannot be made: {error.strerror}; use another --store"
            ) from None
        engine = create_engine(location, connect_args={"timeout": 30})
    # Begin is ours: the driver's own habit of opening transactions late would let a migration run half.
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    # Write-ahead logging lets readers go on while a run writes; FULL keeps commits over a power cut.
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _postgres(location: URL) -> Engine:
    if location.drivername == "postgresql":
        location = location.set(drivername="postgresql+psycopg")
    try:
        return create_engine(location, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise MissingExtraError("a PostgreSQL store", "postgres") from None


def explain(error: DBAPIError, location: URL) -> StoreError:
    """A database error as one line with a remedy and without a password."""
    reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    remedy = "check the address and that the server runs"
    if location.get_backend_name() == "sqlite":
        remedy = "use another --store"
        if "readonly" in reason or "read-only" in reason or "unable to open" in reason:
            remedy = "it cannot be written; make it writable or use another --store"
        elif "locked" in reason:
            remedy = "another program is writing to it; try again or use another --store"
        elif "not a database" in reason:
            remedy = "it is not an answerkey store; use another --store"
    return StoreError(f"store {_shown(location)}: {reason}; {remedy}")


def _shown(location: URL) -> str:
    if location.get_backend_name() == "sqlite":
        return location.database or ":memory:"
    return location.render_as_string(hide_password=True)
