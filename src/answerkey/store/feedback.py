"""FeedbackBook: people's verdicts in the store, each tied to the reply it is about as soon as that reply is known."""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, and_, func, or_, select, update

from answerkey.model.feedback import POSITIVE, Feedback, FeedbackSource, ReplyKey
from answerkey.model.question import Question
from answerkey.store import schema
from answerkey.store.listing import ShortText
from answerkey.store.sql import SqlStore

__all__ = ["FeedbackBook", "FeedbackFilter", "ScoredVerdict", "new_id", "now", "question_of"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Feedback).decode
_decode_question = msgspec.json.Decoder(Question).decode


class FeedbackFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which verdicts are listed."""

    value: Literal["up", "down"] | None = None
    source: FeedbackSource | None = None
    # "unknown": those without one as well.
    category: ShortText | None = None


class ScoredVerdict(NamedTuple):
    """One verdict beside the component scores of the reply it is about."""

    # What was asked: verdicts on the same question are no independent witnesses.
    question: str
    components: dict[str, float]
    value: float


class _Value(msgspec.Struct):
    value: float | None = None


class _Card(msgspec.Struct):
    components: dict[str, _Value] = {}


class _Production(msgspec.Struct):
    question: str = ""
    scorecard: _Card | None = None


_decode_card = msgspec.json.Decoder(_Card).decode
_decode_production = msgspec.json.Decoder(_Production).decode


def _components(card: _Card) -> dict[str, float]:
    return {name: score.value for name, score in card.components.items() if score.value is not None}


def _conditions(wanted: FeedbackFilter) -> list[Any]:
    columns = schema.feedback.c
    where: list[Any] = []
    if wanted.value is not None:
        where.append(columns.value >= POSITIVE if wanted.value == "up" else columns.value < POSITIVE)
    if wanted.source is not None:
        where.append(columns.source == wanted.source)
    if wanted.category is not None:
        # Verdicts without a category are listed as unknown.
        matching = columns.category == wanted.category
        where.append(or_(matching, columns.category.is_(None)) if wanted.category == "unknown" else matching)
    return where


def new_id() -> str:
    """An id for a verdict or a reply that came without one."""
    return secrets.token_hex(8)


def now() -> str:
    """The time as the store writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class FeedbackBook:
    """Reads and writes the feedback of a store."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def add(self, feedback: Feedback) -> tuple[Feedback, bool]:
        """Keep a verdict, tied to its reply if that is known. False: its key was known and that verdict is changed."""
        with self._store.transaction() as connection:
            return self._add(connection, feedback)

    def add_all(self, verdicts: Iterable[Feedback]) -> tuple[int, int, int]:
        """Keep many in one transaction: how many are new, how many changed, how many have a known reply."""
        new = changed = matched = 0
        with self._store.transaction() as connection:
            for feedback in verdicts:
                kept, created = self._add(connection, feedback)
                new += created
                changed += not created
                matched += kept.matched
        return new, changed, matched

    def _add(self, connection: Connection, feedback: Feedback) -> tuple[Feedback, bool]:
        kept = self._with_reply(connection, feedback)
        columns = schema.feedback.c
        if feedback.idempotency_key is not None:
            known = connection.execute(
                select(columns.id).where(columns.idempotency_key == feedback.idempotency_key)
            ).scalar()
            if known is not None:
                kept = msgspec.structs.replace(kept, id=known)
                connection.execute(update(schema.feedback).where(columns.id == known).values(_row(kept)))
                return kept, False
        self._store.write(connection, "feedback", [_row(kept)])
        return kept, True

    def _with_reply(self, connection: Connection, feedback: Feedback) -> Feedback:
        if not feedback.matched:
            feedback = self._located(connection, feedback)
        if feedback.reply is not None and feedback.question is None:
            question = question_of(connection, feedback.reply)
            if question is not None:
                return msgspec.structs.replace(
                    feedback, question=question.question, category=feedback.category or question.category
                )
        return feedback

    def _located(self, connection: Connection, feedback: Feedback) -> Feedback:
        """With the reply that its ids name: the most exact id first, production before runs."""
        production, ids = schema.production_replies.c, schema.reply_ids.c
        for kind, value, column in (
            ("response", feedback.response_id, production.id),
            ("trace", feedback.trace_id, production.trace_id),
            ("conversation", feedback.conversation_id, production.conversation_id),
        ):
            if not value:
                continue
            row = connection.execute(
                select(production.id, production.question, production.category)
                .where(column == value)
                .order_by(production.created_at.desc())
                .limit(1)
            ).first()
            if row is not None:
                return msgspec.structs.replace(
                    feedback,
                    production_id=row.id,
                    question=row.question,
                    category=feedback.category or row.category,
                )
            found = connection.execute(
                select(ids.run_id, ids.ask_hash, ids.trial)
                .join(schema.runs, schema.runs.c.id == ids.run_id)
                .where(ids.external_id == value, ids.kind == kind)
                .order_by(schema.runs.c.created_at.desc(), ids.trial.desc())
                .limit(1)
            ).first()
            if found is not None:
                return msgspec.structs.replace(feedback, reply=ReplyKey(*found))
        return feedback

    def link(
        self, connection: Connection, *, response_id: str, trace_id: str | None, conversation_id: str | None
    ) -> int:
        """Tie verdicts that came before their reply to it; how many."""
        columns = schema.feedback.c
        named = [columns.response_id == response_id]
        if trace_id:
            named.append(columns.trace_id == trace_id)
        if conversation_id:
            # A conversation's id alone says nothing when a more exact id was given.
            named.append(
                and_(
                    columns.conversation_id == conversation_id,
                    columns.response_id.is_(None),
                    columns.trace_id.is_(None),
                )
            )
        waiting = connection.execute(
            select(columns.payload).where(
                or_(*named), columns.run_id.is_(None), columns.production_id.is_(None)
            )
        ).scalars()
        linked = 0
        for feedback in [_decode(payload) for payload in waiting]:
            kept = self._with_reply(connection, feedback)
            if kept.matched:
                linked += 1
                connection.execute(update(schema.feedback).where(columns.id == kept.id).values(_row(kept)))
        return linked

    def of_reply(self, key: ReplyKey) -> list[Feedback]:
        """What people said about one reply of a run, newest first."""
        columns = schema.feedback.c
        return self._read(
            self._query().where(
                columns.run_id == key.run_id, columns.ask_hash == key.ask_hash, columns.trial == key.trial
            )
        )

    def verdicts(self, run_id: str, *, source: FeedbackSource | None = None) -> list[Feedback]:
        """All verdicts on a run's replies, newest first: what calibration and weights learn from."""
        query = self._query().where(schema.feedback.c.run_id == run_id)
        return self._read(query if source is None else query.where(schema.feedback.c.source == source))

    def page(
        self, wanted: FeedbackFilter | None = None, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[Feedback], int]:
        """Verdicts newest first, and how many there are in all."""
        where = _conditions(wanted or FeedbackFilter())
        with self._store.transaction() as connection:
            total = connection.execute(
                select(func.count()).select_from(schema.feedback).where(*where)
            ).scalar_one()
        return self._read(self._query().where(*where).limit(limit).offset(offset)), int(total)

    def scored_verdicts(self) -> Iterator[ScoredVerdict]:
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
        for question, value, payload in self._store.stream(of_runs):
            yield ScoredVerdict(question, _components(_decode_card(payload)), value)
        replies = schema.production_replies.c
        of_production = select(feedback.value, replies.payload).join(
            schema.production_replies, replies.id == feedback.production_id
        )
        for value, payload in self._store.stream(of_production):
            reply = _decode_production(payload)
            if reply.scorecard is not None:
                yield ScoredVerdict(reply.question, _components(reply.scorecard), value)

    def of_production(self, ids: Sequence[str]) -> Iterable[Feedback]:
        """What people said of these production replies, newest first."""
        return self._every(schema.feedback.c.production_id.in_(ids))

    def negative(self) -> Iterable[Feedback]:
        """Verdicts that are no praise, newest first, read as a stream."""
        return self._every(schema.feedback.c.value < POSITIVE)

    def _every(self, *where: Any) -> Iterable[Feedback]:
        for (payload,) in self._store.stream(self._query().where(*where)):
            yield _decode(payload)

    def _query(self) -> Select[Any]:
        columns = schema.feedback.c
        return select(columns.payload).order_by(columns.created_at.desc(), columns.id.desc())

    def _read(self, query: Select[Any]) -> list[Feedback]:
        with self._store.transaction() as connection:
            payloads: Sequence[str] = connection.execute(query).scalars().all()
        return [_decode(payload) for payload in payloads]


def question_of(connection: Connection, key: ReplyKey) -> Question | None:
    """The golden case that a reply of a run was graded by."""
    cards = schema.scorecards.c
    payload = connection.execute(
        select(schema.questions.c.payload)
        .join(schema.scorecards, cards.content_hash == schema.questions.c.content_hash)
        .where(cards.run_id == key.run_id, cards.ask_hash == key.ask_hash, cards.trial == key.trial)
        .limit(1)
    ).scalar()
    return None if payload is None else _decode_question(payload)


def _row(feedback: Feedback) -> dict[str, Any]:
    key = feedback.reply
    return {
        "id": feedback.id,
        "created_at": feedback.created_at,
        "value": feedback.value,
        "source": feedback.source,
        "comment": feedback.comment,
        "response_id": feedback.response_id,
        "trace_id": feedback.trace_id,
        "conversation_id": feedback.conversation_id,
        "run_id": None if key is None else key.run_id,
        "ask_hash": None if key is None else key.ask_hash,
        "trial": None if key is None else key.trial,
        "production_id": feedback.production_id,
        "category": feedback.category,
        "idempotency_key": feedback.idempotency_key,
        "payload": _encode(feedback).decode(),
    }
