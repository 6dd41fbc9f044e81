"""The store: where runs, replies, scorecards and feedback last. SQLite by default, PostgreSQL for teams."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from answerkey.store.sql import SqlStore
    from answerkey.store.sqlite_file import SqliteFile

__all__ = ["open_run_store", "open_store"]


def open_store(url: str | None = None, *, folder: "Path | None" = None, create: bool = True) -> "SqlStore":
    """Open the store at a URL or file path (default: `.answerkey/answerkey.db`), making it if need be."""
    # SQLAlchemy takes longer to import than a small run takes to ask.
    from answerkey.store.sql import SqlStore

    return SqlStore.open(url, folder=folder, create=create)


def open_run_store(url: str | None = None, *, folder: "Path | None" = None) -> "SqlStore | SqliteFile":
    """The same for a run, which mostly writes: a file is opened without loading what only reading needs."""
    from answerkey.store.location import sqlite_path

    path = sqlite_path(url, folder)
    if path is None:
        return open_store(url, folder=folder)
    from answerkey.store.sqlite_file import SqliteFile

    return SqliteFile.open(path)
