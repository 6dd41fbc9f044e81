"""The Feedback page: how satisfied people are, what they say, whether it agrees with the scores, and what to do."""

import msgspec

from answerkey.model.feedback import Feedback, FeedbackStats
from answerkey.report.charts import Chart, bar_chart
from answerkey.server.cached_figures import feedback_figures
from answerkey.server.views.table_choice import PageNumber, Paging
from answerkey.store.feedback_book import FeedbackBook, FeedbackFilter
from answerkey.store.sql import SqlStore

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

    @property
    def chart(self) -> Chart:
        """Thumbs by day; each bar leads to the verdicts of its day."""
        # One day alone would fill the picture.
        bars: list[list[tuple[float, str, str, str | None]]] = [[] for _ in range(7 - len(self.stats.days))]
        labels = [""] * len(bars)
        for day in self.stats.days:
            bad = day.feedback - day.positive
            address = f"/feedback?since={day.day}&until={day.day}"
            bars.append(
                [
                    (float(day.positive), "A", f"{day.day}: {day.positive} thumbs up", f"{address}&value=up"),
                    (float(bad), "F", f"{day.day}: {bad} thumbs down", f"{address}&value=down"),
                ]
            )
            labels.append(day.day[5:])
        return bar_chart(bars, labels)


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
