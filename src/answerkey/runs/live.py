"""Live runs: ask a target a question set, or only what an earlier run still lacks."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import (
    InterruptedRunError,
    JudgeUnusableError,
    StoreAwayError,
    StoreError,
    StoreFullError,
)
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.protocols import BaseTarget
from answerkey.runs.bookkeeping import finish_run, going_on, new_id, new_run, store_writer
from answerkey.runs.context import RunContext
from answerkey.runs.durable_writer import DurableWriter, StoreRetry, open_writer
from answerkey.runs.progress import Progress
from answerkey.runs.recorder import Recorder, add_stored, judging_on
from answerkey.runs.rescoring import score_again
from answerkey.runs.stored import stored_trials
from answerkey.store.ownership import Lease, claim_run
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession


class Spending:
    """Counts what replies cost, and with them what judging them does."""

    def __init__(
        self,
        budget: float | None,
        before: Iterable[Trial],
        judging: "Sequence[JudgingSession | None]",
    ) -> None:
        self._budget = budget
        self._judging = judging
        self._spent = 0.0
        self._answered = self._under_way = 0
        self._unknown = False
        # Why no more is asked; empty: nothing forbids it.
        self.stopped = ""
        for trial in before:
            self._count(trial)

    def allowed(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Trials as long as the budget covers the next one and those under way, by what the others cost on average."""
        for trial in trials:
            if not self.begin(1):
                return
            yield trial

    def begin(self, trials: int) -> bool:
        """Whether the budget covers so many more, which are then under way."""
        self.stopped = self._reason(trials)
        if not self.stopped:
            self._under_way += trials
        return not self.stopped

    def add(self, trial: Trial) -> None:
        """Count a trial that has just been answered."""
        self._under_way -= 1
        self._count(trial)

    def _count(self, trial: Trial) -> None:
        if self._budget is None:
            return
        self._answered += 1
        cost = trial.cost
        if cost is not None:
            self._spent += cost
        elif any(reply.failure is None for reply in trial.replies):
            self._unknown = True

    def _reason(self, more: int) -> str:
        if self._budget is None:
            return ""
        if self._unknown:
            return (
                f"the budget of {self._budget:g} cannot be kept, since what a reply cost is not known; give the "
                "chatbot's or its model's price under [prices]"
            )
        judge = sum(session.cost for session in self._judging if session is not None)
        usual = self._spent / self._answered if self._answered else 0.0
        spent = self._spent + judge
        if spent + (self._under_way + more) * usual > self._budget or spent >= self._budget:
            return f"the budget of {self._budget:g} is used up ({spent:.4g} spent, {self._under_way} questions under way)"
        return ""


class Asking(msgspec.Struct, frozen=True):
    """What a run is asked with."""

    assembly: RunContext
    questions: QuestionSet
    # Open already.
    target: BaseTarget
    # What the target is made from again; None: a Python object.
    target_spec: str | None
    store: SqlStore
    progress: Progress

    def new_run(self, **known: Any) -> RunInfo:
        """What a run is before its first question."""
        begun = new_run(
            self.assembly, self.target, self.questions, run_id=new_id(), target_spec=self.target_spec
        )
        return msgspec.structs.replace(begun, **known)


async def ask_run(asking: Asking) -> Run:
    """Ask every question, keep every reply, and sum up."""
    info = asking.new_run()
    with claim_run(asking.store.database, info.id) as lease:
        return await _ask(asking, info, lease, new=True)


async def ask_again(asking: Asking, info: RunInfo, lease: Lease) -> Run:
    """Ask only what a run that this process owns still lacks.

    With a judge, replies that were not judged yet are judged as well.
    """
    return await _ask(asking, going_on(info, asking.assembly), lease, new=False)


async def ask_from(asking: Asking, info: RunInfo, fill: Callable[[RunInfo], None]) -> Run:
    """A new run that begins with replies which `fill` puts into it, and asks the rest."""
    with claim_run(asking.store.database, info.id) as lease:
        asking.store.create_run(info, asking.questions)
        fill(info)
        return await ask_again(asking, info, lease)


