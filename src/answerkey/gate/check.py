"""Checking gates before a run: a mistyped name must not come to light only when all questions have been asked."""

import re
from collections.abc import Iterable

from answerkey.errors import UsageError
from answerkey.gate.evaluate import known_names, unknown_name
from answerkey.gate.parse import Gate, parse_gate
from answerkey.model.reply import ERROR_KINDS
from answerkey.model.scorecard import COMPONENTS

__all__ = ["check_gates"]

# Metrics that only some replies have, so that no list of them exists before the run.
_METRICS = re.compile(
    r"tool_|judge|groundedness|consistency|source|retriev|claim|cited|metrics\.|usage\.|\w+_tokens|cost|.*@"
)
_MEASURES = frozenset(
    {"AP", "RR", "Rprec", "P", "R", "F1", "precision", "recall", "f1", "Success", "hit_rate", "MRR", "MAP"}
)


def check_gates(
    gates: Iterable[str], baseline: str | None = None, *, components: Iterable[str] = COMPONENTS
) -> list[Gate]:
    """Parse gates and refuse those that no run could answer.

    A run that is given a baseline but no gate on the comparison must not be a regression.
    """
    parsed = [parse_gate(gate) for gate in gates]
    known = {*known_names(), *components}
    for gate in parsed:
        if gate.needs_comparison:
            if baseline is None:
                raise UsageError(f"gate {gate.text!r} needs a run to compare with: add --baseline RUN")
            continue
        counted, _, kind = gate.name.partition(".")
        inner = kind if counted in ("components", "grades") else gate.name
        if counted == "errors" and kind in ERROR_KINDS:
            continue
        if inner in known or inner in "ABCDF" or gate.name in _MEASURES or _METRICS.match(gate.name):
            continue
        raise unknown_name(gate, gate.name, known)
    if baseline is not None and not any(gate.needs_comparison for gate in parsed):
        parsed.append(parse_gate("no regression"))
    return parsed
