"""The language of gates, read strictly: a mistake is refused with its position, never guessed at.

    gate       = "no" "regression" ["in" name]
               | subject operator bound
    subject    = ["every" kind | kind quoted] [name]          without a name: the score
    kind       = "category" | "persona" | "tag" | "tools" | "length"
    operator   = ">=" | ">" | "<=" | "<" | "==" | "!="
    bound      = number ["%"] | grade                          a grade only for `grade`

`every category >= 0.70` holds if each category's score does; `category "Tax" tool_usage >= 0.9` looks at one.
"""

import difflib
import math
import operator as operators
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.reply import ERROR_KINDS, Usage
from answerkey.model.run import GateResult
from answerkey.model.scorecard import round_down
from answerkey.model.summary import Latency

# Worst to best, so that a letter's index orders it.
GRADES = "FDCBA"
KINDS = ("category", "persona", "tag", "tools", "length")
# What a gate calls the parts of a difference, and what a comparison does.
DIFFERENCE_NAMES = {
    "difference": "mean",
    "difference_low": "low",
    "difference_high": "high",
    "p_value": "p_value",
}
# Names that only a comparison with a baseline can answer; each may be followed by ".COMPONENT".
COMPARISON_NAMES = (*DIFFERENCE_NAMES, "fixed", "broken", "new_errors")

_TOKEN = re.compile(
    r"""\s*(?:(?P<operator>>=|<=|==|!=|>|<)
          |(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:\s*%)?)(?![\w.%])
          |"(?P<quoted>[^"]*)"
          |(?P<name>[A-Za-z_][\w@.:/()-]*))""",
    re.VERBOSE,
)

