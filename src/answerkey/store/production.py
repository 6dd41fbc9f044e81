"""ProductionReplies: what the chatbot answered to real users, kept so that feedback and rates have something to refer to."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, exists, func, select

from answerkey.model.feedback import POSITIVE, Feedback, ProductionReply
from answerkey.model.scorecard import PASS_MARK
from answerkey.store import schema
from answerkey.store.conditions import EPSILON, contains
from answerkey.store.feedback import FeedbackBook
from answerkey.store.listing import ShortText
from answerkey.store.lookup import search_text, tools_text
from answerkey.store.sql import SqlStore

__all__ = ["ProductionFigures", "ProductionFilter", "ProductionReplies", "ProductionSort"]

ProductionSort = Literal["newest", "worst", "slowest"]


class ProductionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which replies are wanted, and in what order."""

    category: ShortText | None = None
    # A kind of error.
    error: ShortText | None = None
    # Graded and passed or not, ended in an error, or with nothing to grade it by.
    result: Literal["failed", "passed", "error", "ungraded"] | None = None
    # What users said of it.
    verdict: Literal["up", "down", "any", "none"] | None = None
    # A tool that was called.
    tool: ShortText | None = None
    # Words in the question or the reply.
    text: ShortText | None = None
    sort: ProductionSort = "newest"


class ProductionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """All production replies in figures, and by what they can be filtered."""

    replies: int
    # Those that could be graded, and their mean score.
    graded: int
    score: float | None
    errors: dict[str, int]
    error_rate: float | None
    # Replies with at least one verdict.
    judged: int
    latency_ms: float | None
    categories: dict[str, int]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ProductionReply).decode


class ProductionReplies:
    """Reads and writes the production traffic of a store."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def add(self, replies: Sequence[ProductionReply]) -> int:
        """Keep replies (the same id again replaces) and tie waiting feedback to them; how many verdicts were waiting."""
        if not replies:
            return 0
        linked = 0
        book = FeedbackBook(self._store)
        with self._store.transaction() as connection:
            self._store.write(connection, "production_replies", [_row(reply) for reply in replies])
            self._store.write(connection, "production_texts", [_text_row(reply) for reply in replies])
            for item in replies:
                linked += book.link(
                    connection,
                    response_id=item.id,
                    trace_id=item.reply.trace_id,
                    conversation_id=item.reply.conversation_id,
                )
        return linked

    def find(self, identity: str) -> ProductionReply | None:
        """The reply with this id."""
        table = schema.production_replies.c
        with self._store.transaction() as connection:
            payload = connection.execute(select(table.payload).where(table.id == identity)).scalar()
        return None if payload is None else _decode(payload)

    def page(
        self, wanted: ProductionFilter, *, limit: int = 25, offset: int = 0
    ) -> tuple[list[ProductionReply], int]:
        """Replies as wanted, and how many there are of them in all."""
        table = schema.production_replies
        where = _conditions(wanted)
        order: dict[str, tuple[Any, ...]] = {
            "newest": (table.c.created_at.desc(), table.c.id.desc()),
            "worst": (func.coalesce(table.c.score, 2.0), table.c.created_at.desc(), table.c.id),
            "slowest": (
                func.coalesce(table.c.latency_ms, -1.0).desc(),
                table.c.created_at.desc(),
                table.c.id,
            ),
        }
        chosen = select(table.c.id).where(*where).order_by(*order[wanted.sort]).limit(limit).offset(offset)
        with self._store.transaction() as connection:
            if wanted.text or wanted.tool:
                # Texts are long: they are read once for both.
                rows = connection.execute(chosen.add_columns(func.count().over().label("total"))).all()
                ids, total = [row.id for row in rows], rows[0].total if rows else None
            else:
                ids, total = list(connection.execute(chosen).scalars()), None
            if total is None:
                total = connection.execute(select(func.count(table.c.id)).where(*where)).scalar_one()
            payloads = connection.execute(select(table.c.id, table.c.payload).where(table.c.id.in_(ids)))
            found = {row.id: _decode(row.payload) for row in payloads}
        return [found[identity] for identity in ids], int(total)

    def figures(self, *, most: int = 100) -> ProductionFigures:
        """Add them up in the database."""
        table, given = schema.production_replies.c, schema.feedback.c
        with self._store.transaction() as connection:
            replies, graded, score, latency = connection.execute(
                select(
                    func.count(), func.count(table.score), func.avg(table.score), func.avg(table.latency_ms)
                )
            ).one()
            judged = connection.execute(
                select(func.count(func.distinct(given.production_id))).where(given.production_id.is_not(None))
            ).scalar_one()
            kinds, categories = (
                {
                    row[0]: row[1]
                    for row in connection.execute(
                        select(column, func.count())
                        .where(column.is_not(None))
                        .group_by(column)
                        .order_by(func.count().desc(), column)
                        .limit(most)
                    )
                }
                for column in (table.error_kind, table.category)
            )
        return ProductionFigures(
            replies=replies,
            graded=graded,
            score=score,
            errors=kinds,
            error_rate=sum(kinds.values()) / replies if replies else None,
            judged=judged,
            latency_ms=latency,
            categories=categories,
        )

    def verdicts(self, ids: Sequence[str]) -> dict[str, list[Feedback]]:
        """What people said of these replies, newest first."""
        found: dict[str, list[Feedback]] = {}
        if ids:
            for item in FeedbackBook(self._store).of_production(ids):
                found.setdefault(item.production_id or "", []).append(item)
        return found

    def count(self) -> int:
        """How many are kept."""
        with self._store.transaction() as connection:
            query = select(func.count()).select_from(schema.production_replies)
            return int(connection.execute(query).scalar_one())


def _row(item: ProductionReply) -> dict[str, object]:
    card = item.scorecard
    return {
        "id": item.id,
        "created_at": item.created_at,
        "question": item.question.replace("\x00", ""),
        "category": item.category,
        "trace_id": item.reply.trace_id,
        "conversation_id": item.reply.conversation_id,
        "score": item.score,
        "error_kind": None if card is None or card.error is None else card.error.kind,
        "latency_ms": item.reply.timings.latency_ms,
        "payload": _encode(item).decode(),
    }


def _text_row(item: ProductionReply) -> dict[str, str]:
    return {
        "id": item.id,
        "tools": tools_text([item.reply]),
        "search": search_text([item.id, item.question], [item.reply]),
    }


def _conditions(wanted: ProductionFilter) -> list[ColumnElement[bool]]:
    table, given = schema.production_replies.c, schema.feedback.c
    where: list[ColumnElement[bool]] = []
    if wanted.category is not None:
        where.append(table.category == wanted.category)
    if wanted.error is not None:
        where.append(table.error_kind == wanted.error)
    match wanted.result:
        case "failed":
            where.append(table.score < PASS_MARK - EPSILON)
        case "passed":
            where.append(table.score >= PASS_MARK - EPSILON)
        case "error":
            where.append(table.error_kind.is_not(None))
        case "ungraded":
            where.append(table.score.is_(None))
    about = given.production_id == table.id
    match wanted.verdict:
        case "up":
            where.append(exists().where(about, given.value >= POSITIVE))
        case "down":
            where.append(exists().where(about, given.value < POSITIVE))
        case "any":
            where.append(exists().where(about))
        case "none":
            where.append(~exists().where(about))
    if wanted.tool or wanted.text:
        texts = schema.production_texts.c
        where.append(texts.id == table.id)
        if wanted.tool:
            where.append(contains(texts.tools, f"\n{wanted.tool}\n"))
        if wanted.text:
            where.append(contains(texts.search, wanted.text.casefold()))
    return where
