"""What chat pages and their servers send: verdicts on replies, and the replies themselves."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from answerkey.config import Settings
from answerkey.datasets.feedback_exports import Scale, plain_feedback
from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, parse_question
from answerkey.errors import UsageError
from answerkey.model.feedback import COMMENT_LIMIT, ProductionReply
from answerkey.model.question import Question
from answerkey.scorers.grader import Grader
from answerkey.scorers.plan import make_grader
from answerkey.store.database import now
from answerkey.store.feedback_book import FeedbackBook, new_id
from answerkey.store.production import ProductionReplies
from answerkey.store.sql import SqlStore
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.reply_mapping import reply_from_payload

__all__ = ["FeedbackReceipt", "GivenFeedback", "GivenReplies", "Intake", "RepliesReceipt"]

_MOST_REPLIES = 500
# A golden set larger than this is not kept in memory for matching production questions with it.
_MOST_GOLDEN = 20_000
# In a reply, `tools` are the tools that it used.
_EXPECTATIONS = EXPECTATION_FIELDS - {"tools"}
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


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
    # The same key again changes the verdict instead of adding one.
    idempotency_key: _Id | None = None


class FeedbackReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: what became of the verdict."""

    id: str
    # False: a verdict with the same idempotency key was there and is changed.
    created: bool
    # False: no stored reply has this id yet; the verdict is kept and tied to the reply when that comes.
    matched: bool
    value: float
    question: str | None = None
    note: str | None = None


class GivenReplies(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/replies`: several replies; a single one may also be sent as the body itself."""

    replies: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=_MOST_REPLIES)]


class RepliesReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: the ids under which the replies are kept, and how many verdicts were waiting for them."""

    ids: tuple[str, ...]
    feedback_matched: int
    # Replies that are errors, by the same detector that grades runs.
    errors: int


class Intake:
    """Keeps what is sent."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def feedback(
        self, store: SqlStore, given: GivenFeedback, *, header_key: str | None = None
    ) -> FeedbackReceipt:
        """Keep a verdict, whether or not its reply is known."""
        row = msgspec.to_builtins(given)
        row["idempotency_key"] = given.idempotency_key or header_key
        # Text that a database cannot keep must not cost the verdict.
        row = {
            name: value.replace("\x00", "") if isinstance(value, str) else value
            for name, value in row.items()
        }
        read = plain_feedback(row, Scale())
        fresh = msgspec.structs.replace(
            read, id=new_id(), created_at=now(), source="user", idempotency_key=row["idempotency_key"] or None
        )
        saved, created = FeedbackBook(store).add(fresh)
        return FeedbackReceipt(
            id=saved.id,
            created=created,
            matched=saved.matched,
            value=saved.value,
            question=saved.question,
            note=None
            if saved.matched
            else "no stored reply has this id; the verdict is kept and will be matched when the reply arrives",
        )

    def replies(self, store: SqlStore, rows: list[dict[str, Any]]) -> RepliesReceipt:
        """Keep production replies, graded as far as there is something to grade them by."""
        grader = make_grader(self._settings.scoring, self._settings)
        read = [self._reply(store, grader, row, number) for number, row in enumerate(rows, start=1)]
        linked = ProductionReplies(store).add(read)
        return RepliesReceipt(
            ids=tuple(reply.id for reply in read),
            feedback_matched=linked,
            errors=sum(reply.scorecard is not None and reply.scorecard.error is not None for reply in read),
        )

    def _reply(self, store: SqlStore, grader: Grader, row: Mapping[str, Any], number: int) -> ProductionReply:
        asked = row.get("question")
        if not isinstance(asked, str) or not asked.strip():
            raise UsageError(f'reply {number}: there is no "question"; give what the user asked')
        payload = {name: value for name, value in row.items() if name != "question"}
        reply = reply_from_payload(payload, asked=Asked(asked))
        question, graded = self._question(store, row, asked, number)
        card = grader.grade(question, (reply,))
        identity = reply.response_id or _first_text(row, "reply_id", "message_id", "id") or new_id()
        return ProductionReply(
            id=identity[:400],
            created_at=now(),
            question=asked.replace("\x00", "")[:COMMENT_LIMIT],
            reply=msgspec.structs.replace(reply, response_id=identity[:400]),
            category=question.category if graded else _first_text(row, "category"),
            score=card.total if graded else None,
            scorecard=card,
        )

    def _question(
        self, store: SqlStore, row: Mapping[str, Any], asked: str, number: int
    ) -> tuple[Question, bool]:
        """What the reply is graded by: its own expectations, a golden case with the same wording, or nothing."""
        if any(row.get(name) for name in _EXPECTATIONS):
            fields = {name: row[name] for name in _EXPECTATIONS if row.get(name) is not None}
            fields |= {"question": asked} | ({"category": row["category"]} if row.get("category") else {})
            try:
                return parse_question(fields), True
            except ValueError as error:
                raise UsageError(f"reply {number}: {error}") from None
        infos = store.list_infos(limit=1)
        if infos:
            golden = _golden(store, infos[0].question_set_hash).get(_comparable(asked))
            if golden is not None:
                return golden, True
        return Question(id="", question=asked), False


def _first_text(row: Mapping[str, Any], *names: str) -> str | None:
    return next(
        (str(row[name]) for name in names if isinstance(row.get(name), str | int) and row[name] != ""), None
    )


def _comparable(question: str) -> str:
    return " ".join(question.casefold().split()).rstrip("?!. ")


@lru_cache(maxsize=4)
def _golden(store: SqlStore, set_hash: str) -> dict[str, Question]:
    """The newest run's single-turn questions by their wording."""
    if store.count_questions(set_hash) > _MOST_GOLDEN:
        return {}
    return {
        _comparable(question.question): question
        for question in store.questions(set_hash)
        if not question.turns
    }
