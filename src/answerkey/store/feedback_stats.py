"""Feedback added up in the database: satisfaction, rate, by category and day, and how it agrees with the scores."""

from typing import Any

import msgspec
from sqlalchemy import Connection, and_, case, desc, func, select

from answerkey.model.feedback import POSITIVE
from answerkey.stats.correlation import correlate
from answerkey.store import schema
from answerkey.store.sql import SqlStore
from answerkey.text.themes import find_themes

__all__ = [
    "Agreement",
    "CategoryFeedback",
    "DayFeedback",
    "FeedbackStats",
    "FeedbackTheme",
    "feedback_state",
    "feedback_stats",
]

# The newest comments that themes are sought in, and the newest scored verdicts that the correlation is over.
_COMMENTS = 2_000
_PAIRS = 20_000
_DAYS = 90


class CategoryFeedback(msgspec.Struct, frozen=True):
    """Verdicts on one category's replies."""

    category: str
    feedback: int
    positive: int
    satisfaction: float


class DayFeedback(msgspec.Struct, frozen=True):
    """Verdicts of one day."""

    day: str
    feedback: int
    positive: int
    satisfaction: float


class FeedbackTheme(msgspec.Struct, frozen=True):
    """What several comments have in common."""

    words: str
    comments: int
    negative: int
    example: str


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How people's verdicts agree with answerkey's scores of the same replies."""

    pairs: int
    # Pearson's r with its 95% interval; None with too few pairs or where everybody said the same.
    correlation: float | None
    low: float | None
    high: float | None
    mean_score_positive: float | None
    mean_score_negative: float | None


class FeedbackStats(msgspec.Struct, frozen=True, kw_only=True):
    """All feedback in figures. Reviewers' verdicts are counted apart: they are no users."""

    feedback: int
    positive: int
    negative: int
    # Positive ÷ all; None without any.
    satisfaction: float | None
    # The replies that users could have judged: production's, and those of runs whose replies were judged by users.
    queries: int
    # Feedback on those replies ÷ their number; None when no such reply is known.
    feedback_rate: float | None
    comments: int
    # Verdicts whose reply is not known (yet).
    unmatched: int
    reviews: int
    reviews_trusted: int
    categories: tuple[CategoryFeedback, ...]
    days: tuple[DayFeedback, ...]
    themes: tuple[FeedbackTheme, ...]
    agreement: Agreement


def feedback_stats(store: SqlStore, *, queries: int | None = None) -> FeedbackStats:
    """Add up a store's feedback; `queries` overrides how many replies users could have judged."""
    with store.transaction() as connection:
        return _stats(connection, queries)


def feedback_state(store: SqlStore) -> tuple[str, str, str]:
    """Changes with every verdict, every production reply, and every new scoring of a run that was judged."""
    given, production, runs = schema.feedback.c, schema.production_replies.c, schema.runs.c
    judged = select(given.run_id).distinct().where(given.run_id.is_not(None))
    with store.transaction() as connection:
        verdicts = connection.execute(
            select(
                func.count(),
                func.max(given.created_at),
                func.sum(given.value),
                func.sum(func.length(given.comment)),
                func.count(given.run_id),
                func.count(given.production_id),
            )
        ).one()
        replies = connection.execute(select(func.count(), func.max(production.created_at))).one()
        scorings = connection.execute(
            select(runs.id, runs.scoring_hash, runs.info).where(runs.id.in_(judged)).order_by(runs.id)
        ).all()
    return repr(tuple(verdicts)), repr(tuple(replies)), repr(scorings)


def _stats(connection: Connection, queries: int | None) -> FeedbackStats:
    columns = schema.feedback.c
    user = columns.source != "review"
    positive = func.sum(case((columns.value >= POSITIVE, 1), else_=0))
    matched = columns.run_id.is_not(None) | columns.production_id.is_not(None)
    row = connection.execute(
        select(
            func.count(),
            positive,
            func.sum(case((columns.comment != "", 1), else_=0)),
            func.sum(case((matched, 1), else_=0)),
        ).where(user)
    ).one()
    total, good, commented, known = (int(value or 0) for value in row)
    reviews, trusted = connection.execute(
        select(func.count(), positive).where(columns.source == "review")
    ).one()
    asked = _queries(connection) if queries is None else queries
    rated = known if queries is None else total
    by_category = connection.execute(
        select(columns.category, func.count(), positive)
        .where(user)
        .group_by(columns.category)
        .order_by(func.count().desc())
    )
    # By its label: PostgreSQL takes two equal expressions with parameters for different ones.
    day = func.substr(columns.created_at, 1, 10).label("day")
    by_day = connection.execute(
        select(day, func.count(), positive).where(user).group_by("day").order_by(desc("day")).limit(_DAYS)
    )
    return FeedbackStats(
        feedback=total,
        positive=good,
        negative=total - good,
        satisfaction=good / total if total else None,
        queries=asked,
        feedback_rate=rated / asked if asked else None,
        comments=commented,
        unmatched=total - known,
        reviews=int(reviews),
        reviews_trusted=int(trusted or 0),
        categories=tuple(
            CategoryFeedback(name or "unknown", count, int(ups), ups / count)
            for name, count, ups in by_category
        ),
        days=tuple(
            DayFeedback(name, count, int(ups), ups / count) for name, count, ups in reversed(by_day.all())
        ),
        themes=_themes(connection),
        agreement=_agreement(connection),
    )


def _queries(connection: Connection) -> int:
    columns, replies = schema.feedback.c, schema.replies.c
    production = connection.execute(select(func.count()).select_from(schema.production_replies)).scalar_one()
    judged_runs = (
        select(columns.run_id).distinct().where(columns.source != "review", columns.run_id.is_not(None))
    )
    in_runs = connection.execute(select(func.count()).where(replies.run_id.in_(judged_runs))).scalar_one()
    return int(production) + int(in_runs)


def _themes(connection: Connection) -> tuple[FeedbackTheme, ...]:
    columns = schema.feedback.c
    rows = connection.execute(
        select(columns.comment, columns.value)
        .where(columns.comment != "")
        .order_by(columns.created_at.desc())
        .limit(_COMMENTS)
    )
    themes = find_themes((comment, value >= POSITIVE) for comment, value in rows)
    return tuple(FeedbackTheme(*theme) for theme in themes)


def _agreement(connection: Connection) -> Agreement:
    columns, cards = schema.feedback.c, schema.scorecards.c
    in_runs = (
        select(columns.value, cards.score)
        .join(
            schema.scorecards,
            and_(
                cards.run_id == columns.run_id,
                cards.ask_hash == columns.ask_hash,
                cards.trial == columns.trial,
            ),
        )
        .join(
            schema.runs,
            and_(schema.runs.c.id == cards.run_id, schema.runs.c.scoring_hash == cards.scoring_hash),
        )
        .where(cards.score.is_not(None))
        .limit(_PAIRS)
    )
    production = schema.production_replies.c
    in_production = (
        select(columns.value, production.score)
        .join(schema.production_replies, production.id == columns.production_id)
        .where(production.score.is_not(None))
        .limit(_PAIRS)
    )
    pairs: list[Any] = [*connection.execute(in_runs), *connection.execute(in_production)]
    found = correlate([value for value, _ in pairs], [score for _, score in pairs])
    ups = [score for value, score in pairs if value >= POSITIVE]
    downs = [score for value, score in pairs if value < POSITIVE]
    return Agreement(
        pairs=len(pairs),
        correlation=None if found is None else found.r,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        mean_score_positive=sum(ups) / len(ups) if ups else None,
        mean_score_negative=sum(downs) / len(downs) if downs else None,
    )
