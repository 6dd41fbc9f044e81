"""Verdicts: feedback of users, linked to its reply as soon as that is known; the review queue; and answers of judges."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from answerkey.model.judgement import (
    POSITIVE,
    Answer,
    Feedback,
    FeedbackSource,
    ProductionReply,
    ReplyKey,
    Spent,
)
from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import highest_score, lowest_score
from answerkey.store.database import BATCH, TABLES, Connection, Sql, all_of, any_of, in_list, insert, now, sql
from answerkey.store.questions import find_reply_key
from answerkey.store.run_rows import id_hash, name_key_sql, of_run, run_key_sql
from answerkey.store.table_query import Day, ShortText, within_days

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


class FeedbackFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which verdicts to list."""

    value: Literal["up", "down"] | None = None
    source: FeedbackSource | None = None
    # "unknown" includes verdicts without a category.
    category: ShortText | None = None
    # The first and the last day, in the time zone of this machine.
    since: Day | None = None
    until: Day | None = None


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


# Reviews


# Scores close to the pass mark.
BORDERLINE = (0.40, 0.70)
# A judge that is further from the score than this disagrees with it.
DISAGREEMENT = 0.30

_REVIEW_TABLES = (
    "scorecards c JOIN questions q ON q.key = c.question JOIN names t ON t.key = c.target "
    "JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target AND r.trial = c.trial"
)
_REVIEW_ORDERS = {
    # Digests of texts give a random order that stays the same.
    "sample": "c.reply_digest, c.position, c.trial",
    "disagreement": "COALESCE(ABS(c.score - c.judge), 0.0) DESC, c.position, c.trial",
}
Order = Literal["sample", "disagreement"]


class ReviewItem(msgspec.Struct, frozen=True, kw_only=True):
    """A reply to review."""

    question_id: str
    trial: int
    question: str
    category: str
    score: float | None
    grade: str | None
    judge: float | None
    reason: Literal["borderline", "judge disagrees"]


class ReviewQueue:
    """The replies of a run that a person should review: borderline scores, and disagreements with the judge."""

    def __init__(self, store: "SqlStore", info: RunInfo) -> None:
        self._store = store
        self._info = info

    def page(
        self, *, order: Order = "disagreement", reviews: int = 0, limit: int = 20, offset: int = 0
    ) -> list[ReviewItem]:
        """Replies with this many reviews: a random sample, or the largest disagreements first."""
        query = sql(
            "SELECT q.payload, c.trial, c.score, c.grade, c.judge FROM {tables} WHERE {queue} AND {reviews} = ? "
            "ORDER BY {order} LIMIT ? OFFSET ?",
            reviews,
            limit,
            offset,
            tables=_REVIEW_TABLES,
            queue=self._in_queue(),
            reviews=self._review_count(),
            order=_REVIEW_ORDERS[order],
        )
        with self._store.database.reading() as connection:
            return [_review_item(*row) for row in connection.run(*query)]

    def counts(self) -> tuple[int, int]:
        """How many replies wait for a review, and how many have one."""
        query = sql(
            "SELECT COUNT(*), COALESCE(SUM(CASE WHEN {reviews} > 0 THEN 1 ELSE 0 END), 0) "
            "FROM {tables} WHERE {queue}",
            reviews=self._review_count(),
            tables=_REVIEW_TABLES,
            queue=self._in_queue(),
        )
        with self._store.database.reading() as connection:
            queue, done = connection.run(*query).fetchone()
        return int(queue) - int(done), int(done)

    def grades(self) -> list[tuple[bool, float | None, float | None]]:
        """Of each reply that reviewers judged alike by majority: whether they trust it, its score and the judge's value."""
        query = sql(
            "SELECT AVG(f.value), c.score, c.judge FROM {tables} WHERE {run} AND f.run_id = ? AND f.source = 'review' "
            "GROUP BY c.position, c.trial, c.score, c.judge",
            self._info.id,
            tables=SCORED,
            run=of_run(self._info),
        )
        with self._store.database.reading() as connection:
            rows = connection.run(*query).fetchall()
        return [(value > POSITIVE, score, judge) for value, score, judge in rows if value != POSITIVE]

    def verdicts(self) -> dict[str, dict[str, bool]]:
        """Reply → reviewer → whether they trust the reply."""
        found: dict[str, dict[str, bool]] = {}
        for given in FeedbackStore(self._store).verdicts(self._info.id, source="review"):
            if given.reply is not None:
                reply = f"{given.reply.ask_hash}:{given.reply.trial}"
                found.setdefault(reply, {})[given.author or ""] = given.positive
        return found

    def remove_verdict(self, question_id: str, trial: int, *, author: str) -> bool:
        """Delete a reviewer's verdict on a reply; False if there was none."""
        key = find_reply_key(self._store, self._info, question_id, trial)
        with self._store.database.transaction() as connection:
            done = connection.run(
                "DELETE FROM feedback WHERE idempotency_key = ?", (_review_key(author, key),)
            )
            return bool(done.rowcount)

    def record_verdict(
        self, question_id: str, trial: int, *, trusted: bool, comment: str, author: str
    ) -> Feedback:
        """Store a reviewer's verdict; it replaces their earlier one on the same reply."""
        key = find_reply_key(self._store, self._info, question_id, trial)
        kept, _ = FeedbackStore(self._store).add(
            Feedback(
                id=new_id(),
                created_at=now(),
                value=1.0 if trusted else 0.0,
                source="review",
                comment=comment.replace("\x00", "").strip(),
                author=author,
                reply=key,
                idempotency_key=_review_key(author, key),
            )
        )
        return kept

    def _in_queue(self) -> Sql:
        """A condition: a reply is borderline, or the judge disagrees with its score."""
        low, high = BORDERLINE
        to_review = sql(
            "c.score BETWEEN ? AND ? OR ABS(c.score - c.judge) > ?",
            lowest_score(low),
            highest_score(high),
            highest_score(DISAGREEMENT),
        )
        # A reply without a text cannot be reviewed.
        return all_of([of_run(self._info), Sql("r.text != ''"), to_review])

    def _review_count(self) -> Sql:
        return sql(
            "(SELECT COUNT(*) FROM feedback f WHERE f.run_id = ? AND f.ask_hash = q.ask_hash AND f.trial = c.trial "
            "AND f.target_hash = t.name AND f.source = 'review')",
            self._info.id,
        )


