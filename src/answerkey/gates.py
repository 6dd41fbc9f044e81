"""Gates: conditions on a run, or on its comparison with a baseline, that decide the exit code.

The language is read strictly: a mistake is an error that names its position.

    gate       = "no" "regression" ["in" name]
               | subject operator bound
    subject    = ["every" kind | kind quoted] [name]          without a name: the score
    kind       = "question" | "category" | "persona" | "tag" | "tools" | "length"
    operator   = ">=" | ">" | "<=" | "<" | "==" | "!="
    bound      = number ["%"] | grade                          a grade only for `grade`

`every category >= 0.70` passes if each category's score is at least 0.70; `category "Tax" tool_usage >= 0.9` is about one
category; `every question >= 0.9` looks at each question. `no regression in latency` allows a declared factor.
"""

import math
import operator as operators
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, partial
from typing import Any, Literal, get_args

import msgspec

from answerkey.errors import UnknownNameError, UsageError, nearest_name
from answerkey.model.comparison import Comparison
from answerkey.model.judgement import JudgeRecord
from answerkey.model.question import Question
from answerkey.model.question_totals import QuestionSlices
from answerkey.model.reply import ERROR_KINDS, Usage
from answerkey.model.run import GateResult, Latency, Run, Slice, Summary, question_row
from answerkey.model.scorecard import DEFAULT_WEIGHTS, round_down
from answerkey.text.normalise import count
from answerkey.text.patterns import lazy

# Known names that an error lists, at most.
_NAMES_SHOWN = 12
# Worst to best, so that a letter's index orders it.
GRADES = "FDCBA"
KINDS = ("question", "category", "persona", "tag", "tools", "length")
# Name in a gate → field of Difference.
DIFFERENCE_NAMES = {
    "difference": "mean",
    "difference_low": "low",
    "difference_high": "high",
    "p_value": "p_value",
}
# Names that need a comparison with a baseline; each may be followed by ".COMPONENT".
COMPARISON_NAMES = (*DIFFERENCE_NAMES, "fixed", "broken", "worse", "flaky", "new_errors")
# `no regression in latency`.
_LATENCY_REGRESSION = "regression.latency"
# Percentiles that it compares, and the growth in milliseconds that is never a regression: fast chatbots vary by that much.
_LATENCY_FIGURES = ("p50", "p95")
_LATENCY_NOISE_MS = 10.0

_TOKEN = lazy(
    r"""\s*(?:(?P<operator>>=|<=|==|!=|>|<)
          |(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:\s*%)?)(?![\w.%])
          |"(?P<quoted>[^"]*)"
          |(?P<name>[A-Za-z_][\w@.:/()-]*))""",
    re.VERBOSE,
)

