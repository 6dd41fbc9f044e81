"""The Replies pages (production replies with their feedback, and golden cases made from them) and the Feedback page."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.judgement import COMMENT_LIMIT, Feedback, FeedbackStats, ProductionReply
from answerkey.model.question import Question
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.report.charts import Chart, Line, Moment, bar_chart, line_chart
from answerkey.report.detail import TrialDetail, trial_detail
from answerkey.report.tables import Table
from answerkey.runs.production import TAG, case_id, why_proposed
from answerkey.server.rendering import feedback_figures, series_stored
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
from answerkey.store.production import MAX_COUNTED, ProductionFacets, ProductionFilter, ProductionReplies
from answerkey.store.production_series import METADATA, ProductionSeries, metadata_values
from answerkey.store.sql import SqlStore
from answerkey.store.table_query import ShortText
from answerkey.text.normalise import one_line

_PAGE = 50
# Turns of a conversation that are listed.
_MOST_TURNS = 50


# Values of a facet that are drawn.
_MOST_LINES = 5
_FACETS = (("version", "Version"), ("model", "Model"), ("category", "Category"), ("error", "Error"))


class RepliesQuery(ProductionFilter, frozen=True, kw_only=True):
    """Which replies, and in what order; the figures are over the same replies."""

    not_filters = (*ProductionFilter.not_filters, "by")

    page: PageNumber = 1
    # The facet that the figures are split by: version, model, category, error or metadata.NAME.
    by: ShortText | None = None


class RepliesView(TableView, frozen=True, kw_only=True):
    """What the list shows."""

    anchor = "replies"

    query: RepliesQuery
    figures: ProductionSeries
    # Values to filter by: of the days, and of metadata in the newest replies.
    facets: ProductionFacets
    metadata: dict[str, tuple[str, ...]]
    paging: Paging
    rows: tuple[ReplyRow, ...]

    @property
    def splits(self) -> list[tuple[str, str]]:
        """What the figures can be split by: (facet, name)."""
        return [*_FACETS, *((f"{METADATA}{name}", name) for name, values in self.metadata.items() if values)]

    def charts(self, link: Callable[..., str]) -> list[tuple[str, Chart]]:
        """The figures by day; a value leads to the replies of its day."""
        days = dict.fromkeys(one.day for one in self.figures.days)
        moments = [
            Moment(at=day, name=day, address=link(since=day, until=day, page=None) + "#replies")
            for day in days
        ]
        return production_charts(self.figures, moments)

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
    metadata: dict[str, str]
    # The replies of its conversation in order, this one among them; none if it is alone.
    conversation: tuple[ReplyRow, ...]
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


def production_charts(series: ProductionSeries, moments: Sequence[Moment]) -> list[tuple[str, Chart]]:
    """Errors, score, satisfaction, time and cost by day: one line, or one for each of the commonest values."""
    known = {(one.day, one.value): one for one in series.days}
    values = [group.value for group in series.groups[:_MOST_LINES]] or [""]
    drawn: list[tuple[str, Chart]] = []

    def add(title: str, unit: str, *figures: tuple[str, str]) -> None:
        """Draw figures, each with its name and its field."""
        lines = []
        for value in values:
            cells = [known.get((moment.at, value)) for moment in moments]
            for words, name in figures:
                intervals = [
                    None if cell is None else getattr(cell, f"{name}_interval", None) for cell in cells
                ]
                lines.append(
                    Line(
                        name=(one_line(value, 40) or "unknown") if series.groups else words,
                        values=[None if cell is None else getattr(cell, name) for cell in cells],
                        # Those of several lines would cover each other.
                        intervals=[one and (one.low, one.high) for one in intervals]
                        if len(values) == 1
                        else (),
                    )
                )
        if any(value is not None for line in lines for value in line.values):
            drawn.append((title, line_chart(lines, moments, unit=unit)))

    add("Replies a day", "count", ("replies", "replies"))
    add("Ended in an error", "percent", ("errors", "error_rate"))
    add("Score by the golden set", "percent", ("score", "score"))
    add("Satisfaction", "percent", ("satisfaction", "satisfaction"))
    if series.groups:
        add("Time (p95)", "ms", ("p95", "p95"))
    else:
        add("Time", "ms", ("slow (p95)", "p95"), ("typical (p50)", "p50"))
    add("Cost of a reply", "money", ("cost", "cost"))
    return drawn


def load_replies(store: SqlStore, query: RepliesQuery) -> RepliesView:
    """Read the list."""
    replies = ProductionReplies(store)
    found, total = replies.page(query, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    verdicts = replies.verdicts([item.id for item in found])
    return RepliesView(
        query=query,
        figures=series_stored(store, query, query.by),
        facets=replies.facets(query),
        metadata=metadata_values(store),
        paging=Paging(query.page, _PAGE, min(total, MAX_COUNTED), more=total > MAX_COUNTED),
        rows=tuple(reply_row(item, verdicts.get(item.id, [])) for item in found),
    )


def load_reply(store: SqlStore, query: NoQuery, reply: str) -> ReplyView:
    """Read one reply; raises UnknownNameError if it does not exist."""
    item = find_production_reply(store, reply)
    given = ProductionReplies(store).verdicts([item.id]).get(item.id, [])
    question = Question(id=item.id, question=item.question, category=item.category or "uncategorised")
    card = item.scorecard or Scorecard(components={}, total=None, grade=None, passed=False)
    if item.score is None:
        # Nothing was expected: its scores only show whether it was an error.
        errors_only = {name: score for name, score in card.components.items() if name == "error_handling"}
        card = msgspec.structs.replace(card, components=errors_only, total=None, grade=None)
    conversation = item.reply.conversation_id
    turns: tuple[ReplyRow, ...] = ()
    if conversation:
        same = ProductionFilter(conversation=conversation[:200], sort="created_at")
        found, _ = ProductionReplies(store).page(same, limit=_MOST_TURNS)
        turns = tuple(reply_row(one, ()) for one in found) if len(found) > 1 else ()
    liked = any(one.positive for one in given) and not any(not one.positive for one in given)
    corrected = next((one.correction for one in given if one.correction), None)
    return ReplyView(
        row=reply_row(item, given),
        received_at=item.received_at,
        trace_id=item.reply.trace_id,
        conversation_id=item.reply.conversation_id,
        metadata=item.metadata,
        conversation=turns,
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
    item = find_production_reply(store, identity)
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


def find_production_reply(store: SqlStore, identity: str) -> ProductionReply:
    """A production reply; raises UnknownNameError if it does not exist."""
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
