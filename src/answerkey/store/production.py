"""ProductionReplies: what the chatbot answered to real users, kept so that feedback and rates have something to refer to."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import func, select

from answerkey.feedback import ProductionReply
from answerkey.store import schema
from answerkey.store.feedback import FeedbackBook
from answerkey.store.sql import SqlStore

__all__ = ["ProductionReplies"]

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
            connection.execute(
                self._store.upsert(schema.production_replies), [_row(reply) for reply in replies]
            )
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