Operator = Literal[">=", ">", "<=", "<", "==", "!="]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A condition, as it was understood."""

    # As the user wrote it.
    text: str
    # What is looked at: "score", a component, a metric, "p95_latency_ms", "difference", "regression", …
    name: str
    operator: Operator | None = None
    bound: float = 0.0
    # The kind of slice ("category", …), when the gate is not about the whole run.
    kind: str | None = None
    # The one slice; None with a kind: every slice of it.
    slice_name: str | None = None

    @property
    def needs_comparison(self) -> bool:
        """Whether only a comparison with a baseline can answer it."""
        return self.name.partition(".")[0] in (*COMPARISON_NAMES, "regression")


class _Token(NamedTuple):
    kind: str
    text: str
    # Of its first character in the gate, from 1.
    position: int


def parse_gate(text: str) -> Gate:
    """Read one gate; raises UsageError that names the position of the first mistake."""
    return _Parser(text).gate()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[_Token] = []
        end = 0
        while rest := text[end:].strip():
            match = _TOKEN.match(text, end)
            position = text.index(rest[0], end) + 1
            if match is None:
                raise self._mistake(f"cannot read {rest[:12]!r}", position)
            kind = match.lastgroup or ""
            self.tokens.append(_Token(kind, match[kind], position))
            end = match.end()
        self.tokens.append(_Token("end", "", len(text.rstrip()) + 1))

    def gate(self) -> Gate:
        if len(self.tokens) == 1:
            raise self._mistake("is empty; write for example 'score >= 0.85'", 1)
        gate = self._no_regression() if self._has("name", "no") else self._condition()
        rest = self.tokens[self.at]
        if rest.text in ("and", "or"):
            raise self._mistake(
                f"{rest.text!r} is not known; give each condition a gate of its own", rest.position
            )
        self._next("end", "the end")
        return gate

    def _no_regression(self) -> Gate:
        self._next("name", "'no'")
        self._next("name", "'regression' after 'no'", "regression")
        if self._has("end"):
            return Gate(text=self.text, name="regression")
        self._next("name", "the end or 'in'", "in")
        return Gate(text=self.text, name="regression." + self._next("name", "a component"))

    def _condition(self) -> Gate:
        kind = slice_name = None
        if self._has("name", "every"):
            self.at += 1
            kind = self._next("name", "one of " + ", ".join(KINDS), *KINDS)
        elif self._has("name", *KINDS) and self.tokens[self.at + 1].kind == "quoted":
            kind = self._next("name", "a kind")
            slice_name = self._next("quoted", "a name")
        name = "score"
        if kind is None or self._has("name"):
            name = self._next("name", "a name such as 'score'")
        position = self.tokens[self.at].position
        operator = self._next("operator", "one of >= > <= < == !=")
        gate = Gate(
            text=self.text,
            name=name,
            operator=msgspec.convert(operator, Operator),
            bound=self._bound(name),
            kind=kind,
            slice_name=slice_name,
        )
        if gate.needs_comparison and kind is not None:
            raise self._mistake(f"{name!r} is not known for each {kind}", position)
        return gate

    def _bound(self, name: str) -> float:
        if name == "grade":
            return float(GRADES.index(self._next("name", "a grade (A, B, C, D or F)", *GRADES)))
        number = self._next("number", "a number")
        return float(number.rstrip("% \t")) / 100.0 if number.endswith("%") else float(number)

    def _has(self, kind: str, *texts: str) -> bool:
        """Whether the next token is of this kind, and one of these if there are any."""
        token = self.tokens[self.at]
        return token.kind == kind and (not texts or token.text in texts)

    def _next(self, kind: str, expected: str, *texts: str) -> str:
        token = self.tokens[self.at]
        if not self._has(kind, *texts):
            found = "the end" if token.kind == "end" else repr(token.text)
            raise self._mistake(f"expected {expected}, found {found}", token.position)
        self.at += 1
        return token.text

    def _mistake(self, what: str, position: int) -> UsageError:
        return UsageError(f"gate {self.text!r}, position {position}: {what}")


# Gates judged over the run document and a comparison with a baseline, and checked before a run for names that none has.


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operators.ge,
    ">": operators.gt,
    "<=": operators.le,
    "<": operators.lt,
    "==": operators.eq,
    "!=": operators.ne,
}
# A name that the document does not have is looked for in these parts of it.
_SHORTENED = ("components", "usage", "metrics")
# Names of gates → where the document has them.
_PLACES = {
    "score_low": "interval.low",
    "score_high": "interval.high",
    **{f"{statistic}_latency_ms": f"latency_ms.{statistic}" for statistic in Latency.FIGURES},
}
# What a gate may name in any run, whichever scorers it has; a run in which nothing of it was seen has no value there.
_ALWAYS = {
    *("score", "grade", "coverage", "planned", "questions", "trials", "replies"),
    *("passed", "pass_rate", "error_rate", "tools_unobserved"),
    *_PLACES,
    *Usage.__struct_fields__,
    *(f"usage.{name}" for name in Usage.__struct_fields__),
    *(f"errors.{kind}" for kind in ERROR_KINDS),
    *(f"grades.{letter}" for letter in GRADES),
}

# Gates that say how far a run may be incomplete.
_ALLOWING = frozenset(("coverage", "judge.reliable", "judge.unscored"))
# Numbers that are the score in other words.
_OF_THE_SCORE = frozenset(
    (
        "grade",
        "grades",
        "interval",
        "pass_interval",
        "pass_rate",
        "passed",
        "score",
        "score_high",
        "score_low",
    )
)

_SWITCHED_OFF = "it is counted only where the configuration says so: [grounded] links = true"
# Names that a run has only under some settings → what to do about it.
_REMEDIES = {
    "groundedness": (
        "groundedness has a value only from a judge or an entailment model; name one with --judge MODEL, "
        "[judge] model or [grounded] model"
    ),
    "linked": _SWITCHED_OFF,
    "novelty": _SWITCHED_OFF,
}


def check_gates(gates: Iterable[str], metrics: Iterable[str], *, baseline: str | None = None) -> list[Gate]:
    """Parse gates and refuse those that no run could answer; `metrics` are the names that the run's scorers give.

    A mistyped name must not come to light only when all questions have been asked. A run that is given a baseline but no
    gate on the comparison must not be a regression.
    """
    parsed = [parse_gate(gate) for gate in gates]
    named = set(metrics)
    known = {*_ALWAYS, *named, *(f"{part}.{name}" for part in ("components", "metrics") for name in named)}
    for gate in parsed:
        if gate.needs_comparison:
            if baseline is None:
                raise _without_baseline(gate)
        # What a gate may ask of a judge is known when it has judged: `judge.reliable == 1`, `judge.cost <= 2`.
        elif gate.name not in known and not gate.name.startswith("judge."):
            remedy = _REMEDIES.get(gate.name.rpartition(".")[2])
            if remedy is not None:
                raise UsageError(f"gate {gate.text!r}: {remedy}")
            raise _unknown_name(gate, gate.name, _ALWAYS | named)
    if baseline is not None and not any(gate.needs_comparison for gate in parsed):
        parsed.append(parse_gate("no regression"))
    return parsed


def evaluate_gates(
    gates: Sequence[Gate], document: Mapping[str, Any], comparison: Mapping[str, Any] | None = None
) -> list[GateResult]:
    """Judge each gate over the run document (its results are not looked at) and the comparison, in order.

    A value that is missing (no latency was measured, say) fails its gate; a name that is unknown is an error. A run with
    coverage below 1 fails every gate but those on the coverage, unless there is one on it, and it holds: what was not scored
    may be what would fail. So does a judge that failed its canaries, or gave no verdict, with every number that it touches:
    of a comparison either run's judge.
    """
    results = [_evaluate(gate, document, comparison) for gate in gates]
    allowed = {gate.name for gate, result in zip(gates, results, strict=True) if result.passed}
    doubts = [
        _doubt(gate, document, comparison, allowed) if gate.name not in _ALLOWING else None for gate in gates
    ]
    return [
        GateResult(result.gate, False, result.value, doubt)
        if doubt and (result.passed or result.value is None)
        else result
        for result, doubt in zip(results, doubts, strict=True)
    ]


def _doubt(
    gate: Gate, document: Mapping[str, Any], comparison: Mapping[str, Any] | None, allowed: Set[str]
) -> str | None:
    """Why a gate cannot pass whatever its number is, unless another gate allows that."""
    coverage = document["summary"].get("coverage")
    if coverage is not None and coverage < 1 and "coverage" not in allowed:
        allow = f"coverage >= {math.floor(coverage * 100) / 100:g}"
        return f"coverage is {round_down(coverage):.1%}; allow that with a gate such as {allow}"
    doubt = _judge_doubt(gate, document.get("judge") or {}, allowed)
    if doubt or comparison is None or not gate.needs_comparison:
        return doubt
    unscored = sum(item["reason"] == "not scored" for item in comparison.get("unpaired", ()))
    if unscored and "coverage" not in allowed:
        return f"the baseline has no score of {unscored} questions; allow that with a gate such as coverage >= 0.9"
    return _judge_doubt(gate, comparison.get("base", {}).get("judge", {}), allowed, of=" of the baseline")


def _judge_doubt(gate: Gate, judge: Mapping[str, Any], allowed: Set[str], of: str = "") -> str | None:
    """Why what this judge touches cannot pass."""
    missing = judge.get("touches", {}).get(_subject(gate))
    if missing is None:
        return None
    if judge.get("canaries") and not judge.get("reliable") and "judge.reliable" not in allowed:
        because = "; ".join(judge.get("unreliable_because", ())[:2])
        remedy = "" if judge["reliable"] is None else ", or allow it with the gate judge.reliable >= 0"
        return f"the judge{of} is not reliable: {because}; use another judge{remedy}"
    if missing and "judge.unscored" not in allowed:
        return f"{missing} replies{of} were not judged; allow that with a gate such as judge.unscored <= {missing}"
    return None


def _subject(gate: Gate) -> str:
    """The score that a gate's number is made of."""
    name, _, component = gate.name.partition(".")
    if gate.needs_comparison:
        return component or ("score" if name != "new_errors" else name)
    if name in (*_SHORTENED, "component_intervals", "metric_intervals"):
        return component.partition(".")[0]
    return "score" if name in _OF_THE_SCORE else gate.name


