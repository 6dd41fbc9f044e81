"""Proposals: questions whose replies people did not like, as golden cases to complete."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from answerkey.model.feedback import Feedback, ProductionReply
from answerkey.model.question import Question
from answerkey.store.feedback import FeedbackBook, question_of
from answerkey.store.production import ProductionReplies
from answerkey.store.sql import SqlStore

TAG = "from-feedback"
_REPLY = 2_000


def proposed_cases(store: SqlStore, *, most: int = 1_000) -> Iterator[dict[str, Any]]:
    """A golden case for every question with a negative verdict, newest first; reviewers' verdicts count too.

    A question that a golden set already has keeps its id and expectations: they may be too weak. A new one has none
    yet: a person must say what a good reply calls and contains.
    """
    book = FeedbackBook(store)
    production = ProductionReplies(store)
    seen: set[str] = set()
    for feedback in book.negative():
        question = feedback.question
        if not question or question.casefold().strip() in seen:
            continue
        if len(seen) == most:
            return
        seen.add(question.casefold().strip())
        known = _golden(store, feedback)
        case = _plain(known) if known is not None else _new(feedback, question)
        case["tags"] = [*(tag for tag in case.get("tags", ()) if tag != TAG), TAG]
        given = None if feedback.production_id is None else production.find(feedback.production_id)
        case["feedback"] = why_proposed(feedback, given)
        if feedback.correction and "reference_answer" not in case:
            case["reference_answer"] = feedback.correction
        yield case


def why_proposed(feedback: Feedback | None, reply: ProductionReply | None) -> dict[str, Any]:
    """What a proposed case says of its origin: a person's verdict, and the reply that it was about."""
    why: dict[str, Any] = {}
    if feedback is not None:
        why = {
            "value": feedback.value,
            "comment": feedback.comment,
            "given_at": feedback.created_at,
            "source": feedback.source,
        }
    if reply is not None:
        why["reply"] = (reply.reply.text or "")[:_REPLY]
        why["tools_used"] = list(reply.reply.tools_used)
    return why


def case_id(question: str) -> str:
    """The same for the same wording, so that a question proposed twice is seen to be one."""
    return f"fb-{hashlib.blake2b(question.encode('utf-8', 'replace'), digest_size=5).hexdigest()}"


def _new(feedback: Feedback, question: str) -> dict[str, Any]:
    case: dict[str, Any] = {"id": case_id(question), "question": question}
    if feedback.category:
        case["category"] = feedback.category
    case["expected_tools"] = []
    case["expected_keywords"] = []
    return case


def _plain(question: Question) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(question, line=None))
    plain.pop("line", None)
    plain |= plain.pop("metadata", {})
    return plain


def _golden(store: SqlStore, feedback: Feedback) -> Question | None:
    if feedback.reply is None:
        return None
    with store.database.reading() as connection:
        return question_of(connection, feedback.reply)
