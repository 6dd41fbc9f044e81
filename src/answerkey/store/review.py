"""ReviewQueue: the replies whose score a person should look at, because it is borderline or a judge disagrees."""

from typing import Literal

import msgspec

from answerkey.model.people_feedback import Feedback
from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.store.database import EPSILON, Where, now
from answerkey.store.feedback import FeedbackBook, new_id
from answerkey.store.questions import QuestionList
from answerkey.store.sql import SqlStore
from answerkey.store.writing import OF_RUN, of_run

__all__ = ["BORDERLINE", "DISAGREEMENT", "ReviewItem", "ReviewQueue"]

# Scores that could as well be on the other side of the pass mark.
BORDERLINE = (0.40, 0.70)
# A judge that is further from the score than this disagrees with it.
DISAGREEMENT = 0.30

_decode_question = msgspec.json.Decoder(Question).decode
_TABLES = "scorecards c JOIN questions q ON q.key = c.question JOIN names t ON t.key = c.target"
_REVIEWED = (
    "EXISTS (SELECT 1 FROM feedback f WHERE f.run_id = ? AND f.ask_hash = q.ask_hash AND f.trial = c.trial "
    "AND f.target_hash = t.name AND f.source = 'review')"
)


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

    def page(self, *, limit: int = 20, offset: int = 0) -> list[ReviewItem]:
        """Replies that wait: those with the largest disagreement first, then in the set's order."""
        where = self._wanted().add(f"NOT {_REVIEWED}", self._info.id)
        query = (
            f"SELECT q.payload, c.trial, c.score, c.grade, c.judge FROM {_TABLES} WHERE {where} "
            "ORDER BY COALESCE(ABS(c.score - c.judge), 0.0) DESC, c.position, c.trial LIMIT ? OFFSET ?"
        )
        with self._store.database.reading() as connection:
            rows = connection.run(query, (*where.values, limit, offset)).fetchall()
        return [_item(*row) for row in rows]

    def counts(self) -> tuple[int, int]:
        """How many wait, and how many of the queue are done."""
        where = self._wanted()
        query = (
            f"SELECT COUNT(*), COALESCE(SUM(CASE WHEN {_REVIEWED} THEN 1 ELSE 0 END), 0) "
            f"FROM {_TABLES} WHERE {where}"
        )
        with self._store.database.reading() as connection:
            queue, done = connection.run(query, (self._info.id, *where.values)).fetchone()
        return int(queue) - int(done), int(done)

    def judge(self, question_id: str, trial: int, *, trusted: bool, comment: str, author: str) -> Feedback:
        """Keep a reviewer's verdict; the same reviewer's second one on a reply replaces the first."""
        key = QuestionList(self._store).reply_key(self._info, question_id, trial)
        kept, _ = FeedbackBook(self._store).add(
            Feedback(
                id=new_id(),
                created_at=now(),
                value=1.0 if trusted else 0.0,
                source="review",
                comment=comment.replace("\x00", "").strip(),
                author=author,
                reply=key,
                idempotency_key=f"review:{author}:{key.run_id}:{key.ask_hash}:{key.trial}",
            )
        )
        return kept

    def _wanted(self) -> Where:
        low, high = BORDERLINE
        return Where(OF_RUN, *of_run(self._info)).add(
            "c.score BETWEEN ? AND ? OR ABS(c.score - c.judge) > ?",
            low - EPSILON,
            high + EPSILON,
            DISAGREEMENT + EPSILON,
        )


def _item(
    payload: str, trial: int, score: float | None, letter: str | None, judge: float | None
) -> ReviewItem:
    question = _decode_question(payload)
    disagrees = judge is not None and score is not None and abs(score - judge) > DISAGREEMENT + EPSILON
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
