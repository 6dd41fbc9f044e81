"""The figures of the feedback in a store, added up again only when a verdict or a score has changed."""

from typing import TYPE_CHECKING

from answerkey.model.feedback_stats import FeedbackStats
from answerkey.server.kept import Kept
from answerkey.store.feedback_sums import feedback_state, feedback_stats

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = ["feedback_figures"]

_figures: Kept[FeedbackStats] = Kept(8, lambda _: 1)


def feedback_figures(store: "SqlStore") -> FeedbackStats:
    """What `answerkey feedback stats` says."""
    return _figures.get((store.address, *feedback_state(store)), lambda: feedback_stats(store))
