"""Stored answers of judges, and the queue of replies for people to review."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from answerkey.model.feedback import Feedback, ReplyKey
from answerkey.model.judgement import Answer, Spent
from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import highest_score, lowest_score
from answerkey.store.database import Sql, all_of, in_list, now, sql
from answerkey.store.feedback import FeedbackStore, new_id
from answerkey.store.questions import find_reply_key
from answerkey.store.run_rows import of_run
from answerkey.store.sql import SqlStore

# Keys looked up in one query.
_BATCH = 500


class SqlJudgements:
    """Judges' answers, by the hash of everything that could change them, with their cost and the run that paid."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → the judge's answer, for known keys."""
        found: dict[str, str] = {}
        with self._database.reading() as connection:
            for start in range(0, len(keys), _BATCH):
                part = keys[start : start + _BATCH]
                query = sql("SELECT key, payload FROM judgements WHERE key IN {keys}", keys=in_list(part))
                found.update(connection.run(*query))
        return found

    def add_answers(self, run_id: str, answers: Sequence[Answer]) -> None:
        """Store answers in one durable transaction; an existing answer is not replaced."""
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
        """The tokens and cost that a run has paid for so far."""
        query = "SELECT SUM(input_tokens), SUM(output_tokens), SUM(cost) FROM judgements WHERE run_id = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (run_id,)).fetchone()
        return Spent(int(row[0] or 0), int(row[1] or 0), None if row[2] is None else float(row[2]))


# Scores close to the pass mark.
BORDERLINE = (0.40, 0.70)
# A judge that is further from the score than this disagrees with it.
DISAGREEMENT = 0.30

_decode_question = msgspec.json.Decoder(Question).decode
_TABLES = (
    "scorecards c JOIN questions q ON q.key = c.question JOIN names t ON t.key = c.target "
    "JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target AND r.trial = c.trial"
)
_ORDERS = {
    # Digests of texts give a random order that stays the same.
    "sample": "c.reply_digest, c.position, c.trial",
    "disagreement": "COALESCE(ABS(c.score - c.judge), 0.0) DESC, c.position, c.trial",
}
Order = Literal["sample", "disagreement"]


class ReviewItem(msgspec.Struct, frozen=True, kw_only=True):
    """A reply to review."""

    question_id: str
    trial: int
    question: str
    category: str
    score: float | None
    grade: str | None
    judge: float | None
    reason: Literal["borderline", "judge disagrees"]


class ReviewQueue:
    """The replies of a run that a person should review: borderline scores, and disagreements with the judge."""

    def __init__(self, store: SqlStore, info: RunInfo) -> None:
        self._store = store
        self._info = info

    def page(
        self, *, order: Order = "disagreement", reviews: int = 0, limit: int = 20, offset: int = 0
    ) -> list[ReviewItem]:
        """Replies with this many reviews: a random sample, or the largest disagreements first."""
        query = sql(
            "SELECT q.payload, c.trial, c.score, c.grade, c.judge FROM {tables} WHERE {queue} AND {reviews} = ? "
            "ORDER BY {order} LIMIT ? OFFSET ?",
            reviews,
            limit,
            offset,
            tables=_TABLES,
            queue=self._in_queue(),
            reviews=self._review_count(),
            order=_ORDERS[order],
        )
        with self._store.database.reading() as connection:
            return [_item(*row) for row in connection.run(*query)]

    def counts(self) -> tuple[int, int]:
        """How many replies wait for a review, and how many have one."""
        query = sql(
            "SELECT COUNT(*), COALESCE(SUM(CASE WHEN {reviews} > 0 THEN 1 ELSE 0 END), 0) "
            "FROM {tables} WHERE {queue}",
            reviews=self._review_count(),
            tables=_TABLES,
            queue=self._in_queue(),
        )
        with self._store.database.reading() as connection:
            queue, done = connection.run(*query).fetchone()
        return int(queue) - int(done), int(done)

    def verdicts(self) -> dict[str, dict[str, bool]]:
        """Reply → reviewer → whether they trust the reply."""
        found: dict[str, dict[str, bool]] = {}
        for given in FeedbackStore(self._store).verdicts(self._info.id, source="review"):
            if given.reply is not None:
                reply = f"{given.reply.ask_hash}:{given.reply.trial}"
                found.setdefault(reply, {})[given.author or ""] = given.positive
        return found

    def remove_verdict(self, question_id: str, trial: int, *, author: str) -> bool:
        """Delete a reviewer's verdict on a reply; False if there was none."""
        key = find_reply_key(self._store, self._info, question_id, trial)
        with self._store.database.transaction() as connection:
            done = connection.run("DELETE FROM feedback WHERE idempotency_key = ?", (_key(author, key),))
            return bool(done.rowcount)

    def record_verdict(
        self, question_id: str, trial: int, *, trusted: bool, comment: str, author: str
    ) -> Feedback:
        """Store a reviewer's verdict; it replaces their earlier one on the same reply."""
        key = find_reply_key(self._store, self._info, question_id, trial)
        kept, _ = FeedbackStore(self._store).add(
            Feedback(
                id=new_id(),
                created_at=now(),
                value=1.0 if trusted else 0.0,
                source="review",
                comment=comment.replace("\x00", "").strip(),
                author=author,
                reply=key,
                idempotency_key=_key(author, key),
            )
        )
        return kept

    def _in_queue(self) -> Sql:
        """A condition: a reply is borderline, or the judge disagrees with its score."""
        low, high = BORDERLINE
        to_review = sql(
            "c.score BETWEEN ? AND ? OR ABS(c.score - c.judge) > ?",
            lowest_score(low),
            highest_score(high),
            highest_score(DISAGREEMENT),
        )
        # A reply without a text cannot be reviewed.
        return all_of([of_run(self._info), Sql("r.text != ''"), to_review])

    def _review_count(self) -> Sql:
        return sql(
            "(SELECT COUNT(*) FROM feedback f WHERE f.run_id = ? AND f.ask_hash = q.ask_hash AND f.trial = c.trial "
            "AND f.target_hash = t.name AND f.source = 'review')",
            self._info.id,
        )


def _key(author: str, key: ReplyKey) -> str:
    """The idempotency key: one verdict per reviewer and reply."""
    return f"review:{author}:{key.run_id}:{key.ask_hash}:{key.trial}"


def _item(
    payload: str, trial: int, score: float | None, letter: str | None, judge: float | None
) -> ReviewItem:
    question = _decode_question(payload)
    disagrees = judge is not None and score is not None and abs(score - judge) > highest_score(DISAGREEMENT)
    return ReviewItem(
        question_id=question.id,
        trial=trial,
        question=question.question,
        category=question.category,
        score=score,
        grade=letter,
        judge=judge,
        reason="judge disagrees" if disagrees else "borderline",
    )