Operator = Literal[">=", ">", "<=", "<", "==", "!="]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed condition."""

    # As the user wrote it.
    text: str
    # The number to compare: "score", a component, a metric, "p95_latency_ms", "difference", "regression", …
    name: str
    operator: Operator | None = None
    bound: float = 0.0
    # The kind of slice ("category", …); None: the gate is about the whole run.
    kind: str | None = None
    # The name of one slice; None with a kind: every slice of that kind.
    slice_name: str | None = None

    @property
    def needs_comparison(self) -> bool:
        """Whether the gate needs a comparison with a baseline."""
        return self.name.partition(".")[0] in (*COMPARISON_NAMES, "regression")


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    # Position of its first character in the gate, from 1.
    position: int


def parse_gate(text: str) -> Gate:
    """Parse one gate; raises UsageError with the position of the first mistake."""
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
                raise self._mistake(f"cannot read {rest[:12]!r}{_operator_hint(rest)}", position)
            kind = match.lastgroup or ""
            self.tokens.append(_Token(kind, match[kind], position))
            end = match.end()
        self.tokens.append(_Token("end", "", len(text.rstrip()) + 1))

    def gate(self) -> Gate:
        if len(self.tokens) == 1:
            raise self._mistake("the gate is empty; write for example 'score >= 0.85'", 1)
        gate = self._no_regression() if self._has("name", "no") else self._condition()
        rest = self.tokens[self.at]
        if rest.text in ("and", "or"):
            raise self._mistake(
                f"{rest.text!r} is not supported; write each condition as a separate gate", rest.position
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
            raise self._mistake(f"{name!r} has no value per {kind}", position)
        self._refuse_impossible(gate)
        return gate

    def _refuse_impossible(self, gate: Gate) -> None:
        """Refuse a bound that no share can reach, or that every share meets: 85 where 0.85 was meant."""
        lowest = _LOWEST_VALUES.get(gate.name)
        if lowest is None or lowest <= gate.bound <= 1:
            return
        if abs(gate.bound) <= 100:
            meant = f"write {gate.name} {gate.operator} {gate.bound:g}%"
        else:
            meant = "write a share such as 0.85 or 85%"
        raise UsageError(
            f"gate {self.text!r} decides nothing: {gate.name} is between {lowest:g} and 1; {meant}"
        )

    def _bound(self, name: str) -> float:
        if name == "grade":
            return float(GRADES.index(self._next("name", "a grade (A, B, C, D or F)", *GRADES)))
        number = self._next("number", "a number")
        return float(number.rstrip("% \t")) / 100.0 if number.endswith("%") else float(number)

    def _has(self, kind: str, *texts: str) -> bool:
        """Whether the next token is of this kind and, if texts are given, one of them."""
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


def _operator_hint(text: str) -> str:
    if text.startswith(("=>", "=<")):
        return f"; write {text[1]}="
    return "; write == to compare" if text.startswith("=") else ""


# Names: what a gate may ask for, in every run and before one is started.


# Fields of Summary whose values can be named alone: `tool_usage` is `components.tool_usage`.
_SHORTENED = ("components", "usage", "metrics")
# Name in a gate → dotted name in the summary.
_ALIASES = {
    "score_low": "interval.low",
    "score_high": "interval.high",
    "strength": "strength.value",
    "floor": "floor.value",
    **{f"{statistic}_latency_ms": f"latency_ms.{statistic}" for statistic in Latency.FIGURES},
}


def _number_names(struct: type[msgspec.Struct]) -> Iterator[str]:
    """Dotted names of the numbers in a struct and in the structs inside it; values of dicts are not declared there."""
    for field in msgspec.structs.fields(struct):
        types = get_args(field.type) or (field.type,)
        for kind in types:
            if kind in (int, float):
                yield field.name
            elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                yield from (f"{field.name}.{name}" for name in _number_names(kind))


@cache
def _run_names() -> frozenset[str]:
    """The names that every run has, whichever scorers it uses. A value that was not observed is None."""
    return frozenset(
        (
            "grade",
            *_number_names(Summary),
            *_ALIASES,
            *Usage.__struct_fields__,
            *(f"usage.{name}" for name in Usage.__struct_fields__),
            *(f"errors.{kind}" for kind in ERROR_KINDS),
            *(f"grades.{letter}" for letter in GRADES),
        )
    )


# Of the verdicts of real users in the store, as in `feedback stats`.
FEEDBACK_NAMES = ("satisfaction", "satisfaction.low", "satisfaction.high")
# Of a judge: `judge.reliable`, `judge.cost`, `judge.agreement.accuracy`.
_JUDGE_NAMES = frozenset(f"judge.{name}" for name in JudgeRecord.__struct_fields__)

# Gates that allow a run to be incomplete.
_ALLOWING = frozenset(("coverage", "judge.reliable", "judge.unscored"))
# Gates that no reply of the run decides.
_INDEPENDENT = _ALLOWING | {*FEEDBACK_NAMES}
# Numbers that are derived from the score.
_OF_THE_SCORE = frozenset(
    (
        "critical_failures",
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

_LINKS_OFF = "enable it with [grounded] links = true"
# Names that a run has only with some settings → what to do.
_REMEDIES = {
    "groundedness": (
        "groundedness needs a judge or an entailment model; name one with --judge MODEL, "
        "[judge] model or [grounded] model"
    ),
    "linked": _LINKS_OFF,
    "novelty": _LINKS_OFF,
}


def check_gates(gates: Iterable[str], scores: Iterable[str], *, baseline: str | None = None) -> list[Gate]:
    """Parse gates before a run starts, and refuse names that the run will not have.

    `scores` are the names of the components and metrics of the run's scorers. With a baseline and no gate on the
    comparison, "no regression" is added.
    """
    parsed = [parse_gate(gate) for gate in gates]
    named = set(scores)
    known = {
        *_run_names(),
        *FEEDBACK_NAMES,
        *named,
        *(f"{part}.{name}" for part in ("components", "metrics") for name in named),
    }
    for gate in parsed:
        if gate.needs_comparison:
            if baseline is None:
                raise _missing_baseline(gate)
        elif gate.name not in known and not _is_judge_name(gate.name):
            remedy = _REMEDIES.get(gate.name.rpartition(".")[2])
            if remedy is not None:
                raise UsageError(f"gate {gate.text!r}: {remedy}")
            raise _unknown_name(gate, gate.name, {*_run_names(), *FEEDBACK_NAMES, *named})
    if baseline is not None and not any(gate.needs_comparison for gate in parsed):
        parsed.append(parse_gate("no regression"))
    return parsed


def check_slices(gates: Iterable[Gate], questions: Iterable[Question]) -> None:
    """Refuse gates on a category, tag, … or question that the golden set does not have, before anything is asked."""
    named = [gate for gate in gates if gate.kind is not None]
    if not named:
        return
    known: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    for question in questions:
        known["question"][question.id] = None
        for key in QuestionSlices.of(question).listed():
            known[key.kind][key.name] = None
    for gate in named:
        names = known[str(gate.kind)]
        if gate.slice_name is None and not names:
            raise UnknownNameError(f"gate {gate.text!r}: no question has a {gate.kind}")
        if gate.slice_name is not None and gate.slice_name not in names:
            raise _unknown_slice(gate, names)


def _unknown_slice(gate: Gate, known: Iterable[str]) -> UnknownNameError:
    names = {name.casefold(): name for name in sorted(known, reverse=True)}
    close = nearest_name(str(gate.slice_name).casefold(), names)
    listed = ", ".join(sorted(names.values())[:_NAMES_SHOWN]) or "none"
    hint = f"did you mean {names[close]!r}? known" if close else "known"
    return UnknownNameError(
        f"gate {gate.text!r}: there is no {gate.kind} {gate.slice_name!r}; {hint}: {listed}"
    )


def _is_judge_name(name: str) -> bool:
    return ".".join(name.split(".")[:2]) in _JUDGE_NAMES


# Shares and differences of shares → their lowest value; the highest is 1.
_LOWEST_VALUES = {
    **dict.fromkeys(
        (
            "score",
            "score_low",
            "score_high",
            "pass_rate",
            "error_rate",
            "coverage",
            *DEFAULT_WEIGHTS,
        ),
        0.0,
    ),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), -1.0),
}


# Evaluation.


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operators.ge,
    ">": operators.gt,
    "<=": operators.le,
    "<": operators.lt,
    "==": operators.eq,
    "!=": operators.ne,
}
# Dotted name → value.
Numbers = Mapping[str, float | str | None]


class GateSubject(msgspec.Struct, frozen=True, kw_only=True):
    """What gates are evaluated on: a run, or the numbers of another document."""

    numbers: Numbers
    # Kind of slice → slices.
    slices: Mapping[str, Sequence[Slice]] = {}
    # Reads the numbers of each question, by id.
    read_questions: Callable[[], Mapping[str, Numbers]] = dict
    judge: JudgeRecord | None = None
    comparison: Comparison | None = None
    # Allowed multiple of the baseline's latency.
    latency_factor: float = 1.5
    # Whether gates on a comparison pass without one: the first run has nothing to be compared with.
    comparison_optional: bool = False

    @classmethod
    def of_run(cls, run: Run) -> "GateSubject":
        """Return a run's summary, slices, judge and comparison."""
        numbers = _slice_numbers(run.summary)
        if run.info.judge is not None:
            numbers |= flatten({"judge": msgspec.to_builtins(run.info.judge)})
        return cls(
            numbers=numbers,
            slices={"category": run.summary.categories, **run.summary.slices},
            read_questions=partial(_question_numbers, run),
            judge=run.info.judge,
            comparison=run.comparison,
            latency_factor=run.info.options.latency_factor,
            comparison_optional=run.info.options.allow_missing_baseline,
        )


