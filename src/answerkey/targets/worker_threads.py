"""Worker threads for callables that block: as many as are asked at once, and none that can hold up the end of the run."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable

# Calls that outlived their timeout may still be running; beyond so many, something is badly stuck.
_MOST_ABANDONED = 256

_Job = tuple[Callable[[], object], contextvars.Context, asyncio.AbstractEventLoop, "asyncio.Future[object]"]


class WorkerThreads:
    """A pool like ThreadPoolExecutor, but of daemon threads: a call that never returns costs one thread, not the process.

    A call whose waiting task is cancelled (a timeout) gives up its place at once; its thread goes on until it returns.
    """

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._abandoned = 0
        self._closed = False

    async def run(self, function: Callable[[], object]) -> object:
        """The result of `function` called in a thread; raises what it raises."""
        async with self._free:
            if self._abandoned >= _MOST_ABANDONED:
                raise TimeoutError(
                    f"{self._abandoned} calls that timed out are still running; no more are started"
                )
            loop = asyncio.get_running_loop()
            future: asyncio.Future[object] = loop.create_future()
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                worker = _Worker(self._done)
                worker.start()
            worker.jobs.put((function, contextvars.copy_context(), loop, future))
            try:
                return await future
            except asyncio.CancelledError:
                if not worker.between_jobs:
                    self._abandoned += 1
                    worker.was_abandoned = True
                raise

    def close(self) -> None:
        """Let the idle threads end; busy ones end when their call returns."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.jobs.put(None)

    def _done(self, worker: "_Worker") -> None:
        with self._lock:
            if worker.was_abandoned:
                worker.was_abandoned = False
                self._abandoned -= 1
            if not self._closed:
                self._idle.append(worker)
                return
        worker.jobs.put(None)


class _Worker(threading.Thread):
    def __init__(self, done: Callable[["_Worker"], None]) -> None:
        super().__init__(name="answerkey-target", daemon=True)
        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.was_abandoned = False
        self.between_jobs = False
        self._done = done

    def run(self) -> None:
        while (job := self.jobs.get()) is not None:
            function, context, loop, future = job
            self.between_jobs = False
            result: object = None
            error: BaseException | None = None
            try:
                result = context.run(function)
            except BaseException as raised:  # noqa: BLE001  # it is the caller's: even SystemExit must not end the thread
                error = _carried(raised)
            self.between_jobs = True
            self._done(self)
            try:
                loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:
                # The loop was closed while the call was under way: nobody waits for it any more.
                continue


def _settle(future: "asyncio.Future[object]", result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _carried(error: BaseException) -> BaseException:
    """The error in a form that a future can carry and that ends nothing but this question."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    carried = RuntimeError(f"{type(error).__name__}: {error}")
    carried.__cause__ = error
    return carried
