"""A finished run before its gates, and beside its baseline where it has one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from answerkey.comparison.columns import columns_from_run, columns_from_store
from answerkey.comparison.comparison import Comparison
from answerkey.comparison.runs import compare_runs
from answerkey.gate import Gate, evaluate_gates
from answerkey.model.run import Run, RunInfo, run_header

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = ["judge_run"]


def judge_run(
    run: Run, gates: Sequence[Gate], *, baseline: RunInfo | None = None, store: "SqlStore | None" = None
) -> tuple[Run, Comparison | None]:
    """The run with its gates judged and its comparison beside it."""
    comparison = None
    if baseline is not None and store is not None:
        [base] = columns_from_store(store, [baseline])
        comparison = compare_runs(base, columns_from_run(run))
        run = msgspec.structs.replace(run, comparison=comparison.to_dict())
    if gates:
        run = msgspec.structs.replace(run, gates=tuple(evaluate_gates(gates, run_header(run), comparison)))
    return run, comparison
