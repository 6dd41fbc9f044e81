"""Recorder: exchanges are scored and stored as they arrive, in small durable batches off the asking loop."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from answerkey.evaluation.progress import Progress, RunningScore
from answerkey.protocols import Exchange, Graded, Store
from answerkey.run import RunInfo
from answerkey.scorers.grader import Grader

__all__ = ["Recorder"]

# A killed process loses at most what arrived within this time.
_FLUSH_SECONDS = 0.2
_FLUSH_ROWS = 500


class Recorder:
    """Keeps what a run produces."""

    def __init__(self, store: Store, info: RunInfo, grader: Grader, progress: Progress) -> None:
        self._store = store
        self._info = info
        self._grader = grader
        self._progress = progress
        self._pending: list[Graded] = []
        self._running = RunningScore()
        # One thread, so that batches are written one after the other.
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="answerkey-store")

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        """Flush regularly while the body runs, and whatever is left when it ends, however it ends."""
        regularly = asyncio.create_task(self._flush_regularly())
        try:
            yield
        finally:
            regularly.cancel()
            await asyncio.gather(regularly, return_exceptions=True)
            # Also while being cancelled: what was asked must not be lost.
            self._writer.shutdown(wait=True)
            self._store.add(self._info, self._pending)
            self._pending = []
            self._progress.end()

    async def add(self, exchange: Exchange) -> None:
        """Score an exchange and keep it."""
        card = self._grader.grade(exchange.task.question, exchange.replies)
        self._pending.append(Graded(exchange, card))
        self._running.add(card)
        self._progress.advance(self._running)
        if len(self._pending) >= _FLUSH_ROWS:
            await self._flush()

    async def _flush_regularly(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            await self._flush()

    async def _flush(self) -> None:
        batch, self._pending = self._pending, []
        if batch:
            await asyncio.get_running_loop().run_in_executor(self._writer, self._store.add, self._info, batch)
