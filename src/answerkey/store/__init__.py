"""The store: where runs, replies, scorecards and feedback last. SQLite by default, PostgreSQL for teams."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from answerkey.store.sql import SqlStore

__all__ = ["open_store"]


def open_store(url: str | None = None, *, folder: "Path | None" = None, create: bool = True) -> "SqlStore":
    """Open the store at a URL or file path (default: `.answerkey/answerkey.db`), making it if need be."""
    # SQLAlchemy takes longer to import than a small run takes to ask.
    from answerkey.store.sql import SqlStore

    return SqlStore.open(url, folder=folder, create=create)
