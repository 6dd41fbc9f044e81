"""Runs that do not ask every question once: two arms in random order, and runs that start from stored replies.

In an interleaved experiment, time of day, load and network affect both arms alike, unlike two runs one after the other. The
result is two stored runs and their comparison. With early stop, a sequential test (`stats/paired.py`) takes the units in the
order in which they were asked, so that it does not depend on which replies are fast.

From stored replies a run is resumed, a new one made without asking, or the same one scored again.
"""

import gc
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from answerkey.comparison import compare_runs, with_sequential_result
from answerkey.comparison.columns import columns_from_store
from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import AnswerkeyError, UsageError
from answerkey.gates import Gate, GateSubject, evaluate_gates
from answerkey.model.comparison import Comparison
from answerkey.model.options import Options
from answerkey.model.question import Question, QuestionSet, group_of
from answerkey.model.reply import Timings
from answerkey.model.run import ExperimentLink, GateResult, Rescoring, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial
from answerkey.protocols import BaseTarget
from answerkey.runs.context import RunContext, select_questions, wait_for
from answerkey.runs.recorder import Recorder, open_judge, replay_journal, store_executor
from answerkey.runs.run import (
    Arm,
    BudgetGuard,
    ask_arm,
    ask_arms,
    ask_run,
    changed_inputs,
    new_run,
    reopen_run,
    store_summary,
)
from answerkey.runs.stored import (
    is_of_bisection,
    load_stored_run,
    new_run_id,
    open_configured_store,
    resume_command,
    stored_trials,
    with_wordings,
)
from answerkey.stats.paired import AnytimeTest, PlannedLooks, SequentialResult, Verdict, sequential_result
from answerkey.store.database import Lease, claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import TargetLike, target_labels

ARMS = ("a", "b")


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an interleaved experiment: b against a."""

    runs: tuple[Run, Run]
    comparison: Comparison
    # The sequential test's result, if there was one; the comparison's difference and verdict are then the test's.
    sequential: SequentialResult | None
    verdict: Verdict
    asked: int
    planned: int
    stopped_early: bool
    # Why asking stopped, and what observers may have missed.
    warnings: tuple[str, ...] = ()
    # Evaluated on b; gates on a comparison, on its difference to a.
    gates: tuple[GateResult, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The document of `ab --json`."""
        return {
            **{
                arm: {"run": run.id, "target": run.info.target, "score": run.summary.score}
                for arm, run in zip(ARMS, self.runs, strict=True)
            },
            "verdict": self.verdict,
            "asked": self.asked,
            "planned": self.planned,
            "stopped_early": self.stopped_early,
            "sequential": self.sequential,
            "warnings": list(self.warnings),
            "gates": list(self.gates),
            "comparison": self.comparison.to_dict(),
        }

    def with_gates(self, gates: Sequence[Gate]) -> "Experiment":
        """Return the experiment with gate results."""
        run, replace = self.runs[1], msgspec.structs.replace
        summary = run.summary
        if self.stopped_early:
            # Enough was asked: the rest is not missing.
            asked = summary.trials + sum(summary.unscored.values())
            summary = replace(summary, coverage=summary.trials / asked)
        subject = GateSubject.of_run(replace(run, summary=summary, comparison=self.comparison))
        return replace(self, gates=tuple(evaluate_gates(gates, subject)))


class AskedExperiment(NamedTuple):
    """An experiment that has been asked and is yet to be compared."""

    store: SqlStore
    runs: tuple[Run, Run]
    planned: int
    test: AnytimeTest | PlannedLooks | None
    stopped_early: bool
    # What observers may have missed.
    warnings: list[str]


async def ask_experiment(
    context: RunContext,
    questions: QuestionSet,
    targets: tuple[TargetLike, TargetLike],
    *,
    early_stop: bool = False,
    looks: int = 0,
) -> AskedExperiment:
    """Ask both targets every question in random order and store two runs.

    With `early_stop` it may end after any unit; with `looks`, after each of that many equal parts.
    """
    if early_stop and looks:
        raise UsageError("an experiment stops early after any question or at planned looks; choose one")
    async with AsyncExitStack() as opened:
        open_targets = [await opened.enter_async_context(target) for target in context.targets(targets)]
        store = open_configured_store(context.settings, context.options.store)
        link = ExperimentLink(runs=(new_run_id(), new_run_id()), early_stop=early_stop, looks=looks)
        arms = []
        for run_id, name, target, spec in zip(link.runs, ARMS, open_targets, targets, strict=True):
            info = new_run(
                context,
                target,
                spec if isinstance(spec, str) else None,
                questions,
                run_id=run_id,
                name=f"{context.options.name or 'ab'}-{name}",
                experiment=link,
            )
            lease = opened.enter_context(claim_run(store.database, run_id))
            arms.append(Arm(info=info, target=target, lease=lease, is_new=True))
        return await _ask(context, store, questions, arms, link)


