"""Question, its Checks, and QuestionSet: golden cases and what a good reply to each must do."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, Protocol

import msgspec

from answerkey.model.expectation import (
    ComputedExpectation,
    Expectation,
    TextExpectation,
    describe_expectation,
)

UNCATEGORISED = "uncategorised"
# Fields of a golden set that say which questions belong together, the first that is there; all but `group` are metadata.
GROUP_FIELDS = ("group", "template", "cluster", "conversation", "conversation_id")
# What a check can look at by itself; any other kind is the name of a registered scorer.
CHECK_KINDS = (
    "contains",
    "equals",
    "regex",
    "is_json",
    "json_schema",
    "max_latency_ms",
    "max_cost",
    "max_words",
    "language",
    "python",
    "rubric",
)
# A judge's score for a rubric is called this with the rubric's text behind it.
RUBRIC_PREFIX = "rubric: "


def rubric_name(expected: object) -> str:
    """What a judge's score for a check's rubric is called."""
    return RUBRIC_PREFIX + (
        expected
        if isinstance(expected, str)
        else msgspec.json.encode(expected, order="deterministic").decode()
    )


class ExpectedTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool that a good reply calls, and what its arguments may be."""

    name: str
    # Argument name → a value, a list of acceptable values, {"regex": …} or {"ignore": true}; None: any arguments do.
    arguments: dict[str, Any] | None = None


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One further condition on a reply: its kind and what that kind expects."""

    # One of CHECK_KINDS, or the name of a registered scorer.
    kind: str
    # What the kind compares with; of a registered scorer, its arguments.
    expected: Any
    # How it is reported.
    name: str
    # Its share of the question's checks, relative to the others.
    weight: float = 1.0


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A golden case. One with `turns` is a conversation, and each of its turns is a Question of its own."""

    id: str
    # What the user asks; of a conversation, its first turn's question.
    question: str
    category: str = UNCATEGORISED
    expected_tools: tuple[ExpectedTool, ...] = ()
    # Calling one of these is wrong whatever else was called.
    forbidden_tools: tuple[str, ...] = ()
    # "none": a good reply calls no tool at all.
    tools: Literal["none"] | None = None
    expected_keywords: tuple[Expectation, ...] = ()
    # Saying one of these is wrong whatever else was said.
    forbidden_keywords: tuple[Expectation, ...] = ()
    # False: a good reply says that it is not known, not on record or not possible.
    answerable: bool = True
    reference_answer: str | None = None
    # Replies that a person marked as right: `audit` does not count them as wrong ones.
    also_right: tuple[str, ...] = ()
    # Further conditions; their weighted mean is the metric or component `checks`.
    checks: tuple[Check, ...] = ()
    # Document id → how relevant it is (1 when the golden set gives no grades).
    relevant_documents: dict[str, float] = {}
    # The template or family that it belongs to: questions of one group are one unit of analysis.
    group: str | None = None
    # "critical": failing it is shown first and can be gated.
    severity: Literal["critical"] | None = None
    context: str | None = None
    persona: str | None = None
    tags: tuple[str, ...] = ()
    # Kept and reported as a slice; the standard's means weigh every question alike.
    weight: float = 1.0
    turns: tuple["Question", ...] = ()
    # Unknown fields, unchanged.
    metadata: dict[str, Any] = {}
    # Line in the file, for lint findings; not part of the content.
    line: int | None = None

    @property
    def asks(self) -> tuple["Question", ...]:
        """What is said to the chatbot, in order: the turns, or the question itself."""
        return self.turns or (self,)

    @property
    def expects_nothing(self) -> bool:
        """Whether every reply without an error scores 1.0; its checks count only where they have a weight."""
        return self.expects_nothing_of_text and self.expects_nothing_of_tools

    @property
    def expects_nothing_of_text(self) -> bool:
        """Whether any text gets full response quality; checks count only where they have a weight."""
        for turn in self.turns or (self,):
            expected = turn.expected_keywords or turn.forbidden_keywords or turn.reference_answer
            if expected or not turn.answerable:
                return False
        return True

    @property
    def expects_nothing_of_tools(self) -> bool:
        """Whether any tool calls, and none, get full tool usage."""
        if self.turns:
            return all(turn.expects_nothing_of_tools for turn in self.turns)
        return not (self.expected_tools or self.forbidden_tools or self.tools)

    @cached_property
    def ask_hash(self) -> str:
        """Hash of what the chatbot gets to see, under its id: while it stays, a stored reply is still its reply."""
        asked = [turn.question for turn in self.turns] if self.turns else [self.question]
        return _hash([self.id, asked, self.context])

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that can change a score: what is asked and what is expected."""
        return _hash(msgspec.structs.replace(self, line=None, also_right=()))

    @cached_property
    def definition_hash(self) -> str:
        """Like `content_hash`, with the expressions of computed expectations instead of their values."""
        turns = tuple(map(_definition, self.turns))
        return _hash(msgspec.structs.replace(_definition(self), turns=turns, line=None))

    @property
    def computed_values(self) -> dict[str, list[str]]:
        """The computed expectations: expression → values."""
        values: dict[str, list[str]] = {}
        for turn in self.asks:
            for one in turn.expected_keywords:
                if not isinstance(one, str | ComputedExpectation) and one.computed:
                    values.setdefault(one.expression, []).append(describe_expectation(one))
        return values


def _definition(turn: Question) -> Question:
    """A turn before its expectations were computed."""
    expected: dict[Expectation, None] = {}
    is_answerable = turn.answerable
    for one in turn.expected_keywords:
        if isinstance(one, ComputedExpectation):
            is_answerable = is_answerable or one.on_empty == "abstain"
            expected[TextExpectation("", must=one.must, expression=one.described)] = None
        elif isinstance(one, str) or not one.computed:
            expected[one] = None
        else:
            expected[TextExpectation("", must=one.must, expression=one.expression)] = None
    return msgspec.structs.replace(turn, expected_keywords=tuple(expected), answerable=is_answerable)


class ReadNote(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a file that can be read but is probably not what its author meant."""

    code: str
    # Of the value; None for formats without lines.
    line: int | None
    message: str
    remedy: str