def _review_key(author: str, key: ReplyKey) -> str:
    """The idempotency key: one verdict per reviewer and reply."""
    return f"review:{author}:{key.run_id}:{key.ask_hash}:{key.trial}"


def review_production(
    store: "SqlStore", item: ProductionReply, *, trusted: bool | None, comment: str, author: str
) -> Feedback | None:
    """Store a reviewer's verdict on a production reply in place of their earlier one; None removes it."""
    key = f"review:{author}:production:{item.id}"
    if trusted is None:
        with store.database.transaction() as connection:
            connection.run("DELETE FROM feedback WHERE idempotency_key = ? AND source = 'review'", (key,))
        return None
    stored, _ = FeedbackStore(store).add(
        Feedback(
            id=new_id(),
            created_at=now(),
            value=float(trusted),
            source="review",
            comment=comment.replace("\x00", "").strip(),
            author=author,
            production_id=item.id,
            question=item.question,
            category=item.category,
            idempotency_key=key,
        )
    )
    return stored


def _review_item(
    payload: str, trial: int, score: float | None, letter: str | None, judge: float | None
) -> ReviewItem:
    question = _decode_question(payload)
    disagrees = judge is not None and score is not None and abs(score - judge) > highest_score(DISAGREEMENT)
    return ReviewItem(
        question_id=question.id,
        trial=trial,
        question=question.question,
        category=question.category,
        score=score,
        grade=letter,
        judge=judge,
        reason="judge disagrees" if disagrees else "borderline",
    )


# Judges


class SqlJudgements:
    """Judges' answers, by the hash of everything that could change them, with their cost and the run that paid."""

    def __init__(self, store: "SqlStore") -> None:
        self._database = store.database

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → the judge's answer, for known keys."""
        found: dict[str, str] = {}
        with self._database.reading() as connection:
            for start in range(0, len(keys), BATCH):
                part = keys[start : start + BATCH]
                query = sql("SELECT key, payload FROM judgements WHERE key IN {keys}", keys=in_list(part))
                found.update(connection.run(*query))
        return found

    def add_answers(self, run_id: str, answers: Sequence[Answer]) -> None:
        """Store answers in one durable transaction; an existing answer is not replaced."""
        moment = now()
        rows = [
            (
                answer.key,
                run_id,
                answer.model,
                # PostgreSQL's text takes no NUL, and no verdict has one.
                answer.text.replace("\0", "\ufffd"),
                answer.spent.cost,
                answer.spent.input_tokens,
                answer.spent.output_tokens,
                moment,
            )
            for answer in answers
        ]
        with self._database.transaction() as connection:
            connection.insert("judgements", rows)

    def spent_on(self, run_id: str) -> Spent:
        """The tokens and cost that a run has paid for so far."""
        query = "SELECT SUM(input_tokens), SUM(output_tokens), SUM(cost) FROM judgements WHERE run_id = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (run_id,)).fetchone()
        return Spent(int(row[0] or 0), int(row[1] or 0), None if row[2] is None else float(row[2]))
