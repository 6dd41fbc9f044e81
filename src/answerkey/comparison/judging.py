"""A finished run before its gates, and beside its baseline where it has one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from answerkey.comparison.columns import columns_from_run, columns_from_store
from answerkey.comparison.comparison import Comparison
from answerkey.comparison.runs import compare_runs
from answerkey.errors import UsageError
from answerkey.gate import Gate, evaluate_gates, parse_gate
from answerkey.run import Run, RunInfo, run_header

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = ["check_gates", "judge_run"]


def check_gates(gates: Sequence[str], baseline: str | None) -> list[Gate]:
    """Read gates before a run; one that needs a baseline is refused without.

    A run that is given a baseline but no gate on the comparison must not be a regression.
    """
    parsed = [parse_gate(gate) for gate in gates]
    if baseline is None:
        for gate in parsed:
            if gate.needs_comparison:
                raise UsageError(f"gate {gate.text!r} needs a run to compare with: add --baseline RUN")
    elif not any(gate.needs_comparison for gate in parsed):
        parsed.append(parse_gate("no regression"))
    return parsed


def judge_run(
    run: Run, gates: Sequence[Gate], *, baseline: RunInfo | None = None, store: "SqlStore | None" = None
) -> tuple[Run, Comparison | None]:
    """The run with its gates judged and its comparison beside it."""
    comparison = None
    if baseline is not None and store is not None:
        comparison = compare_runs(columns_from_store(store, baseline), columns_from_run(run))
        run = msgspec.structs.replace(run, comparison=comparison.to_dict())
    if gates:
        run = msgspec.structs.replace(run, gates=tuple(evaluate_gates(gates, run_header(run), comparison)))
    return run, comparison
