"""Question, its Checks, and QuestionSet: golden cases, what a good reply to each must do, and truth that it is computed from."""

import datetime
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from answerkey.text.patterns import blake2b

# A computed value. None: the data has none.
TruthValue: TypeAlias = int | float | str | datetime.date | None


class RowFunction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of golden rows that name a function and its arguments: `rows = {function = "…", args = "…"}`."""

    function: str
    args: str | None = None


class TruthSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One source of truth, `[truth.NAME]`: exactly one of url, files, document, python."""

    # sqlite:///path or postgresql://…
    url: str = ""
    # Table → CSV, Parquet or JSON file, or a pattern of several.
    files: dict[str, str] = {}
    # A YAML, JSON or TOML file.
    document: str = ""
    # A Python file.
    python: str = ""
    # With `python`: golden rows that name a function in fields of their own.
    rows: RowFunction | None = None
    # Longest time of one query, in seconds.
    timeout: float = 10.0
    # Most values of one expression.
    max_rows: int = 10_000


class WorldCondition(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"source": "from"}
):
    """One precondition, `[[world]]`: a value of a truth source or of a web address, and what it must be."""

    name: str
    # `> 0`, `>= 10`, `== "ready"`.
    expect: str
    source: str = ""
    # Exactly one of these.
    sql: str = ""
    fact: str = ""
    python: str = ""
    get: str = ""
    # With `get`: the JMESPath of the value in the JSON that the address returns.
    value: str = ""