async def resume_experiment(context: RunContext, info: RunInfo, store: SqlStore) -> AskedExperiment:
    """Ask what both runs of an interrupted experiment lack."""
    link = info.experiment
    if link is None:
        raise UsageError(f"run {info.id} is not an experiment; use: answerkey resume {info.id}")
    async with AsyncExitStack() as opened:
        leases = [opened.enter_context(claim_run(store.database, run_id)) for run_id in link.runs]
        # As their last owner left them.
        infos = [store.find_run(run_id) for run_id in link.runs]
        specs = [one.target_spec for one in infos if one.target_spec is not None]
        if len(specs) < len(infos):
            raise UsageError(
                f"the experiment of run {info.id} asked Python objects; run it again from Python"
            )
        questions = QuestionSet(
            questions=tuple(store.questions(info.question_set_hash)),
            name=info.question_set,
            path=info.question_path,
        )
        context.grader.set_questions(questions)
        targets = [await opened.enter_async_context(target) for target in context.targets(specs)]
        arms = []
        for one, target, lease in zip(infos, targets, leases, strict=True):
            if changed := changed_inputs(one, context, target):
                raise UsageError(
                    f"run {one.id}: {' and '.join(changed)} changed since; undo that, or start a new experiment"
                )
            replay_journal(store, one)
            arms.append(Arm(info=reopen_run(one, context), target=target, lease=lease, is_new=False))
        return await _ask(context, store, questions, arms, link)


async def _ask(
    context: RunContext, store: SqlStore, questions: QuestionSet, arms: Sequence[Arm], link: ExperimentLink
) -> AskedExperiment:
    order = InterleavedOrder(questions, context.options, link)
    first, second = await ask_arms(context, store, questions, arms, order)
    return AskedExperiment(
        store=store,
        runs=(first, second),
        planned=2 * len(questions) * context.options.repeat,
        test=order.test,
        stopped_early=order.stopped_early,
        warnings=[line for arm in arms for line in arm.target.warnings()],
    )


def compare_experiment(context: RunContext, asked: AskedExperiment) -> Experiment:
    """Compare the two runs. The questions are not needed any more, so that their memory can be used."""
    # Recorders hold them in cycles.
    gc.collect()
    first, second = asked.runs
    infos = [first.info, second.info]
    if asked.stopped_early:
        # Enough was asked, so the comparison need not warn of missing questions.
        infos = [msgspec.structs.replace(info, status="complete") for info in infos]
    base, candidate = columns_from_store(asked.store, infos)
    comparison = with_wordings(
        compare_runs(base, candidate, margin=context.options.margin), asked.store, second.info
    )
    warnings = asked.warnings
    if reason := first.info.stopped:
        command = resume_command(first.info)
        warnings = [
            f"asking stopped for both after the same questions: {reason}; continue with: {command} --budget …",
            *warnings,
        ]
    result = None if asked.test is None else sequential_result(asked.test)
    if result is not None:
        comparison = with_sequential_result(comparison, result, stopped_early=asked.stopped_early)
    return Experiment(
        runs=asked.runs,
        comparison=comparison,
        sequential=result,
        verdict=comparison.verdict,
        asked=first.summary.replies + second.summary.replies,
        planned=asked.planned,
        stopped_early=asked.stopped_early,
        warnings=tuple(dict.fromkeys(warnings)),
    )


