"""Rows of a log as trials: each recorded reply with the question that it answers.

Most rows of a log are alike and plain (text, names of tools, a latency); these go a short way to the very same trial.
"""

from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import Any

from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, parse_question
from answerkey.model.question import UNCATEGORISED, ExpectedTool, Question
from answerkey.model.reply import Reply
from answerkey.transcripts.payloads import NAMES_READ
from answerkey.transcripts.recorded_rows import PLAIN_REPLY_FIELDS, plain_reply, reply_in_row

__all__ = ["LogRows"]

# Fields of a row that describe the question, not the reply.
_QUESTION_FIELDS = EXPECTATION_FIELDS | {
    *("id", "question", "category", "group", "persona", "tags", "weight", "turns", "trial"),
}
# The same without what every row has: their presence means that a row carries its own golden case.
_INLINE_FIELDS = (EXPECTATION_FIELDS | {"category", "persona", "tags", "turns"}) - {"tools"}
# What a plain row has of its question.
_PLAIN_QUESTION_FIELDS = frozenset({"id", "question", "category", "expected_tools", "expected_keywords"})
# Parsed questions are kept for rows that repeat them; a log of more different ones takes no more memory.
_MOST_PARSED = 20_000
# Beyond these only where rows do repeat their questions.
_SOME_PARSED = 2000


class LogRows:
    """Makes trials of rows; expectations stand in the row or in the golden set."""

    def __init__(self, questions: tuple[Question, ...] | None) -> None:
        self._given = questions is not None
        listed = list(enumerate(questions or ()))
        self._by_id = {question.id: (position, question) for position, question in listed}
        self._by_text = {question.question: (position, question) for position, question in reversed(listed)}
        # Rows of a log repeat their questions; parsing each once is most of the speed.
        self._parsed: dict[str, tuple[Question, Any]] = {}
        self._repeated = 0
        # The names of a row's fields → which of them are the question's, where the row is plain.
        self._shapes: dict[tuple[str, ...], _Shape | None] = {}

    def read(self, row: Mapping[str, Any], place: int) -> tuple[int, Question, int, tuple[Reply, ...]]:
        """Position, question, trial number (0: the row has none) and replies; ValueError says what is wrong with the row."""
        names = tuple(row)
        shape = self._shapes.get(names, _UNSEEN)
        if shape is _UNSEEN:
            shape = _shape_of(names)
            if len(self._shapes) < _MOST_PARSED:
                self._shapes[names] = shape
        if shape is not None:
            reply = plain_reply(row)
            if reply is not None:
                position, question = self._find(row, place, shape)
                if not question.turns:
                    return position, question, _trial(row), (reply,)
        position, question = self._find(row, place, None)
        return position, question, _trial(row), _replies(row, question)

    def _find(self, row: Mapping[str, Any], place: int, shape: "_Shape | None") -> tuple[int, Question]:
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
        told = shape.told(row) if shape is not None else _expectations(row, identity, text)
        known = self._parsed.get(key)
        if known is not None and known[1] == told:
            self._repeated += 1
            return place, known[0]
        question = (shape is not None and _plain_question(row)) or parse_question(
            _expectations(row, identity, text)
        )
        kept = len(self._parsed)
        if kept < _SOME_PARSED or (kept < _MOST_PARSED and self._repeated > kept):
            self._parsed[key] = (question, told)
        return place, question


class _Shape:
    """What a plain row says of its question."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.told = itemgetter("id", *fields)


_UNSEEN: Any = object()
_NONE: list[str] = []


def _shape_of(names: tuple[str, ...]) -> _Shape | None:
    """Of rows with these fields, in this order; None: they go the long way."""
    own = [name for name in names if name in _QUESTION_FIELDS and name != "trial"]
    plain = _PLAIN_QUESTION_FIELDS.issuperset(own) and "id" in own and "answer" in names
    # Any other field that is read as part of a reply, or that could be meant for one of the question's, is not plain.
    others = set(names) - _PLAIN_QUESTION_FIELDS - PLAIN_REPLY_FIELDS - {"trial"}
    if not plain or not others.isdisjoint(NAMES_READ):
        return None
    return _Shape(tuple(name for name in own if name != "id"))


def _expectations(row: Mapping[str, Any], identity: object, text: object) -> dict[str, Any]:
    told = {name: value for name, value in row.items() if name in _QUESTION_FIELDS and name != "trial"}
    if "tools" in told and told["tools"] != "none":
        del told["tools"]
    if text is None and not row.get("turns"):
        told["question"] = str(identity)
    return told


def _plain_question(row: Mapping[str, Any]) -> Question | None:
    """The question of a plain row without a detour; None where something in it must be looked at."""
    identity, text, category = row["id"], row.get("question"), row.get("category")
    tools, keywords = row.get("expected_tools", _NONE), row.get("expected_keywords", _NONE)
    if type(identity) is not str or type(text) is not str or not identity.strip() or not text.strip():
        return None
    if not ((category is None or type(category) is str) and _all_text(tools) and _all_text(keywords)):
        return None
    return Question(
        id=identity,
        question=text,
        category=intern(category or UNCATEGORISED),
        expected_tools=tuple(map(_plain_tool, tools)),
        expected_keywords=tuple(keywords),
    )


def _all_text(values: Any) -> bool:
    """Whether it is a list of texts that are not blank."""
    try:
        return type(values) is list and all(map(str.strip, values))
    except TypeError:
        return False


@lru_cache(maxsize=1000)
def _plain_tool(name: str) -> ExpectedTool:
    return ExpectedTool(name)


def _trial(row: Mapping[str, Any]) -> int:
    trial = row.get("trial")
    if trial is None:
        return 0
    if isinstance(trial, bool) or not isinstance(trial, int) or not 0 <= trial < 2**31:
        raise ValueError("'trial' must be a whole number")
    return trial


def _replies(row: Mapping[str, Any], question: Question) -> tuple[Reply, ...]:
    if not question.turns:
        return (reply_in_row(row, question.question) or Reply(),)
    turns = [
        reply_in_row(row, turn.question, number, in_turns=True) for number, turn in enumerate(question.turns)
    ]
    return tuple(reply for reply in turns if reply is not None)
