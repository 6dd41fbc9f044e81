"""Verdicts on runs that have ended: the comparison with a baseline, and the gates.

Comparing takes NumPy, which is loaded only where two runs are compared.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import AnswerkeyError
from answerkey.gates import Gate, GateSubject, check_gates, evaluate_gates, parse_gate
from answerkey.model.comparison import Comparison, Flip
from answerkey.model.reasons import reason
from answerkey.model.run import EarlierRun, GateResult, GateResults, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial
from answerkey.runs.stored import load_stored_run

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

# Flipped questions that are looked up: no reader is shown more.
_MOST_WORDINGS = 50
_LONGEST_TEXT = 2_000
# Runs before one in its trend.
_EARLIER = 9
_FIGURES = ("score", "grade", "interval", "passed", "questions", "latency_ms")


def compare_with_baseline(
    run: Run, baseline: RunInfo, store: "SqlStore", *, margin: float | None = None
) -> Run:
    """The run with its comparison beside it."""
    from answerkey.comparison.run_comparison import columns_from_run, columns_from_store, compare_runs

    if isinstance(run.results, StreamedResults):
        base, candidate = columns_from_store(store, [baseline, run.info])
    else:
        [base], candidate = columns_from_store(store, [baseline]), columns_from_run(run)
    comparison = with_wordings(compare_runs(base, candidate, margin=margin), store, run.info)
    confirmed = msgspec.structs.replace(comparison, confirmation=run.info.confirmation)
    return msgspec.structs.replace(run, comparison=confirmed)


def decided_run(store: "SqlStore", reference: str) -> Run:
    """A stored run with all that its report decides by: the runs before it, its baseline and its gates."""
    return decided(with_earlier_runs(load_stored_run(store, reference), store), store)


def decided(run: Run, store: "SqlStore", *, gated: bool = True) -> Run:
    """A run with its baseline held against it anew, and its gates unless they are not to decide."""
    options = run.info.options
    gates = [parse_gate(gate) for gate in options.gates]
    try:
        if options.baseline is not None:
            run = compare_with_baseline(run, store.find_run(options.baseline), store, margin=options.margin)
            gates += [] if any(gate.needs_comparison for gate in gates) else [parse_gate("no regression")]
        return with_gates(run, gates) if gated else run
    except AnswerkeyError as error:
        # The baseline may be gone, or a metric that a gate names.
        warning = f"this run's baseline and gates cannot be held against it any more: {error}"
        return msgspec.structs.replace(run, warnings=(*run.warnings, warning))


def with_earlier_runs(run: Run, store: "SqlStore") -> Run:
    """The run with those before it of the same chatbot on the same golden set."""
    from answerkey.store.run_list import RunTable

    earlier = tuple(
        EarlierRun(
            id=row.info.id,
            name=row.info.name,
            created_at=row.info.created_at,
            question_set_hash=row.info.question_set_hash,
            **{name: getattr(row.figures, name) for name in _FIGURES},
        )
        for row in reversed(RunTable(store).earlier(run.info, _EARLIER))
    )
    return msgspec.structs.replace(run, earlier=earlier)


def with_gates(run: Run, gates: Sequence[Gate]) -> Run:
    """Return the run with the results of its gates."""
    return msgspec.structs.replace(run, gates=tuple(evaluate_gates(gates, GateSubject.of_run(run))))


def check(run: Run, *conditions: str) -> GateResults:
    """Evaluate conditions on a finished run; an unknown name is an error."""
    scores = (*run.summary.components, *run.summary.metrics)
    baseline = None if run.comparison is None else run.comparison.base.id
    gates = check_gates(conditions, scores, baseline=baseline)[: len(conditions)]
    return GateResults(evaluate_gates(gates, GateSubject.of_run(run)))


def gates_of_stored(
    store: "SqlStore", info: RunInfo, gates: Sequence[Gate], comparison: Comparison | None
) -> list[GateResult]:
    """Evaluate gates on a stored run and its comparison."""
    if not gates:
        return []
    run = msgspec.structs.replace(store.load_run(info), comparison=comparison)
    return evaluate_gates(gates, GateSubject.of_run(run))


def with_wordings(comparison: Comparison, store: "SqlStore", candidate: RunInfo) -> Comparison:
    """A comparison whose first flips say what they ask, what was replied to them, and why the worse reply lost points."""
    shown = comparison.flips[:_MOST_WORDINGS]
    if not shown:
        return comparison
    base = store.find_run(comparison.base.id)
    told = [_told(flip, store, base, candidate) for flip in shown]
    return msgspec.structs.replace(comparison, flips=(*told, *comparison.flips[_MOST_WORDINGS:]))


def _told(flip: Flip, store: "SqlStore", base: RunInfo, candidate: RunInfo) -> Flip:
    before = _typical(store, base, flip.id, passed=flip.kind == "broken")
    after = _typical(store, candidate, flip.id, passed=flip.kind == "fixed")
    failing = (after if flip.kind == "broken" else before).scorecard
    reasons = [
        reason(part) for part in failing.components.values() if part.weight and (part.value or 0.0) < 1
    ]
    return msgspec.structs.replace(
        flip,
        question=after.question.question,
        reply_from=_said(before),
        reply_to=_said(after),
        because="; ".join(reason for reason in reasons if reason)[:_LONGEST_TEXT],
    )


def _typical(store: "SqlStore", info: RunInfo, question_id: str, *, passed: bool) -> Trial:
    """A trial of a question that went as the question did on the whole."""
    trials = store.results_of(info, question_id)
    return next((trial for trial in trials if trial.passed == passed), trials[0])


def _said(trial: Trial) -> str:
    """What was replied, or what went wrong instead."""
    wrong = trial.error
    text = trial.reply.text if trial.reply.text or wrong is None else f"({wrong.kind}: {wrong.message})"
    return (text or "(nothing)")[:_LONGEST_TEXT]
