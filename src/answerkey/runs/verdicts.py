"""Verdicts on finished runs: comparison with a baseline, confirmation of changed questions, gates.

Comparing needs NumPy, which is loaded only when two runs are compared.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import AnswerkeyError, UsageError
from answerkey.gates import FEEDBACK_NAMES, Gate, GateSubject, check_gates, evaluate_gates, parse_gate
from answerkey.model.comparison import AskedAgain, Comparison, Confirmation, QuestionChange
from answerkey.model.question import Question
from answerkey.model.run import EarlierRun, GateResult, GateResults, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial, lowest_score, reason, round_score
from answerkey.runs.causes import NOISE, Grouping, cause_of_change
from answerkey.runs.stored import load_stored_run
from answerkey.stats.intervals import Repeats, chance_of_no_success

if TYPE_CHECKING:
    from answerkey.protocols import BaseTarget
    from answerkey.runs.context import RunContext
    from answerkey.store.sql import SqlStore

# Flips, and losses, whose texts are looked up; reports show no more.
_MOST_WORDINGS = 50
_LONGEST_TEXT = 2_000
# Questions that got worse whose causes are looked up; `answerkey why` explains any number.
_MOST_EXPLAINED = 500
# Number of earlier runs in a trend.
_EARLIER = 9
_FIGURES = ("score", "grade", "interval", "passed", "questions", "latency_ms")


def compare_with_baseline(
    run: Run, baseline: RunInfo, store: "SqlStore", *, margin: float | None = None
) -> Run:
    """The run with its comparison to a baseline."""
    from answerkey.comparison.columns import columns_from_run, columns_from_store
    from answerkey.comparison.run_comparison import compare_runs

    if isinstance(run.results, StreamedResults):
        base, candidate = columns_from_store(store, [baseline, run.info])
    else:
        [base], candidate = columns_from_store(store, [baseline]), columns_from_run(run)
    comparison = with_wordings(compare_runs(base, candidate, margin=margin), store, run.info)
    return msgspec.structs.replace(run, comparison=comparison)


def decided_run(store: "SqlStore", reference: str) -> Run:
    """A stored run with everything that a report needs: earlier runs, comparison and gates."""
    return decided(with_earlier_runs(load_stored_run(store, reference), store), store)


def decided(run: Run, store: "SqlStore") -> Run:
    """A run with its comparison and the results of its gates."""
    options = run.info.options
    gates = [parse_gate(gate) for gate in options.gates]
    gone = ""
    if options.baseline is not None:
        gates += [] if any(gate.needs_comparison for gate in gates) else [parse_gate("no regression")]
        try:
            run = compare_with_baseline(run, store.find_run(options.baseline), store, margin=options.margin)
        except AnswerkeyError as error:
            gone = f"cannot be evaluated any more: {error}"
            warning = f"the baseline of this run {gone}"
            run = msgspec.structs.replace(run, warnings=(*run.warnings, warning))
    if not gone:
        return with_gates(run, gates, store)
    # Without the baseline, the gates on it fail: a deleted run does not let them pass.
    decidable = [gate for gate in gates if not gate.needs_comparison]
    results = iter(with_gates(run, decidable, store).gates)
    return msgspec.structs.replace(
        run,
        gates=tuple(
            GateResult(gate.text, False, None, gone) if gate.needs_comparison else next(results)
            for gate in gates
        ),
    )


def with_earlier_runs(run: Run, store: "SqlStore") -> Run:
    """The run with the earlier runs of the same chatbot on the same golden set."""
    from answerkey.store.sql import RunTable

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


def with_gates(run: Run, gates: Sequence[Gate], store: "SqlStore | None" = None) -> Run:
    """Return the run with the results of its gates; a store has the feedback of users."""
    subject = _gate_subject(run, gates, store)
    return msgspec.structs.replace(run, gates=tuple(evaluate_gates(gates, subject, unknown_fails=True)))


def _gate_subject(run: Run, gates: Sequence[Gate], store: "SqlStore | None") -> GateSubject:
    subject = GateSubject.of_run(run)
    if store is None or not any(gate.name in FEEDBACK_NAMES for gate in gates):
        return subject
    from answerkey.store.production import feedback_stats  # few runs are judged by it

    # A scorer may have the same name.
    numbers = {**feedback_stats(store).gate_numbers, **subject.numbers}
    return msgspec.structs.replace(subject, numbers=numbers)


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
    return evaluate_gates(gates, _gate_subject(run, gates, store))


def with_wordings(comparison: Comparison, store: "SqlStore", candidate: RunInfo) -> Comparison:
    """A comparison with its causes, whose first flips and losses have the question, both replies, and reasons."""
    if not comparison.flips and not comparison.losses:
        return comparison
    base = store.find_run(comparison.base.id)

    def worded(changes: tuple[QuestionChange, ...]) -> tuple[QuestionChange, ...]:
        first = [_with_texts(change, store, base, candidate) for change in changes[:_MOST_WORDINGS]]
        return (*first, *changes[_MOST_WORDINGS:])

    comparison = msgspec.structs.replace(
        comparison, flips=worded(comparison.flips), losses=worded(comparison.losses)
    )
    return with_causes(comparison, store, candidate)


def with_causes(comparison: Comparison, store: "SqlStore", candidate: RunInfo) -> Comparison:
    """A comparison with the causes of its lost points; without, if too many questions got worse to look them all up.

    A question that asking again did not confirm is noise.
    """
    fallen = comparison.fallen
    if not fallen or len(fallen) > _MOST_EXPLAINED:
        return comparison
    base = store.find_run(comparison.base.id)
    mode, rescored = candidate.options.scoring.match, base.scoring_hash != candidate.scoring_hash
    categories = {part.name: part.difference.pairs for part in comparison.categories if part.difference}
    grouping = Grouping(categories or {"": comparison.paired})
    for change in fallen:
        better = [one for one in store.results_of(base, change.id) if one.score is not None]
        worse = [one for one in store.results_of(candidate, change.id) if one.score is not None]
        if not better or not worse:
            # Of very many trials, those that are looked up have no score.
            continue
        cause = NOISE if change.kind == "flaky" else cause_of_change(worse, better, mode, rescored=rescored)
        grouping.add(worse[0].question, cause, change.score_to - change.score_from)
    return msgspec.structs.replace(comparison, causes=grouping.groups())


def _with_texts(
    change: QuestionChange, store: "SqlStore", base: RunInfo, candidate: RunInfo
) -> QuestionChange:
    fell = change.kind != "fixed"
    before = _typical(store, base, change.id, best=fell)
    after = _typical(store, candidate, change.id, best=not fell)
    lost = (after if fell else before).scorecard
    reasons = [reason(part) for part in lost.components.values() if part.weight and (part.value or 0.0) < 1]
    return msgspec.structs.replace(
        change,
        question=after.question.question,
        reply_from=_reply_text(before),
        reply_to=_reply_text(after),
        because="; ".join(reason for reason in reasons if reason)[:_LONGEST_TEXT],
    )


def _typical(store: "SqlStore", info: RunInfo, question_id: str, *, best: bool) -> Trial:
    """The best or the worst trial of a question, which shows what changed."""
    trials = store.results_of(info, question_id)
    return (max if best else min)(trials, key=lambda trial: trial.score or 0.0)


def _reply_text(trial: Trial) -> str:
    """The reply, or the error instead of it."""
    wrong = trial.error
    text = trial.reply.text if trial.reply.text or wrong is None else f"({wrong.kind}: {wrong.message})"
    return (text or "(nothing)")[:_LONGEST_TEXT]


# Confirming changes

# Accepted probability of calling an unstable question broken or worse, over all changes of a run.
_ALPHA = 0.05
# Changes of each kind that are asked again; with more, the mean shows the regression.
_MOST_ASKED = 100
# Questions that fail in both runs which are asked again before one is confirmed, and how often in total: whether hard
# questions pass now and then shows only on those. The questions to be confirmed are asked as often in total.
_MOST_CONTROLS = 20
_CONTROL_REPLIES = 20


def check_confirm(context: "RunContext") -> None:
    """Refuse --confirm without a baseline or with a judge, before anything is asked."""
    options = context.options
    if options.confirm and options.baseline is None:
        raise UsageError("--confirm asks again what got worse since a baseline; add --baseline RUN")
    if options.confirm and options.scoring.needs_judge:
        raise UsageError(
            "--confirm scores replies without a judge, but the judge is part of the score; use --repeat instead"
        )


async def confirm_changes(
    run: Run, context: "RunContext", target: "BaseTarget", baseline: RunInfo, store: "SqlStore"
) -> Run:
    """Ask changed questions again; returns the run with a comparison that says which are confirmed broken or worse.

    One failure instead of one pass may be chance in a chatbot whose replies vary. Each question that flipped or whose
    score fell is asked a few more times, of the candidate, and of the base if that is another target that still answers.
    A reply succeeds if it passes or, where the question did not flip, if it reaches the base's score. If a question never
    succeeds, it is asked until there are 20 replies in all, and questions that fail in both runs are asked again too: does a
    hard question pass now and then? If no question
    ever changes, the chatbot is taken as deterministic, and a question that never succeeds is broken or worse. Otherwise, a
    distribution of pass rates is fitted to the unstable questions (`chance_of_no_success`); questions that never succeed
    are broken or worse if one such among all would be rarer than 1 in 20 by instability alone. A question that the base
    fails too is not broken by the candidate. The further replies are not part of the run.
    """
    comparison, times = run.comparison, context.options.confirm
    if comparison is None or not times:
        return run
    changes = [change for kind in ("broken", "fixed", "worse") for change in _first(comparison, kind)]
    mark = lowest_score(run.info.pass_mark)
    goals = {change.id: change.score_from if change.kind == "worse" else mark for change in changes}
    questions = [question for question in store.questions(run.info.question_set_hash) if question.id in goals]
    candidate = await _success_counts(context, target, questions, goals, times)
    controls, further = Repeats(successes=(), times=times), 0
    if any(candidate.get(change.id) == 0 for change in changes if change.kind != "fixed"):
        controls = await _ask_failing(run, context, target, store)
        # A few repeats cannot show that a question never succeeds.
        silent = {change.id for change in changes if change.kind != "fixed" and candidate.get(change.id) == 0}
        further = max(math.ceil(_CONTROL_REPLIES / len(silent)) - times, 0)
        if further:
            again = [question for question in questions if question.id in silent]
            counts = await _success_counts(context, target, again, goals, further)
            candidate |= {
                name: None if count is None else min(count, times) for name, count in counts.items()
            }
    base: dict[str, int | None] = {}
    if changes and baseline.target_spec is not None and baseline.target_spec != run.info.target_spec:
        try:
            async with context.target(baseline.target_spec) as opened:
                base = await _success_counts(context, opened, questions, goals, times)
        except AnswerkeyError:
            # The old version is usually gone; the candidate alone must do.
            base = {}
    confirmation = _confirmation(changes, candidate, base, times, further, controls)
    info = msgspec.structs.replace(run.info, confirmation=confirmation)
    store.update_run(info)
    # As `compare_runs` does for a stored run.
    comparison = with_causes(comparison.with_confirmation(confirmation), store, info)
    return msgspec.structs.replace(run, info=info, comparison=comparison)


async def _ask_failing(run: Run, context: "RunContext", target: "BaseTarget", store: "SqlStore") -> Repeats:
    """Ask questions again that fail in both runs."""
    comparison = run.comparison
    assert comparison is not None  # the caller has looked
    mark = lowest_score(run.info.pass_mark)
    other = {change.id for change in comparison.flips} | {question.id for question in comparison.unpaired}
    scores: dict[str, list[float]] = {}
    for trial in run.results:
        if trial.score is not None and trial.id not in other:
            scores.setdefault(trial.id, []).append(trial.score)
    failing = [
        name for name, values in scores.items() if round_score(math.fsum(values) / len(values)) < mark
    ][:_MOST_CONTROLS]
    questions = [
        question for question in store.questions(run.info.question_set_hash) if question.id in failing
    ]
    times = math.ceil(_CONTROL_REPLIES / max(len(questions), 1))
    counts = await _success_counts(context, target, questions, dict.fromkeys(failing, mark), times)
    successes = [count for count in counts.values() if count is not None]
    return Repeats(successes=successes, times=times, passed=0, failed=2)


def _first(comparison: Comparison, kind: str) -> list[QuestionChange]:
    changes = (*comparison.flips, *comparison.losses)
    return [change for change in changes if change.kind == kind][:_MOST_ASKED]


async def _success_counts(
    context: "RunContext",
    target: "BaseTarget",
    questions: Sequence[Question],
    goals: Mapping[str, float],
    times: int,
) -> dict[str, int | None]:
    """Question id → how often its score reaches its goal; None if one of its replies could not be scored."""
    from answerkey.runs.run import ask_and_grade  # commands that only read runs need not load it

    trials = (
        Trial(question, number, position)
        for number in range(1, times + 1)
        for position, question in enumerate(questions)
    )
    reached: dict[str, int | None] = dict.fromkeys((question.id for question in questions), 0)
    async for trial in ask_and_grade(context, target, trials):
        count, score = reached[trial.id], trial.score
        if count is None or score is None:
            reached[trial.id] = None
        else:
            reached[trial.id] = count + (score >= goals[trial.id])
    return reached


def _confirmation(
    changes: Iterable[QuestionChange],
    candidate: dict[str, int | None],
    base: dict[str, int | None],
    times: int,
    further: int,
    controls: Repeats,
) -> Confirmation:
    again = [(change, candidate.get(change.id), base.get(change.id)) for change in changes]
    counted = [(change.kind, count) for change, count, _ in again if count is not None]
    fell = Repeats(successes=[count for kind, count in counted if kind != "fixed"], times=times)
    fixed = Repeats(
        successes=[count for kind, count in counted if kind == "fixed"], times=times, left_out=times
    )
    groups = (fell, fixed, controls)
    varied = any(group.varied for group in groups)
    by_chance = chance_of_no_success(groups, times + further) * len(fell.successes) if varied else 0.0
    return Confirmation(
        times=times,
        deterministic=not varied,
        controls=len(controls.successes),
        questions=tuple(
            AskedAgain(
                id=change.id,
                kind=change.kind,
                candidate_passed=count,
                base_passed=before,
                confirmed=change.kind != "fixed"
                and count == 0
                and before in (None, times)
                and by_chance < _ALPHA,
            )
            for change, count, before in again
        ),
    )