class InterleavedOrder:
    """Two arms: each unit (a question, or a group) is asked of both, in random order, before the next one."""

    def __init__(self, questions: QuestionSet, options: Options, link: ExperimentLink) -> None:
        self._questions = questions
        self._options = options
        self._units = self._shuffled_units()
        self.test: AnytimeTest | PlannedLooks | None = None
        if link.early_stop:
            self.test = AnytimeTest()
        elif link.looks:
            self.test = PlannedLooks(link.looks, len(self._units))
        # The rest is only for a test.
        # Position of a question → the scores of each arm's trials so far; None where one could not be scored.
        self._scores: dict[int, tuple[list[float | None], list[float | None]]] = {}
        self._unit_of: dict[int, int] = {}
        if self.test is not None:
            self._unit_of = {position: unit for unit, group in enumerate(self._units) for position in group}
        # Unit → its difference, for units that are scored before one that was asked earlier.
        self._waiting: dict[int, float | None] = {}
        # Number of units that the test has seen, always the first ones.
        self._counted = 0

    def _shuffled_units(self) -> list[tuple[int, ...]]:
        """The positions of questions by group, the unit of the test, in random order."""
        groups: dict[str, list[int]] = {}
        for position, question in enumerate(self._questions):
            groups.setdefault(group_of(question) or question.id, []).append(position)
        units = [tuple(positions) for positions in groups.values()]
        random.Random(self._options.seed).shuffle(units)
        return units

    @property
    def most_unjudged(self) -> int | None:
        """An experiment that may stop early must not run far ahead of its judge."""
        return None if self.test is None else self._options.concurrency

    @property
    def stopped_early(self) -> bool:
        """Whether the test has decided before all questions were asked."""
        return self.test is not None and self.test.decided and not self._is_complete()

    def _is_complete(self) -> bool:
        return all(
            min(map(len, self._scores.get(position, ((), ())))) >= self._options.repeat
            for position in range(len(self._questions))
        )

    def trials(self, arms: Sequence[Arm], budget: BudgetGuard) -> Iterator[Trial]:
        """The trials without a stored reply, in random order."""
        shuffle = random.Random(self._options.seed + 1).shuffle
        for unit in self._units:
            missing = []
            for number in range(1, self._options.repeat + 1):
                for position in unit:
                    question = self._questions.questions[position]
                    order = [0, 1]
                    shuffle(order)
                    missing += [
                        Trial(question, number, position, arm=arm)
                        for arm in order
                        if (question.ask_hash, number) not in arms[arm].stored_keys
                    ]
            # The budget must not end between the two arms of a unit.
            if missing and not budget.reserve(len(missing)):
                return
            yield from missing
            # Checked before each further unit; trials in flight are finished and stored.
            if self.test is not None and self.test.decided:
                return

    def add_score(self, arm: int, trial: Trial) -> None:
        """Note a score; the test gets a unit's difference once it and all earlier units are scored."""
        if self.test is None:
            return
        self._scores.setdefault(trial.position, ([], []))[arm].append(trial.scorecard.total)
        unit = self._unit_of[trial.position]
        if unit < self._counted:
            return
        differences = []
        for position in self._units[unit]:
            arms = self._scores.get(position, ([], []))
            if min(map(len, arms)) < self._options.repeat:
                return
            first, second = ([score for score in scores if score is not None] for scores in arms)
            if first and second:
                differences.append(fsum(second) / len(second) - fsum(first) / len(first))
        # None: not a single pair of the unit could be scored.
        self._waiting[unit] = round(fsum(differences) / len(differences), 9) if differences else None
        while self._counted in self._waiting:
            difference = self._waiting.pop(self._counted)
            self._counted += 1
            if difference is not None:
                self.test.add(difference)


# Resuming


def resume_run(
    context: RunContext,
    info: RunInfo,
    store: SqlStore,
    conclude: Callable[[Run, BaseTarget], Awaitable[Run]],
    *,
    target: TargetLike | None,
    wait: bool,
    accept_changes: bool,
) -> Run:
    """Ask what a run lacks, as its only owner; `conclude` adds verdicts while the target is still open."""
    spec = target if target is not None else _target_spec(info)
    with claim_run(store.database, info.id, wait=wait) as lease:
        # As its last owner left it.
        info = store.find_run(info.id)
        replay_journal(store, info)
        questions = with_stored_truth(current_questions(info, context, store), info, store)
        context.grader.set_questions(questions)

        async def ask() -> Run:
            async with context.target(spec) as opened:
                run = await _continue(context, store, questions, opened, info, lease, accept_changes)
                return await conclude(run, opened)

        return wait_for(ask())


