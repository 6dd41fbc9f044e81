"""What a comparison reads of a run: a few light columns of its trials, without replies, reasons or questions."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from answerkey.comparison.columns import ScoreBatch, by_name
from answerkey.model.run import RunInfo
from answerkey.store import schema
from answerkey.store.connect import explain
from answerkey.store.sql import SqlStore

__all__ = ["cluster_rows", "question_texts", "score_batches"]

# Trials fetched at a time.
_BATCH = 1000


class _Value(msgspec.Struct, gc=False):
    value: float | None = None


class _Card(msgspec.Struct, gc=False):
    components: dict[str, _Value] = {}
    metrics: dict[str, float | None] = {}


class _Question(msgspec.Struct):
    question: str = ""
    metadata: dict[str, Any] = {}


_decode_card = msgspec.json.Decoder(_Card).decode
_decode_question = msgspec.json.Decoder(_Question).decode


def score_batches(store: SqlStore, info: RunInfo) -> Iterator[ScoreBatch]:
    """The run's trials under its current scoring, in the set's order, trial by trial."""
    cards = schema.scorecards.c
    query = (
        select(
            cards.question_id,
            cards.content_hash,
            cards.category,
            cards.score,
            cards.error_kind,
            cards.latency_ms,
            cards.cost,
            cards.payload,
        )
        .where(cards.run_id == info.id, cards.scoring_hash == info.scoring_hash)
        .order_by(cards.position, cards.trial)
    )
    try:
        with store.engine.connect() as connection:
            result = connection.execution_options(yield_per=_BATCH).execute(query)
            for rows in result.partitions():
                ids, hashes, categories, scores, kinds, latencies, costs, payloads = zip(*rows, strict=True)
                components, metrics = _values(payloads)
                yield ScoreBatch(
                    ids, hashes, categories, scores, kinds, latencies, costs, components, metrics
                )
    except DBAPIError as error:
        raise explain(error, store.engine.url) from None


def _values(payloads: Sequence[str]) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Components and metrics of some scorecards, one column for each name."""
    cards = [_decode_card(payload) for payload in payloads]
    components = by_name([card.components for card in cards])
    return {
        name: [None if score is None else score.value for score in column]
        for name, column in components.items()
    }, by_name([card.metrics for card in cards])


def cluster_rows(store: SqlStore, info: RunInfo, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(content hash, cluster) of the questions whose metadata hold one of the fields, the first that is there."""
    items, questions = schema.set_items.c, schema.questions.c
    # A question without fields of its own has no such key. Where no question has, one look through them all is
    # several times as fast as looking up those of the set.
    with_fields = questions.payload.like('%"metadata"%')
    with store.transaction() as connection:
        if connection.execute(select(questions.content_hash).where(with_fields).limit(1)).first() is None:
            return
    query = (
        select(questions.content_hash, questions.payload)
        .join(schema.set_items, items.content_hash == questions.content_hash)
        .where(items.set_hash == info.question_set_hash, with_fields)
    )
    for content, payload in store.stream(query):
        metadata = _decode_question(payload).metadata
        for field in fields:
            value = metadata.get(field)
            if isinstance(value, str | int) and not isinstance(value, bool):
                yield content, f"{field}={value}"
                break


def question_texts(store: SqlStore, info: RunInfo, ids: Sequence[str]) -> dict[str, str]:
    """The wording of a few of the run's questions, by id."""
    cards, questions = schema.scorecards.c, schema.questions.c
    query = (
        select(cards.question_id, questions.payload)
        .join(schema.questions, questions.content_hash == cards.content_hash)
        .where(
            cards.run_id == info.id,
            cards.scoring_hash == info.scoring_hash,
            cards.trial == 1,
            cards.question_id.in_(ids),
        )
    )
    with store.transaction() as connection:
        return {
            identity: _decode_question(payload).question for identity, payload in connection.execute(query)
        }
