"""Feedback, and the users and sites that give it.

A person has a token, shown once, to sign in with; their programs send it with every request. A browser gets a session
instead: a random id that ends when it is not used, at sign-out, or with the user. A site (role "site") has a key that
may add feedback and production replies and do nothing else. Of every secret only the digest is stored.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, Literal

import msgspec

from answerkey.errors import StoreError, UnknownNameError, UsageError
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
from answerkey.store.run_rows import WITH_QUESTION, WITH_REPLIES, id_hash, name_key_sql, of_run, run_key_sql
from answerkey.store.sql import SqlStore
from answerkey.store.table_query import Day, ShortText, within_days
from answerkey.text.patterns import lazy

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
    return os.urandom(8).hex()


class FeedbackStore:
    """Reads and writes the feedback of a store."""

    def __init__(self, store: SqlStore) -> None:
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

_REVIEW_TABLES = f"scorecards c{WITH_QUESTION}{WITH_REPLIES} JOIN names t ON t.key = c.target"
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

    def __init__(self, store: SqlStore, info: RunInfo) -> None:
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
        return _review(self._store, _review_key(author, key), trusted, comment, author, reply=key)

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
    store: SqlStore, item: ProductionReply, *, trusted: bool | None, comment: str, author: str
) -> Feedback | None:
    """Store a reviewer's verdict on a production reply in place of their earlier one; None removes it."""
    key = f"review:{author}:production:{item.id}"
    if trusted is None:
        with store.database.transaction() as connection:
            connection.run("DELETE FROM feedback WHERE idempotency_key = ? AND source = 'review'", (key,))
        return None
    about = {"production_id": item.id, "question": item.question, "category": item.category}
    return _review(store, key, trusted, comment, author, **about)


def _review(store: SqlStore, key: str, trusted: bool, comment: str, author: str, **about: Any) -> Feedback:
    """Store a reviewer's verdict under an idempotency key; `about` are the fields that name its reply."""
    verdict = Feedback(
        id=new_id(),
        created_at=now(),
        value=float(trusted),
        source="review",
        comment=comment.replace("\x00", "").strip(),
        author=author,
        idempotency_key=key,
        **about,
    )
    stored, _ = FeedbackStore(store).add(verdict)
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

    def __init__(self, store: SqlStore) -> None:
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


Role = Literal["viewer", "reviewer", "admin", "site"]
# The roles of people; each may do what those before it may.
ROLES: tuple[Role, ...] = ("viewer", "reviewer", "admin")

