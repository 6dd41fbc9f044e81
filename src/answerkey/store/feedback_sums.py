"""Feedback added up in the database: satisfaction, rate, by category and day, and how it agrees with the scores."""

from typing import TYPE_CHECKING, Any

from answerkey.model.feedback import (
    POSITIVE,
    Agreement,
    CategoryFeedback,
    DayFeedback,
    FeedbackStats,
    FeedbackTheme,
)
from answerkey.stats.correlation import correlate
from answerkey.store.database import Connection, Where
from answerkey.store.feedback_book import SCORED, FeedbackFilter, time_window
from answerkey.store.production_sums import window_sums
from answerkey.text.themes import find_themes

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

# The newest comments that themes are sought in, and the newest scored verdicts that the correlation is over.
_COMMENTS = 2_000
_PAIRS = 20_000
_DAYS = 90

_USERS = "source != 'review'"
_POSITIVE = f"SUM(CASE WHEN value >= {POSITIVE} THEN 1 ELSE 0 END)"


def feedback_stats(
    store: "SqlStore", *, queries: int | None = None, wanted: FeedbackFilter | None = None
) -> FeedbackStats:
    """Add up a store's feedback of the days that are wanted; `queries` overrides how many replies users could have judged."""
    with store.database.reading() as connection:
        return _stats(connection, queries, wanted or FeedbackFilter())


def feedback_state(store: "SqlStore") -> tuple[str, ...]:
    """Changes with every verdict, every production reply, and every new scoring of a run that was judged."""
    queries = (
        "SELECT COUNT(*), MAX(created_at), SUM(value), SUM(LENGTH(comment)), COUNT(run_id), COUNT(production_id) "
        "FROM feedback",
        "SELECT SUM(replies), SUM(graded), SUM(score) FROM production_sums WHERE facet = ''",
        "SELECT id, info FROM runs WHERE id IN (SELECT run_id FROM feedback WHERE run_id IS NOT NULL) ORDER BY id",
    )
    with store.database.reading() as connection:
        return tuple(repr(connection.run(query).fetchall()) for query in queries)


def _stats(connection: Connection, queries: int | None, wanted: FeedbackFilter) -> FeedbackStats:
    users, reviewers = (
        time_window(Where(condition), "created_at", wanted) for condition in (_USERS, "source = 'review'")
    )
    row = connection.run(
        f"SELECT COUNT(*), {_POSITIVE}, SUM(CASE WHEN comment != '' THEN 1 ELSE 0 END), "
        "SUM(CASE WHEN run_id IS NOT NULL OR production_id IS NOT NULL THEN 1 ELSE 0 END) "
        f"FROM feedback WHERE {users}",
        users.values,
    ).fetchone()
    total, good, commented, known = (int(value or 0) for value in row)
    reviews, trusted = connection.run(
        f"SELECT COUNT(*), {_POSITIVE} FROM feedback WHERE {reviewers}", reviewers.values
    ).fetchone()
    asked = _queries(connection, wanted) if queries is None else queries
    rated = known if queries is None else total
    by_category = connection.run(
        f"SELECT category, COUNT(*), {_POSITIVE} FROM feedback WHERE {users} GROUP BY category "
        "ORDER BY COUNT(*) DESC",
        users.values,
    ).fetchall()
    by_day = connection.run(
        f"SELECT SUBSTR(created_at, 1, 10) AS day, COUNT(*), {_POSITIVE} FROM feedback WHERE {users} "
        "GROUP BY SUBSTR(created_at, 1, 10) ORDER BY day DESC LIMIT ?",
        (*users.values, _DAYS),
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
        themes=_themes(connection, wanted),
        agreement=_agreement(connection, wanted),
    )


def _queries(connection: Connection, wanted: FeedbackFilter) -> int:
    judged = time_window(Where("f.source != 'review'"), "f.created_at", wanted)
    in_production = window_sums(connection, wanted).get(("", ""), (0,))[0]
    in_runs = connection.value(
        "SELECT COUNT(*) FROM replies WHERE run IN (SELECT runs.key FROM runs JOIN feedback f ON f.run_id = runs.id "
        f"WHERE {judged})",
        judged.values,
    )
    return int(in_production) + int(in_runs)


def _themes(connection: Connection, wanted: FeedbackFilter) -> tuple[FeedbackTheme, ...]:
    where = time_window(Where("comment != ''"), "created_at", wanted)
    rows = connection.run(
        f"SELECT comment, value FROM feedback WHERE {where} ORDER BY created_at DESC LIMIT ?",
        (*where.values, _COMMENTS),
    )
    themes = find_themes((comment, value >= POSITIVE) for comment, value in rows)
    return tuple(FeedbackTheme(*theme) for theme in themes)


def _agreement(connection: Connection, wanted: FeedbackFilter) -> Agreement:
    pairs: list[Any] = []
    in_production = "feedback f JOIN production_replies p ON p.id = f.production_id"
    for score, tables in (("c.score", SCORED), ("p.score", in_production)):
        where = time_window(Where(f"{score} IS NOT NULL"), "f.created_at", wanted)
        query = f"SELECT f.value, {score} FROM {tables} WHERE {where} LIMIT ?"
        pairs += connection.run(query, (*where.values, _PAIRS))
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
