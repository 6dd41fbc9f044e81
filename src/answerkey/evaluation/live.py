"""Live runs: ask a target a question set, or only what an earlier run still lacks."""

import asyncio
from collections.abc import Iterator, Set
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import (
    InterruptedRunError,
    JudgeUnusableError,
    StoreAwayError,
    StoreError,
    StoreFullError,
)
from answerkey.evaluation.assembly import Assembly
from answerkey.evaluation.bookkeeping import finish_run, going_on, new_id, new_run, store_writer
from answerkey.evaluation.judging import add_stored, judging_on
from answerkey.evaluation.keeping import RunKeeper, keep_run
from answerkey.evaluation.progress import Progress
from answerkey.evaluation.recorder import Recorder
from answerkey.evaluation.rescoring import score_again
from answerkey.evaluation.spending import Spending
from answerkey.evaluation.store_patience import Patience
from answerkey.evaluation.stored import stored_trials
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.model.trial import Trial
from answerkey.protocols import Target
from answerkey.store.ownership import Lease, claim_run
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession

__all__ = ["ask_again", "ask_run"]


async def ask_run(
    assembly: Assembly,
    questions: QuestionSet,
    target: Target,
    store: SqlStore,
    progress: Progress,
    *,
    target_spec: str | None,
) -> Run:
    """Ask an open target every question, keep every reply, and sum up."""
    info = new_run(assembly, target, questions, run_id=new_id(), target_spec=target_spec)
    writer = store_writer()
    patience = Patience(assembly.options.store_patience)
    begin = partial(store.create_run, info, questions)
    judge = judging_on(store, assembly.judge, info.id, writer, patience=patience, beside=True)
    async with judge as judging:
        with (
            claim_run(store.database, info.id) as lease,
            keep_run(store, info, lease, patience, begin) as keeper,
        ):
            recorder = Recorder(
                keeper,
                info,
                assembly.grader,
                progress,
                judging=judging,
                writer=writer,
                keep=True,
                hold=judging is not None,
            )
            try:
                return await _ask(assembly, recorder, keeper, store, info, questions, target, judging)
            except JudgeUnusableError:
                if recorder.forgotten:
                    keeper.discard()
                raise


async def ask_again(
    assembly: Assembly,
    info: RunInfo,
    questions: QuestionSet,
    target: Target,
    store: SqlStore,
    progress: Progress,
    lease: Lease,
) -> Run:
    """Ask only what a run that this process owns still lacks.

    With a judge, replies that were not judged yet are judged as well.
    """
    again = going_on(info, assembly)
    writer = store_writer()
    patience = Patience(assembly.options.store_patience)
    begin = partial(store.update_run, again)
    async with judging_on(store, assembly.judge, info.id, writer, patience=patience) as judging:
        with keep_run(store, again, lease, patience, begin) as keeper:
            recorder = Recorder(keeper, again, assembly.grader, progress, judging=judging, writer=writer)
            asked = store.reply_keys(again)
            if judging is None:
                score_again(store, again, questions, assembly.grader)
            return await _ask(
                assembly, recorder, keeper, store, again, questions, target, judging, asked=asked
            )


def _planned(questions: QuestionSet, repeat: int, asked: Set[tuple[str, int]]) -> Iterator[Trial]:
    """The trials of a run that have no reply yet."""
    for number in range(1, repeat + 1):
        for position, question in enumerate(questions):
            # Hashing every question is for runs that go on; a new one has asked nothing.
            if not asked or (question.ask_hash, number) not in asked:
                yield Trial(question, number, position)


def _spending(
    assembly: Assembly,
    store: SqlStore,
    info: RunInfo,
    questions: QuestionSet,
    judging: "JudgingSession | None",
    asked: Set[tuple[str, int]],
) -> Spending:
    """What the run has cost until now, where there is a budget to keep."""
    budget = assembly.options.budget
    known = stored_trials(store, info, questions) if budget is not None and asked else ()
    return Spending(budget, known, [judging])


async def _ask(
    assembly: Assembly,
    recorder: Recorder,
    keeper: RunKeeper,
    store: SqlStore,
    info: RunInfo,
    questions: QuestionSet,
    target: Target,
    judging: "JudgingSession | None",
    *,
    asked: Set[tuple[str, int]] = frozenset(),
) -> Run:
    planned = len(questions) * info.repeat
    finish = partial(
        finish_run, store, info, recorder=recorder, keeper=keeper, judging=judging, planned=planned
    )
    try:
        async with recorder.recording():
            # With a judge, stored replies are scored again along with the new ones, mostly from its cached answers.
            done = 0 if judging is not None else min(len(asked), planned)
            recorder.begin(planned=planned, done=done)
            with keeper.asking():
                if judging is not None and asked:
                    await add_stored(recorder, store, info, questions)
                spending = _spending(assembly, store, info, questions, judging, asked)

                def journal(trial: Trial) -> None:
                    keeper.append(trial)
                    spending.add(trial)

                trials = spending.allowed(_planned(questions, info.repeat, asked))
                async for trial in assembly.engine.ask_all(target, trials, journal):
                    await recorder.add(trial)
        run = finish("interrupted" if spending.stopped else "complete", stopped=spending.stopped)
        observing: list[str] = getattr(target, "warnings", list)()
        return msgspec.structs.replace(run, warnings=(*run.warnings, *observing))
    except asyncio.CancelledError:
        finish("interrupted")
        raise InterruptedRunError(f"interrupted; go on with: answerkey resume {info.id}") from None
    except JudgeUnusableError as error:
        if recorder.forgotten:
            raise JudgeUnusableError(f"{error}; nothing was judged or kept") from None
        finish("interrupted")
        raise JudgeUnusableError(
            f"{error}; the replies are kept, so go on with: answerkey resume {info.id} --judge MODEL"
        ) from None
    except (StoreAwayError, StoreFullError) as error:
        # If that cannot be written either, the lease of a process that has ended says the same.
        with suppress(StoreError):
            finish("interrupted")
        raise keeper.interrupted(error) from None
