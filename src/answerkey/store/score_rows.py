"""What a comparison reads of a run: one light row per trial, without replies, reasons or questions."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import select

from answerkey.comparison.columns import ScoreRow
from answerkey.run import RunInfo
from answerkey.store import schema
from answerkey.store.sql import SqlStore

__all__ = ["cluster_rows", "score_rows"]


class _Value(msgspec.Struct):
    value: float | None = None


class _Card(msgspec.Struct):
    components: dict[str, _Value] = {}
    metrics: dict[str, float | None] = {}


class _Question(msgspec.Struct):
    metadata: dict[str, Any] = {}


_decode_card = msgspec.json.Decoder(_Card).decode
_decode_question = msgspec.json.Decoder(_Question).decode


def score_rows(store: SqlStore, info: RunInfo) -> Iterator[ScoreRow]:
    """The run's trials under its current scoring, in the set's order, trial by trial."""
    cards = schema.scorecards.c
    query = (
        select(
            cards.question_id,
            cards.content_hash,
            cards.category,
            cards.trial,
            cards.score,
            cards.error_kind,
            cards.latency_ms,
            cards.cost,
            cards.payload,
        )
        .where(cards.run_id == info.id, cards.scoring_hash == info.scoring_hash)
        .order_by(cards.position, cards.trial)
    )
    for identity, content, category, trial, score, kind, latency, cost, payload in store.stream(query):
        card = _decode_card(payload)
        values = {name: component.value for name, component in card.components.items()}
        yield ScoreRow(identity, content, category, trial, score, kind, latency, cost, values, card.metrics)


def cluster_rows(store: SqlStore, info: RunInfo, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(content hash, cluster) of the questions whose metadata hold one of the fields, the first that is there."""
    items, questions = schema.set_items.c, schema.questions.c
    query = (
        select(questions.content_hash, questions.payload)
        .join(schema.set_items, items.content_hash == questions.content_hash)
        # A question without fields of its own has no such key: most sets end here.
        .where(items.set_hash == info.question_set_hash, questions.payload.like('%"metadata"%'))
    )
    for content, payload in store.stream(query):
        metadata = _decode_question(payload).metadata
        for field in fields:
            value = metadata.get(field)
            if isinstance(value, str | int) and not isinstance(value, bool):
                yield content, f"{field}={value}"
                break
