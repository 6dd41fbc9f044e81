"""The three components of the standard: tool usage, response quality and error handling; and abstention beside them."""

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from answerkey.detect.detector import DetectedFailure, detect_failure, shortened
from answerkey.match.keywords import Match, MatchMode, Probability, find_keywords, is_number
from answerkey.model.options import DEFAULT_ERRORS, ErrorSettings, ToolMode, error_pattern
from answerkey.model.question import (
    ComputedExpectation,
    Expectation,
    ExpectedTool,
    Question,
    describe_expectation,
    is_essential,
)
from answerkey.model.reply import Reply, ToolCall
from answerkey.model.scorecard import (
    ErrorFacts,
    ExpectationNote,
    KeywordFacts,
    KeywordMatch,
    Score,
    SuspectedFacts,
    ToolFacts,
)
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.text.normalise import CompiledPattern, Threshold, compile_pattern
from answerkey.text.patterns import lazy

# Component 1: did the chatbot use the tools that the question needs: by name, by order, by arguments? Order-free values come
# from an optimal assignment and ordered ones from an alignment, never from a greedy pairing, so that writing the same
# expectations in another order gives the same value.


class ToolFit(msgspec.Struct, frozen=True):
    """Every way to measure the fit; 1.0 throughout if nothing was expected and nothing called."""

    # Expected calls that were made ÷ expected calls.
    partial: float
    # Calls made that were expected ÷ calls made; None if none was made.
    precision: float | None
    # Harmonic mean of the two: extra calls cost here.
    f1: float
    # Longest run of expected calls made in the expected order ÷ expected calls.
    ordered: float
    # Like partial, but a call counts by the share of its expected arguments that are right.
    arguments: float


_PERFECT = ToolFit(1.0, 1.0, 1.0, 1.0, 1.0)


def fit_tools(expected: Sequence[ExpectedTool], calls: Sequence[ToolCall]) -> ToolFit:
    """Measure how the calls fit the expectations, each expected call matched to at most one made."""
    if not expected:
        return ToolFit(1.0, 0.0 if calls else None, 0.0 if calls else 1.0, 1.0, 1.0)
    wanted = [tool.name for tool in expected]
    made = [call.name for call in calls]
    if wanted == made and not any(tool.arguments for tool in expected):
        return _PERFECT
    # Equality of names is transitive, so the best assignment by name is the multiset intersection.
    matched = int(wanted[0] in made) if len(wanted) == 1 else (Counter(wanted) & Counter(made)).total()
    recall = matched / len(wanted)
    precision = matched / len(made) if made else None
    f1 = 2 * matched / (len(wanted) + len(made))
    ordered = recall if len(wanted) == 1 else _common(wanted, made) / len(wanted)
    asked = any(tool.arguments for tool in expected)
    return ToolFit(
        recall, precision, f1, ordered, _credit(expected, calls) / len(wanted) if asked else recall
    )


def _common(expected: Sequence[str], made: Sequence[str]) -> int:
    """Length of the longest common subsequence: an optimal alignment of two sequences of names."""
    lengths = [0] * (len(made) + 1)
    for name in expected:
        diagonal = 0
        for index, other in enumerate(made, start=1):
            above = lengths[index]
            lengths[index] = diagonal + 1 if name == other else max(above, lengths[index - 1])
            diagonal = above
    return lengths[-1]


def _credit(expected: Sequence[ExpectedTool], calls: Sequence[ToolCall]) -> float:
    """The most argument credit that any assignment of expected to made calls gives."""
    made: dict[str, list[ToolCall]] = defaultdict(list)
    for call in calls:
        made[call.name].append(call)
    wanted: dict[str, list[ExpectedTool]] = defaultdict(list)
    for tool in expected:
        wanted[tool.name].append(tool)
    return sum(_assigned(tools, made[name]) for name, tools in sorted(wanted.items()) if name in made)


def _assigned(tools: Sequence[ExpectedTool], calls: Sequence[ToolCall]) -> float:
    worth = [[argument_credit(tool.arguments, call.arguments) for call in calls] for tool in tools]
    if len(tools) == 1:
        return max(worth[0])
    if len(calls) == 1:
        return max(row[0] for row in worth)
    if all(credit == worth[0][0] for row in worth for credit in row):
        return min(len(tools), len(calls)) * worth[0][0]
    costs = [[1.0 - credit for credit in row] for row in worth]
    return sum(worth[row][column] for row, column in cheapest_assignment(costs))