async def _continue(
    context: RunContext,
    store: SqlStore,
    questions: QuestionSet,
    target: BaseTarget,
    info: RunInfo,
    lease: Lease,
    accept_changes: bool,
) -> Run:
    changed = changed_inputs(info, context, target, questions)
    if changed and not accept_changes:
        verb = "has" if len(changed) == 1 else "have"
        raise UsageError(
            f"run {info.id}: {' and '.join(changed)} {verb} changed; undo that, or make a new run from the replies "
            f"that are still valid: answerkey resume {info.id} --accept-changes"
        )
    if changed:
        new = new_run(context, target, info.target_spec, questions, name=info.name, made_from=info.id)

        def copy_replies(new: RunInfo) -> None:
            same_target = msgspec.structs.replace(info, target_hash=new.target_hash)
            trials = stored_trials(store, same_target, questions)
            _add_replies(store, new, (trial for trial in trials if trial.number <= new.repeat))

        return await ask_run(context, store, questions, target, new, copy_replies=copy_replies)
    if info.status == "complete" and context.judge is None:
        # Nothing is missing, and stored evidence is not rewritten.
        run = load_stored_run(store, info.id)
        note = "nothing is missing: this run is complete, and nothing was asked"
        return msgspec.structs.replace(run, warnings=(note, *run.warnings))
    arm = Arm(info=reopen_run(info, context), target=target, lease=lease, is_new=False)
    return await ask_arm(context, store, questions, arm)


def with_stored_truth(questions: QuestionSet, info: RunInfo, store: SqlStore) -> QuestionSet:
    """Questions with the values that were computed for a run, so that all of its replies meet the same key."""
    if info.truth is None:
        return questions
    stored = {question.definition_hash: question for question in store.questions(info.question_set_hash)}
    return questions.subset([stored.get(question.definition_hash, question) for question in questions])


def asked_part(questions: QuestionSet, info: RunInfo, store: SqlStore) -> QuestionSet:
    """The questions of a golden set that a run with `--where` or `--sample` asked; of any other run, all of them."""
    if not info.options.where and info.options.sample is None:
        return questions
    asked = list(store.questions(info.question_set_hash))
    ids, hashes = {question.id for question in asked}, {question.ask_hash for question in asked}
    part = [question for question in questions if question.id in ids or question.ask_hash in hashes]
    if not part:
        raise UsageError(
            f"{questions.name} has none of the questions that run {info.id} asked; give the golden set of the run"
        )
    return questions.subset(part)


def with_values_of_run(questions: QuestionSet, info: RunInfo, store: SqlStore) -> QuestionSet:
    """A golden set with the values that a run computed; UsageError if the run has none for an expectation."""
    resolved, missing = _with_values_of(questions, info.question_set_hash, store)
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise UsageError(
            f"{missing[0]}{more}: run {info.id} has no value for it, because it is new or was changed; "
            "to compute all values from the data as it is now, add --recompute-truth"
        )
    return resolved


def _with_values_of(questions: QuestionSet, set_hash: str, store: SqlStore) -> tuple[QuestionSet, list[str]]:
    """The questions with the values of a stored set, and a description of each expectation that has none."""
    if not questions.has_computed:
        return questions, []
    from answerkey.golden.truth import with_stored_values  # most golden sets have no computed expectations

    stored = {question.id: question for question in store.questions(set_hash)}
    resolved, missing = [], []
    for question in questions:
        # A question that is new has no stored values.
        before = stored.get(question.id, Question(id=question.id, question=""))
        found = with_stored_values(question, before)
        resolved.append(found.question)
        where = f"{questions.path}:{question.line}: " if questions.path and question.line else ""
        missing += [f"{where}{question.id}: {one.method} {one.described!r}" for one in found.missing]
    return questions.subset(resolved), missing


def golden_file_has_changed(info: RunInfo, context: RunContext, store: SqlStore) -> bool:
    """Whether the file of a run's golden set has other questions or expectations than the run was ever scored by."""
    # A log may have brought questions of its own; a bisection asks a part of the set.
    if info.is_log or is_of_bisection(info):
        return False
    if info.question_path is None or not Path(info.question_path).is_file():
        return False
    try:
        questions = current_questions(info, context, store)
    except AnswerkeyError:
        # The run could read it.
        return True
    hashes = {info.question_set_hash, *(before.question_set_hash for before in info.rescored)}
    return not any(
        _with_values_of(questions, set_hash, store)[0].hash == set_hash for set_hash in sorted(hashes)
    )


def current_questions(info: RunInfo, context: RunContext, store: SqlStore) -> QuestionSet:
    """The golden set from its file, or from the store if the file is gone."""
    if info.question_path is not None and Path(info.question_path).is_file():
        questions = read_questions(
            info.question_path,
            name=info.question_set,
            fields=info.options.map,
            registry=context.settings.scorer_registry,
            functions=context.settings.row_functions,
        )
        return select_questions(questions, context.options)
    stored = tuple(store.questions(info.question_set_hash))
    return QuestionSet(questions=stored, name=info.question_set, path=info.question_path)


