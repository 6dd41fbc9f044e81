"""The Replies pages (production replies with their feedback, and golden cases made from them) and the Feedback page."""

from typing import Annotated, Any

import msgspec

from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.feedback import COMMENT_LIMIT, Feedback, FeedbackStats, ProductionReply
from answerkey.model.question import Question
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.report.charts import Chart, bar_chart
from answerkey.report.detail import TrialDetail, trial_detail
from answerkey.report.tables import Table
from answerkey.runs.production import TAG, case_id, why_proposed
from answerkey.server.rendering import feedback_figures
from answerkey.server.views.tables import (
    NoQuery,
    PageNumber,
    Paging,
    ReplyRow,
    TableView,
    reply_row,
    reply_table,
)
from answerkey.store.feedback import FeedbackFilter, FeedbackStore
from answerkey.store.production import MAX_COUNTED, ProductionFigures, ProductionFilter, ProductionReplies
from answerkey.store.sql import SqlStore

_PAGE = 50


class RepliesQuery(ProductionFilter, frozen=True, kw_only=True):
    """Which replies, and in what order; the figures are over all replies of the days."""

    page: PageNumber = 1


class RepliesView(TableView, frozen=True, kw_only=True):
    """What the list shows."""

    anchor = "replies"

    query: RepliesQuery
    figures: ProductionFigures
    paging: Paging
    rows: tuple[ReplyRow, ...]

    @property
    def table(self) -> Table:
        """The table of replies."""
        return reply_table(self.query, self.rows)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A golden case suggested by the reply and its feedback."""

    id: str
    category: str
    expected_tools: tuple[str, ...]
    reference_answer: str


class ReplyView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of one reply shows."""

    row: ReplyRow
    received_at: str | None
    trace_id: str | None
    conversation_id: str | None
    # False: nothing was expected, and only errors are graded.
    graded: bool
    detail: TrialDetail
    draft: Draft


class CaseForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form that makes a golden case from a reply; lists have one item per line."""

    id: Annotated[str, msgspec.Meta(max_length=400)] = ""
    category: Annotated[str, msgspec.Meta(max_length=400)] = ""
    expected_tools: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] = ""
    expected_keywords: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] = ""
    reference_answer: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] = ""


def load_replies(store: SqlStore, query: RepliesQuery) -> RepliesView:
    """Read the list."""
    replies = ProductionReplies(store)
    found, total = replies.page(query, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    verdicts = replies.verdicts([item.id for item in found])
    return RepliesView(
        query=query,
        figures=replies.figures(query),
        paging=Paging(query.page, _PAGE, min(total, MAX_COUNTED), more=total > MAX_COUNTED),
        rows=tuple(reply_row(item, verdicts.get(item.id, [])) for item in found),
    )


def load_reply(store: SqlStore, query: NoQuery, reply: str) -> ReplyView:
    """Read one reply; raises UnknownNameError if it does not exist."""
    item = _find(store, reply)
    given = ProductionReplies(store).verdicts([item.id]).get(item.id, [])
    question = Question(id=item.id, question=item.question, category=item.category or "uncategorised")
    card = item.scorecard or Scorecard(components={}, total=None, grade=None, passed=False)
    if item.score is None:
        # Nothing was expected: its scores only show whether it was an error.
        errors_only = {name: score for name, score in card.components.items() if name == "error_handling"}
        card = msgspec.structs.replace(card, components=errors_only, total=None, grade=None)
    liked = any(one.positive for one in given) and not any(not one.positive for one in given)
    corrected = next((one.correction for one in given if one.correction), None)
    return ReplyView(
        row=reply_row(item, given),
        received_at=item.received_at,
        trace_id=item.reply.trace_id,
        conversation_id=item.reply.conversation_id,
        graded=item.score is not None,
        detail=trial_detail(Trial(question, replies=(item.reply,), scorecard=card)),
        draft=Draft(
            id=case_id(item.question),
            category=item.category or "",
            expected_tools=tuple(dict.fromkeys(item.reply.tools_used)),
            # Only a correction, or a reply that was liked, is known to be a good answer.
            reference_answer=corrected or (item.reply.text or "" if liked else ""),
        ),
    )


def golden_case(store: SqlStore, identity: str, form: CaseForm) -> dict[str, Any]:
    """The golden case that the form describes; raises UsageError if it is invalid."""
    item = _find(store, identity)
    case: dict[str, Any] = {"id": form.id.strip() or case_id(item.question), "question": item.question}
    if form.category.strip():
        case["category"] = form.category.strip()
    case["expected_tools"] = _lines(form.expected_tools)
    case["expected_keywords"] = _lines(form.expected_keywords)
    if form.reference_answer.strip():
        case["reference_answer"] = form.reference_answer.strip()
    case["tags"] = [TAG]
    try:
        parse_question(case)
    except ValueError as error:
        raise UsageError(f"invalid golden case: {error}") from None
    verdicts = ProductionReplies(store).verdicts([item.id]).get(item.id, [])
    case["feedback"] = why_proposed(verdicts[0] if verdicts else None, item)
    return case


def _find(store: SqlStore, identity: str) -> ProductionReply:
    item = ProductionReplies(store).find(identity)
    if item is None:
        raise UnknownNameError(f"no production reply {identity[:120]!r} in this store")
    return item


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


# The Feedback page


_PAGE_FEEDBACK = 25


class FeedbackQuery(FeedbackFilter, frozen=True, kw_only=True):
    """Which verdicts to list; the figures are over all verdicts of the days."""

    page: PageNumber = 1


class FeedbackView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    query: FeedbackQuery
    stats: FeedbackStats
    paging: Paging
    items: tuple[Feedback, ...]
    # Negative verdicts, from which golden cases are proposed.
    downvoted: int

    @property
    def chart(self) -> Chart:
        """Thumbs by day; each bar links to the verdicts of its day."""
        # At least seven bars, so that a single day does not fill the chart.
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
    book = FeedbackStore(store)
    items, total = book.page(query, limit=_PAGE_FEEDBACK, offset=(query.page - 1) * _PAGE_FEEDBACK)
    down = FeedbackFilter(value="down", since=query.since, until=query.until)
    _, downvoted = book.page(down, limit=1)
    return FeedbackView(
        query=query,
        stats=feedback_figures(store, query),
        paging=Paging(query.page, _PAGE_FEEDBACK, total),
        items=tuple(items),
        downvoted=downvoted,
    )