def argument_credit(expected: dict[str, Any] | None, actual: dict[str, Any] | None) -> float:
    """The share of the expected arguments that are right; 1.0 if none is expected."""
    if not expected:
        return 1.0
    if actual is None:
        return 0.0
    return sum(_fits(wanted, actual, name) for name, wanted in expected.items()) / len(expected)


_ABSENT = object()


def _fits(expected: Any, arguments: dict[str, Any], name: str) -> bool:
    value = arguments.get(name, _ABSENT)
    if isinstance(expected, dict) and set(expected) == {"ignore"}:
        return True
    if isinstance(expected, dict) and set(expected) == {"regex"}:
        return value is not _ABSENT and isinstance(
            compile_pattern(expected["regex"]).search(_as_text(value)), tuple
        )
    if isinstance(expected, list):
        # An empty text or null among the acceptable values says that the argument may be left out.
        if value is _ABSENT:
            return "" in expected or None in expected
        return value == expected or any(_equal(option, value) for option in expected)
    return value is not _ABSENT and _equal(expected, value)


def _equal(expected: Any, value: Any) -> bool:
    # True == 1 in Python, but not in a tool's arguments.
    return bool(expected == value) and isinstance(expected, bool) == isinstance(value, bool)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# How a tool's name is joined to that of its MCP server or plug-in: mcp__books__query, books__query, books.query, books/query.
_PREFIX = lazy(r"^.*(?:__|[./])")
# Semantic Kernel joins them by a hyphen, which names of tools may have too: there the plug-in is a class, or the tool snake_case.
_PLUGIN_PREFIX = lazy(r"^(?:\w*[A-Z]\w*-(?=\w+$)|\w+-(?=\w+_\w+$))")


def golden_name(name: str, known: Container[str], aliases: Mapping[str, str]) -> str:
    """The name of a tool in the golden set: as reported, by an alias, or without the prefix of an MCP server or plug-in.

    >>> golden_name("mcp__books__query_database", {"query_database"}, {})
    'query_database'
    """
    if name in known:
        return name
    short = (aliases.get(name), _PREFIX.sub("", name), _PLUGIN_PREFIX.sub("", name))
    return next((one for one in short if one is not None and one in known), name)


# Between a tool's name and its operation in the name that a chatbot reports; golden sets write a colon.
_OPERATION_MARKS = (":", ".", "/", "__")


