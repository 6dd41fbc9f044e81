"""Recorder: trials are scored and stored as they arrive, off the asking loop, in small durable batches.

With a judge, a reply is stored at once and its scorecard follows when it has been judged, while the asking goes on.
Nothing is stored before the judge is known to work, or has kept silent for long: a wrong model's name leaves no run behind.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.runs.durable_writer import StoreRetry
from answerkey.runs.grading import Grading
from answerkey.runs.progress import Progress, RunningScore
from answerkey.runs.stored import stored_trials
from answerkey.scorers.grader import Grader
from answerkey.store.sql import SqlStore

if TYPE_CHECKING:
    from answerkey.judge.session import Judge, JudgingSession

# What arrives within this time is written together; until then the journal has it.
_FLUSH_SECONDS = 0.2
_FLUSH_ROWS = 500
# While the store is slow or away, the asking goes on until so many replies wait for it in memory.
_MOST_UNWRITTEN = 4_000
# So long, a judge that has not answered yet may still turn out to be unusable, and replies wait in memory.
_HOLD_SECONDS = 2.0
# Replies that wait for their judgement in memory, at least; when there are more, the asking waits too, so that the judge
# is never kept waiting by a quick chatbot's replies.
_LEAST_AHEAD = 100
# Runs up to this size are summed up and reported from memory.
_MOST_KEPT = 10_000
_MOST_CHARACTERS_KEPT = 20_000_000


class ReplyStore(Protocol):
    """What a recorder writes to: a store, or what keeps a run's replies safe on their way to it."""

    def add(self, info: RunInfo, trials: Sequence[Trial], *, with_replies: bool = True) -> None:
        """Keep replies and scorecards."""

    def add_replies(self, info: RunInfo, trials: Sequence[Trial]) -> None:
        """Keep replies that are scored later."""


