"""Judging in a run: the judge that options mean, opened on the run's store, and stored replies judged anew."""

from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from answerkey.config import JudgeSettings, Scoring, Settings
from answerkey.evaluation.recorder import Recorder
from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.model.trial import Trial

if TYPE_CHECKING:
    from answerkey.judge.judge import Judge
    from answerkey.judge.session import JudgingSession
    from answerkey.store.sql import SqlStore

__all__ = ["add_stored", "judge_for", "judging_on"]


def judge_for(
    judge: JudgeSettings, scoring: Scoring, settings: Settings, *, concurrency: int | None = None
) -> "Judge | None":
    """The judge of a run, asked as many questions at once as the chatbot unless it is told; None if it has none."""
    if not judge.models and not scoring.needs_judge:
        # Most runs have none, and need not load what judging takes.
        return None
    from answerkey.judge.judge import make_judge

    if judge.concurrency is None:
        judge = msgspec.structs.replace(judge, concurrency=concurrency)
    return make_judge(judge, scoring, folder=settings.folder)


@asynccontextmanager
async def judging_on(
    store: "SqlStore | None",
    judge: "Judge | None",
    run_id: str,
    writer: ThreadPoolExecutor | None = None,
    *,
    beside: bool = False,
) -> "AsyncIterator[JudgingSession | None]":
    """A judge opened for a run, with what the store remembers of it; nothing if there is no judge.

    `beside`: its canaries need not be back before the asking begins.
    """
    if judge is None:
        yield None
        return
    from answerkey.judge.session import open_judging
    from answerkey.store.judgements import SqlJudgements

    kept = None if store is None else SqlJudgements(store)
    async with open_judging(judge, run_id=run_id, store=kept, executor=writer, beside=beside) as session:
        yield session


async def add_stored(
    recorder: Recorder, store: "SqlStore", info: RunInfo, questions: Iterable[Question]
) -> None:
    """Judge and score the stored replies that still count."""
    store.clear_scorecards(info)
    for position, question in enumerate(questions):
        for trial, replies in store.trials_of(info, question.ask_hash):
            if trial <= info.repeat:
                await recorder.add(Trial(question, trial, position, replies), stored=True)
