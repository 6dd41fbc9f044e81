"""Forgetting a baseline's name; the run it names stays."""

from sqlalchemy import delete

from answerkey.store import schema
from answerkey.store.sql import SqlStore

__all__ = ["remove_baseline"]


def remove_baseline(store: SqlStore, name: str) -> bool:
    """Whether there was such a name."""
    with store.transaction() as connection:
        gone = connection.execute(delete(schema.baselines).where(schema.baselines.c.name == name))
    return gone.rowcount > 0