class Recorder:
    """Keeps what a run produces."""

    def __init__(
        self,
        store: ReplyStore,
        info: RunInfo,
        grader: Grader,
        progress: Progress,
        *,
        judging: "JudgingSession | None" = None,
        writer: ThreadPoolExecutor | None = None,
        keep: bool = False,
        watch: Callable[[Trial], None] | None = None,
        most_unjudged: int | None = None,
        hold: bool = False,
    ) -> None:
        self._store = store
        self._info = info
        self._progress = progress
        # Everything that may take time happens there, not on the loop.
        self._grading = Grading(
            grader, self._keep, budget=info.options.scoring_seconds, most_waiting=most_unjudged
        )
        self._judging = judging
        # Whether nothing is written until the judge is known to work.
        self._hold = hold
        self._hold_until = 0.0
        # Told of everything that has been scored.
        self._watch = watch
        self._pending: list[Trial] = []
        # Replies that are to be stored ahead of their scorecards.
        self._ahead: list[Trial] = []
        self._running = RunningScore()
        # One thread, so that batches are written one after the other.
        self._writer = writer or ThreadPoolExecutor(max_workers=1, thread_name_prefix="answerkey-store")
        # What could not be written when its turn came; tried once more at the end.
        self._unwritten: list[tuple[list[Trial], list[Trial]]] = []
        # With `keep`, all that was recorded, so that a small run need not be read back; None when it grew too large.
        self._kept: list[Trial] | None = [] if keep else None
        self._kept_characters = 0
        self._judged: set[asyncio.Task[None]] = set()
        ahead = 0 if judging is None else 2 * judging.concurrency
        self._room = asyncio.Semaphore(most_unjudged or max(_LEAST_AHEAD, ahead))
        self._failure: BaseException | None = None
        # Set when there is much to write.
        self._many = asyncio.Event()

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        """Flush regularly while the body runs, and whatever is left when it ends, however it ends."""
        self._hold_until = asyncio.get_running_loop().time() + _HOLD_SECONDS
        self._grading.open()
        regularly = asyncio.create_task(self._flush_regularly())
        try:
            yield
            await self._wait_for_judge()
            await self._grading.finish()
        finally:
            for task in (regularly, *self._judged):
                task.cancel()
            await asyncio.gather(regularly, *self._judged, return_exceptions=True)
            ungraded = self._grading.close()
            if self._judging is None:
                # Their replies are kept, and scored when the run goes on.
                self._ahead += ungraded
            # Also while being cancelled: what was asked must not be lost.
            self._writer.shutdown(wait=True)
            left = [*self._unwritten, (self._ahead, self._pending)]
            self._unwritten, self._ahead, self._pending = [], [], []
            if not self.forgotten:
                for ahead, batch in left:
                    self._write(ahead, batch)
            self._progress.end()

    @property
    def forgotten(self) -> bool:
        """Whether the judge turned out to be unusable before anything was written."""
        return self._hold and self._judging is not None and self._judging.failure is not None

    def begin(self, *, planned: int, done: int) -> None:
        """Tell whoever watches what is to come."""
        if planned > _MOST_KEPT:
            self._kept = None
        self._progress.begin(self._info, planned=planned, done=done)

    def results(self) -> tuple[Trial, ...] | None:
        """Everything recorded, in the set's order; None where it was not kept."""
        if self._kept is None:
            return None
        return tuple(sorted(self._kept, key=lambda trial: (trial.position, trial.number)))

    async def add(self, trial: Trial, *, stored: bool = False) -> None:
        """Take a trial that has been answered; `stored`: its replies are in the store already."""
        failure = self._failure or (None if self._judging is None else self._judging.failure)
        if failure is not None:
            raise failure
        if self._judging is None:
            await self._grading.put(trial)
        else:
            if not stored:
                self._ahead.append(trial)
            await self._room.acquire()
            task = asyncio.create_task(self._judge(self._judging, trial))
            self._judged.add(task)
            task.add_done_callback(self._after_judging)
        unwritten = len(self._pending) + len(self._ahead)
        if unwritten >= _FLUSH_ROWS:
            self._many.set()
        if unwritten >= _MOST_UNWRITTEN:
            await self._flush()

    async def _judge(self, judging: "JudgingSession", trial: Trial) -> None:
        await self._grading.put(trial, await judging.judge(trial.question, trial.replies))

    def _after_judging(self, task: "asyncio.Task[None]") -> None:
        self._judged.discard(task)
        self._room.release()
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    async def _wait_for_judge(self) -> None:
        while self._judged:
            await asyncio.wait(self._judged)
        if self._failure is not None:
            raise self._failure
        if self._judging is not None:
            await self._judging.checked()

    def _keep(self, trial: Trial, card: Scorecard) -> None:
        graded = trial.scored(card)
        self._pending.append(graded)
        if self._kept is not None:
            self._kept.append(graded)
            self._kept_characters += sum([len(reply.text or "") for reply in trial.replies])
            if len(self._kept) > _MOST_KEPT or self._kept_characters > _MOST_CHARACTERS_KEPT:
                self._kept = None
        self._running.add(card)
        self._progress.advance(self._running)
        if self._watch is not None:
            self._watch(graded)

    async def _flush_regularly(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_SECONDS):
                    await self._many.wait()
            self._many.clear()
            await self._flush()

    def _held(self) -> bool:
        if not self._hold or self._judging is None:
            return False
        waiting = self._judging.pending and asyncio.get_running_loop().time() < self._hold_until
        return waiting or self._judging.failure is not None

    async def _flush(self) -> None:
        if self._held():
            return
        ahead, self._ahead = self._ahead, []
        batch, self._pending = self._pending, []
        if ahead or batch:
            writing = self._writer.submit(self._write, ahead, batch)
            writing.add_done_callback(lambda done: self._after_writing(done, ahead, batch))
            waiting = asyncio.wrap_future(writing)
            # Looked at even where nobody waits any more: an unseen failure would be reported as one of the program's.
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            # Waiting for it does not cancel it: a batch that waits for the thread is written in any case.
            await asyncio.wait([waiting])
            waiting.result()

    def _after_writing(self, writing: "Future[None]", ahead: list[Trial], batch: list[Trial]) -> None:
        """In the writing thread: a batch that failed is kept for the end, and the asking told to stop."""
        failure = writing.exception()
        if failure is not None:
            self._unwritten.append((ahead, batch))
            self._failure = self._failure or failure

    def _write(self, ahead: list[Trial], batch: list[Trial]) -> None:
        self._hold = False
        self._store.add_replies(self._info, ahead)
        self._store.add(self._info, batch, with_replies=self._judging is None)


@asynccontextmanager
async def judging_on(
    store: SqlStore | None,
    judge: "Judge | None",
    run_id: str,
    writer: ThreadPoolExecutor | None = None,
    *,
    patience: StoreRetry | None = None,
    beside: bool = False,
) -> "AsyncIterator[JudgingSession | None]":
    """A judge opened for a run, with what the store remembers of it; nothing if there is no judge.

    `beside`: its canaries need not be back before the asking begins.
    """
    if judge is None:
        yield None
        return
    # Most runs have no judge, and need not load what judging takes.
    from answerkey.judge.session import open_judging
    from answerkey.runs.durable_writer import RetryingJudgements

    kept = None if store is None else RetryingJudgements(store, patience or StoreRetry(0.0))
    async with open_judging(
        judge, run_id=run_id, store=kept, executor=writer, in_background=beside
    ) as session:
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
