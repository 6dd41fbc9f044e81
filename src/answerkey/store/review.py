"""Judges' answers in the store, by the hash of all that could change them, with what they cost and who paid."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from answerkey.model.feedback import Feedback, ReplyKey
from answerkey.model.judgement import Answer, Spent
from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import highest_score, lowest_score
from answerkey.store.database import Sql, all_of, in_list, now, sql
from answerkey.store.feedback import FeedbackBook, new_id
from answerkey.store.questions import find_reply_key
from answerkey.store.run_rows import of_run
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
                query = sql("SELECT key, payload FROM judgements WHERE key IN {keys}", keys=in_list(part))
                found.update(connection.run(*query))
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


# ReviewQueue: the replies whose score a person should look at, because it is borderline or a judge disagrees.


# Scores that could as well be on the other side of the pass mark.
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
    """One reply that waits for a person."""

    question_id: str
    trial: int
    question: str
    category: str
    score: float | None
    grade: str | None
    judge: float | None
    reason: Literal["borderline", "judge disagrees"]


class ReviewQueue:
    """The queue of one run."""

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
        """Reply → reviewer → whether they trust it."""
        found: dict[str, dict[str, bool]] = {}
        for given in FeedbackBook(self._store).verdicts(self._info.id, source="review"):
            if given.reply is not None:
                reply = f"{given.reply.ask_hash}:{given.reply.trial}"
                found.setdefault(reply, {})[given.author or ""] = given.positive
        return found

    def take_back(self, question_id: str, trial: int, *, author: str) -> bool:
        """Forget a reviewer's verdict on a reply; whether there was one."""
        key = find_reply_key(self._store, self._info, question_id, trial)
        with self._store.database.transaction() as connection:
            done = connection.run("DELETE FROM feedback WHERE idempotency_key = ?", (_key(author, key),))
            return bool(done.rowcount)

    def judge(self, question_id: str, trial: int, *, trusted: bool, comment: str, author: str) -> Feedback:
        """Keep a reviewer's verdict; the same reviewer's second one on a reply replaces the first."""
        key = find_reply_key(self._store, self._info, question_id, trial)
        kept, _ = FeedbackBook(self._store).add(
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
    """Of a reviewer's verdict on a reply: there is one."""
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
