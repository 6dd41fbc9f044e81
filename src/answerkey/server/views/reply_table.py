"""Production replies as a table: which columns there are, what stands in them, and their file."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

import msgspec

from answerkey.model.feedback import Feedback, ProductionReply
from answerkey.model.scorecard import grade
from answerkey.report.table import Column, Table, TableRow
from answerkey.server.views.table_choice import chosen_columns, plain_value
from answerkey.store.database import BATCH
from answerkey.store.production import ProductionFilter, ProductionReplies
from answerkey.store.sql import SqlStore

# Characters of a question and of a reply in the list.
_SHOWN = 600
_COLUMNS = (
    Column(name="grade", title="Grade", kind="grade", sort="score"),
    Column(name="question", title="Question", note="What was asked"),
    Column(name="id", title="Id", sort="id"),
    Column(name="text", title="Reply", note="The beginning of what was said"),
    Column(name="category", title="Category", sort="category"),
    Column(name="error", title="Error", note="Kind of the error that it ended in", sort="error"),
    Column(name="score", title="Score", kind="score", note="By the golden set", sort="score"),
    Column(name="liked", title="▲", kind="count", note="How many liked it"),
    Column(name="disliked", title="▼", kind="count", note="How many did not like it"),
    Column(name="comment", title="What users said", note="The newest comment"),
    Column(name="tools", title="Tools called", kind="names"),
    Column(name="latency_ms", title="Time", kind="ms", sort="-latency_ms"),
    Column(name="model", title="Model", sort="model"),
    Column(name="version", title="Version", sort="version"),
    Column(name="sender", title="Sent by"),
    Column(name="created_at", title="When", kind="time", note="When it was said", sort="-created_at"),
)
_SELDOM = ("id", "category", "tools", "model", "version", "sender")
_USUAL = tuple(column.name for column in _COLUMNS if column.name not in _SELDOM)


class ReplyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A reply in the list."""

    id: str
    created_at: str
    question: str
    # None: a null reply.
    text: str | None
    category: str | None
    # Which chatbot said it, as far as that was told, and who sent it.
    model: str | None
    version: str | None
    sender: str
    score: float | None
    grade: str | None
    error: str | None
    latency_ms: float | None
    tools: tuple[str, ...]
    feedback: tuple[Feedback, ...]


def reply_row(item: ProductionReply, feedback: Sequence[Feedback]) -> ReplyRow:
    """What the list shows of a reply."""
    card = item.scorecard
    text = item.reply.text
    return ReplyRow(
        id=item.id,
        created_at=item.created_at,
        question=item.question[:_SHOWN],
        text=None if text is None else text[:_SHOWN],
        category=item.category,
        model=item.model,
        version=item.version,
        sender=item.sender,
        score=item.score,
        grade=None if item.score is None else grade(item.score),
        error=None if card is None or card.error is None else card.error.kind,
        latency_ms=item.reply.timings.latency_ms,
        tools=tuple(dict.fromkeys(item.reply.tools_used)),
        feedback=tuple(feedback),
    )


def reply_table(query: ProductionFilter, rows: Sequence[ReplyRow]) -> Table:
    """A page of rows."""
    columns = chosen_columns(query, _COLUMNS, _USUAL)
    return Table(
        columns=columns,
        offered=_COLUMNS,
        rows=tuple(
            TableRow(
                address=f"/replies/{quote(row.id, safe='')}",
                cells=tuple(_value(row, column.name) for column in columns),
            )
            for row in rows
        ),
        sort=query.sort,
    )


def exported_replies(
    store: SqlStore, query: ProductionFilter
) -> tuple[tuple[Column, ...], Iterator[list[Any]]]:
    """The columns and every row of the table, for a file."""
    # A file's reader finds a reply by its id, whether the page shows it or not.
    columns = tuple(dict.fromkeys((_COLUMNS[2], *chosen_columns(query, _COLUMNS, _USUAL))))
    replies = ProductionReplies(store)
    found = replies.every(query)

    def rows() -> Iterator[ReplyRow]:
        while batch := list(islice(found, BATCH)):
            verdicts = replies.verdicts([item.id for item in batch])
            yield from (reply_row(item, verdicts.get(item.id, [])) for item in batch)

    return columns, ([plain_value(_value(row, column.name)) for column in columns] for row in rows())


def _value(row: ReplyRow, name: str) -> Any:
    match name:
        case "text":
            return "no reply (null)" if row.text is None else row.text
        case "liked":
            return sum(one.positive for one in row.feedback) or None
        case "disliked":
            return sum(not one.positive for one in row.feedback) or None
        case "comment":
            return next((one.comment for one in row.feedback if one.comment), "")
    return getattr(row, name)
