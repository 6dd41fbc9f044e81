"""Intake of what chat pages and their servers send: feedback, production replies, and spans."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Annotated, Any

import msgspec

from answerkey.datasets.conversion import Scale, plain_feedback
from answerkey.datasets.golden_sets import EXPECTATION_FIELDS
from answerkey.errors import UsageError
from answerkey.model.judgement import COMMENT_LIMIT, Feedback, ProductionReply
from answerkey.model.reply import Reply
from answerkey.observe.observations import Unread, join_observations
from answerkey.observe.receiver import Answer, HeldTrace, OverfullError, Receiver
from answerkey.runs.production import ProductionGrading
from answerkey.server.access import Visitor
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, new_id
from answerkey.store.production import METADATA_WIDTH, ProductionReplies
from answerkey.store.sql import SqlStore
from answerkey.text.dates import read_moment
from answerkey.text.normalise import one_line
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import NAMES_READ, reply_from_payload

_MOST_REPLIES = 500
# In a reply, `tools` are the tools that it used.
_EXPECTATIONS = EXPECTATION_FIELDS - {"tools"}
_NAME_LIMIT = 200
_ID_LIMIT = 400
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=_ID_LIMIT)]
_MOST_BYTES = 64 * 1024 * 1024
# Seconds that a trace waits for its reply.
_HELD_S = 900.0


class KeyUsedError(UsageError):
    """A sender's idempotency key was used before, for something else."""