def _question_numbers(run: Run) -> dict[str, Numbers]:
    """Return the score, components and metrics of each question, as means over its trials."""
    rows = (question_row(trials, run.info.pass_mark) for trials in run.by_question())
    return {row.id: {"score": row.score, **row.measures} for row in rows}


def flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, float | str | None]:
    """Return all single values of nested objects under dotted names: `{"errors": {"timeout": 2}}` → `errors.timeout`."""
    values: dict[str, float | str | None] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            values |= flatten(value, f"{prefix}{name}.")
        elif value is None or isinstance(value, int | float | str):
            values[prefix + name] = value
    return values


def _slice_numbers(part: Slice) -> dict[str, float | str | None]:
    """Return a slice's numbers under every name that a gate may use for them."""
    document: dict[str, Any] = msgspec.to_builtins(part)
    numbers = flatten(document)
    # Counts by kind also have a total: `errors == 0`.
    counted = (name for name in ("errors", "harness", "unscored") if name in document)
    numbers |= {name: sum(document[name].values()) for name in counted}
    numbers |= {alias: numbers[name] for alias, name in _ALIASES.items() if name in numbers}
    if part.cost is None:
        # `cost` is short for `usage.cost`; the Cost of questions has no value of its own.
        del numbers["cost"]
    usage = part.usage if isinstance(part, Summary) else {}
    return {**part.metrics, **usage, **part.components, **numbers}


