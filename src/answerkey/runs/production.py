"""Production replies: grading by the configured golden set, and golden cases proposed from negative feedback."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from answerkey.config import Settings
from answerkey.errors import AnswerkeyError
from answerkey.model.judgement import Feedback, ProductionReply
from answerkey.model.question import Question
from answerkey.runs.context import golden_set, with_truth
from answerkey.scorers.grader import make_grader
from answerkey.store.feedback import FeedbackStore, question_of
from answerkey.store.production import ProductionReplies
from answerkey.store.sql import SqlStore

# Replies graded in one transaction.
_BATCH = 200


class ProductionGrading:
    """Grades production replies; finds the golden case by the wording of the question.

    The golden set is read again when its file changes, and replies are graded again when it or the scoring changes.
    """

    def __init__(self, settings: Settings, questions: str | None = None) -> None:
        """`questions` is the golden set's file, by default the configured one; without any, only errors are graded."""
        self._settings = settings
        named = questions or settings.questions
        self._path = None if named is None else settings.folder / named
        self._grader = make_grader(settings.scoring, settings)
        self._lock = Lock()
        self._seen: tuple[int, int] | None = None
        self._cases: dict[str, Question] = {}
        # Hash of the current golden set and scoring.
        self.version = ""
        # Why the file cannot be read now; the version read before stays in use.
        self.problem: str | None = None
        self._read(None if self._path is None else _state(self._path))

    def refresh(self) -> None:
        """Read the golden set again if its file has changed; if that fails, `problem` says why."""
        if self._path is None:
            return
        with self._lock:
            state = _state(self._path)
            if state == self._seen:
                return
            try:
                self._read(state)
                self.problem = None
            except AnswerkeyError as error:
                self._seen, self.problem = state, str(error)

    def grade(self, item: ProductionReply) -> ProductionReply:
        """The reply with its scorecard: a full score if the golden set has the question, else only errors."""
        # One at a time: custom scorers need not be thread-safe.
        with self._lock:
            version, golden = self.version, self._cases.get(_comparable(item.question))
            question = golden or Question(id="", question=item.question)
            card = self._grader.grade(question, (item.reply,))
        return msgspec.structs.replace(
            item,
            category=item.category if golden is None else golden.category,
            score=None if golden is None else card.total,
            scorecard=card,
            graded_by=version,
        )

    def regrade(self, store: SqlStore) -> int:
        """Grade again all replies graded with another golden set or scoring; returns their number."""
        self.refresh()
        replies = ProductionReplies(store)
        done = 0
        while stale := replies.graded_otherwise(self.version, limit=_BATCH):
            replies.keep_grades([self.grade(item) for item in stale])
            done += len(stale)
        return done

    def _read(self, state: tuple[int, int] | None) -> None:
        cases: dict[str, Question] = {}
        set_hash = ""
        if self._path is not None:
            questions, _ = with_truth(golden_set(self._path, self._settings), self._settings)
            set_hash = questions.hash
            for question in questions:
                if not question.turns:
                    cases.setdefault(_comparable(question.question), question)
        self._cases = cases
        self.version = hashlib.blake2b(f"{set_hash}\n{self._grader.hash}".encode(), digest_size=8).hexdigest()
        self._seen = state


def _state(path: Path) -> tuple[int, int] | None:
    """Modification time and size; None if the file does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def same_question(first: str, second: str) -> bool:
    """Whether two questions have the same wording, but for case, spaces and the sign at the end."""
    return _comparable(first) == _comparable(second)


def _comparable(question: str) -> str:
    return " ".join(question.casefold().split()).rstrip("?!. ")


# Golden cases proposed from negative feedback.

TAG = "from-feedback"
_REPLY = 2_000


def proposed_cases(store: SqlStore, *, most: int = 1_000) -> Iterator[dict[str, Any]]:
    """A golden case for every question with negative feedback or a negative review, newest first.

    A question of a golden set keeps its id and expectations, which may be too weak. A new one has no expectations: a
    person must add them.
    """
    book = FeedbackStore(store)
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
    """The origin of a proposed case: the feedback, and the reply that it refers to."""
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


def case_id(question: str, prefix: str = "fb") -> str:
    """An id derived from the wording, so that a question proposed twice gets the same id."""
    return f"{prefix}-{hashlib.blake2b(question.encode('utf-8', 'replace'), digest_size=5).hexdigest()}"


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
