"""Live runs: ask a target a question set, or only what an earlier run still lacks."""

import asyncio
from collections.abc import Iterator, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import InterruptedRunError, JudgeUnusableError, UsageError
from answerkey.evaluation.assembly import Assembly, select_questions
from answerkey.evaluation.bookkeeping import changed_run, finish_run, new_id, new_run, store_writer
from answerkey.evaluation.judging import add_stored, judging_on
from answerkey.evaluation.progress import Progress
from answerkey.evaluation.recorder import Recorder
from answerkey.evaluation.rescoring import score_again
from answerkey.model.options import Options
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.model.trial import Trial
from answerkey.protocols import Target
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession

__all__ = ["ask_again", "ask_run", "current_questions", "target_of"]


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
    async with judging_on(store, assembly.judge, info.id, writer, beside=True) as judging:
        begin = partial(store.create_run, info, questions)
        if judging is None:
            begin()
        recorder = Recorder(
            store,
            info,
            assembly.grader,
            progress,
            judging=judging,
            writer=writer,
            keep=True,
            begin=None if judging is None else begin,
        )
        return await _ask(assembly, recorder, store, info, questions, target, judging)


async def ask_again(
    assembly: Assembly,
    info: RunInfo,
    questions: QuestionSet,
    target: Target,
    store: SqlStore,
    progress: Progress,
) -> Run:
    """Ask only what a run still lacks: questions never reached, and questions edited since.

    With a judge, replies that were not judged yet are judged as well.
    """
    changed = changed_run(info, assembly, target, questions)
    writer = store_writer()
    async with judging_on(store, assembly.judge, info.id, writer) as judging:
        store.update_run(changed, questions)
        recorder = Recorder(store, changed, assembly.grader, progress, judging=judging, writer=writer)
        asked = store.reply_keys(changed)
        if judging is None:
            score_again(store, changed, questions, assembly.grader)
        return await _ask(assembly, recorder, store, changed, questions, target, judging, asked=asked)


def current_questions(info: RunInfo, options: Options, store: SqlStore) -> QuestionSet:
    """The golden set as its file is now, or as it was stored if there is no file any more."""
    if info.question_path is not None and Path(info.question_path).is_file():
        questions = read_questions(info.question_path, name=info.question_set)
        return select_questions(questions, options)
    stored = tuple(store.questions(info.question_set_hash))
    return QuestionSet(questions=stored, name=info.question_set, path=info.question_path)


def target_of(info: RunInfo) -> str:
    """What the target of a stored run is made from again."""
    if info.target_spec is None:
        raise UsageError(
            f"run {info.id} asked a Python object; resume it from Python, or name its target with --target"
        )
    return info.target_spec


def _planned(questions: QuestionSet, repeat: int, asked: Set[tuple[str, int]]) -> Iterator[Trial]:
    """The trials of a run that have no reply yet."""
    for number in range(1, repeat + 1):
        for position, question in enumerate(questions):
            # Hashing every question is for runs that go on; a new one has asked nothing.
            if not asked or (question.ask_hash, number) not in asked:
                yield Trial(question, number, position)


async def _ask(
    assembly: Assembly,
    recorder: Recorder,
    store: SqlStore,
    info: RunInfo,
    questions: QuestionSet,
    target: Target,
    judging: "JudgingSession | None",
    *,
    asked: Set[tuple[str, int]] = frozenset(),
) -> Run:
    planned = len(questions) * info.repeat
    finish = partial(finish_run, store, info, recorder=recorder, judging=judging, planned=planned)
    try:
        async with recorder.recording():
            # With a judge, stored replies are scored again along with the new ones, mostly from its cached answers.
            done = 0 if judging is not None else min(len(asked), planned)
            recorder.begin(planned=planned, done=done)
            if judging is not None and asked:
                await add_stored(recorder, store, info, questions)
            async for trial in assembly.engine.ask_all(target, _planned(questions, info.repeat, asked)):
                await recorder.add(trial)
    except asyncio.CancelledError:
        finish("partial")
        raise InterruptedRunError(f"interrupted; go on with: answerkey resume {info.id}") from None
    except JudgeUnusableError as error:
        if recorder.forgotten:
            raise JudgeUnusableError(f"{error}; nothing was judged or kept") from None
        finish("partial")
        raise JudgeUnusableError(
            f"{error}; the replies are kept, so go on with: answerkey resume {info.id} --judge MODEL"
        ) from None
    return finish("complete")
