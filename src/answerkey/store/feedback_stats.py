"""Feedback added up in the database: satisfaction, rate, by category and day, and how it agrees with the scores."""

from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.model.people_feedback import POSITIVE
from answerkey.stats.correlation import correlate
from answerkey.store.database import Connection
from answerkey.store.feedback import SCORED
from answerkey.text.themes import find_themes

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

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

_USERS = "source != 'review'"
_POSITIVE = f"SUM(CASE WHEN value >= {POSITIVE} THEN 1 ELSE 0 END)"


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


def feedback_stats(store: "SqlStore", *, queries: int | None = None) -> FeedbackStats:
    """Add up a store's feedback; `queries` overrides how many replies users could have judged."""
    with store.database.reading() as connection:
        return _stats(connection, queries)


def feedback_state(store: "SqlStore") -> tuple[str, ...]:
    """Changes with every verdict, every production reply, and every new scoring of a run that was judged."""
    queries = (
        "SELECT COUNT(*), MAX(created_at), SUM(value), SUM(LENGTH(comment)), COUNT(run_id), COUNT(production_id) "
        "FROM feedback",
        "SELECT COUNT(*), MAX(created_at) FROM production_replies",
        "SELECT id, info FROM runs WHERE id IN (SELECT run_id FROM feedback WHERE run_id IS NOT NULL) ORDER BY id",
    )
    with store.database.reading() as connection:
        return tuple(repr(connection.run(query).fetchall()) for query in queries)


def _stats(connection: Connection, queries: int | None) -> FeedbackStats:
    row = connection.run(
        f"SELECT COUNT(*), {_POSITIVE}, SUM(CASE WHEN comment != '' THEN 1 ELSE 0 END), "
        "SUM(CASE WHEN run_id IS NOT NULL OR production_id IS NOT NULL THEN 1 ELSE 0 END) "
        f"FROM feedback WHERE {_USERS}"
    ).fetchone()
    total, good, commented, known = (int(value or 0) for value in row)
    reviews, trusted = connection.run(
        f"SELECT COUNT(*), {_POSITIVE} FROM feedback WHERE source = 'review'"
    ).fetchone()
    asked = _queries(connection) if queries is None else queries
    rated = known if queries is None else total
    by_category = connection.run(
        f"SELECT category, COUNT(*), {_POSITIVE} FROM feedback WHERE {_USERS} GROUP BY category "
        "ORDER BY COUNT(*) DESC"
    ).fetchall()
    by_day = connection.run(
        f"SELECT SUBSTR(created_at, 1, 10) AS day, COUNT(*), {_POSITIVE} FROM feedback WHERE {_USERS} "
        "GROUP BY SUBSTR(created_at, 1, 10) ORDER BY day DESC LIMIT ?",
        (_DAYS,),
    ).fetchall()
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
        days=tuple(DayFeedback(name, count, int(ups), ups / count) for name, count, ups in reversed(by_day)),
        themes=_themes(connection),
        agreement=_agreement(connection),
    )


def _queries(connection: Connection) -> int:
    in_production = connection.value("SELECT COUNT(*) FROM production_replies")
    in_runs = connection.value(
        "SELECT COUNT(*) FROM replies WHERE run IN (SELECT runs.key FROM runs JOIN feedback f ON f.run_id = runs.id "
        "WHERE f.source != 'review')"
    )
    return int(in_production) + int(in_runs)


def _themes(connection: Connection) -> tuple[FeedbackTheme, ...]:
    rows = connection.run(
        "SELECT comment, value FROM feedback WHERE comment != '' ORDER BY created_at DESC LIMIT ?",
        (_COMMENTS,),
    )
    themes = find_themes((comment, value >= POSITIVE) for comment, value in rows)
    return tuple(FeedbackTheme(*theme) for theme in themes)


def _agreement(connection: Connection) -> Agreement:
    pairs: list[Any] = []
    for query in (
        f"SELECT f.value, c.score FROM {SCORED} WHERE c.score IS NOT NULL LIMIT ?",
        "SELECT f.value, p.score FROM feedback f JOIN production_replies p ON p.id = f.production_id "
        "WHERE p.score IS NOT NULL LIMIT ?",
    ):
        pairs += connection.run(query, (_PAIRS,))
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
