"""Gates judged over the run document and a comparison with a baseline, and checked before a run for names that none has."""

import difflib
import math
import operator as operators
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from answerkey.errors import UnknownNameError, UsageError
from answerkey.gate.parse import COMPARISON_NAMES, DIFFERENCE_NAMES, GRADES, Gate, parse_gate
from answerkey.model.reply import ERROR_KINDS, Usage
from answerkey.model.run import GateResult
from answerkey.model.scorecard import round_down
from answerkey.model.summary import Latency

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
