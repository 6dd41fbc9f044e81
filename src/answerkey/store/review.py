"""ReviewQueue: the replies whose score a person should look at, because it is borderline or a judge disagrees."""

from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, and_, exists, func, or_, select

from answerkey.model.feedback import Feedback
from answerkey.model.run import RunInfo
from answerkey.store import schema
from answerkey.store.browse import Browser
from answerkey.store.conditions import EPSILON, of_run
from answerkey.store.feedback import FeedbackBook, new_id, now
from answerkey.store.sql import SqlStore

__all__ = ["BORDERLINE", "DISAGREEMENT", "ReviewItem", "ReviewQueue"]

# Scores that could as well be on the other side of the pass mark.
BORDERLINE = (0.40, 0.70)
# A judge that is further from the score than this disagrees with it.
DISAGREEMENT = 0.30


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
        cards, texts = schema.scorecards.c, schema.reply_texts.c
        query = (
            select(
                cards.question_id,
                cards.trial,
                cards.category,
                cards.score,
                cards.grade,
                cards.judge,
                texts.question,
            )
            .outerjoin(
                schema.reply_texts,
                and_(
                    texts.run_id == cards.run_id,
                    texts.ask_hash == cards.ask_hash,
                    texts.trial == cards.trial,
                ),
            )
            .where(*self._wanted(), ~_reviewed())
            .order_by(
                func.coalesce(func.abs(cards.score - cards.judge), 0.0).desc(), cards.position, cards.trial
            )
            .limit(limit)
            .offset(offset)
        )
        with self._store.transaction() as connection:
            return [_item(row) for row in connection.execute(query)]

    def counts(self) -> tuple[int, int]:
        """How many wait, and how many of the queue are done."""
        query = select(func.count()).select_from(schema.scorecards).where(*self._wanted())
        with self._store.transaction() as connection:
            waiting = connection.execute(query.where(~_reviewed())).scalar_one()
            return int(waiting), int(connection.execute(query).scalar_one()) - int(waiting)

    def judge(self, question_id: str, trial: int, *, trusted: bool, comment: str, author: str) -> Feedback:
        """Keep a reviewer's verdict; the same reviewer's second one on a reply replaces the first."""
        key = Browser(self._store).reply_key(self._info, question_id, trial)
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

    def _wanted(self) -> tuple[ColumnElement[bool], ...]:
        cards = schema.scorecards.c
        low, high = BORDERLINE
        return (
            *of_run(self._info),
            or_(
                cards.score.between(low - EPSILON, high + EPSILON),
                func.abs(cards.score - cards.judge) > DISAGREEMENT + EPSILON,
            ),
        )


def _reviewed() -> Any:
    cards, given = schema.scorecards.c, schema.feedback.c
    return exists().where(
        given.run_id == cards.run_id,
        given.ask_hash == cards.ask_hash,
        given.trial == cards.trial,
        given.source == "review",
    )


def _item(row: Any) -> ReviewItem:
    disagrees = (
        row.judge is not None
        and row.score is not None
        and abs(row.score - row.judge) > DISAGREEMENT + EPSILON
    )
    return ReviewItem(
        question_id=row.question_id,
        trial=row.trial,
        question=row.question or row.question_id,
        category=row.category,
        score=row.score,
        grade=row.grade,
        judge=row.judge,
        reason="judge disagrees" if disagrees else "borderline",
    )