class GivenFeedback(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/feedback`: a verdict, and at least one id of the reply that it is about."""

    # "up", "down", true, false, or a number from 0 to 1.
    value: str | float | bool
    # The chatbot's own id of the reply; `reply_id` and `message_id` are the same.
    response_id: _Id | None = None
    reply_id: _Id | None = None
    message_id: _Id | None = None
    trace_id: _Id | None = None
    # The last reply of the conversation is meant.
    conversation_id: _Id | None = None
    comment: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] | None = None
    # What the reply should have been.
    correction: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] | None = None
    author: _Id | None = None
    question: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] | None = None
    category: _Id | None = None
    # The time of the verdict in ISO 8601; default: now.
    created_at: Annotated[str, msgspec.Meta(max_length=_NAME_LIMIT)] | None = None
    # The reply itself, as in `POST /api/replies`; stored unless the store has it.
    reply: dict[str, Any] | None = None
    # A repeated key of the same sender refers to the same verdict.
    idempotency_key: _Id | None = None


class FeedbackReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The response: how the verdict was stored."""

    id: str
    # False: the sender used the idempotency key before.
    created: bool
    # False: no stored reply has this id yet; the verdict is linked when the reply arrives.
    matched: bool
    value: float
    question: str | None = None
    note: str | None = None


class GivenFeedbackBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/feedback/batch`: verdicts that a server forwards together."""

    feedback: Annotated[list[GivenFeedback], msgspec.Meta(min_length=1, max_length=_MOST_REPLIES)]


class FeedbackBatchReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The response: how each verdict was stored, in the order of the request."""

    receipts: tuple[FeedbackReceipt, ...]


class GivenReplies(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/replies`: several replies; a single one may also be sent as the body itself."""

    replies: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=_MOST_REPLIES)]


class RepliesReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The response: the ids of the replies, and how many earlier verdicts were linked to them."""

    ids: tuple[str, ...]
    # Those that were already stored; they are not changed.
    known: tuple[str, ...]
    feedback_matched: int
    # Replies that are errors, by the same detector that grades runs.
    errors: int


class TraceIntake:
    """Recently received traces, held until their replies arrive."""

    def __init__(self, *, most_bytes: int = _MOST_BYTES, held_s: float = _HELD_S) -> None:
        self._most_bytes = most_bytes
        self._held_s = held_s
        self._held: dict[tuple[str, str], HeldTrace] = {}
        self._bytes = 0
        self._lock = Lock()

    def receive(self, sender: str, signal: str, content_type: str, encoding: str, body: bytes) -> Answer:
        """The answer to an export request."""
        return Receiver(_FromSender(self, sender)).receive(signal, content_type, encoding, body)

    def take(self, sender: str, items: list[Unread]) -> None:
        """Hold spans, all or none; raises OverfullError if there is no room."""
        with self._lock:
            self._drop_old()
            if self._bytes + sum(item.size for item in items) > self._most_bytes:
                raise OverfullError
            for item in items:
                held = self._held.setdefault((sender, item.trace_id), HeldTrace(None))
                before = held.size
                held.add(item)
                self._bytes += held.size - before

    def join(self, sender: str, reply: Reply) -> Reply:
        """A reply with the spans of its trace that the same sender sent before."""
        with self._lock:
            # Not removed: the reply may be sent again if another one in the same request is refused.
            held = self._held.get((sender, (reply.trace_id or "").lower()))
            seen = None if held is None else held.read(held.lacks()).observation
        return reply if seen is None else join_observations(reply, [seen])

    def _drop_old(self) -> None:
        oldest = time.monotonic() - self._held_s
        for key in [key for key, held in self._held.items() if held.last < oldest]:
            self._bytes -= self._held.pop(key).size


class _FromSender:
    """The intake of one sender."""

    def __init__(self, intake: TraceIntake, sender: str) -> None:
        self._intake = intake
        self._sender = sender

    def take(self, items: list[Unread], without_span: int = 0) -> None:
        self._intake.take(self._sender, items)


class Intake:
    """Stores feedback and replies."""

    def __init__(self, grading: ProductionGrading, traces: TraceIntake) -> None:
        self._grading = grading
        self._traces = traces

    def feedback(
        self,
        store: SqlStore,
        feedback_body: GivenFeedback,
        who: Visitor,
        *,
        foreign: bool = False,
        header_key: str | None = None,
    ) -> FeedbackReceipt:
        """Store a verdict, whether or not its reply is known. A site or a `foreign` page cannot change an earlier one."""
        row = _without_nul(msgspec.to_builtins(feedback_body))
        row["idempotency_key"] = row["idempotency_key"] or (header_key or "").replace("\x00", "") or None
        sent_reply = row.pop("reply")
        sent_at = row.pop("created_at")
        read = plain_feedback(row, Scale())
        fresh = msgspec.structs.replace(
            read,
            id=new_id(),
            created_at=_event_time(sent_at),
            source="user",
            sender=who.sender,
            idempotency_key=row["idempotency_key"],
        )
        if sent_reply is not None:
            self._store_sent_reply(store, sent_reply, fresh, who)
        may_change = who.role != "site" and not foreign
        saved, created = FeedbackStore(store).add(fresh, change=may_change)
        if not created and not may_change and not _same_verdict(saved, fresh):
            raise KeyUsedError("this idempotency key was used for another verdict, which is not changed")
        note = (
            None
            if saved.matched
            else "no stored reply has this id; the verdict is stored and will be matched when the reply arrives"
        )
        return FeedbackReceipt(
            id=saved.id,
            created=created,
            matched=saved.matched,
            value=saved.value,
            question=saved.question,
            note=note,
        )

    def replies(self, store: SqlStore, rows: Sequence[Mapping[str, Any]], who: Visitor) -> RepliesReceipt:
        """Grade and store new production replies."""
        self._grading.refresh()
        read = [self._reply(row, who, f"reply {number}: ") for number, row in enumerate(rows, start=1)]
        added = ProductionReplies(store).add(read)
        new = set(added.new)
        return RepliesReceipt(
            ids=tuple(reply.id for reply in read),
            known=tuple(reply.id for reply in read if reply.id not in new),
            feedback_matched=added.linked,
            errors=sum(reply.scorecard is not None and reply.scorecard.error is not None for reply in read),
        )

    def _store_sent_reply(
        self, store: SqlStore, sent_reply: dict[str, Any], verdict: Feedback, who: Visitor
    ) -> None:
        """Store the reply that was sent with a verdict, unless the store has it."""
        if verdict.response_id is None:
            raise UsageError("a verdict with a reply needs the reply's response_id")
        if FeedbackStore(store).knows_reply(verdict.response_id):
            return
        ids = {"response_id": verdict.response_id, "trace_id": verdict.trace_id}
        ids["conversation_id"] = verdict.conversation_id
        row = {**sent_reply, **{name: value for name, value in ids.items() if value is not None}}
        row.setdefault("question", verdict.question)
        ProductionReplies(store).add([self._reply(row, who, "reply: ")])

    def _reply(self, row: Mapping[str, Any], who: Visitor, prefix: str) -> ProductionReply:
        asked = row.get("question")
        if not isinstance(asked, str) or not asked.strip():
            raise UsageError(f'{prefix}"question" is missing; send what the user asked')
        expected = next((name for name in sorted(_EXPECTATIONS) if row.get(name)), None)
        if expected is not None:
            # A sender must not decide the score, nor send expensive patterns.
            raise UsageError(
                f"{prefix}{expected} is not accepted from senders; replies are graded by the golden set in "
                "[server] questions"
            )
        payload = {name: value for name, value in row.items() if name != "question"}
        reply = self._traces.join(who.sender, reply_from_payload(payload, context=QuestionContext(asked)))
        identity = reply.response_id or _first_text(row, "reply_id", "message_id", "id") or new_id()
        sent_at = row.get("created_at")
        if sent_at is not None and not isinstance(sent_at, str):
            raise UsageError(f"{prefix}created_at: use a time such as 2026-11-16T08:30:00Z")
        return self._grading.grade(
            ProductionReply(
                id=_plain(identity, _ID_LIMIT),
                created_at=_event_time(sent_at, prefix),
                received_at=now(),
                sender=who.sender,
                model=_short_text(row, "model"),
                version=_short_text(row, "version"),
                question=_plain(asked, COMMENT_LIMIT),
                reply=msgspec.structs.replace(reply, response_id=_plain(identity, _ID_LIMIT)),
                category=_short_text(row, "category"),
                metadata=_metadata(row),
            )
        )


def _event_time(sent_at: str | None, prefix: str = "") -> str:
    """The time of an event as sent; raises UsageError if it is in the future."""
    if sent_at is None:
        return now()
    try:
        moment = read_moment(sent_at)
    except UsageError as error:
        raise UsageError(f"{prefix}{error}") from None
    if moment > (datetime.now(UTC) + timedelta(days=1)).isoformat():
        raise UsageError(f"{prefix}created_at {sent_at[:60]!r} is in the future")
    return moment


def _same_verdict(stored: Feedback, fresh: Feedback) -> bool:
    fields = ("value", "comment", "correction", "response_id", "trace_id", "conversation_id")
    return all(getattr(stored, name) == getattr(fresh, name) for name in fields)


def _without_nul(row: dict[str, Any]) -> dict[str, Any]:
    """Remove NUL, which databases refuse, rather than refuse the verdict."""
    return {
        name: value.replace("\x00", "") if isinstance(value, str) else value for name, value in row.items()
    }


def _plain(text: str, limit: int) -> str:
    # No database takes a lone surrogate, and PostgreSQL no NUL.
    return text.replace("\x00", "").encode("utf-8", "replace").decode()[:limit]


# Fields of a reply that are read, or refused.
_READ = (
    NAMES_READ
    | EXPECTATION_FIELDS
    | {
        *(
            "id",
            "reply_id",
            "message_id",
            "question",
            "created_at",
            "model",
            "version",
            "category",
            "metadata",
        ),
    }
)
_MOST_METADATA = 20


def _metadata(row: Mapping[str, Any]) -> dict[str, str]:
    """What else was sent: the plain values of `metadata`, and of fields that mean nothing here."""
    given = row.get("metadata")
    listed = [*(given.items() if isinstance(given, dict) else ())]
    listed += [(name, value) for name, value in row.items() if name not in _READ]
    plain = [
        (str(name), str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in listed
        if isinstance(value, str | int | float) and value != ""
    ]
    return {
        one_line(_plain(name, METADATA_WIDTH), METADATA_WIDTH): one_line(
            _plain(value, METADATA_WIDTH), METADATA_WIDTH
        )
        for name, value in plain[:_MOST_METADATA]
    }


def _short_text(row: Mapping[str, Any], name: str) -> str | None:
    found = _first_text(row, name)
    return None if found is None else _plain(found, _NAME_LIMIT) or None


def _first_text(row: Mapping[str, Any], *names: str) -> str | None:
    return next(
        (str(row[name]) for name in names if isinstance(row.get(name), str | int) and row[name] != ""), None
    )
