"""The store of runs, replies, scorecards and feedback: SQLite by default, PostgreSQL for teams."""

from typing import TYPE_CHECKING

from answerkey.config import DEFAULT_STORE
from answerkey.errors import StoreError
from answerkey.plugins import stores

if TYPE_CHECKING:
    from pathlib import Path

    from answerkey.store.sql import SqlStore

__all__ = ["open_store"]


def open_store(url: str | None = None, *, folder: "Path | None" = None, create: bool = True) -> "SqlStore":
    """Open the store at a URL or file path (default: `.answerkey/answerkey.db`), creating it unless `create` is False."""
    address = url or DEFAULT_STORE
    scheme, separator, _ = address.partition("://")
    # A path is an SQLite file; a driver may follow a plus sign.
    kind = scheme.partition("+")[0] if separator else "sqlite"
    if not kind:
        raise StoreError(f"store {address!r}: not a database address; use a file path or postgresql://…")
    opener = stores.find(kind)
    if opener is None:
        raise StoreError(
            f"store {kind}://…: unknown kind of database; use {', '.join(stores.names())}, "
            "or a path to an SQLite file"
        )
    opened: SqlStore = opener(address, folder=folder, create=create)
    return opened
