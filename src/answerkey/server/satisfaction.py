"""The figures of the feedback in a store, added up again only when a verdict or a score has changed."""

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from answerkey.server.kept import Kept, Key
from answerkey.store import schema
from answerkey.store.feedback_stats import FeedbackStats, feedback_stats

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = ["feedback_figures"]

_figures: Kept[FeedbackStats] = Kept(8, lambda _: 1)


def feedback_figures(store: "SqlStore") -> FeedbackStats:
    """What `answerkey feedback stats` says."""
    return _figures.get(_key(store), lambda: feedback_stats(store))


def _key(store: "SqlStore") -> Key:
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
    return (str(store.engine.url), repr(tuple(verdicts)), repr(tuple(replies)), repr(scorings))
