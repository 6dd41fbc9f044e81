"""Judging in a run: the judge opened on the run's store, and stored replies judged anew."""

from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from answerkey.evaluation.recorder import Recorder
from answerkey.evaluation.store_patience import Patience
from answerkey.evaluation.stored import stored_trials
from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.judge.configured_judge import Judge
    from answerkey.judge.session import JudgingSession

__all__ = ["add_stored", "judging_on"]


@asynccontextmanager
async def judging_on(
    store: SqlStore | None,
    judge: "Judge | None",
    run_id: str,
    writer: ThreadPoolExecutor | None = None,
    *,
    patience: Patience | None = None,
    beside: bool = False,
) -> "AsyncIterator[JudgingSession | None]":
    """A judge opened for a run, with what the store remembers of it; nothing if there is no judge.

    `beside`: its canaries need not be back before the asking begins.
    """
    if judge is None:
        yield None
        return
    # Most runs have no judge, and need not load what judging takes.
    from answerkey.evaluation.store_patience import PatientJudgements
    from answerkey.judge.session import open_judging

    kept = None if store is None else PatientJudgements(store, patience or Patience(0.0))
    async with open_judging(judge, run_id=run_id, store=kept, executor=writer, beside=beside) as session:
        yield session


async def add_stored(
    recorder: Recorder, store: SqlStore, info: RunInfo, questions: Iterable[Question]
) -> None:
    """Judge and score the stored replies that still count, and forget scores of any others."""
    counted: set[tuple[int, int]] = set()
    for trial in stored_trials(store, info, questions):
        counted.add((trial.position, trial.number))
        await recorder.add(trial, stored=True)
    store.drop_scorecards(info, but=counted)
