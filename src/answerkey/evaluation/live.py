"""Live runs: ask a target a question set, or only what an earlier run still lacks."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import JudgeSettings, Options, Settings
from answerkey.datasets.questions import read_questions
from answerkey.engine.local import LocalEngine
from answerkey.errors import InterruptedRunError, JudgeUnusableError, UsageError
from answerkey.evaluation.bookkeeping import (
    finish_run,
    kept_options,
    new_id,
    new_run,
    options_of,
    store_writer,
)
from answerkey.evaluation.judging import add_stored, judge_for, judging_on
from answerkey.evaluation.progress import Progress, Silent
from answerkey.evaluation.recorder import Recorder
from answerkey.evaluation.rescoring import score_again
from answerkey.evaluation.selection import select_questions
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.model.trial import Trial
from answerkey.protocols import Target
from answerkey.scorers.plan import make_grader
from answerkey.targets.resolve import resolve_target

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession
    from answerkey.store.sql import SqlStore
    from answerkey.store.sqlite_file import SqliteFile

    RunStore = SqlStore | SqliteFile

__all__ = ["ask_questions", "resume_run"]


async def ask_questions(
    questions: QuestionSet,
    target: "str | Callable[..., Any] | Target",
    options: Options,
    *,
    settings: Settings,
    open_store: "Callable[[], RunStore]",
    progress: Progress | None = None,
) -> Run:
    """Ask every question, keep every reply, and sum up. The store is opened only once the target answers."""
    chosen = select_questions(questions, where=options.where, sample=options.sample, seed=options.seed)
    judge = judge_for(options.judge, options.scoring, settings, concurrency=options.concurrency)
    grader = make_grader(options.scoring, settings, judge=judge)
    grader.check_questions(chosen)
    resolved = resolve_target(
        target, settings=settings.targets, concurrency=options.concurrency, folder=settings.folder
    )
    async with resolved:
        store = open_store()
        info = new_run(
            resolved,
            chosen,
            options,
            grader,
            run_id=new_id(),
            name=options.name or resolved.name,
            kept=kept_options(options, target),
        )
        writer = store_writer()
        async with judging_on(store, judge, info.id, writer, beside=True) as judging:
            begin = partial(store.create_run, info, chosen)
            if judging is None:
                begin()
            recorder = Recorder(
                store,
                info,
                grader,
                progress or Silent(),
                judging=judging,
                writer=writer,
                keep=True,
                begin=None if judging is None else begin,
            )
            return await _ask(recorder, store, info, chosen, resolved, options, judging)


async def resume_run(
    info: RunInfo,
    *,
    settings: Settings,
    store: "SqlStore",
    progress: Progress | None = None,
    target: "str | Callable[..., Any] | Target | None" = None,
    judge: JudgeSettings | None = None,
) -> Run:
    """Ask only what a run still lacks: questions never reached, and questions edited since.

    With a judge (the run's own, or `judge` in its place), replies that were not judged yet are judged as well.
    """
    given = target if target is not None else info.options.get("target")
    if given is None:
        raise UsageError(
            f"run {info.id} asked a Python object; resume it from Python, or name its target with --target"
        )
    options = options_of(info)
    if judge is not None:
        options = msgspec.structs.replace(options, judge=judge)
    questions = _current_questions(info, options, store)
    asked_judge = judge_for(options.judge, options.scoring, settings, concurrency=options.concurrency)
    grader = make_grader(options.scoring, settings, judge=asked_judge)
    resolved = resolve_target(
        given, settings=settings.targets, concurrency=options.concurrency, folder=settings.folder
    )
    async with resolved:
        changed = msgspec.structs.replace(
            info,
            status="running",
            target_hash=resolved.fingerprint,
            question_set_hash=questions.hash,
            scoring_hash=grader.hash,
            options=kept_options(options, info.options.get("target"), **_experiment(info)),
        )
        writer = store_writer()
        async with judging_on(store, asked_judge, info.id, writer) as judging:
            store.update_run(changed, questions)
            recorder = Recorder(store, changed, grader, progress or Silent(), judging=judging, writer=writer)
            asked = store.reply_keys(changed)
            if judging is None:
                score_again(store, changed, questions, grader)
            return await _ask(recorder, store, changed, questions, resolved, options, judging, asked=asked)


def _experiment(info: RunInfo) -> dict[str, Any]:
    """What says that a run is one of an experiment's two."""
    return {name: value for name, value in info.options.items() if name == "experiment"}


def _current_questions(info: RunInfo, options: Options, store: "SqlStore") -> QuestionSet:
    """The golden set as its file is now, or as it was stored if there is no file any more."""
    if info.question_path is not None and Path(info.question_path).is_file():
        questions = read_questions(info.question_path, name=info.question_set)
        return select_questions(questions, where=options.where, sample=options.sample, seed=options.seed)
    stored = tuple(store.questions(info.question_set_hash))
    return QuestionSet(questions=stored, name=info.question_set, path=info.question_path)


def _tasks(questions: QuestionSet, repeat: int) -> Iterator[Trial]:
    for trial in range(1, repeat + 1):
        for position, question in enumerate(questions):
            yield Trial(question, trial, position)


async def _ask(
    recorder: Recorder,
    store: "RunStore",
    info: RunInfo,
    questions: QuestionSet,
    target: Target,
    options: Options,
    judging: "JudgingSession | None",
    *,
    asked: Set[tuple[str, int]] = frozenset(),
) -> Run:
    planned = len(questions) * options.repeat
    missing: Iterable[Trial] = (
        (
            task
            for task in _tasks(questions, options.repeat)
            if (task.question.ask_hash, task.number) not in asked
        )
        if asked
        else _tasks(questions, options.repeat)
    )
    try:
        async with recorder.recording():
            # With a judge, stored replies are scored again along with the new ones, mostly from its cached answers.
            done = 0 if judging is not None else min(len(asked), planned)
            recorder.begin(planned=planned, done=done)
            if judging is not None and asked:
                await add_stored(recorder, store.full, info, questions)
            async for trial in LocalEngine(options).ask_all(target, missing):
                await recorder.add(trial)
    except asyncio.CancelledError:
        finish_run(store, info, "partial", recorder, judging, planned=planned)
        raise InterruptedRunError(f"interrupted; go on with: answerkey resume {info.id}") from None
    except JudgeUnusableError as error:
        if recorder.forgotten:
            raise JudgeUnusableError(f"{error}; nothing was judged or kept") from None
        finish_run(store, info, "partial", recorder, judging, planned=planned)
        raise JudgeUnusableError(
            f"{error}; the replies are kept, so go on with: answerkey resume {info.id} --judge MODEL"
        ) from None
    return finish_run(store, info, "complete", recorder, judging, planned=planned)