def _evaluate(gate: Gate, document: Mapping[str, Any], comparison: Mapping[str, Any] | None) -> GateResult:
    if gate.needs_comparison:
        if comparison is None:
            raise _without_baseline(gate)
        value = _compared(gate, comparison)
        passed = value not in ("worse", "broken") if gate.operator is None else _holds(gate, value)
        return GateResult(gate.text, passed, value)
    if gate.kind is None:
        value = _value(gate, {**document["summary"], "judge": document.get("judge") or {}})
        return GateResult(gate.text, _holds(gate, value), _shown(gate, value))
    if gate.kind == "category":
        parts = {part["category"]: part for part in document.get("categories", ())}
    else:
        parts = {part["name"]: part for part in document.get("slices", {}).get(gate.kind, ())}
    if gate.slice_name is not None:
        if gate.slice_name not in parts:
            known = ", ".join(sorted(parts)) or "none"
            raise UnknownNameError(
                f"gate {gate.text!r}: no {gate.kind} is called {gate.slice_name!r}; there are: {known}"
            )
        parts = {gate.slice_name: parts[gate.slice_name]}
    values = {name: _value(gate, part) for name, part in parts.items()}
    failing = {name: value for name, value in values.items() if not _holds(gate, value)}
    worst_first = sorted((failing or values).items(), key=lambda item: _badness(gate, item[1]))
    shown = {name: _shown(gate, value) for name, value in (worst_first if failing else worst_first[:1])}
    return GateResult(gate.text, not failing and bool(values), shown)


