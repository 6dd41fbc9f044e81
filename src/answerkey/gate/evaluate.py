"""Evaluating gates over the run document and over a comparison with a baseline."""

import difflib
import math
import operator as operators
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from answerkey.errors import UnknownNameError, UsageError
from answerkey.gate.parse import COMPARISON_NAMES, GRADES, Gate, parse_gate
from answerkey.model.reply import ERROR_KINDS
from answerkey.model.run import GateResult

__all__ = ["LATENCY", "evaluate_gates", "unknown_name"]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operators.ge,
    ">": operators.gt,
    "<=": operators.le,
    "<": operators.lt,
    "==": operators.eq,
    "!=": operators.ne,
}
LATENCY = ("mean", "p50", "p90", "p95", "p99", "max")


class _Document(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def evaluate_gates(
    gates: Iterable[Gate | str],
    document: Mapping[str, Any],
    comparison: Mapping[str, Any] | _Document | None = None,
) -> list[GateResult]:
    """Judge each gate over the run document (its results are not looked at) and the comparison, in order.

    A value that is missing (no latency was measured, say) fails its gate; a name that is unknown is an error. A run with
    coverage below 1 fails every gate but those on the coverage, unless there is one on it, and it holds: what was not scored
    may be what would fail.
    """
    compared = None
    if comparison is not None:
        compared = comparison if isinstance(comparison, Mapping) else comparison.to_dict()
    parsed = [gate if isinstance(gate, Gate) else parse_gate(gate) for gate in gates]
    results = [_evaluate(gate, document, compared) for gate in parsed]
    coverage = document["summary"].get("coverage")
    allowed = any(
        gate.name == "coverage" and result.passed for gate, result in zip(parsed, results, strict=True)
    )
    if coverage is None or coverage >= 1 or allowed:
        return results
    return [
        result if gate.name == "coverage" else _not_covered(result, coverage)
        for gate, result in zip(parsed, results, strict=True)
    ]


def _not_covered(result: GateResult, coverage: float) -> GateResult:
    if not result.passed:
        return result
    reason = f"coverage is {coverage:.1%}; allow that with a gate such as coverage >= {math.floor(coverage * 100) / 100:g}"
    return GateResult(result.gate, False, result.value, reason)


def _evaluate(gate: Gate, document: Mapping[str, Any], comparison: Mapping[str, Any] | None) -> GateResult:
    if gate.needs_comparison:
        if comparison is None:
            raise UsageError(f"gate {gate.text!r} needs a run to compare with: add --baseline RUN")
        return _evaluate_comparison(gate, comparison)
    if gate.kind is None:
        value = _value(gate, {**_names(document["summary"]), **_judge_names(document.get("judge") or {})})
        return GateResult(gate.text, _holds(gate, value), _shown(gate, value))
    parts = _slices(gate, document)
    if gate.slice_name is not None:
        parts = {name: part for name, part in parts.items() if name == gate.slice_name}
        if not parts:
            known = ", ".join(sorted(_slices(gate, document))) or "none"
            raise UnknownNameError(
                f"gate {gate.text!r}: no {gate.kind} is called {gate.slice_name!r}; there are: {known}"
            )
    values = {name: _value(gate, _names(part)) for name, part in parts.items()}
    failing = {name: value for name, value in values.items() if not _holds(gate, value)}
    worst_first = sorted((failing or values).items(), key=lambda item: _badness(gate, item[1]))
    shown = {name: _shown(gate, value) for name, value in (worst_first if failing else worst_first[:1])}
    return GateResult(gate.text, not failing and bool(values), shown)


def _slices(gate: Gate, document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    if gate.kind == "category":
        return {part["category"]: part for part in document.get("categories", ())}
    parts: Sequence[Mapping[str, Any]] = document.get("slices", {}).get(gate.kind, ())
    return {part["name"]: part for part in parts}


def _evaluate_comparison(gate: Gate, comparison: Mapping[str, Any]) -> GateResult:
    name, _, component = gate.name.partition(".")
    measured = comparison
    if component:
        known = {**comparison.get("components", {}), **comparison.get("metrics", {})}
        if component not in known:
            raise unknown_name(gate, component, known)
        measured = known[component]
    if name == "regression":
        verdict = measured["verdict"]
        return GateResult(gate.text, verdict != "worse", verdict)
    difference = measured["difference"] if not component else measured.get("difference", measured)
    values: dict[str, Any] = {
        "difference": difference.get("mean"),
        "difference_low": difference.get("low"),
        "difference_high": difference.get("high"),
        "p_value": difference.get("p_value"),
        "fixed": comparison.get("fixed"),
        "broken": comparison.get("broken"),
        "new_errors": sum(comparison.get("new_errors", {}).values()),
    }
    value = values[name]
    return GateResult(gate.text, _holds(gate, value), value)


def _names(part: Mapping[str, Any]) -> dict[str, Any]:
    """Everything a gate may name in a summary or one of its slices."""
    names: dict[str, Any] = {}
    for name, value in part.items():
        if value is None or isinstance(value, int | float | str):
            names[name] = value
        elif isinstance(value, Mapping):
            for inner, number in value.items():
                if number is None or isinstance(number, int | float):
                    names[f"{name}.{inner}"] = number
    names.pop("name", None)
    interval = part.get("interval") or {}
    names["score_low"], names["score_high"] = interval.get("low"), interval.get("high")
    latency = part.get("latency_ms") or {}
    for statistic in LATENCY:
        names[f"{statistic}_latency_ms"] = latency.get(statistic)
    # Short names, the standard's own last so that no metric can take their place.
    names.update(part.get("metrics") or {})
    names.update(part.get("usage") or {})
    names.update(part.get("components") or {})
    names["score"], names["coverage"] = part.get("score"), part.get("coverage")
    if part.get("coverage") is None:
        del names["coverage"]
    return names


def _judge_names(judge: Mapping[str, Any]) -> dict[str, Any]:
    """What a gate may ask of a run's judge: `judge.reliable == 1`, `judge.unscored == 0`, `judge.cost <= 2`."""
    return {
        f"judge.{name}": value
        for name, value in judge.items()
        if value is None or isinstance(value, int | float)
    }


def _value(gate: Gate, names: Mapping[str, Any]) -> float | None:
    if gate.name not in names:
        # Errors are counted only where they happened: "errors.timeout == 0" must not need a timeout to be known.
        counted, _, kind = gate.name.partition(".")
        if counted == "errors" and kind in ERROR_KINDS:
            return 0
        raise unknown_name(gate, gate.name, names)
    value: Any = names[gate.name]
    if gate.name == "grade":
        return float(GRADES.index(value)) if value else None
    if isinstance(value, str):
        raise UsageError(f"gate {gate.text!r}: {gate.name!r} is not a number")
    return None if value is None else float(value)


def unknown_name(gate: Gate, name: str, known: Iterable[str]) -> UnknownNameError:
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
