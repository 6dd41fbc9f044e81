"""Judges' answers in the store, by the hash of all that could change them, with what they cost and who paid."""

from collections.abc import Mapping, Sequence

from answerkey.model.judge_answer import Answer, Spent
from answerkey.store.database import now, signs
from answerkey.store.sql import SqlStore

# Keys looked up in one query.
_BATCH = 500


class SqlJudgements:
    """The judgements of a store."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → the judge's answer, of those that are there."""
        found: dict[str, str] = {}
        with self._database.reading() as connection:
            for start in range(0, len(keys), _BATCH):
                part = keys[start : start + _BATCH]
                query = f"SELECT key, payload FROM judgements WHERE key IN ({signs(part)})"
                found.update(connection.run(query, part))
        return found

    def add_answers(self, run_id: str, answers: Sequence[Answer]) -> None:
        """Keep answers in one durable transaction; the first answer under a key stays."""
        moment = now()
        rows = [
            (
                answer.key,
                run_id,
                answer.model,
                # PostgreSQL's text takes no NUL, and no verdict has one.
                answer.text.replace("\0", "\ufffd"),
                answer.spent.cost,
                answer.spent.input_tokens,
                answer.spent.output_tokens,
                moment,
            )
            for answer in answers
        ]
        with self._database.transaction() as connection:
            connection.insert("judgements", rows)

    def spent_on(self, run_id: str) -> Spent:
        """What a run has paid so far."""
        query = "SELECT SUM(input_tokens), SUM(output_tokens), SUM(cost) FROM judgements WHERE run_id = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (run_id,)).fetchone()
        return Spent(int(row[0] or 0), int(row[1] or 0), None if row[2] is None else float(row[2]))