class ComputedKey(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """What an expectation was computed to be, for one question of one run."""

    # Of the question.
    id: str
    source: str
    expression: str
    # One value, a list of several, or None where there was none.
    value: Any
    # How many values the source gave.
    rows: int
    # How long the source took.
    ms: float


class WorldCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a precondition came to."""

    name: str
    value: Any
    expect: str
    holds: bool


class RunTruth(msgspec.Struct, frozen=True, kw_only=True):
    """What was computed before the first question of a run. The values are in its questions, with their expressions."""

    # Expectations that were computed.
    computed: int = 0
    # ISO 8601.
    computed_at: str = ""
    world: tuple[WorldCheck, ...] = ()


# A computed number is met by what it rounds to at two decimals, as money is written.
ROUNDING = 0.005


class _Expectation(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
):
    """What every kind of expectation has."""

    # Essential: if it is not met, response quality is 0.
    must: bool = False
    # The query, path or call that the value was computed from; empty: it was written by hand.
    expression: str = ""

    @property
    def computed(self) -> bool:
        """Whether the value was computed from the data."""
        return self.expression != ""


class TextExpectation(_Expectation, frozen=True, tag="text"):
    """A text that is essential or computed: `{"text": "net 30", "must": true}`. Any other text is a plain `str`."""

    text: str


class NumberExpectation(_Expectation, frozen=True, tag="number"):
    """A number, exact or within a tolerance: `{"number": 3960, "tolerance": "1%"}`."""

    number: float
    # Largest difference that still counts: absolute, or a share of the number such as "1%". A default factory, because
    # `omit_defaults` would otherwise leave 0.0 out, which is part of the content hash.
    tolerance: float | str = msgspec.field(default_factory=float)
    # The number is a percentage: 5 is "5%", "5 percent" or 0.05, and not a bare 5.
    percent: bool = False

    @property
    def slack(self) -> float:
        """The tolerance as an absolute difference."""
        if isinstance(self.tolerance, str):
            return abs(self.number) * float(self.tolerance.rstrip("% ")) / 100
        return self.tolerance


class RangeExpectation(_Expectation, frozen=True, tag="range"):
    """A number between two others, both included: `{"range": [3900, 4000]}`."""

    low: float
    high: float
    # Both ends are percentages.
    percent: bool = False


class DateExpectation(_Expectation, frozen=True, tag="date"):
    """A date, a part of one, or a time of day, however the reply writes it: `{"date": "2025-03-31"}`.

    What it does not say may be anything: "30/09" is met by September 30 of any year, "03/04" by either reading.
    """

    date: str


class PatternExpectation(_Expectation, frozen=True, tag="regex"):
    """A regular expression, searched ignoring case: `{"regex": "9(th)? street"}`."""

    regex: str


# What can be one of several alternatives.
SingleExpectation = (
    str | TextExpectation | NumberExpectation | RangeExpectation | DateExpectation | PatternExpectation
)


class Alternatives(_Expectation, frozen=True, tag="any"):
    """Several ways to say one thing, any of which counts as the one expectation: `["land", "plot"]`."""

    options: tuple[SingleExpectation, ...]


# How a value is computed: a query, a path in a facts document, or a Python function.
Method = Literal["sql", "fact", "python"]


class ComputedExpectation(_Expectation, frozen=True, tag="computed"):
    """A value that is computed from the data before grading: `{"sql": "SELECT SUM(gross) …", "from": "books"}`."""

    method: Method
    # Name of the truth source; empty: the only one there is.
    source: str = ""
    # Parameters of a query, arguments of a function.
    arguments: dict[str, Any] = {}
    # Several values: each of them is expected, or one of them.
    several: Literal["all", "any"] = "all"
    # No value: the run ends with an error, or the question has no answer for this run.
    on_empty: Literal["error", "abstain"] = "error"
    # Of the numbers that it gives.
    tolerance: float | str = 0.0

    @property
    def described(self) -> str:
        """The expression with its source and arguments, as its values carry it."""
        source = f"{self.source}: " if self.source else ""
        arguments = ", ".join(f"{name}={value}" for name, value in sorted(self.arguments.items()))
        return f"{source}{self.expression}{f' ({arguments})' if arguments else ''}"


# What a question expects, or forbids.
Expectation = SingleExpectation | Alternatives | ComputedExpectation


def expected_text(expectation: Expectation) -> str | None:
    """The text that it expects word for word; None for every other kind."""
    if isinstance(expectation, TextExpectation):
        return expectation.text
    return expectation if isinstance(expectation, str) else None


def expected_options(expectation: Expectation) -> tuple[SingleExpectation | ComputedExpectation, ...]:
    """Its alternatives, or itself."""
    return expectation.options if isinstance(expectation, Alternatives) else (expectation,)


def is_essential(expectation: Expectation) -> bool:
    """Whether it is marked `must`."""
    return not isinstance(expectation, str) and expectation.must


def describe_expectation(expectation: Expectation) -> str:
    """How reports name an expectation.

    >>> describe_expectation(NumberExpectation(3960, "1%")), describe_expectation(RangeExpectation(1.5, 2))
    ('3960 ± 1%', '1.5 to 2')
    """
    match expectation:
        case str():
            return expectation
        case TextExpectation(text=text):
            return text
        case NumberExpectation(number=number, tolerance=tolerance):
            if expectation.computed and tolerance == ROUNDING:
                return f"{number:.2f}"
            name = f"{number:.12g}{'%' if expectation.percent else ''}"
            shown = tolerance if isinstance(tolerance, str) else f"{tolerance:g}"
            return f"{name} ± {shown}" if tolerance else name
        case RangeExpectation(low=low, high=high):
            unit = "%" if expectation.percent else ""
            return f"{low:.12g}{unit} to {high:.12g}{unit}"
        case DateExpectation(date=date):
            return date
        case PatternExpectation(regex=regex):
            return f"/{regex}/"
        case Alternatives(options=options):
            return " | ".join(map(describe_expectation, options))
        case ComputedExpectation(expression=computed):
            return computed


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

    @property
    def has_computed(self) -> bool:
        """Whether a question has an expectation that is yet to be computed."""
        return any(
            isinstance(expectation, ComputedExpectation)
            for question in self.questions
            for turn in question.asks
            for expectation in (*turn.expected_keywords, *turn.forbidden_keywords)
        )

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
    return blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=16).hexdigest()
