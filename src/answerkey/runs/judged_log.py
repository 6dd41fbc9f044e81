"""A log whose replies a judge looks at, too: in this process, with many judgements under way at once."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from answerkey.model.question import QuestionSet
from answerkey.model.run import Run
from answerkey.model.scorecard import Trial
from answerkey.runs.progress import Progress
from answerkey.runs.recorded import LogRun, LogScoring
from answerkey.runs.recorder import open_judge, store_executor
from answerkey.runs.shard import ShardScorer
from answerkey.runs.shard_processes import Here
from answerkey.runs.stored import new_run_id
from answerkey.scorers.grader import Grader
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.judge.session import Judge, JudgingSession

# Replies that are read ahead of the one whose judgement is waited for.
_MOST_AHEAD = 2000


async def score_judged(
    paths: Sequence[Path],
    *,
    grader: Grader,
    judge: "Judge",
    store: SqlStore,
    questions: QuestionSet | None = None,
    how: LogScoring,
    progress: Progress,
) -> Run:
    """Grade recorded replies with a judge. The store remembers what it said, so that it is paid for once."""
    log = LogRun(paths, grader, questions, how, progress)
    try:
        log.recover()
        log.begin()
        scorer = ShardScorer(log.plan, grader)
        with store_executor() as writer:
            async with open_judge(store, judge, new_run_id(), writer, canaries_in_background=True) as judging:
                if judging is None:
                    raise TypeError("a judge that cannot be opened")
                for block in log.blocks_to_do():
                    tally = scorer.tally()
                    async for trial, place in _graded(scorer.trials(block, tally), grader, judging):
                        tally.add(trial, place)
                    log.add(tally.part(block.number))
                    if judging.failure is not None:
                        break
                await judging.checked()
                log.info = msgspec.structs.replace(log.info, judge=judging.record())
        return log.run(Here(log.plan, grader))
    except BaseException as error:
        log.stop(error)
        raise
    finally:
        progress.end()


async def _graded(
    trials: Iterable[tuple[Trial, int]], grader: Grader, judging: "JudgingSession"
) -> AsyncIterator[tuple[Trial, int]]:
    """The trials with their scorecards, in the log's order."""

    async def judged(trial: Trial, place: int) -> tuple[Trial, int]:
        scores = await judging.judge(trial.question, trial.replies)
        return trial.scored(grader.grade(trial.question, trial.replies, scores)), place

    waiting: deque[asyncio.Task[tuple[Trial, int]]] = deque()
    try:
        for trial, place in trials:
            if judging.failure is not None:
                break
            waiting.append(asyncio.create_task(judged(trial, place)))
            if len(waiting) >= _MOST_AHEAD:
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