def name_operations(names: Iterable[str], calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls, those of an operation in `names` (`tool:operation`) under that name.

    A call is one of the operation if its name says so, or if one of its arguments is the operation.
    """
    operations = [name for name in names if ":" in name]
    if not operations:
        return tuple(calls)
    return tuple(_by_operation(call, operations) for call in calls)


def _by_operation(call: ToolCall, operations: Sequence[str]) -> ToolCall:
    for name in operations:
        tool, _, operation = name.partition(":")
        reported = {f"{tool}{mark}{operation}" for mark in _OPERATION_MARKS}
        in_arguments = call.name == tool and operation in (call.arguments or {}).values()
        if call.name in reported or in_arguments:
            return msgspec.structs.replace(call, name=name)
    return call


_MOST_KNOWN = 20_000


class ToolUsage(BaseScorer):
    """1.0 if every expected tool is among the tools used; other modes give partial credit.

    The values of all modes are recorded as metrics, whichever of them is the component.
    """

    name = "tool_usage"
    direction: Mapping[str, Direction] = dict.fromkeys(
        ("tool_usage", "tool_partial", "tool_precision", "tool_f1", "tool_ordered", "tool_arguments"),
        "higher",
    )
    needs: frozenset[Need] = frozenset()

    def __init__(self, mode: ToolMode = "standard", aliases: Mapping[str, str] | None = None) -> None:
        self.mode = mode
        self._aliases = aliases or {}
        named = "".join(f"/{reported}={name}" for reported, name in sorted(self._aliases.items()))
        self.version = f"tool_usage/1/{mode}{named}"
        # Few combinations of expected and called tools make up most replies.
        self._known: dict[object, tuple[Score, ...]] = {}

    def score(self, question: Question, reply: Reply) -> tuple[Score, ...]:
        """The component first, then the metrics."""
        used, observed, failed = reply.tools_used, reply.evidence.tools_observed, reply.failure is not None
        try:
            key = (question.expected_tools, question.forbidden_tools, question.tools, used, observed, failed)
            known = self._known.get(key)
        except TypeError:
            # Arguments are expected, so the calls themselves decide.
            return self._score(question, reply)
        if known is None:
            known = self._score(question, reply)
            # The operation of a call is in its arguments.
            by_operation = any(":" in tool.name for tool in question.expected_tools)
            if len(self._known) < _MOST_KNOWN and not by_operation and ":" not in str(key[1]):
                self._known[key] = known
        return known

    def _score(self, question: Question, reply: Reply) -> tuple[Score, ...]:
        expected = dict.fromkeys([tool.name for tool in question.expected_tools])
        listed = (*expected, *question.forbidden_tools)
        # The tools of listed operations are known by name as well.
        known = {*listed, *(name.partition(":")[0] for name in listed)}
        names = {name: golden_name(name, known, self._aliases) for name in dict.fromkeys(reply.tools_used)}
        named = [
            call if names[call.name] == call.name else msgspec.structs.replace(call, name=names[call.name])
            for call in reply.tool_calls
        ]
        calls = name_operations(listed, named)
        fit = fit_tools(question.expected_tools, calls)
        # A call of an expected operation is also one of its tool, if that is expected too.
        called = dict.fromkeys(call.name for call in calls)
        called |= dict.fromkeys(name for name in names.values() if name in expected)
        observed = reply.evidence.tools_observed
        forbids = question.tools == "none" or bool(question.forbidden_tools)
        facts = ToolFacts(
            missing=tuple(name for name in expected if name not in called),
            extra=tuple(name for name in called if name not in expected),
            forbidden=tuple(name for name in called if name in question.forbidden_tools),
            unwanted=tuple(called) if question.tools == "none" else (),
            expects_tools=bool(expected),
            observed=observed,
            absence_unproved=forbids and not observed,
            renamed=tuple((reported, name) for reported, name in names.items() if reported != name),
            mode=self.mode,
        )
        return (
            Score(self.name, self._value(facts, fit, reply), facts=facts),
            Score("tool_partial", fit.partial),
            Score("tool_precision", fit.precision),
            Score("tool_f1", fit.f1),
            Score("tool_ordered", fit.ordered),
            Score("tool_arguments", fit.arguments),
        )

    def _value(self, facts: ToolFacts, fit: ToolFit, reply: Reply) -> float | None:
        if facts.unwanted or facts.forbidden:
            return 0.0
        if facts.absence_unproved and not facts.missing:
            # Unscored, unless the reply failed: then failing would pay.
            return None if reply.failure is None else 0.0
        if not facts.expects_tools:
            return 1.0
        if self.mode == "standard":
            return 0.0 if facts.missing else 1.0
        value: float = getattr(fit, self.mode)
        return value


# Component 2: does the reply say what it should, and nothing that it must not?

# Raised where the same reply could get another score.
_REVISIONS: dict[MatchMode, int] = {"literal": 6, "standard": 6, "smart": 11}


class ResponseQuality(BaseScorer):
    """Expectations met ÷ expectations; 0 without an essential one, and with a forbidden keyword."""

    name = "response_quality"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset()

    def __init__(
        self,
        mode: MatchMode = "standard",
        *,
        threshold: Threshold = "even",
        must: Literal["marked", "numbers"] = "marked",
        whole_numbers: bool = False,
        model: str = "",
        abbreviations: Mapping[str, str] | None = None,
        folder: Path = Path(),
    ) -> None:
        self.mode: MatchMode = mode
        # Whether scores say where each keyword is; a log of which only the summary is needed does without.
        self.spans = True
        # Value → the score without facts that all replies of this value share.
        self._scores: dict[float, Score] = {}
        # How sure `smart` must be, of keywords in its mode and of reference answers in every mode.
        self.threshold: Threshold = threshold
        self._must, self._whole_numbers = must, whole_numbers
        # An entailment model that decides for `smart`; none: its own trees do.
        self._model, self._folder = model, folder
        # Abbreviations of `smart` beside its own.
        self._abbreviations = tuple(sorted((abbreviations or {}).items()))
        parts = [f"response_quality/{_REVISIONS[mode]}", mode]
        parts += [threshold] if threshold != "even" else []
        parts += [f"must {must}"] if must != "marked" else []
        parts += ["whole numbers"] if whole_numbers else []
        parts += [model] if model else []
        parts += [f"{short}={meaning}" for short, meaning in self._abbreviations]
        self.version = "/".join(parts)

    @cached_property
    def _probability(self) -> Probability | None:
        """How probably a reply says a keyword by the model, which the first reply loads in the process that scores."""
        if not self._model:
            return None
        from answerkey.evidence.links import load_cross_encoder

        model = load_cross_encoder(self._model, self._folder)
        return lambda question, keyword, answer: model.probabilities([(answer, f"{question} {keyword}")])[0]

    def prepare(self) -> None:
        """Load what the mode takes; a model is loaded by the process that asks it."""
        if not self._model:
            self.score(
                Question(id="", question="?", expected_keywords=("two",)), Reply(text="There are three.")
            )

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        value, facts = self._quality(question, reply.text, facts=True)
        return Score(self.name, value, facts=facts)

    def score_value(self, question: Question, reply: Reply) -> Score:
        """The same score without its facts; replies of equal values share it."""
        value, _ = self._quality(question, reply.text, facts=False)
        return self._scores.get(value) or self._scores.setdefault(value, Score(self.name, value))

    def _quality(self, question: Question, text: str | None, *, facts: bool) -> tuple[float, KeywordFacts]:
        """The value, and what it was decided from; without `facts`, these may be left out."""
        reference = question.reference_answer
        if not question.answerable:
            value, found = self._unanswerable(question, text)
        elif not question.expected_keywords and reference and reference.strip():
            (match,) = self.find((reference,), text, question.question, "smart")
            value = float(match.found)
            found = KeywordFacts(
                matches=_keyword_matches((reference,), (match,)), conveys_reference=match.found
            )
        else:
            value, found = self._by_keywords(question, text, facts=facts)
        if question.forbidden_keywords:
            forbidden = self._forbidden_said(question, text)
            if forbidden:
                value, found = 0.0, msgspec.structs.replace(found, forbidden=forbidden)
        return value, found

    def _unanswerable(self, question: Question, text: str | None) -> tuple[float, KeywordFacts]:
        """Declining is one expectation beside the keywords; expectations without a value (`on_empty`) are not counted."""
        keywords = _known_keywords(question)
        declined = is_declined(question, text)
        expecting = msgspec.structs.replace(question, expected_keywords=keywords)
        value, facts = self._by_keywords(expecting, text, facts=True)
        # A missing essential keyword leaves nothing.
        if not keywords or value or not any(note.must for note in facts.notes):
            value = (len(facts.found) + declined) / (len(keywords) + 1)
        return value, msgspec.structs.replace(facts, declined=declined, no_reply=not (text or "").strip())

    def _by_keywords(
        self, question: Question, text: str | None, *, facts: bool
    ) -> tuple[float, KeywordFacts]:
        keywords = question.expected_keywords
        if not keywords:
            return 1.0, _NOTHING_EXPECTED
        # A plain text is its own name, and most sets have nothing else.
        is_plain = {*map(type, keywords)} == _TEXTS
        names: Sequence[str] = keywords if is_plain else keyword_names(keywords)  # type: ignore[assignment]  # texts
        notes = () if is_plain and self._must == "marked" else self._notes(keywords, names)
        spans = facts and self.spans
        matches = self.find(keywords, text, question.question, spans=spans)
        if not facts and not notes:
            return sum([match.found for match in matches]) / len(matches), _NOTHING_EXPECTED
        found, missing = list[str](), list[str]()
        for name, match in zip(names, matches, strict=True):
            (found if match.found else missing).append(name)
        value = len(found) / len(names)
        if missing and notes and any(note.must and note.keyword in missing for note in notes):
            value = 0.0
        places = _keyword_matches(names, matches) if spans else ()
        return value, KeywordFacts(tuple(found), tuple(missing), places, notes)

    def _notes(self, keywords: Sequence[Expectation], names: Sequence[str]) -> tuple[ExpectationNote, ...]:
        """The essential and computed ones among the expectations."""
        return tuple(
            note
            for keyword, name in zip(keywords, names, strict=True)
            if (note := self._note(keyword, name)).must or note.expression
        )

    def _note(self, keyword: Expectation, name: str) -> ExpectationNote:
        if isinstance(keyword, ComputedExpectation):
            # Never a wrong number in silence: the reply stays unscored.
            raise ValueError(f"the expected value of {keyword.expression!r} was not computed before scoring")
        must = is_essential(keyword) or (self._must == "numbers" and is_number(keyword))
        return ExpectationNote(name, must, "" if isinstance(keyword, str) else keyword.expression)

    def find(
        self,
        keywords: Sequence[Expectation],
        text: str | None,
        question: str = "",
        mode: MatchMode | None = None,
        *,
        spans: bool = True,
    ) -> tuple[Match, ...]:
        """One Match for each keyword, in order."""
        return find_keywords(
            keywords,
            text,
            mode or self.mode,
            question=question,
            threshold=self.threshold,
            probability=self._probability,
            whole_numbers=self._whole_numbers,
            abbreviations=self._abbreviations,
            spans=spans,
        )

    def _forbidden_said(self, question: Question, text: str | None) -> tuple[KeywordMatch, ...]:
        matches = self.find(question.forbidden_keywords, text, question.question)
        names = keyword_names(question.forbidden_keywords)
        return tuple(match for match in _keyword_matches(names, matches) if match.found)


_NOTHING_EXPECTED = KeywordFacts()
_TEXTS = {str}


def keyword_names(keywords: Sequence[Expectation]) -> list[str]:
    """How keywords are named in words."""
    return [word if type(word) is str else describe_expectation(word) for word in keywords]


def is_declined(question: Question, text: str | None) -> bool:
    """Whether a reply declines to answer a question; an error message, which is charged as an error, does not."""
    from answerkey.detect.abstention.model import declines  # few sets have unanswerable questions

    asked = question.question
    if not question.answerable:
        # A figure that the key expects beside declining is not an invented answer.
        asked = " ".join([asked, *keyword_names(_known_keywords(question))])
    if not declines(asked, text):
        return False
    error = detected_in(text)
    return error is None or not error.charged


def _known_keywords(question: Question) -> tuple[Expectation, ...]:
    return tuple(one for one in question.expected_keywords if not isinstance(one, ComputedExpectation))


def _keyword_matches(names: Iterable[str], matches: Iterable[Match]) -> tuple[KeywordMatch, ...]:
    return tuple(
        [
            KeywordMatch(name, one.found, one.rule, one.start, one.end, one.text, one.why)
            for name, one in zip(names, matches, strict=True)
        ]
    )


# Metrics beside the score: unanswerable questions that were declined, and answerable ones that were.


class Abstention(BaseScorer):
    """`abstained` of an unanswerable question, `over_refused` of an answerable one: 1.0 if the reply declines, else 0.0."""

    name = "abstention"
    version = "abstention/2"
    direction: Mapping[str, Direction] = {"abstained": "higher", "over_refused": "lower"}
    needs: frozenset[Need] = frozenset()

    def __init__(self, **quality: Any) -> None:
        """`quality` are the arguments of ResponseQuality."""
        # Whether answerable questions are measured too: only beside unanswerable ones, since it takes time for every reply.
        self.measures_answerable = False
        self._quality = ResponseQuality(**quality)

    def score(self, question: Question, reply: Reply) -> Sequence[Score]:
        """One of the two metrics, or none."""
        if question.answerable and not self.measures_answerable:
            return ()
        declined = reply.failure is None and is_declined(question, reply.text)
        if not question.answerable:
            return (Score("abstained", float(declined)),)
        # "None" and "no late fees" are answers where the key expects them.
        is_right = (
            declined
            and not question.expects_nothing_of_text
            and self._quality.score(question, reply).value == 1.0
        )
        return (Score("over_refused", float(declined and not is_right)),)


# Component 3: did the question complete without an error, as the target saw it or as the reply's text shows it?

_MARKS_AROUND = " .!?…\"'“”"


class ErrorHandling(BaseScorer):
    """1.0 without an error, 0.0 with one; 1.0 where an error is only suspected."""

    name = "error_handling"
    version = "error_handling/5"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset()

    def __init__(self, settings: ErrorSettings = DEFAULT_ERRORS) -> None:
        """`settings` are those of `[errors]`."""
        self._suspects = settings.suspect
        self._lists_replies = bool(settings.allow or settings.added)
        self._allowed = _ListedReplies([(text, "") for text in settings.allow])
        self._added = _ListedReplies([(error.text, error.kind) for error in settings.added])

    def prepare(self) -> None:
        """Load what plain answers need of the detector; the rest is loaded when a reply needs it."""
        detected_in("It was bought in 2019, and it is in Montrose.")

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        if reply.failure is not None:
            return Score(self.name, 0.0, facts=ErrorFacts(reply.failure.kind, reply.failure.message))
        detected = self._detect(reply.text)
        if reply.finish == "length" and (detected is None or not detected.charged):
            message = "the model stopped at its token limit (finish reason length)"
            return Score(self.name, 0.0, facts=ErrorFacts("truncated", message))
        if detected is None:
            return _NO_ERROR
        span = (detected.start, detected.end) if detected.end else None
        if not detected.charged:
            suspected = SuspectedFacts(detected.kind, detected.message, detected.probability, span)
            return Score(self.name, 1.0, facts=suspected)
        kind, message = detected.kind, detected.message
        raised = next((call for call in reply.tool_calls if call.error), None)
        if raised is not None and kind == "error_text":
            # The reply only reports that a tool failed: the tool is the cause.
            kind, message = "tool", f"{raised.name}: {raised.error}"
        return Score(self.name, 0.0, facts=ErrorFacts(kind, message, detected.because, span))

    def _detect(self, text: str | None) -> DetectedFailure | None:
        """The failure that a text shows under the settings of `[errors]`."""
        if self._lists_replies and text is not None:
            if self._allowed.find(text) is not None:
                return None
            kind = self._added.find(text)
            if kind is not None:
                return DetectedFailure(kind, shortened(text), 0, len(text), ("[errors] add",))
        detected = detected_in(text)
        return detected if detected is None or detected.charged or self._suspects else None


class _ListedReplies:
    """Texts and patterns of `[errors]`, each with a kind of error."""

    def __init__(self, entries: list[tuple[str, str]]) -> None:
        self._texts: dict[str, str] = {}
        self._patterns: list[tuple[CompiledPattern, str]] = []
        for text, kind in entries:
            pattern = error_pattern(text)
            if pattern is None:
                self._texts[_plain(text)] = kind
            else:
                self._patterns.append((compile_pattern(pattern), kind))

    def find(self, reply: str) -> str | None:
        """The kind of the entry that a reply equals, or whose pattern occurs in it; None: there is none."""
        if self._texts and (kind := self._texts.get(_plain(reply))) is not None:
            return kind
        found = (kind for pattern, kind in self._patterns if isinstance(pattern.search(reply), tuple))
        return next(found, None)


def _plain(text: str) -> str:
    """A text without case, repeated spaces and punctuation around it."""
    return " ".join(text.split()).strip(_MARKS_AROUND).casefold()


_TERMINAL_CODE = lazy(r"\x1b\[[0-9;?]*[A-Za-z]?")
_NO_ERROR = Score(ErrorHandling.name, 1.0, "no error")
# A log repeats its replies, above all those that are errors.
_remembered = lru_cache(maxsize=4096)(detect_failure)
_LONGEST_REMEMBERED = 2000
# Of longer ones the last few: `audit` gives one to many questions.
_long_remembered = lru_cache(maxsize=4)(detect_failure)


def detected_in(text: str | None) -> DetectedFailure | None:
    """The failure that a text shows or suggests under the default settings."""
    if text is not None and "\x1b" in text:
        # Colours of a terminal are not words, and their bracket is not an open one. Spaces keep the spans right.
        text = _TERMINAL_CODE.sub(lambda code: " " * len(code[0]), text)
    long = text is not None and len(text) > _LONGEST_REMEMBERED
    return _long_remembered(text) if long else _remembered(text)


_FREE = -1


def cheapest_assignment(costs: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the pairs (row, column) of least total cost; each row and column is used at most once.

    Costs must be finite. All of the shorter side is assigned, in O(shorter² · longer).
    """
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        return sorted((row, column) for column, row in cheapest_assignment(list(zip(*costs, strict=True))))
    column_of, row_of = [_FREE] * len(costs), [_FREE] * len(costs[0])
    # Dual variables: row price + column price ≤ cost, with equality for assigned pairs.
    row_prices, column_prices = [0.0] * len(column_of), [0.0] * len(row_of)
    for start in range(len(column_of)):
        # Grow a tree of shortest paths from the new row until it reaches a free column.
        distances, rows_before = [math.inf] * len(row_of), [start] * len(row_of)
        open_columns, reached = list(range(len(row_of))), list[int]()
        row, distance = start, 0.0
        while True:
            for column in open_columns:
                length = distance + costs[row][column] - row_prices[row] - column_prices[column]
                if length < distances[column]:
                    distances[column], rows_before[column] = length, row
            end = min(open_columns, key=distances.__getitem__)
            distance = distances[end]
            if row_of[end] == _FREE:
                break
            open_columns.remove(end)
            reached.append(end)
            row = row_of[end]
        row_prices[start] += distance
        for column in reached:
            row_prices[row_of[column]] += distance - distances[column]
            column_prices[column] -= distance - distances[column]
        # Shift every row on the path to its next column.
        while end != _FREE:
            row = rows_before[end]
            row_of[end] = row
            column_of[row], end = end, column_of[row]
    return list(enumerate(column_of))
