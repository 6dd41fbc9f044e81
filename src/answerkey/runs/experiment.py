"""Interleaved experiments: a run with two arms, asked the same questions in random order.

Time of day, load and network affect both arms alike, unlike two runs one after the other. The result is two stored runs
and their comparison. With early stop, a sequential test (`stats/paired.py`) takes the units in the order in which
they were asked, so that it does not depend on which replies are fast.
"""

import gc
import random
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from math import fsum
from typing import Any, NamedTuple

import msgspec

from answerkey.comparison.columns import columns_from_store
from answerkey.comparison.run_comparison import compare_runs, with_sequential_result
from answerkey.errors import UsageError
from answerkey.gates import Gate, GateSubject, evaluate_gates
from answerkey.model.comparison import Comparison
from answerkey.model.options import Options
from answerkey.model.question import QuestionSet, group_of
from answerkey.model.run import ExperimentLink, GateResult, Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.runs.context import RunContext
from answerkey.runs.recorder import replay_journal
from answerkey.runs.run import Arm, BudgetGuard, ask_arms, changed_inputs, new_run, reopen_run
from answerkey.runs.stored import new_run_id, open_configured_store, resume_command
from answerkey.runs.verdicts import with_wordings
from answerkey.stats.paired import AnytimeTest, PlannedLooks, SequentialResult, Verdict, sequential_result
from answerkey.store.database import claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import TargetLike

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
