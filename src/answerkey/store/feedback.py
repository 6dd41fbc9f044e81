"""FeedbackStore: people's verdicts, each linked to its reply as soon as that reply is known."""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from answerkey.model.feedback import POSITIVE, Feedback, FeedbackSource, ProductionReply, ReplyKey
from answerkey.model.question import Question
from answerkey.model.scorecard import Scorecard
from answerkey.store.database import BATCH, Connection, Sql, all_of, any_of, in_list, sql
from answerkey.store.run_rows import CARD_COLUMNS, id_hash, name_key_sql, run_key_sql, unpack_card
from answerkey.store.schema import TABLES, insert
from answerkey.store.table_query import Day, ShortText
from answerkey.text.dates import day_begins, day_ends

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore


_NEWEST = "ORDER BY created_at DESC, id DESC"
_UPDATE = (
    f"UPDATE feedback SET {', '.join(f'{name} = ?' for name in TABLES['feedback'].columns)} WHERE id = ?"
)
# Verdicts `f` with the scorecards `c` of their replies, under the runs' current scoring. CROSS JOIN makes SQLite start
# with the verdicts instead of scanning all scorecards.
SCORED = (
    "feedback f CROSS JOIN runs CROSS JOIN questions q CROSS JOIN scorecards c JOIN names t ON runs.id = f.run_id "
    "AND q.ask_hash = f.ask_hash AND c.question = q.key AND c.run = runs.key AND c.scoring = runs.scoring "
    "AND c.trial = f.trial AND t.key = c.target AND t.name = f.target_hash"
)

# Columns that are fields of Feedback.
_OWN = attrgetter(*list(TABLES["feedback"].columns)[:12])
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Feedback).decode
_decode_question = msgspec.json.Decoder(Question).decode


class Window(Protocol):
    """A range of days."""

    @property
    def since(self) -> str | None: ...
    @property
    def until(self) -> str | None: ...


def within_days(column: str, criteria: Window) -> list[Sql]:
    """The conditions that a time is within the wanted days."""
    conditions = []
    if criteria.since is not None:
        conditions.append(Sql(f"{column} >= ?", (day_begins(criteria.since),)))
    if criteria.until is not None:
        conditions.append(Sql(f"{column} < ?", (day_ends(criteria.until),)))
    return conditions


class FeedbackFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which verdicts to list."""

    value: Literal["up", "down"] | None = None
    source: FeedbackSource | None = None
    # "unknown" includes verdicts without a category.
    category: ShortText | None = None
    # The first and the last day, in the time zone of this machine.
    since: Day | None = None
    until: Day | None = None


class ScoredVerdict(NamedTuple):
    """A verdict and the component scores of its reply."""

    # What was asked: verdicts on the same question are not independent.
    question: str
    components: dict[str, float]
    value: float


class _Production(msgspec.Struct):
    scorecard: Scorecard | None = None


_decode_production = msgspec.json.Decoder(_Production).decode


def new_id() -> str:
    """An id for a verdict or a reply that has none."""
    return secrets.token_hex(8)


class FeedbackStore:
    """Reads and writes the feedback of a store."""

    def __init__(self, store: "SqlStore") -> None:
        self._database = store.database

    def add(self, feedback: Feedback, *, change: bool = True) -> tuple[Feedback, bool]:
        """Store a verdict, linked to its reply if that is known.

        Returns:
            The stored verdict, and whether it is new. If its sender used the idempotency key before, the earlier verdict
            is updated, or without `change` returned as it is.
        """
        with self._database.transaction() as connection:
            return _add(connection, feedback, change=change)

    def add_all(self, verdicts: Iterable[Feedback]) -> tuple[int, int, int]:
        """Store many in one transaction; returns how many are new, updated, and linked to a reply."""
        new = changed = matched = 0
        with self._database.transaction() as connection:
            for feedback in verdicts:
                kept, created = _add(connection, feedback)
                new += created
                changed += not created
                matched += kept.matched
        return new, changed, matched

    def link(self, connection: Connection, replies: Sequence[ProductionReply]) -> int:
        """Link earlier verdicts to these replies; returns how many."""
        waiting: dict[str, Feedback] = {}
        for column, given in (
            ("response_id", [item.id for item in replies]),
            ("trace_id", [item.reply.trace_id for item in replies if item.reply.trace_id]),
            (
                "conversation_id",
                [item.reply.conversation_id for item in replies if item.reply.conversation_id],
            ),
        ):
            for start in range(0, len(given), BATCH):
                some = given[start : start + BATCH]
                # Unmatched ones are selected below: with many of them a database would scan the whole table.
                query = sql(f"SELECT payload FROM feedback WHERE {column} IN {{ids}}", ids=in_list(some))
                for feedback in [_decode(payload) for (payload,) in connection.run(*query)]:
                    # A conversation's id counts only if no more exact id was given.
                    exact = column != "conversation_id" or feedback.response_id is feedback.trace_id is None
                    if exact and not feedback.matched:
                        waiting[feedback.id] = feedback
        linked = 0
        for feedback in waiting.values():
            kept = _with_reply(connection, feedback)
            if kept.matched:
                linked += 1
                connection.run(_UPDATE, (*feedback_row(kept), kept.id))
        return linked

    def knows_reply(self, response_id: str) -> bool:
        """Whether a reply of production or of a run has this id."""
        with self._database.reading() as connection:
            in_production = "SELECT 1 FROM production_replies WHERE id = ?"
            in_runs = "SELECT 1 FROM reply_ids WHERE id_hash = ? LIMIT 1"
            found = connection.value(in_production, (response_id,))
            return (found or connection.value(in_runs, (id_hash("response", response_id),))) is not None

    def of_reply(self, key: ReplyKey) -> list[Feedback]:
        """The feedback on one reply of a run, newest first."""
        return self._read(
            sql(
                "run_id = ? AND ask_hash = ? AND trial = ? AND target_hash = ?",
                key.run_id,
                bytes.fromhex(key.ask_hash),
                key.trial,
                key.target_hash,
            )
        )

    def verdicts(self, run_id: str, *, source: FeedbackSource | None = None) -> list[Feedback]:
        """All verdicts on a run's replies, newest first."""
        conditions = [Sql("run_id = ?", (run_id,))]
        if source is not None:
            conditions.append(Sql("source = ?", (source,)))
        return self._read(all_of(conditions))

    def of_production(self, ids: Sequence[str]) -> list[Feedback]:
        """The feedback on these production replies, newest first."""
        return self._read(sql("production_id IN {ids}", ids=in_list(ids)))

    def page(
        self, criteria: FeedbackFilter | None = None, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[Feedback], int]:
        """A page of verdicts, newest first, and how many match."""
        where = _conditions(criteria or FeedbackFilter())
        query = sql(
            f"SELECT payload FROM feedback WHERE {{where}} {_NEWEST} LIMIT ? OFFSET ?",
            limit,
            offset,
            where=where,
        )
        with self._database.reading() as connection:
            total = connection.value(*sql("SELECT COUNT(*) FROM feedback WHERE {where}", where=where))
            return [_decode(payload) for (payload,) in connection.run(*query)], int(total)

    def negative(self) -> Iterator[Feedback]:
        """Negative verdicts, newest first, as a stream."""
        query = f"SELECT payload FROM feedback WHERE value < ? {_NEWEST}"
        for (payload,) in self._database.stream(query, (POSITIVE,)):
            yield _decode(payload)

    def scored_verdicts(self) -> Iterator[ScoredVerdict]:
        """Every verdict whose reply is known and scored: of runs under their current scoring, and of production."""
        in_runs = (
            f"SELECT f.ask_hash, f.value, {CARD_COLUMNS} FROM {SCORED} "
            "JOIN scorecard_details d ON d.run = c.run AND d.scoring = c.scoring AND d.position = c.position "
            "AND d.trial = c.trial JOIN names m ON m.key = c.measures"
        )
        for ask_hash, value, *card in self._database.stream(in_runs):
            yield ScoredVerdict(ask_hash.hex(), _components(unpack_card(*card)), value)
        in_production = (
            "SELECT p.question, f.value, p.payload FROM feedback f "
            "JOIN production_replies p ON p.id = f.production_id"
        )
        for question, value, payload in self._database.stream(in_production):
            scored = _decode_production(payload).scorecard
            if scored is not None:
                yield ScoredVerdict(question, _components(scored), value)

    def _read(self, where: Sql) -> list[Feedback]:
        query = sql(f"SELECT payload FROM feedback WHERE {{where}} {_NEWEST}", where=where)
        with self._database.reading() as connection:
            return [_decode(payload) for (payload,) in connection.run(*query)]


