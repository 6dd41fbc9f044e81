"""An interleaved experiment: two targets are asked the same questions side by side, in random order.

Time of day, load and the network hit both alike, which two runs one after the other cannot promise. The result is two
ordinary runs. With early stop, a test looks while the answers come in (`stats/sequential.py`). It takes the units in the order
in which they were asked, so that it never depends on which answers are quick.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from math import fsum
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from answerkey.comparison.run_comparison import columns_from_store, compare_runs
from answerkey.errors import InterruptedRunError, StoreAwayError, StoreFullError, UsageError
from answerkey.gates import Gate, GateSubject, evaluate_gates
from answerkey.model.comparison import Comparison
from answerkey.model.question import Question, QuestionSet, group_of
from answerkey.model.run import ExperimentLink, GateResult, Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.protocols import BaseTarget
from answerkey.runs.bookkeeping import (
    changes_since,
    finish_run,
    going_on,
    new_id,
    new_run,
    store_writer,
)
from answerkey.runs.context import RunContext
from answerkey.runs.durable_writer import DurableWriter, StoreRetry, open_writer, replay_journal
from answerkey.runs.live import Spending
from answerkey.runs.progress import NoProgress, Progress, RunningScore
from answerkey.runs.recorder import Recorder, add_stored, judging_on
from answerkey.runs.stored import open_configured_store, stored_trials
from answerkey.runs.verdicts import with_wordings
from answerkey.stats.paired import Verdict
from answerkey.stats.sequential import AnytimeTest, PlannedLooks, sequential_document
from answerkey.store.ownership import Lease, claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.resolve import TargetLike

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession

ARMS = ("a", "b")


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What an interleaved experiment found: b against a."""

    runs: tuple[Run, Run]
    comparison: Comparison
    # What the test found that could stop it, where there was one: then the verdict is its verdict.
    sequential: dict[str, Any] | None
    verdict: Verdict
    asked: int
    planned: int
    stopped_early: bool
    # What cut the asking short, and what the observers could not tell.
    warnings: tuple[str, ...] = ()
    # Held against b; those on a comparison, against its difference to a.
    gates: tuple[GateResult, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As `ab --json` has it."""
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
        """Return the experiment with gate results; a sequential test's verdict and interval replace the comparison's."""
        run, comparison, replace = self.runs[1], self.comparison, msgspec.structs.replace
        summary = run.summary
        if self.stopped_early:
            # Enough was asked: the rest is not missing.
            asked = summary.trials + sum(summary.unscored.values())
            summary = replace(summary, coverage=summary.trials / asked)
        if self.sequential is not None:
            figures = {name: self.sequential[name] for name in ("mean", "low", "high", "p_value")}
            score = replace(comparison.score, difference=replace(comparison.difference, **figures))
            comparison = replace(comparison, score=score)
        comparison = replace(comparison, verdict=self.verdict)
        subject = GateSubject.of_run(replace(run, summary=summary, comparison=comparison))
        return replace(self, gates=tuple(evaluate_gates(gates, subject)))


async def run_experiment(
    assembly: RunContext,
    questions: QuestionSet,
    targets: tuple[TargetLike, TargetLike],
    progress: Progress,
    *,
    early_stop: bool = False,
    looks: int = 0,
) -> Experiment:
    """Ask both targets every question in random order, keep two runs, and compare them.

    With `early_stop` it may end after any unit, with `looks` after each of so many equal parts.
    """
    if early_stop and looks:
        raise UsageError("an experiment stops early after any question or at planned looks; choose one")
    options = assembly.options
    async with AsyncExitStack() as opened:
        asked = [await opened.enter_async_context(target) for target in assembly.targets(targets)]
        store = open_configured_store(assembly.settings, options.store)
        link = ExperimentLink(runs=(new_id(), new_id()), early_stop=early_stop, looks=looks)
        infos = [
            new_run(
                assembly,
                target,
                questions,
                run_id=run_id,
                target_spec=given if isinstance(given, str) else None,
                name=f"{options.name or 'ab'}-{arm}",
                experiment=link,
            )
            for run_id, arm, target, given in zip(link.runs, ARMS, asked, targets, strict=True)
        ]
        leases = [opened.enter_context(claim_run(store.database, info.id)) for info in infos]
        arms = _Arms(assembly, store, infos, questions, asked, leases, link)
        return await arms.ask(progress, lambda info: store.create_run(info, questions))


async def resume_experiment(
    assembly: RunContext, info: RunInfo, store: SqlStore, progress: Progress
) -> Experiment:
    """Ask what both runs of an interrupted experiment still lack."""
    link = info.experiment
    if link is None:
        raise UsageError(f"run {info.id} is no experiment; go on with: answerkey resume {info.id}")
    infos = [store.find_run(run_id) for run_id in link.runs]
    specs = [other.target_spec for other in infos if other.target_spec is not None]
    if len(specs) < len(infos):
        raise UsageError(f"the experiment of run {info.id} asked Python objects; run it again from Python")
    questions = QuestionSet(
        questions=tuple(store.questions(info.question_set_hash)),
        name=info.question_set,
        path=info.question_path,
    )
    async with AsyncExitStack() as opened:
        asked = [await opened.enter_async_context(target) for target in assembly.targets(specs)]
        for other, target in zip(infos, asked, strict=True):
            if changed := changes_since(other, assembly, target):
                raise UsageError(
                    f"run {other.id}: {' and '.join(changed)} changed since; put that back, or begin the experiment anew"
                )
        leases = [opened.enter_context(claim_run(store.database, other.id)) for other in infos]
        for other in infos:
            replay_journal(store, other)
        again = [going_on(other, assembly) for other in infos]
        arms = _Arms(assembly, store, again, questions, asked, leases, link)
        return await arms.ask(progress, store.update_run)


class _Arms:
    def __init__(
        self,
        assembly: RunContext,
        store: SqlStore,
        infos: list[RunInfo],
        questions: QuestionSet,
        targets: list[BaseTarget],
        leases: list[Lease],
        link: ExperimentLink,
    ) -> None:
        self.assembly = assembly
        self.leases = leases
        self.store = store
        self.infos = infos
        self.questions = questions
        self.targets = targets
        self.options = assembly.options
        self.asked = [store.reply_keys(info) for info in infos]
        # Content hash → the scores of each arm's trials so far; None where one could not be scored.
        self.scores: dict[str, tuple[list[float | None], list[float | None]]] = {}
        self.units = self._units()
        self.unit_of = {q.content_hash: unit for unit, group in enumerate(self.units) for _, q in group}
        # Units that are answered but wait for one that was asked before them, with their differences.
        self.waiting: dict[int, float | None] = {}
        # Units that the test has seen, which are always the first ones.
        self.counted = 0
        self.test: AnytimeTest | PlannedLooks | None = None
        if link.early_stop:
            self.test = AnytimeTest()
        elif link.looks:
            self.test = PlannedLooks(link.looks, len(self.units))
        # Trials of each arm.
        self.planned = len(questions) * self.options.repeat
        self.keepers: list[DurableWriter] = []
        self.recorders: list[Recorder] = []
        self.judging: list[JudgingSession | None] = []
        self.running = RunningScore()
        self.spending = Spending(None, (), ())

    def _units(self) -> list[list[tuple[int, Question]]]:
        """Questions in random order, those that belong together beside each other: the test counts them as one."""
        groups: dict[str, list[tuple[int, Question]]] = {}
        for position, question in enumerate(self.questions):
            groups.setdefault(group_of(question) or question.id, []).append((position, question))
        units = list(groups.values())
        random.Random(self.options.seed).shuffle(units)
        return units

    def trials(self) -> Iterator[Trial]:
        order = random.Random(self.options.seed + 1)
        for unit in self.units:
            missing = []
            for trial in range(1, self.options.repeat + 1):
                for position, question in unit:
                    arms = [0, 1]
                    order.shuffle(arms)
                    for arm in arms:
                        if (question.ask_hash, trial) not in self.asked[arm]:
                            missing.append(Trial(question, trial, position, arm=arm))
            # A unit is asked of both or of neither: a budget that ends must not end one of them earlier.
            if missing and not self.spending.begin(len(missing)):
                return
            yield from missing
            # Looked at before each further question; those under way are finished and kept.
            if self.test is not None and self.test.decided:
                return

    def count(self, content: str, arm: int, score: float | None) -> None:
        """Note a score; once a unit and all that were asked before it have all theirs, the test gets its difference."""
        self.scores.setdefault(content, ([], []))[arm].append(score)
        unit = self.unit_of.get(content)
        if self.test is None or unit is None or unit < self.counted:
            return
        differences = []
        for _, question in self.units[unit]:
            arms = self.scores.get(question.content_hash, ([], []))
            if min(map(len, arms)) < self.options.repeat:
                return
            first, second = ([score for score in scores if score is not None] for scores in arms)
            if first and second:
                differences.append(fsum(second) / len(second) - fsum(first) / len(first))
        # A unit that neither could be scored on says nothing.
        self.waiting[unit] = round(fsum(differences) / len(differences), 9) if differences else None
        while self.counted in self.waiting:
            difference = self.waiting.pop(self.counted)
            self.counted += 1
            if difference is not None:
                self.test.add(difference)

    async def ask(self, progress: Progress, begin: Callable[[RunInfo], None]) -> Experiment:
        """Ask, and compare; `begin` writes a run down once the judges are known to work."""
        async with AsyncExitStack() as opened:
            writers = [store_writer() for _ in self.infos]
            patience = StoreRetry(self.options.store_patience)
            for arm, info in enumerate(self.infos):
                session = judging_on(
                    self.store, self.assembly.judge, info.id, writers[arm], patience=patience
                )
                self.judging.append(await opened.enter_async_context(session))
            for arm, info in enumerate(self.infos):
                begun = open_writer(self.store, info, self.leases[arm], patience, partial(begin, info))
                self.keepers.append(opened.enter_context(begun))
                watch = partial(self._scored, arm, progress)
                self.recorders.append(
                    Recorder(
                        self.keepers[-1],
                        info,
                        self.assembly.grader,
                        NoProgress(),
                        judging=self.judging[arm],
                        writer=writers[arm],
                        watch=watch,
                        # An experiment that may stop early must not run far ahead of its judge.
                        most_unjudged=None if self.test is None else self.options.concurrency,
                    )
                )
            try:
                with patience.until_stopped():
                    await self._ask(progress)
            except asyncio.CancelledError:
                self._finish("interrupted")
                raise InterruptedRunError(
                    f"interrupted; go on with: answerkey ab --resume {self.infos[0].id}"
                ) from None
            except (StoreAwayError, StoreFullError) as error:
                raise InterruptedRunError(
                    f"{error}; then go on with: answerkey ab --resume {self.infos[0].id}"
                ) from None
            finally:
                progress.end()
            return self._conclude()

    async def _ask(self, progress: Progress) -> None:
        judged = self.judging[0] is not None
        done = 0 if judged else sum(map(len, self.asked))
        async with self.recorders[0].recording(), self.recorders[1].recording():
            progress.begin(self.infos[0], planned=2 * self.planned, done=done)
            for arm, info in enumerate(self.infos):
                if judged and self.asked[arm]:
                    # What was asked before is scored again along with the new replies, from the judge's cached answers.
                    await add_stored(self.recorders[arm], self.store, info, self.questions)
                    continue
                for batch in self.store.score_batches(info):
                    for content, score in zip(batch.content_hashes, batch.scores, strict=True):
                        self.count(content.hex(), arm, score)
            self.spending = self._spending()
            async for trial in self.assembly.engine.ask_all(self.targets, self.trials(), self._journal):
                await self.recorders[trial.arm].add(trial)

    def _spending(self) -> Spending:
        """What both have cost until now, where there is a budget to keep."""
        known: list[Trial] = []
        if self.options.budget is not None:
            for info, asked in zip(self.infos, self.asked, strict=True):
                known += stored_trials(self.store, info, self.questions) if asked else ()
        return Spending(self.options.budget, known, self.judging)

    def _journal(self, trial: Trial) -> None:
        self.keepers[trial.arm].append(trial)
        self.spending.add(trial)

    def _scored(self, arm: int, progress: Progress, graded: Trial) -> None:
        """A reply has its scorecard, at once or when it has been judged."""
        self.running.add(graded.scorecard)
        progress.advance(self.running)
        self.count(graded.question.content_hash, arm, graded.scorecard.total)

    def _finish(self, status: Literal["interrupted", "partial", "complete"]) -> list[Run]:
        parts = zip(self.infos, self.recorders, self.keepers, self.judging, strict=True)
        return [
            finish_run(
                self.store,
                info,
                status,
                recorder=recorder,
                keeper=keeper,
                judging=judging,
                planned=self.planned,
                stopped=self.spending.stopped,
            )
            for info, recorder, keeper, judging in parts
        ]

    def _conclude(self) -> Experiment:
        complete = all(
            min(map(len, self.scores.get(question.content_hash, ((), ())))) >= self.options.repeat
            for question in self.questions
        )
        stopped = self.test is not None and self.test.decided and not complete
        status: Literal["interrupted", "partial", "complete"] = "partial" if stopped else "complete"
        first, second = self._finish("interrupted" if self.spending.stopped else status)
        infos = [first.info, second.info]
        if stopped:
            # They lack questions because enough were asked, which is nothing to warn of.
            infos = [msgspec.structs.replace(info, status="complete") for info in infos]
        base, candidate = columns_from_store(self.store, infos)
        comparison = with_wordings(
            compare_runs(base, candidate, margin=self.options.margin), self.store, second.info
        )
        return Experiment(
            runs=(first, second),
            comparison=comparison,
            sequential=None if self.test is None else sequential_document(self.test),
            verdict=comparison.verdict if self.test is None else self.test.verdict,
            asked=first.summary.replies + second.summary.replies,
            planned=2 * self.planned,
            stopped_early=stopped,
            warnings=tuple(self._warnings()),
        )

    def _warnings(self) -> Iterator[str]:
        if self.spending.stopped:
            yield (
                f"asking stopped, for both after the same questions: {self.spending.stopped}; go on with: "
                f"answerkey ab --resume {self.infos[0].id} --budget …"
            )
        yield from dict.fromkeys(line for target in self.targets for line in target.warnings())
