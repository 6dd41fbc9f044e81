"""The Feedback page: how satisfied people are, what they say, whether it agrees with the scores, and what to do."""

from typing import Literal

import msgspec
from sqlalchemy import or_

from answerkey.model.feedback import POSITIVE, Feedback
from answerkey.server.satisfaction import feedback_figures
from answerkey.server.views.paging import PageNumber, Paging, ShortText
from answerkey.store import schema
from answerkey.store.feedback import FeedbackBook
from answerkey.store.feedback_stats import FeedbackStats
from answerkey.store.sql import SqlStore

__all__ = ["FeedbackQuery", "FeedbackView", "load_feedback"]

_PAGE = 25


class FeedbackQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which verdicts are listed; the figures are always over all."""

    page: PageNumber = 1
    value: Literal["up", "down"] | None = None
    source: Literal["user", "review", "import"] | None = None
    category: ShortText | None = None


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
    columns = schema.feedback.c
    where = []
    if query.value is not None:
        where.append(columns.value >= POSITIVE if query.value == "up" else columns.value < POSITIVE)
    if query.source is not None:
        where.append(columns.source == query.source)
    if query.category is not None:
        # Verdicts without a category are listed as unknown.
        matching = columns.category == query.category
        where.append(or_(matching, columns.category.is_(None)) if query.category == "unknown" else matching)
    book = FeedbackBook(store)
    items, total = book.page(*where, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    _, downvoted = book.page(columns.value < POSITIVE, limit=1)
    return FeedbackView(
        query=query,
        stats=feedback_figures(store),
        paging=Paging(query.page, _PAGE, total),
        items=tuple(items),
        downvoted=downvoted,
    )