async def _ask(asking: Asking, info: RunInfo, lease: Lease, *, new: bool) -> Run:
    assembly, store, questions = asking.assembly, asking.store, asking.questions
    writer = store_writer()
    retry = StoreRetry(assembly.options.store_patience)
    begin = partial(store.create_run, info, questions) if new else partial(store.update_run, info)
    judge = judging_on(store, assembly.judge, info.id, writer, patience=retry, beside=new)
    async with judge as judging:
        with open_writer(store, info, lease, retry, begin) as keeper:
            recorder = Recorder(
                keeper,
                info,
                assembly.grader,
                asking.progress,
                judging=judging,
                writer=writer,
                keep=new,
                hold=new,
            )
            asked = set() if new else store.reply_keys(info)
            if not new and judging is None:
                score_again(store, info, questions, assembly.grader)
            finish = partial(
                finish_run,
                store,
                info,
                recorder=recorder,
                keeper=keeper,
                judging=judging,
                planned=len(questions) * info.repeat,
            )
            try:
                stopped = await _record(asking, info, recorder, keeper, retry, judging, asked)
                run = finish("interrupted" if stopped else "complete", stopped=stopped)
                return msgspec.structs.replace(run, warnings=(*run.warnings, *asking.target.warnings()))
            except asyncio.CancelledError:
                finish("interrupted")
                raise InterruptedRunError(f"interrupted; go on with: answerkey resume {info.id}") from None
            except JudgeUnusableError as error:
                if recorder.forgotten:
                    keeper.discard()
                    raise JudgeUnusableError(f"{error}; nothing was judged or kept") from None
                finish("interrupted")
                raise JudgeUnusableError(
                    f"{error}; the replies are kept, so go on with: answerkey resume {info.id} --judge MODEL"
                ) from None
            except (StoreAwayError, StoreFullError) as error:
                # If that cannot be written either, the lease of a process that has ended says the same.
                with suppress(StoreError):
                    finish("interrupted")
                kept = f"; {keeper.journal_note}" if keeper.journal_note else ""
                raise InterruptedRunError(
                    f"{error}{kept}; then continue with: answerkey resume {info.id}"
                ) from None


async def _record(
    asking: Asking,
    info: RunInfo,
    recorder: Recorder,
    keeper: DurableWriter,
    retry: StoreRetry,
    judging: "JudgingSession | None",
    asked: Set[tuple[str, int]],
) -> str:
    """Ask what has no reply yet, each recorded as it comes; why the asking stopped early, if it did."""
    store, questions, budget = asking.store, asking.questions, asking.assembly.options.budget
    planned = len(questions) * info.repeat
    async with recorder.recording():
        # With a judge, stored replies are scored again along with the new ones, mostly from its cached answers.
        recorder.begin(planned=planned, done=0 if judging is not None else min(len(asked), planned))
        with retry.until_stopped():
            if judging is not None and asked:
                await add_stored(recorder, store, info, questions)
            known = stored_trials(store, info, questions) if budget is not None and asked else ()
            spending = Spending(budget, known, [judging])

            def journal(trial: Trial) -> None:
                keeper.append(trial)
                spending.add(trial)

            trials = spending.allowed(_planned(questions, info.repeat, asked))
            async for trial in asking.assembly.engine.ask_all([asking.target], trials, journal):
                await recorder.add(trial)
    return spending.stopped


def _planned(questions: QuestionSet, repeat: int, asked: Set[tuple[str, int]]) -> Iterator[Trial]:
    """The trials of a run that have no reply yet."""
    for number in range(1, repeat + 1):
        for position, question in enumerate(questions):
            # Hashing every question is for runs that go on; a new one has asked nothing.
            if not asked or (question.ask_hash, number) not in asked:
                yield Trial(question, number, position)
