"""Where a store is: what a URL or path means, and what its database's errors mean to the user."""

from pathlib import Path

from answerkey.config import DEFAULT_STORE
from answerkey.errors import StoreError

__all__ = ["make_room", "sqlite_error", "sqlite_path"]

_SQLITE = "sqlite:///"


def sqlite_path(url: str | None, folder: Path | None = None) -> Path | None:
    """The file of an SQLite store; None for a database in memory or of another kind."""
    text = url or DEFAULT_STORE
    if text.startswith(_SQLITE):
        # As SQLAlchemy reads it: the path follows the third slash, and is relative to where the command runs.
        name = text[len(_SQLITE) :]
        return None if not name or name == ":memory:" or "?" in name or "%" in name else Path(name)
    if "://" in text or text == ":memory:":
        return None
    path = Path(text)
    return path if path.is_absolute() or folder is None else folder / path


def make_room(path: Path, *, create: bool) -> None:
    """See to it that a database's file can be made where it is to be."""
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


def sqlite_error(reason: str, shown: str) -> StoreError:
    """An error of SQLite as one line with a remedy."""
    remedy = "use another --store"
    if "readonly" in reason or "read-only" in reason or "unable to open" in reason:
        remedy = "it cannot be written; make it writable or use another --store"
    elif "locked" in reason:
        remedy = "another program is writing to it; try again or use another --store"
    elif "not a database" in reason:
        remedy = "it is not an answerkey store; use another --store"
    return StoreError(f"store {shown}: {reason}; {remedy}")