class QuestionSet(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A golden set: its questions in order, with a name and a content hash."""

    questions: tuple[Question, ...]
    name: str = "questions"
    # The file it was read from, when there is one: `resume` reads it again.
    path: str | None = None
    # What was guessed to read the file, for the user to know; empty: nothing was.
    read_as: str = ""
    # Values in the file that are probably not what was meant.
    notes: tuple[ReadNote, ...] = ()

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    @cached_property
    def hash(self) -> str:
        """Hash of the questions' contents, in order."""
        return _hash([question.content_hash for question in self.questions])

    @cached_property
    def unknown_fields(self) -> tuple[str, ...]:
        """Fields that answerkey keeps and does not use."""
        names = {name for question in self.questions for name in question.metadata}
        return tuple(sorted(names - set(GROUP_FIELDS)))

    def subset(self, questions: Sequence[Question]) -> "QuestionSet":
        """The same set with fewer questions."""
        return msgspec.structs.replace(self, questions=tuple(questions))


class Grouped(Protocol):
    """What of a question says to which others it belongs."""

    @property
    def group(self) -> str | None: ...

    @property
    def metadata(self) -> dict[str, Any]: ...


def group_of(question: Grouped, fields: Sequence[str] = GROUP_FIELDS) -> str | None:
    """The group that a question belongs to by the first of the fields that it has; None: it is a unit of its own."""
    if not question.metadata and question.group is None:
        return None
    for field in fields:
        value = question.group if field == "group" else question.metadata.get(field)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return f"{field}={value}"
    return None


def question_id(question: str, turns: Sequence[str] = ()) -> str:
    """The id of a question that its golden set gives none: stable as long as its wording is."""
    return "q-" + _hash([question, *turns])[:10]


def _hash(value: Any) -> str:
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=16).hexdigest()
