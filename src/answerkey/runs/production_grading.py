"""Grading production replies by the golden set that the configuration names, and again whenever that or the scoring changes."""

from hashlib import blake2b
from pathlib import Path
from threading import Lock

import msgspec

from answerkey.config import Settings
from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import AnswerkeyError
from answerkey.model.feedback import ProductionReply
from answerkey.model.question import Question
from answerkey.scorers.plan import make_grader
from answerkey.store.production import ProductionReplies
from answerkey.store.sql import SqlStore

# Replies that are graded anew in one transaction.
_BATCH = 200


class ProductionGrading:
    """The golden set by the wording of its questions, read again when its file changes."""

    def __init__(self, settings: Settings, questions: str | None = None) -> None:
        """`questions` is the golden set's file, by default the configuration's; None: only errors can be graded."""
        self._settings = settings
        named = questions or settings.questions
        self._path = None if named is None else settings.folder / named
        self._grader = make_grader(settings.scoring, settings)
        self._lock = Lock()
        self._seen: tuple[int, int] | None = None
        self._cases: dict[str, Question] = {}
        # Hash of the golden set and the scoring in force.
        self.version = ""
        # Why the file as it is now cannot be used; what was read before stays in force.
        self.problem: str | None = None
        self._read(None if self._path is None else _state(self._path))

    def refresh(self) -> None:
        """Read the golden set again if its file has changed; one that has become unreadable is left for later."""
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
        """The reply with its scorecard: the whole score where the golden set has its question, else only its errors."""
        # One at a time: scorers of the user's need not bear more.
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
        """Grade anew what was graded by another set or scoring; how many replies."""
        self.refresh()
        kept = ProductionReplies(store)
        done = 0
        while stale := kept.graded_otherwise(self.version, limit=_BATCH):
            kept.keep_grades([self.grade(item) for item in stale])
            done += len(stale)
        return done

    def _read(self, state: tuple[int, int] | None) -> None:
        cases: dict[str, Question] = {}
        set_hash = ""
        if self._path is not None:
            questions = read_questions(self._path, registry=self._settings.scorer_registry)
            set_hash = questions.hash
            for question in questions:
                if not question.turns:
                    cases.setdefault(_comparable(question.question), question)
        self._cases = cases
        self.version = blake2b(f"{set_hash}\n{self._grader.hash}".encode(), digest_size=8).hexdigest()
        self._seen = state


def _state(path: Path) -> tuple[int, int] | None:
    """Changes with a file's content; None: it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _comparable(question: str) -> str:
    return " ".join(question.casefold().split()).rstrip("?!. ")