_TOKEN_PREFIX = "ak_"  # noqa: S105  # marks tokens for secret scanners
_SITE_KEY_PREFIX = "ak_site_"
_NAME = lazy(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DAY = 24 * 3600.0
# A session ends when it is not used for this long, and after SESSION_SECONDS in any case.
_IDLE_SECONDS = 7 * _DAY
SESSION_SECONDS = 90 * _DAY
# Minimum time between two updates of a session's last use, so that not every request writes.
_UPDATE_SECONDS = 3600.0
_MAX_VIEWS = 100


class User(msgspec.Struct, frozen=True):
    """A person or a site with access."""

    name: str
    role: Role
    created_at: str

    @property
    def sender(self) -> str:
        """The name under which what they send is stored."""
        return f"{'site' if self.role == 'site' else 'person'}:{self.name}"


class Users:
    """The users of a store, and their sessions."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def add(self, name: str, role: Role) -> str:
        """Give access; returns the only copy of the token or key."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"user name {name[:70]!r}: use up to 64 letters, digits and . _ @ -")
        secret = _new_secret(_SITE_KEY_PREFIX if role == "site" else _TOKEN_PREFIX)
        with self._database.transaction() as connection:
            if not connection.run(insert("users"), (name, role, _digest(secret), now())).rowcount:
                raise UsageError(f"there is already a user {name!r}; remove it first or use another name")
        return secret

    def all(self) -> list[User]:
        with self._database.reading() as connection:
            rows = connection.run("SELECT name, role, created_at FROM users ORDER BY name")
            return [User(*row) for row in rows]

    def remove(self, name: str) -> None:
        """Revoke access from the next request on, sessions included; what the user sent stays."""
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE user_name = ?", (name,))
            connection.run("DELETE FROM saved_views WHERE owner = ?", (f"person:{name}",))
            if connection.run("DELETE FROM users WHERE name = ?", (name,)).rowcount == 0:
                raise _unknown_user(name)

    def find_by_secret(self, secret: str) -> User | None:
        """The user with this token or key."""
        query = "SELECT name, role, created_at FROM users WHERE digest = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (_digest(secret),)).fetchone()
        return None if row is None else User(*row)

    def sign_in(self, user: User) -> str:
        """Begin a session; returns the only copy of its id."""
        session, moment = _new_secret(), time.time()
        row = (_digest(session), user.name, moment + SESSION_SECONDS, moment + _IDLE_SECONDS)
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE ends_at < ? OR idle_at < ?", (moment, moment))
            connection.run(insert("sessions"), row)
        return session

    def find_by_session(self, session: str) -> User | None:
        """The user of a session, which this use prolongs."""
        query = (
            "SELECT u.name, u.role, u.created_at, s.ends_at, s.idle_at FROM sessions s "
            "JOIN users u ON u.name = s.user_name WHERE s.digest = ?"
        )
        with self._database.reading() as connection:
            row = connection.run(query, (_digest(session),)).fetchone()
        moment = time.time()
        if row is None or min(row[3], row[4]) < moment:
            return None
        if row[4] < moment + _IDLE_SECONDS - _UPDATE_SECONDS:
            # Reading goes on while the store cannot be written; a later request updates it.
            with suppress(StoreError), self._database.transaction() as connection:
                later = (moment + _IDLE_SECONDS, _digest(session))
                connection.run("UPDATE sessions SET idle_at = ? WHERE digest = ?", later)
        return User(*row[:3])

    def sign_out(self, session: str) -> None:
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE digest = ?", (_digest(session),))

    def sign_out_everywhere(self, name: str) -> int:
        """End all sessions of a user, whose token stays valid; returns how many there were."""
        with self._database.transaction() as connection:
            if connection.value("SELECT name FROM users WHERE name = ?", (name,)) is None:
                raise _unknown_user(name)
            return int(connection.run("DELETE FROM sessions WHERE user_name = ?", (name,)).rowcount)


def _unknown_user(name: str) -> UnknownNameError:
    return UnknownNameError(f"no user {name!r}; `answerkey users list` shows them")


class SavedView(msgspec.Struct, frozen=True):
    """A page with a name."""

    name: str
    # The path and the query of the page.
    address: str
    created_at: str


class SavedViews:
    """The saved views of one user, or of everybody on a server that needs no sign-in."""

    def __init__(self, store: SqlStore, owner: str) -> None:
        self._database = store.database
        self._owner = owner

    def all(self) -> list[SavedView]:
        query = "SELECT name, address, created_at FROM saved_views WHERE owner = ? ORDER BY name"
        with self._database.reading() as connection:
            return [SavedView(*row) for row in connection.run(query, (self._owner,))]

    def save(self, name: str, address: str) -> None:
        """Save a page; an earlier view with the same name is replaced."""
        if len(self.all()) >= _MAX_VIEWS:
            raise UsageError(f"{_MAX_VIEWS} views are saved already; delete one first")
        with self._database.transaction() as connection:
            connection.run(insert("saved_views", replace=True), (self._owner, name, address, now()))

    def delete(self, name: str) -> None:
        with self._database.transaction() as connection:
            sql = "DELETE FROM saved_views WHERE owner = ? AND name = ?"
            if not connection.run(sql, (self._owner, name)).rowcount:
                raise UnknownNameError(f"there is no saved view {name[:80]!r}")


def _new_secret(prefix: str = "") -> str:
    """A secret of 256 random bits."""
    import secrets  # as hashlib

    return prefix + secrets.token_urlsafe(32)


def _digest(secret: str) -> str:
    """What is stored of a secret. It has 256 random bits, so a plain digest cannot be reversed."""
    import hashlib  # loads OpenSSL, and most runs have no users

    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
