"""Baselines: names for runs to compare with, kept until they are given to another run or forgotten."""

from sqlalchemy import delete

from answerkey.errors import UsageError
from answerkey.model.run import RunInfo
from answerkey.store import schema
from answerkey.store.sql import SqlStore

__all__ = ["name_baseline", "remove_baseline"]


def name_baseline(store: SqlStore, name: str, reference: str) -> RunInfo:
    """Call a run `name`; a name that is taken moves to it. Raises UsageError for a name or run that cannot be one."""
    if not name.strip() or name == "latest" or name.startswith(("latest~", "-")) or not name.isprintable():
        raise UsageError(f"{name[:80]!r} cannot name a baseline; use a word such as production")
    info = store.find_run(reference)
    if info.status != "complete":
        raise UsageError(f"run {info.id} is not complete and no fair baseline: answerkey resume {info.id}")
    store.set_baseline(name, info.id)
    return info


def remove_baseline(store: SqlStore, name: str) -> bool:
    """Forget a name, the run stays; whether there was such a name."""
    with store.transaction() as connection:
        gone = connection.execute(delete(schema.baselines).where(schema.baselines.c.name == name))
    return gone.rowcount > 0
