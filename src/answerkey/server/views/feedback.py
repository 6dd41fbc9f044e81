"""The Feedback page: how satisfied people are, what they say, whether it agrees with the scores, and what to do."""

import msgspec

from answerkey.model.feedback import Feedback
from answerkey.model.feedback_stats import FeedbackStats
from answerkey.server.cached_figures import feedback_figures
from answerkey.server.views.paging import PageNumber, Paging
from answerkey.store.feedback_book import FeedbackBook, FeedbackFilter
from answerkey.store.sql import SqlStore

__all__ = ["FeedbackQuery", "FeedbackView", "load_feedback"]

_PAGE = 25


class FeedbackQuery(FeedbackFilter, frozen=True, kw_only=True):
    """Which verdicts are listed; the figures are over all of the time wanted."""

    page: PageNumber = 1


class FeedbackView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    query: FeedbackQuery
    stats: FeedbackStats
    paging: Paging
    items: tuple[Feedback, ...]
    # Negative verdicts whose question is known: what the proposed golden cases are made of.
    downvoted: int


def load_feedback(store: SqlStore, query: FeedbackQuery) -> FeedbackView:
    """Read the page."""
    book = FeedbackBook(store)
    items, total = book.page(query, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    down = FeedbackFilter(value="down", since=query.since, until=query.until)
    _, downvoted = book.page(down, limit=1)
    return FeedbackView(
        query=query,
        stats=feedback_figures(store, query),
        paging=Paging(query.page, _PAGE, total),
        items=tuple(items),
        downvoted=downvoted,
    )
