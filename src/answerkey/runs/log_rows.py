"""Rows of a log as trials: each recorded reply with the question that it answers."""

from collections.abc import Mapping
from typing import Any

from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, parse_question
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.plugins import ScorerRegistry, scorers
from answerkey.runs.plain_rows import PlainRow, PlainRows, plain_question, plain_reply, told_in
from answerkey.transcripts.payloads import NAMES_READ
from answerkey.transcripts.recorded_rows import check_messages, reply_in_row

# Fields of a row that describe the question, not the reply.
_QUESTION_FIELDS = EXPECTATION_FIELDS | {
    *("id", "question", "category", "group", "persona", "tags", "weight", "turns", "trial"),
}
# The same without what every row has: their presence means that a row carries its own golden case.
_INLINE_FIELDS = (EXPECTATION_FIELDS | {"category", "persona", "tags", "turns"}) - {"tools"}
# Together they make a row one that answerkey wrote: a reply with what an earlier scoring gave it.
SCORED_BEFORE = frozenset({"reply", "components", "grade", "passed"})
# Parsed questions are kept for rows that repeat them; a log of more different ones takes no more memory.
_MOST_PARSED = 20_000
# Beyond these only where rows do repeat their questions.
_SOME_PARSED = 2000


class LogRows:
    """Makes trials of rows; expectations stand in the row or in the golden set."""

    def __init__(self, questions: tuple[Question, ...] | None, registry: ScorerRegistry = scorers) -> None:
        # The scorers that the checks of a row may name.
        self._registry = registry
        self._given = questions is not None
        # What a row asks itself stands behind all that the golden set has.
        self._behind = len(questions or ())
        listed = list(enumerate(questions or ()))
        self._by_id = {question.id: (position, question) for position, question in listed}
        self._by_text = {question.question: (position, question) for position, question in reversed(listed)}
        # Rows of a log repeat their questions; parsing each once is most of the speed.
        self._parsed: dict[object, tuple[Question, Any]] = {}
        self._repeated = 0
        # A row that answerkey wrote says how its reply was observed.
        self.plain = PlainRows(_QUESTION_FIELDS | NAMES_READ | {"evidence"})

    def read(self, row: Mapping[str, Any], place: int) -> tuple[int, Question, int, tuple[Reply, ...]]:
        """Position, question, trial number (0: the row has none) and replies; ValueError says what is wrong with the row."""
        position, question = self._find(row, place)
        return position, question, _trial(row), _replies(row, question)

    def read_plain(self, row: PlainRow, place: int) -> tuple[int, Question, int, tuple[Reply, ...]] | None:
        """The same of a plain row; None: it must be read as any other."""
        reply = plain_reply(row)
        if reply is None:
            return None
        if self._given:
            found = self.given(row)
        else:
            told = told_in(row)
            key = (row.question,) if row.id is None else row.id
            known = self._parsed.get(key)
            question = known[0] if known is not None and known[1] == told else plain_question(row)
            if question is None:
                return None
            if known is None:
                self._keep(key, question, told)
            else:
                self._repeated += question is known[0]
            found = (place, question)
        if found is None or found[1].turns:
            return None
        return (*found, row.trial or 0, (reply,))

    def given(self, row: PlainRow) -> tuple[int, Question] | None:
        """The question of a plain row in the golden set, with its position; None: there is none, or it must be looked for."""
        if row.id is None:
            return None if row.question is None else self._by_text.get(row.question)
        return self._by_id.get(row.id if type(row.id) is str else str(row.id))

    @property
    def has_golden_set(self) -> bool:
        """Whether expectations stand in a golden set."""
        return self._given

    def _keep(self, key: object, question: Question, told: object) -> None:
        kept = len(self._parsed)
        if kept < _SOME_PARSED or (kept < _MOST_PARSED and self._repeated > kept):
            self._parsed[key] = (question, told)

    def _find(self, row: Mapping[str, Any], place: int) -> tuple[int, Question]:
        identity, text = row.get("id"), row.get("question")
        if isinstance(identity, int) and not isinstance(identity, bool):
            identity = str(identity)
        if self._given:
            found = self._by_id.get(identity) if isinstance(identity, str) else None
            if found is None and isinstance(text, str):
                found = self._by_text.get(text)
            if found is not None:
                return found
            if _INLINE_FIELDS.isdisjoint(row):
                named = f"id {identity!r}" if identity is not None else "that question"
                raise ValueError(f"the golden set has no question with {named}; check --questions")
        if identity is None and not isinstance(text, str) and not row.get("turns"):
            raise ValueError(
                "has neither 'id' nor 'question', so it cannot be told which question it answers"
            )
        key = str(identity or text)
        told = _expectations(row, identity, text)
        known = self._parsed.get(key)
        if known is not None and known[1] == told:
            self._repeated += 1
            return self._behind + place, known[0]
        question = parse_question(told, registry=self._registry)
        self._keep(key, question, told)
        return self._behind + place, question


def _expectations(row: Mapping[str, Any], identity: object, text: object) -> dict[str, Any]:
    told = {name: value for name, value in row.items() if name in _QUESTION_FIELDS and name != "trial"}
    if "tools" in told and told["tools"] != "none":
        del told["tools"]
    if text is None and not row.get("turns"):
        told["question"] = str(identity)
    return told


def _trial(row: Mapping[str, Any]) -> int:
    trial = row.get("trial")
    if trial is None:
        return 0
    if isinstance(trial, bool) or not isinstance(trial, int) or not 0 <= trial < 2**31:
        raise ValueError("'trial' must be a whole number, 1 or more (and at most 2147483647)")
    return trial


def _replies(row: Mapping[str, Any], question: Question) -> tuple[Reply, ...]:
    # How a log writes its messages is no fault of the chatbot's.
    check_messages(row)
    if not question.turns:
        return (reply_in_row(row, question.question) or Reply(),)
    turns = [
        reply_in_row(row, turn.question, number, in_turns=True) for number, turn in enumerate(question.turns)
    ]
    return tuple(reply for reply in turns if reply is not None)