def evaluate_gates(
    gates: Sequence[Gate], subject: GateSubject, *, unknown_fails: bool = False
) -> list[GateResult]:
    """Evaluate each gate, in order.

    A missing value (for example, no latency was measured) fails its gate; an unknown name is an error or, with
    `unknown_fails`, fails its gate: a run that was asked keeps the results of its other gates. If the coverage is
    below 1, every gate fails except those on the coverage, unless a gate on the coverage passes: what was not scored may be
    what would fail. If the judge failed its canaries or gave no verdict on some replies, every gate on a number that depends
    on the judge fails; in a comparison, this applies to the judges of both runs.
    """
    results = [_evaluate(gate, subject, unknown_fails=unknown_fails) for gate in gates]
    allowed = {gate.name for gate, result in zip(gates, results, strict=True) if result.passed}
    return [
        _with_objection(gate, result, subject, allowed) for gate, result in zip(gates, results, strict=True)
    ]


def _with_objection(gate: Gate, result: GateResult, subject: GateSubject, allowed: Set[str]) -> GateResult:
    """Fail a gate whose number cannot be relied on, and say why; also for a number that is missing."""
    if gate.name in _INDEPENDENT or (not result.passed and result.value is not None):
        return result
    objection = _objection(gate, subject, allowed)
    return result if objection is None else GateResult(result.gate, False, result.value, objection)


def _objection(gate: Gate, subject: GateSubject, allowed: Set[str]) -> str | None:
    """Say why a gate must fail regardless of its number; None: no reason, or another gate allows it."""
    coverage = subject.numbers.get("coverage")
    if isinstance(coverage, float) and coverage < 1 and "coverage" not in allowed:
        allow = f"coverage >= {math.floor(coverage * 100) / 100:g}"
        return f"coverage is {round_down(coverage):.1%}; allow that with a gate such as {allow}"
    objection = _judge_objection(gate, subject.judge, allowed)
    comparison = subject.comparison
    if objection or comparison is None or not gate.needs_comparison:
        return objection
    unscored = sum(question.reason == "not scored" for question in comparison.unpaired)
    if unscored and "coverage" not in allowed:
        questions = count(unscored, "question has", "questions have")
        return f"{questions} no score in the baseline; allow that with a gate such as coverage >= 0.9"
    return _judge_objection(gate, comparison.base.judge, allowed, of=" of the baseline")


