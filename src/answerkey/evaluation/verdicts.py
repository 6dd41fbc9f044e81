"""Verdicts on runs that have ended: the comparison with a baseline, and the gates.

Comparing takes NumPy, which is loaded only where two runs are compared.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from answerkey.gate import Gate, check_gates, evaluate_gates
from answerkey.model.comparison import Comparison
from answerkey.model.run import GateResult, GateResults, Run, RunInfo
from answerkey.model.run_document import run_header

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = ["check", "compare_with_baseline", "gates_of_stored", "judge_gates", "with_wordings"]

# Flipped questions whose wording is looked up: no reader is shown more.
_MOST_WORDINGS = 50


def compare_with_baseline(
    run: Run, baseline: RunInfo, store: "SqlStore", *, margin: float | None = None
) -> Run:
    """The run with its comparison beside it."""
    from answerkey.comparison.columns import columns_from_run, columns_from_store
    from answerkey.comparison.run_comparison import compare_runs

    [base] = columns_from_store(store, [baseline])
    comparison = with_wordings(compare_runs(base, columns_from_run(run), margin=margin), store, run.info)
    return msgspec.structs.replace(run, comparison=comparison)


def judge_gates(run: Run, gates: Sequence[Gate]) -> Run:
    """The run with its gates judged, over its document and its comparison."""
    header = run_header(run)
    return msgspec.structs.replace(run, gates=tuple(evaluate_gates(gates, header, header.get("comparison"))))


def check(run: Run, *conditions: str) -> GateResults:
    """Judge conditions on a run that has ended; a name that it does not have is refused."""
    measures = (*run.summary.components, *run.summary.metrics)
    baseline = None if run.comparison is None else run.comparison.base.id
    gates = check_gates(conditions, measures, baseline=baseline)[: len(conditions)]
    header = run_header(run)
    return GateResults(evaluate_gates(gates, header, header.get("comparison")))


def gates_of_stored(
    store: "SqlStore", info: RunInfo, gates: Sequence[Gate], comparison: Comparison | None
) -> list[GateResult]:
    """Gates judged on a stored run, and on its comparison."""
    if not gates:
        return []
    return evaluate_gates(
        gates, run_header(store.load_run(info)), None if comparison is None else comparison.to_dict()
    )


def with_wordings(comparison: Comparison, store: "SqlStore", candidate: RunInfo) -> Comparison:
    """A comparison whose first flips say what they ask."""
    shown = comparison.flips[:_MOST_WORDINGS]
    wordings = store.question_texts(candidate, [flip.id for flip in shown]) if shown else {}
    named = [msgspec.structs.replace(flip, question=wordings.get(flip.id, "")) for flip in shown]
    return msgspec.structs.replace(comparison, flips=(*named, *comparison.flips[_MOST_WORDINGS:]))