def question_of(connection: Connection, key: ReplyKey) -> Question | None:
    """The question that a reply of a run was graded by."""
    query = sql(
        "SELECT q.payload FROM questions q JOIN scorecards c ON c.question = q.key "
        "WHERE q.ask_hash = ? AND c.run = {run} AND c.target = {target} AND c.trial = ? LIMIT 1",
        bytes.fromhex(key.ask_hash),
        key.trial,
        run=run_key_sql(key.run_id),
        target=name_key_sql(key.target_hash),
    )
    payload = connection.value(*query)
    return None if payload is None else _decode_question(payload)


def feedback_row(feedback: Feedback) -> tuple[Any, ...]:
    """A row of the feedback table."""
    key = feedback.reply
    about = (
        (None,) * 4 if key is None else (key.run_id, bytes.fromhex(key.ask_hash), key.trial, key.target_hash)
    )
    return (*_OWN(feedback), *about, _encode(feedback).decode())


def _add(connection: Connection, feedback: Feedback, *, change: bool = True) -> tuple[Feedback, bool]:
    kept = _with_reply(connection, feedback)
    if feedback.idempotency_key is not None:
        query = "SELECT payload FROM feedback WHERE sender = ? AND idempotency_key = ?"
        payload = connection.value(query, (feedback.sender, feedback.idempotency_key))
        if payload is not None:
            known = _decode(payload)
            if not change:
                return known, False
            kept = msgspec.structs.replace(kept, id=known.id)
            connection.run(_UPDATE, (*feedback_row(kept), known.id))
            return kept, False
    connection.run(insert("feedback", replace=True), feedback_row(kept))
    return kept, True


def _with_reply(connection: Connection, feedback: Feedback) -> Feedback:
    if not feedback.matched:
        feedback = _located(connection, feedback)
    if feedback.reply is not None and feedback.question is None:
        question = question_of(connection, feedback.reply)
        if question is not None:
            return msgspec.structs.replace(
                feedback, question=question.question, category=feedback.category or question.category
            )
    return feedback


def _located(connection: Connection, feedback: Feedback) -> Feedback:
    """The verdict with the reply that its ids refer to: the most exact id first, production before runs."""
    for kind, value, column in (
        ("response", feedback.response_id, "id"),
        ("trace", feedback.trace_id, "trace_id"),
        ("conversation", feedback.conversation_id, "conversation_id"),
    ):
        if not value:
            continue
        row = connection.run(
            f"SELECT id, question, category FROM production_replies WHERE {column} = ? "
            "ORDER BY created_at DESC LIMIT 1",
            (value,),
        ).fetchone()
        if row is not None:
            return msgspec.structs.replace(
                feedback, production_id=row[0], question=row[1], category=feedback.category or row[2]
            )
        row = connection.run(
            "SELECT runs.id, i.ask_hash, i.trial, t.name FROM reply_ids i JOIN runs ON runs.key = i.run "
            "JOIN names t ON t.key = i.target WHERE i.id_hash = ? "
            "ORDER BY runs.created_at DESC, i.trial DESC LIMIT 1",
            (id_hash(kind, value),),
        ).fetchone()
        if row is not None:
            run_id, ask_hash, trial, target_hash = row
            return msgspec.structs.replace(
                feedback, reply=ReplyKey(run_id, ask_hash.hex(), trial, target_hash)
            )
    return feedback


def _conditions(criteria: FeedbackFilter) -> Sql:
    conditions = within_days("created_at", criteria)
    if criteria.value is not None:
        conditions.append(Sql("value >= ?" if criteria.value == "up" else "value < ?", (POSITIVE,)))
    if criteria.source is not None:
        conditions.append(Sql("source = ?", (criteria.source,)))
    if criteria.category is not None:
        known = Sql("category = ?", (criteria.category,))
        unknown = [Sql("category IS NULL")] if criteria.category == "unknown" else []
        conditions.append(any_of([known, *unknown]))
    return all_of(conditions)


def _components(card: Scorecard) -> dict[str, float]:
    return {name: score.value for name, score in card.components.items() if score.value is not None}