def _judge_objection(gate: Gate, judge: JudgeRecord | None, allowed: Set[str], of: str = "") -> str | None:
    """Say why a number that depends on this judge cannot pass."""
    missing = None if judge is None else judge.touches.get(_score_behind(gate))
    if judge is None or missing is None:
        return None
    if judge.failed_canaries and "judge.reliable" not in allowed:
        because = "; ".join(judge.unreliable_because[:2])
        remedy = "" if judge.reliable is None else ", or allow it with the gate judge.reliable >= 0"
        return f"the judge{of} is not reliable: {because}; use another judge{remedy}"
    if missing and "judge.unscored" not in allowed:
        return f"{missing} replies{of} were not judged; allow that with a gate such as judge.unscored <= {missing}"
    return None


def _score_behind(gate: Gate) -> str:
    """Return the score that a gate's number is computed from."""
    name, _, component = gate.name.partition(".")
    if gate.needs_comparison:
        return component or ("score" if name != "new_errors" else name)
    if name in (*_SHORTENED, "component_intervals", "metric_intervals"):
        return component.partition(".")[0]
    return "score" if name in _OF_THE_SCORE else gate.name


def _evaluate(gate: Gate, subject: GateSubject, *, unknown_fails: bool) -> GateResult:
    try:
        return _result(gate, subject)
    except UnknownNameError as error:
        if not unknown_fails:
            raise
        return GateResult(gate.text, False, None, str(error).removeprefix(f"gate {gate.text!r}: "))


def _result(gate: Gate, subject: GateSubject) -> GateResult:
    if gate.needs_comparison and subject.comparison is None and subject.comparison_optional:
        return GateResult(gate.text, True, None, "there is no baseline: nothing was compared")
    if gate.name == _LATENCY_REGRESSION:
        return _evaluate_latency(gate, subject)
    if gate.needs_comparison:
        value = _comparison_value(gate, subject.comparison)
        passed = value not in ("worse", "broken") if gate.operator is None else _passes(gate, value)
        return GateResult(gate.text, passed, value)
    if gate.kind is None:
        number = _number(gate, subject.numbers)
        passed = _passes(gate, number)
        note = _reply_note(gate, subject, passed)
        if gate.name in FEEDBACK_NAMES and number is None:
            # Without a store the subject lacks the name; without feedback its value is None.
            note = (
                "the store has no feedback of users"
                if gate.name in subject.numbers
                else "this log is not stored, and the feedback of users is in a store: score it with --name N, or use this "
                "gate in `answerkey feedback stats`"
            )
        return GateResult(gate.text, passed, _shown_value(gate, number), note)
    if gate.kind == "question":
        parts = dict(subject.read_questions())
    else:
        parts = {part.name: _slice_numbers(part) for part in subject.slices.get(gate.kind, ())}
    if gate.slice_name is not None:
        if gate.slice_name not in parts:
            raise _unknown_slice(gate, parts)
        parts = {gate.slice_name: parts[gate.slice_name]}
    numbers = {name: _number(gate, part) for name, part in parts.items()}
    failing = {name: number for name, number in numbers.items() if not _passes(gate, number)}
    worst_first = sorted((failing or numbers).items(), key=lambda item: _badness(gate, item[1]))
    shown = {
        name: _shown_value(gate, number) for name, number in (worst_first if failing else worst_first[:1])
    }
    return GateResult(gate.text, not failing and bool(numbers), shown)


def _reply_note(gate: Gate, subject: GateSubject, passed: bool) -> str:
    """Say so where questions pass by the mean of their replies, and the share of passing replies would fail the gate."""
    replies = subject.numbers.get("trial_pass_rate")
    if gate.name != "pass_rate" or not passed or not isinstance(replies, float) or _passes(gate, replies):
        return ""
    return f"of questions, by the mean of their replies; {replies:.1%} of replies pass: trial_pass_rate"


