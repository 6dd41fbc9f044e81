"""Component 1: did the chatbot use the tools that the question needs: by name, by order, by arguments?

Order-free values come from an optimal assignment and ordered ones from an alignment, never from a greedy pairing, so
that writing the same expectations in another order gives the same value.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from answerkey.model.options import ToolMode
from answerkey.model.question import ExpectedTool, Question
from answerkey.model.reply import Reply, ToolCall
from answerkey.model.scorecard import Score, ToolFacts
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.stats.assignment import cheapest_assignment
from answerkey.text.normalise import compile_pattern


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
_PREFIX = re.compile(r"^.*(?:__|[./])")
# Semantic Kernel joins them by a hyphen, which names of tools may have too: there the plug-in is a class, or the tool snake_case.
_PLUGIN_PREFIX = re.compile(r"^(?:\w*[A-Z]\w*-(?=\w+$)|\w+-(?=\w+_\w+$))")


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