def _target_spec(info: RunInfo) -> str:
    """The spec that the target of a stored run is made from."""
    if info.is_log:
        raise UsageError(
            f"run {info.id} is a recorded log, which has no chatbot to ask; it cannot be resumed"
        )
    if is_of_bisection(info):
        raise UsageError(f"run {info.id} is part of a bisection; continue with {resume_command(info)}")
    if info.target_spec is None:
        raise UsageError(
            f"run {info.id} asked a Python object; resume it from Python, or name its target with --target"
        )
    return info.target_spec


# Reusing replies

# Number of runs in which a run of the same chatbot is searched.
_MOST_RUNS = 200
_BATCH = 200


async def ask_with_reuse(
    context: RunContext, store: SqlStore, questions: QuestionSet, target: BaseTarget, target_spec: str | None
) -> Run:
    """Ask a new run, with the good replies of the latest run of the same chatbot if there is one."""
    version = target_labels(target_spec, context.settings.targets).version
    same_target = (
        info
        for info in store.list_infos(limit=_MOST_RUNS)
        # Another version label means another chatbot, even with the same fingerprint.
        if info.target_hash == target.fingerprint and info.target_version.version == version
    )
    old = next((info for info in same_target if info.status != "running"), None)
    if old is None:
        new = new_run(context, target, target_spec, questions)
        return await ask_run(context, store, questions, target, new)

    def copy_good_replies(new: RunInfo) -> None:
        _add_replies(store, new, _good_trials(store, old, new, questions))

    new = new_run(context, target, target_spec, questions, made_from=old.id)
    return await ask_run(context, store, questions, target, new, copy_replies=copy_good_replies)


def _add_replies(store: SqlStore, new: RunInfo, trials: Iterator[Trial]) -> None:
    while batch := list(islice(trials, _BATCH)):
        store.add_replies(new, batch)


def _good_trials(store: SqlStore, old: RunInfo, new: RunInfo, questions: QuestionSet) -> Iterator[Trial]:
    """Trials without a failure, which may have been temporary, and without timings, which are of another day.

    A reply to a question whose computed value has changed since is not reused.
    """
    values_before = (
        {question.id: question.computed_values for question in store.questions(old.question_set_hash)}
        if new.truth is not None
        else {}
    )
    for trial in stored_trials(store, old, questions):
        values = values_before.get(trial.question.id)
        if values is not None and values != trial.question.computed_values:
            continue
        if trial.number <= new.repeat and all(reply.failure is None for reply in trial.replies):
            untimed = (msgspec.structs.replace(reply, timings=Timings()) for reply in trial.replies)
            yield trial.answered(tuple(untimed))


# Scoring again


def _scored_before(info: RunInfo, store: SqlStore) -> Rescoring:
    return Rescoring(
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        match=info.match,
        scoring_hash=info.scoring_hash,
        question_set_hash=info.question_set_hash,
        score=store.load_run(info).score,
    )


async def rescore_run(
    context: RunContext, info: RunInfo, store: SqlStore, *, questions: QuestionSet | None = None
) -> Run:
    """Score a run's stored replies again; with `questions`, against their expectations instead of the stored ones.

    A judge is asked only for what it has not judged yet.
    """
    new = msgspec.structs.replace(
        info,
        question_set_hash=info.question_set_hash if questions is None else questions.hash,
        options=context.options,
        judge=None,
        confirmation=None,
        truth=context.truth or info.truth,
        rescored=(*info.rescored, _scored_before(info, store)),
        **context.grader.run_fields,
    )
    context.grader.set_questions(store.questions(info.question_set_hash) if questions is None else questions)
    asked = store.questions(info.question_set_hash) if questions is None else iter(questions)
    count = store.count_questions(info.question_set_hash) if questions is None else len(questions)
    # A log has no planned number of replies.
    planned = None if info.is_log else count * info.repeat
    executor = store_executor()
    context.progress.begin(new, planned=planned, done=0)
    try:
        async with open_judge(store, context.judge, new.id, executor) as judging:
            recorder = Recorder(
                store, new, context.grader, context.progress, judging=judging, executor=executor
            )
            async with recorder.recording():
                await recorder.add_stored(store, asked)
            if judging is not None:
                new = msgspec.structs.replace(new, judge=judging.record(info.judge))
    finally:
        context.progress.end()
    # The run itself changes only when all new scorecards are stored.
    store.update_run(new, questions)
    if questions is None and not info.is_log:
        questions = QuestionSet(questions=tuple(store.questions(info.question_set_hash)))
    results = StreamedResults(partial(store.results, new))
    return store_summary(context, store, new, questions, results, planned=planned)
