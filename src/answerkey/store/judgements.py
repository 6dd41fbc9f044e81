"""Judges' answers in the store, by the hash of all that could change them, with what they cost and who paid."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from answerkey.model.judgement import Answer, Spent
from answerkey.store.writing import RunWriter, write_rows

__all__ = ["SqlJudgements"]

# Keys looked up in one query.
_BATCH = 500


class SqlJudgements:
    """The judgements of a store."""

    def __init__(self, store: RunWriter) -> None:
        self._store = store

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → the judge's answer, of those that are there."""
        found: dict[str, str] = {}
        with self._store.statements() as statements:
            for start in range(0, len(keys), _BATCH):
                part = keys[start : start + _BATCH]
                signs = ", ".join("?" for _ in part)
                query = f"SELECT key, payload FROM judgements WHERE key IN ({signs})"  # noqa: S608  # only signs
                found.update((row[0], row[1]) for row in statements.run(query, part).fetchall())
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
        with self._store.statements() as statements:
            write_rows(statements, "judgements", rows, replace=False)

    def spent_on(self, run_id: str) -> Spent:
        """What a run has paid so far."""
        query = "SELECT SUM(input_tokens), SUM(output_tokens), SUM(cost) FROM judgements WHERE run_id = ?"
        with self._store.statements() as statements:
            row = statements.run(query, (run_id,)).fetchone()
        return Spent(int(row[0] or 0), int(row[1] or 0), None if row[2] is None else float(row[2]))
