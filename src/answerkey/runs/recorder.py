"""Recorder: grades and stores trials as they arrive, off the asking loop, in small durable batches.

With a judge, a reply is stored at once and its scorecard follows when it has been judged, while asking continues. A new
run stores nothing until the judge has answered, or for two seconds: a wrong model name leaves no run behind.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from math import fsum
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.runs.durable_writer import DurableWriter, StoreRetry
from answerkey.runs.progress import Progress, RunningScore
from answerkey.runs.stored import stored_trials, trials_at
from answerkey.runs.workers import GradingPool
from answerkey.scorers.grader import Grader
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.judge.session import Judge, JudgingSession

# Trials that arrive within this time are written together; until then they are in the journal.
_FLUSH_SECONDS = 0.2
_FLUSH_ROWS = 500
# While the store is slow or unreachable, asking continues until this many trials wait in memory.
_MOST_UNWRITTEN = 4_000
# How long a new run waits for the judge's first answer before it stores replies.
_DEFER_SECONDS = 2.0
# Minimum number of replies that may wait for the judge; asking pauses beyond it.
_LEAST_UNJUDGED = 100
# Runs of at most this many trials and characters are summed up and reported from memory.
MOST_IN_MEMORY = 10_000
_MOST_CHARACTERS_IN_MEMORY = 20_000_000


class _Batch(msgspec.Struct):
    """Trials to be written together."""

    # Their replies are stored now, and scorecards later.
    unscored: list[Trial] = []
    scored: list[Trial] = []
    # Their replies are stored already.
    rescored: list[Trial] = []

    @property
    def size(self) -> int:
        """How many trials there are."""
        return len(self.unscored) + len(self.scored) + len(self.rescored)


class Recorder:
    """Grades and stores the trials of a run."""

    def __init__(
        self,
        writer: SqlStore | DurableWriter,
        info: RunInfo,
        grader: Grader,
        progress: Progress,
        *,
        running: RunningScore | None = None,
        judging: "JudgingSession | None" = None,
        executor: ThreadPoolExecutor | None = None,
        on_scored: Callable[[Trial], None] | None = None,
        keep_in_memory: bool = False,
        defer_until_judge_ok: bool = False,
        most_unjudged: int | None = None,
    ) -> None:
        """`running` is shared by recorders that report to the same progress.

        `on_scored` is called with each scored trial. `keep_in_memory` keeps the trials of a small run for `results`.
        `most_unjudged` limits how far asking may run ahead of grading and judging.
        """
        self._writer = writer
        self._info = info
        self._progress = progress
        self._running = running or RunningScore()
        self._grading = GradingPool(
            grader, self._add_scorecard, budget=info.options.scoring_seconds, most_waiting=most_unjudged
        )
        self._judging = judging
        self._defer = defer_until_judge_ok and judging is not None
        self._defer_until = 0.0
        self._on_scored = on_scored
        self._batch = _Batch()
        # (position, trial number) of trials whose replies are in the store already.
        self._stored: set[tuple[int, int]] = set()
        # One thread, so that batches are written one after the other.
        self._executor = executor or store_executor()
        # Batches that could not be written; tried once more at the end.
        self._failed: list[_Batch] = []
        # All trials of a small run, so that it need not be read back; None: not kept, or too large.
        self._in_memory: list[Trial] | None = [] if keep_in_memory else None
        self._characters = 0
        self._judge_tasks: set[asyncio.Task[None]] = set()
        at_once = 0 if judging is None else 2 * judging.concurrency
        self._room = asyncio.Semaphore(most_unjudged or max(_LEAST_UNJUDGED, at_once))
        self._failure: BaseException | None = None
        self._flush_now = asyncio.Event()

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        """Write regularly while the body runs, and the rest when it ends, however it ends."""
        self._defer_until = asyncio.get_running_loop().time() + _DEFER_SECONDS
        self._grading.open()
        regularly = asyncio.create_task(self._flush_regularly())
        try:
            yield
            await self._wait_for_judge()
            await self._grading.finish()
        finally:
            for task in (regularly, *self._judge_tasks):
                task.cancel()
            await asyncio.gather(regularly, *self._judge_tasks, return_exceptions=True)
            ungraded = self._grading.close()
            if self._judging is None:
                # Their replies are stored now; `resume` grades them.
                self._batch.unscored += [trial for trial in ungraded if not self._is_stored(trial)]
            # Also while being cancelled: replies must not be lost.
            self._executor.shutdown(wait=True)
            left = [*self._failed, self._batch]
            self._failed, self._batch = [], _Batch()
            if not self.wrote_nothing:
                for batch in left:
                    self._write(batch)

    @property
    def wrote_nothing(self) -> bool:
        """Whether the judge proved unusable before anything was written."""
        return self._defer and self._judging is not None and self._judging.failure is not None

    def results(self) -> tuple[Trial, ...] | None:
        """All trials in the order of the question set; None if they were not kept in memory."""
        if self._in_memory is None:
            return None
        return tuple(sorted(self._in_memory, key=attrgetter("position", "number")))

    async def add(self, trial: Trial, *, stored: bool = False) -> None:
        """Grade and store an answered trial; `stored`: its replies are in the store already."""
        failure = self._failure or (None if self._judging is None else self._judging.failure)
        if failure is not None:
            raise failure
        if stored:
            self._stored.add((trial.position, trial.number))
        if self._judging is None:
            await self._grading.put(trial)
        else:
            if not stored:
                self._batch.unscored.append(trial)
            await self._room.acquire()
            task = asyncio.create_task(self._judge(self._judging, trial))
            self._judge_tasks.add(task)
            task.add_done_callback(self._after_judging)
        batch = self._batch
        unwritten = len(batch.unscored) + len(batch.scored) + len(batch.rescored)
        if unwritten >= _FLUSH_ROWS:
            self._flush_now.set()
        if unwritten >= _MOST_UNWRITTEN:
            await self._flush()

    async def add_stored(self, store: SqlStore, questions: Iterable[Question]) -> None:
        """Grade the stored replies to these questions again, and delete the scorecards of all others."""
        graded: set[tuple[int, int]] = set()
        for trial in stored_trials(store, self._info, questions):
            graded.add((trial.position, trial.number))
            await self.add(trial, stored=True)
        store.drop_scorecards(self._info, but=graded)

    async def add_unscored(
        self, store: SqlStore, questions: Iterable[Question], stored_keys: Set[tuple[str, int]]
    ) -> None:
        """Grade the stored replies that have no scorecard; `stored_keys` are (ask hash, trial) of all stored replies.

        Only for an unchanged scoring without a judge: then the other scorecards are as grading again would make them.
        """
        scored: set[tuple[int, int]] = set()
        errors, points = 0, []
        for position, number, score, kind in store.scored_trials(self._info):
            if score is None:
                # Perhaps for a reason that is gone, as a wrong address.
                continue
            scored.add((position, number))
            errors += kind is not None
            points.append(score)
        self._running.add_part(len(scored), errors, fsum(points))
        numbers = range(1, self._info.repeat + 1)
        for position, question in enumerate(questions):
            keys = [number for number in numbers if (question.ask_hash, number) in stored_keys]
            if all((position, number) in scored for number in keys):
                continue
            for trial in trials_at(store, self._info, position, question):
                if (trial.position, trial.number) not in scored:
                    await self.add(trial, stored=True)

    def _is_stored(self, trial: Trial) -> bool:
        return (trial.position, trial.number) in self._stored

    async def _judge(self, judging: "JudgingSession", trial: Trial) -> None:
        await self._grading.put(trial, await judging.judge(trial.question, trial.replies))

    def _after_judging(self, task: "asyncio.Task[None]") -> None:
        self._judge_tasks.discard(task)
        self._room.release()
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    async def _wait_for_judge(self) -> None:
        while self._judge_tasks:
            await asyncio.wait(self._judge_tasks)
        if self._failure is not None:
            raise self._failure
        if self._judging is not None:
            await self._judging.checked()
            await self._judging.check_own()

    def _add_scorecard(self, trial: Trial, card: Scorecard) -> None:
        scored = trial.scored(card)
        if self._judging is not None or (self._stored and self._is_stored(trial)):
            self._batch.rescored.append(scored)
        else:
            self._batch.scored.append(scored)
        if self._in_memory is not None:
            self._in_memory.append(scored)
            for reply in trial.replies:
                self._characters += len(reply.text or "")
            if self._characters > _MOST_CHARACTERS_IN_MEMORY:
                self._in_memory = None
        self._running.add(card)
        self._progress.advance(self._running)
        if self._on_scored is not None:
            self._on_scored(scored)

    async def _flush_regularly(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_SECONDS):
                    await self._flush_now.wait()
            self._flush_now.clear()
            await self._flush()

    def _is_deferred(self) -> bool:
        if not self._defer or self._judging is None:
            return False
        waiting = self._judging.pending and asyncio.get_running_loop().time() < self._defer_until
        return waiting or self._judging.failure is not None

    async def _flush(self) -> None:
        if not self._batch.size or self._is_deferred():
            return
        batch, self._batch = self._batch, _Batch()
        writing = self._executor.submit(self._write, batch)
        writing.add_done_callback(lambda done: self._after_writing(done, batch))
        waiting = asyncio.wrap_future(writing)
        # Retrieved even if nothing awaits it any more: asyncio would report it as never retrieved.
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Not awaited directly: cancelling this task must not cancel a batch that waits for the thread.
        await asyncio.wait([waiting])
        waiting.result()

    def _after_writing(self, writing: "Future[None]", batch: _Batch) -> None:
        """In the writing thread: keep a failed batch for the end, and stop asking."""
        failure = writing.exception()
        if failure is not None:
            self._failed.append(batch)
            self._failure = self._failure or failure

    def _write(self, batch: _Batch) -> None:
        self._defer = False
        if batch.unscored:
            self._writer.add_replies(self._info, batch.unscored)
        if batch.scored:
            self._writer.add(self._info, batch.scored)
        if batch.rescored:
            self._writer.add(self._info, batch.rescored, with_replies=False)


def store_executor() -> ThreadPoolExecutor:
    """One thread for all writing, so that batches are written one after the other."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="answerkey-store")


@asynccontextmanager
async def open_judge(
    store: SqlStore | None,
    judge: "Judge | None",
    run_id: str,
    executor: ThreadPoolExecutor | None = None,
    *,
    retry: StoreRetry | None = None,
    canaries_in_background: bool = False,
) -> "AsyncIterator[JudgingSession | None]":
    """A session of the judge for a run, with the judgements cached in the store; None if there is no judge."""
    if judge is None:
        yield None
        return
    # Most runs have no judge, and need not load these.
    from answerkey.judge.session import open_judging
    from answerkey.runs.durable_writer import RetryingJudgements

    cached = None if store is None else RetryingJudgements(store, retry or StoreRetry(0.0))
    async with open_judging(
        judge, run_id=run_id, store=cached, executor=executor, canaries_in_background=canaries_in_background
    ) as session:
        yield session