def _compared(gate: Gate, comparison: Mapping[str, Any]) -> Any:
    """What a gate looks at in a comparison: of all, or of one component or metric."""
    name, _, component = gate.name.partition(".")
    measured = {**comparison["difference"], "verdict": comparison["verdict"]}
    if component:
        known = {**comparison.get("components", {}), **comparison.get("metrics", {})}
        if component not in known:
            raise _unknown_name(gate, component, known)
        measured = known[component]
    if name == "regression":
        # A question that was confirmed as broken is a regression whatever the mean.
        confirmed = not component and measured["verdict"] != "worse" and comparison.get("regression")
        return "broken" if confirmed else measured["verdict"]
    if name in DIFFERENCE_NAMES:
        return measured.get(DIFFERENCE_NAMES[name])
    value = comparison.get(name)
    return sum(value.values()) if isinstance(value, Mapping) else value


def _value(gate: Gate, part: Mapping[str, Any]) -> float | None:
    """What a gate looks at in a summary or one of its slices."""
    values = dict(_flat(part))
    place = _PLACES.get(gate.name, gate.name)
    for name in (place, *(f"{short}.{gate.name}" for short in _SHORTENED)):
        if name in values:
            break
    else:
        if gate.name not in _ALWAYS:
            short = {name.partition(".")[2] for name in values if name.startswith(_SHORTENED)}
            raise _unknown_name(gate, gate.name, {*values, *short, *_PLACES})
        # Errors are counted only where they happened: "errors.timeout == 0" must not need a timeout to be known.
        return 0 if gate.name.startswith("errors.") else None
    value = values[name]
    if gate.name == "grade":
        return float(GRADES.index(value)) if value else None
    if isinstance(value, str):
        raise UsageError(f"gate {gate.text!r}: {gate.name!r} is not a number")
    return None if value is None else float(value)


def _flat(part: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All single values, by the names on the way to them."""
    for name, value in part.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is None or isinstance(value, int | float | str):
            yield prefix + name, value


def _without_baseline(gate: Gate) -> UsageError:
    return UsageError(f"gate {gate.text!r} needs a run to compare with: add --baseline RUN")


def _unknown_name(gate: Gate, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that a gate cannot use, with what was probably meant."""
    names = sorted({*known, *COMPARISON_NAMES, *(f"errors.{kind}" for kind in ERROR_KINDS)})
    close = difflib.get_close_matches(name, names, n=3)
    remedy = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(names)}"
    return UnknownNameError(f"gate {gate.text!r}: unknown name {name!r}; {remedy}")


def _holds(gate: Gate, value: float | None) -> bool:
    if value is None or math.isnan(value) or gate.operator is None:
        return False
    # Scores are compared as they are shown, with nine decimals, so that 0.4 + 0.3 + 0.2 passes "score >= 0.9".
    return _COMPARE[gate.operator](round(value, 9), round(gate.bound, 9))


def _badness(gate: Gate, value: float | None) -> float:
    if value is None:
        return -math.inf
    return value if gate.operator in (">", ">=") else -value


def _shown(gate: Gate, value: float | None) -> Any:
    return GRADES[int(value)] if gate.name == "grade" and value is not None else value


# Gates: conditions on a run, or on its comparison with a baseline, that decide the exit code.


__all__ = ["Gate", "check_gates", "evaluate_gates", "parse_gate"]
