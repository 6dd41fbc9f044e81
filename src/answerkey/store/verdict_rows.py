"""People's verdicts beside the component scores of the replies they are about."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from sqlalchemy import and_, select

from answerkey.store import schema
from answerkey.store.sql import SqlStore

__all__ = ["VerdictRow", "verdict_rows"]


class _Value(msgspec.Struct):
    value: float | None = None


class _Card(msgspec.Struct):
    components: dict[str, _Value] = {}


class _Production(msgspec.Struct):
    question: str = ""
    scorecard: _Card | None = None


_decode_card = msgspec.json.Decoder(_Card).decode
_decode_production = msgspec.json.Decoder(_Production).decode


class VerdictRow(NamedTuple):
    """One verdict."""

    # What was asked: verdicts on the same question are no independent witnesses.
    question: str
    components: dict[str, float]
    value: float


def verdict_rows(store: SqlStore) -> Iterator[VerdictRow]:
    """Every verdict whose reply is known and scored, of runs under their current scoring and of production."""
    feedback, cards, runs = schema.feedback.c, schema.scorecards.c, schema.runs.c
    of_runs = (
        select(feedback.ask_hash, feedback.value, cards.payload)
        .join(
            schema.scorecards,
            and_(
                cards.run_id == feedback.run_id,
                cards.ask_hash == feedback.ask_hash,
                cards.trial == feedback.trial,
            ),
        )
        .join(schema.runs, and_(runs.id == cards.run_id, runs.scoring_hash == cards.scoring_hash))
    )
    for question, value, payload in store.stream(of_runs):
        yield VerdictRow(question, _components(_decode_card(payload)), value)
    replies = schema.production_replies.c
    of_production = select(feedback.value, replies.payload).join(
        schema.production_replies, replies.id == feedback.production_id
    )
    for value, payload in store.stream(of_production):
        reply = _decode_production(payload)
        if reply.scorecard is not None:
            yield VerdictRow(reply.question, _components(reply.scorecard), value)


def _components(card: _Card) -> dict[str, float]:
    return {name: score.value for name, score in card.components.items() if score.value is not None}
