"""Checking gates before a run: a mistyped name must not come to light only when all questions have been asked."""

from collections.abc import Iterable

from answerkey.errors import UsageError
from answerkey.gate.evaluate import LATENCY, unknown_name
from answerkey.gate.parse import Gate, parse_gate
from answerkey.model.reply import ERROR_KINDS, Usage

__all__ = ["check_gates"]

# What a gate may name in any run, whichever scorers it has.
_ALWAYS = {
    *("score", "score_low", "score_high", "grade", "coverage", "planned", "questions", "trials", "replies"),
    *("passed", "pass_rate", "error_rate", "tools_unobserved"),
    *(f"{statistic}_latency_ms" for statistic in LATENCY),
    *Usage.__struct_fields__,
    *(f"usage.{name}" for name in Usage.__struct_fields__),
    *(f"errors.{kind}" for kind in ERROR_KINDS),
    *(f"grades.{letter}" for letter in "ABCDF"),
}


def check_gates(gates: Iterable[str], metrics: Iterable[str], *, baseline: str | None = None) -> list[Gate]:
    """Parse gates and refuse those that no run could answer; `metrics` are the names that the run's scorers give.

    A run that is given a baseline but no gate on the comparison must not be a regression.
    """
    parsed = [parse_gate(gate) for gate in gates]
    named = set(metrics)
    known = _ALWAYS | named
    for gate in parsed:
        if gate.needs_comparison:
            if baseline is None:
                raise UsageError(f"gate {gate.text!r} needs a run to compare with: add --baseline RUN")
            continue
        whole, _, inner = gate.name.partition(".")
        if gate.name in known or _of_whole(whole, inner, named):
            continue
        raise unknown_name(gate, gate.name, known)
    if baseline is not None and not any(gate.needs_comparison for gate in parsed):
        parsed.append(parse_gate("no regression"))
    return parsed


def _of_whole(whole: str, inner: str, named: set[str]) -> bool:
    """Whether a name with a dot is a scorer's value or the judge's (`judge.reliable`), whose names a run's judge gives."""
    return (whole in ("components", "metrics") and inner in named) or (whole == "judge" and bool(inner))
