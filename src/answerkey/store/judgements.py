"""Judges' answers in the store, by the hash of all that could change them, with what they cost and who paid."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import func, select

from answerkey.judge.cache import Answer
from answerkey.judge.ledger import Spent
from answerkey.store import schema
from answerkey.store.sql import SqlStore

__all__ = ["SqlJudgements"]

# Keys looked up in one query.
_BATCH = 500


class SqlJudgements:
    """The judgements of a store."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → the judge's answer, of those that are there."""
        table = schema.judgements.c
        found: dict[str, str] = {}
        with self._store.transaction() as connection:
            for start in range(0, len(keys), _BATCH):
                query = select(table.key, table.payload).where(table.key.in_(keys[start : start + _BATCH]))
                found.update((key, payload) for key, payload in connection.execute(query))
        return found

    def add_answers(self, run_id: str, answers: Sequence[Answer]) -> None:
        """Keep answers in one durable transaction; the first answer under a key stays."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        rows = [
            {
                "key": answer.key,
                "run_id": run_id,
                "model": answer.model,
                # PostgreSQL's text takes no NUL, and no verdict has one.
                "payload": answer.text.replace("\0", "\ufffd"),
                "cost": answer.spent.cost,
                "input_tokens": answer.spent.input_tokens,
                "output_tokens": answer.spent.output_tokens,
                "created_at": now,
            }
            for answer in answers
        ]
        with self._store.transaction() as connection:
            connection.execute(self._store.upsert(schema.judgements, replace=False), rows)

    def spent_on(self, run_id: str) -> Spent:
        """What a run has paid so far."""
        table = schema.judgements.c
        query = select(
            func.sum(table.input_tokens), func.sum(table.output_tokens), func.sum(table.cost)
        ).where(table.run_id == run_id)
        with self._store.transaction() as connection:
            row = connection.execute(query).one()
        return Spent(int(row[0] or 0), int(row[1] or 0), None if row[2] is None else float(row[2]))