def _evaluate_latency(gate: Gate, subject: GateSubject) -> GateResult:
    """Compare the median and the 95th percentile with the baseline's: a declared factor, not a test."""
    comparison = subject.comparison
    if comparison is None:
        raise _missing_baseline(gate)
    before, after = comparison.base.latency_ms, comparison.candidate.latency_ms
    if before is None or after is None:
        return GateResult(gate.text, False, None, "a run has no latency")
    factor = subject.latency_factor
    slower = [
        name
        for name in _LATENCY_FIGURES
        if after[name] > factor * before[name] and after[name] - before[name] > _LATENCY_NOISE_MS
    ]
    changes = [f"{name} {before[name]:.0f} ms → {after[name]:.0f} ms" for name in slower or _LATENCY_FIGURES]
    ratios = {name: round(after[name] / before[name], 3) for name in _LATENCY_FIGURES if before[name]}
    allowed = f", more than {factor:g} times" if slower else ""
    return GateResult(gate.text, not slower, ratios, ", ".join(changes) + allowed)


def _comparison_value(gate: Gate, comparison: Comparison | None) -> Any:
    """Return the number or verdict that a gate asks of a comparison: of the score, or of one component or metric."""
    if comparison is None:
        raise _missing_baseline(gate)
    name, _, component = gate.name.partition(".")
    measure = comparison.score
    if component:
        measures = {one.name: one for one in (*comparison.components, *comparison.metrics)}
        if component not in measures:
            raise _unknown_name(gate, component, measures)
        measure = measures[component]
    if name == "regression":
        if component:
            return measure.verdict
        # A question that is confirmed broken is a regression whatever the mean.
        return "broken" if comparison.because else comparison.verdict
    if name in DIFFERENCE_NAMES:
        difference = measure.difference
        value = None if difference is None else getattr(difference, DIFFERENCE_NAMES[name])
        return value if value is None or name == "p_value" else round(value, 9)
    counts = {
        "fixed": comparison.fixed,
        "broken": comparison.broken,
        "worse": comparison.worse,
        "flaky": comparison.flaky,
        "new_errors": sum(comparison.new_errors.values()),
    }
    return counts[name]


def _number(gate: Gate, numbers: Numbers) -> float | None:
    """Return the number that a gate asks for; None: it has no value in this run."""
    if gate.name not in numbers:
        if gate.name not in {*_run_names(), *FEEDBACK_NAMES} and not _is_judge_name(gate.name):
            raise _unknown_name(gate, gate.name, {*numbers, *_ALIASES})
        # Only errors that occurred are counted: "errors.timeout == 0" passes without any timeout.
        return 0 if gate.name.startswith("errors.") else None
    value = numbers[gate.name]
    if gate.name == "grade":
        return float(GRADES.index(str(value))) if value else None
    if isinstance(value, str):
        raise UsageError(f"gate {gate.text!r}: {gate.name!r} is not a number")
    # A count is shown without decimals.
    return value if value is None or type(value) is int else float(value)


def _missing_baseline(gate: Gate) -> UsageError:
    return UsageError(
        f"gate {gate.text!r} needs a baseline: add --baseline RUN (`answerkey baseline set production RUN` names one)"
    )


def _unknown_name(gate: Gate, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name, with the most similar known names."""
    names = sorted({*known, *COMPARISON_NAMES, *_JUDGE_NAMES, *(f"errors.{kind}" for kind in ERROR_KINDS)})
    from difflib import get_close_matches  # slow to load, and only for errors

    close = get_close_matches(name, names, n=3)
    short = [known_name for known_name in names if "." not in known_name]
    remedy = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(short)}"
    return UnknownNameError(f"gate {gate.text!r}: unknown name {name!r}; {remedy}")


def _passes(gate: Gate, value: float | None) -> bool:
    if value is None or math.isnan(value) or gate.operator is None:
        return False
    # Scores are compared with nine decimals, as they are shown, so that 0.4 + 0.3 + 0.2 passes "score >= 0.9".
    return _COMPARE[gate.operator](round(value, 9), round(gate.bound, 9))


def _badness(gate: Gate, value: float | None) -> float:
    if value is None:
        return -math.inf
    return value if gate.operator in (">", ">=") else -value


def _shown_value(gate: Gate, value: float | None) -> Any:
    return GRADES[int(value)] if gate.name == "grade" and value is not None else value
