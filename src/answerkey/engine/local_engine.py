"""LocalEngine: asyncio in one process, with bounded concurrency, timeouts, retries and a rate limit."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from answerkey.model.options import Options
from answerkey.model.reply import Failure, Reply, Timings
from answerkey.model.scorecard import Trial
from answerkey.protocols import Ask, AskAgainError, BaseEngine, BaseTarget, RetryableError
from answerkey.transcripts.failures import failure_from_exception
from answerkey.transcripts.json_values import admit_reply

# When the time is up, the event loop is run this often to receive what has arrived already; each takes microseconds.
_LAST_CHANCES = 50
# How long a target may take to say what a question that timed out had done.
_SO_FAR_S = 10.0
# The longest wait before a retry: a longer `Retry-After` is a failure that says so.
LONGEST_WAIT = 60.0


class SharedTimeout:
    """One timer for many waits of the same length: the one that began first ends first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # In the order in which they began.
        self.waits: dict[Deadline, None] = {}
        # The loop in which the timer runs; None: it does not run.
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """Start the timer; waits of another loop are gone with that."""
        if self.loop is not None:
            self.waits.clear()
        self.loop = loop
        loop.call_at(due, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for wait in list(self.waits):
            if wait.due > now:
                loop.call_at(wait.due, self._ring, loop)
                return
            del self.waits[wait]
            wait.expire(loop, _LAST_CHANCES)
        self.loop = None


class Deadline:
    """Like `asyncio.timeout`, but a reply that has arrived in time counts even if the loop was too busy to read it."""

    __slots__ = ("_expired", "_handle", "_shared", "_task", "due")

    def __init__(self, shared: SharedTimeout) -> None:
        self._shared = shared
        self._expired = False
        self._handle: asyncio.Handle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        shared = self._shared
        self.due = loop.time() + shared.seconds
        if loop is not shared.loop:
            shared.start(loop, self.due)
        shared.waits[self] = None

    def expire(self, loop: asyncio.AbstractEventLoop, chances: int) -> None:
        """Cancel the task, after the loop has had some chances to receive the reply."""
        if chances:
            self._handle = loop.call_soon(self.expire, loop, chances - 1)
        elif self._task is not None:
            self._expired = True
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._shared.waits.pop(self, None)
        if self._handle is not None:
            self._handle.cancel()
        if (
            self._expired
            and self._task is not None
            # A task that is cancelled from outside as well stays cancelled.
            and self._task.uncancel() <= 0
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError


class RateLimiter:
    """Starts questions at most `rate` times a second, and none before a pause is over."""

    def __init__(self, rate: float | None) -> None:
        self._spacing = 1 / rate if rate else 0.0
        self._next = 0.0
        self._not_before = 0.0
        # Whether there is anything to wait for.
        self.active = bool(rate)

    def pause(self, seconds: float) -> None:
        """Start nothing for some seconds: the chatbot is overloaded."""
        self._not_before = max(self._not_before, time.monotonic() + seconds)
        self.active = True

    async def wait(self) -> None:
        """Wait until the next question may start."""
        now = time.monotonic()
        start = max(now, self._next, self._not_before)
        self._next = start + self._spacing
        if start > now:
            await asyncio.sleep(start - now)


def backoff(attempt: int) -> float:
    """Seconds before the next attempt: doubled from half a second, and spread so that retries do not coincide."""
    return min(LONGEST_WAIT, 0.5 * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


class LocalEngine(BaseEngine):
    """Asks from this process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._rate = RateLimiter(options.rate)
        self._timeout = SharedTimeout(options.timeout)
        # Ids must be unique, not unpredictable; a system call for each would let other threads run.
        self._ids = random.Random(os.urandom(32))

    async def ask_all(
        self,
        targets: Sequence[BaseTarget],
        trials: Iterable[Trial],
        journal: Callable[[Trial], None] | None = None,
    ) -> AsyncIterator[Trial]:
        """Yield trials as they are answered, in any order; `journal` is called for each at once."""
        waiting = iter(trials)
        # Waiting for a target that is busy would count as its time.
        capacities = [target.capacity for target in targets if target.capacity is not None]
        at_once = max(1, min([self._options.concurrency, *capacities]))
        # Bounded, so that a slow reader slows down the asking instead of filling the memory.
        done: asyncio.Queue[Trial | None] = asyncio.Queue(maxsize=4 * at_once)
        workers = [asyncio.create_task(self._work(targets, waiting, done, journal)) for _ in range(at_once)]
        closer = asyncio.create_task(_close_when_done(workers, done))
        try:
            while (trial := await done.get()) is not None:
                yield trial
            await closer
        finally:
            for task in (closer, *workers):
                task.cancel()
            await asyncio.gather(closer, *workers, return_exceptions=True)

    async def _work(
        self,
        targets: Sequence[BaseTarget],
        waiting: Iterator[Trial],
        done: asyncio.Queue[Trial | None],
        journal: Callable[[Trial], None] | None,
    ) -> None:
        for trial in waiting:
            target, question = targets[trial.arm], trial.question
            conversation_id = f"{self._ids.getrandbits(128):032x}"
            replies: list[Reply] = []
            for number, turn in enumerate(question.turns or (question,)):
                ask = Ask(
                    question=turn.question,
                    conversation_id=conversation_id,
                    turn=number,
                    question_id=question.id,
                    trial=trial.number,
                    context=question.context,
                )
                replies.append(await self._ask(target, ask))
            answered = trial.answered(tuple(replies))
            if journal is not None:
                # Before anything is awaited: if the process is killed now, the reply is stored.
                journal(answered)
            await done.put(answered)

    async def _ask(self, target: BaseTarget, ask: Ask) -> Reply:
        """Ask one turn, again where the chatbot did not work on it."""
        queued = time.perf_counter()
        if self._rate.active:
            await self._rate.wait()
        # Starting a process for the chatbot is not its time.
        await target.wait_for_room(ask)
        first = time.perf_counter()
        attempt = 1
        # Seconds that earlier attempts worked on steps which are not repeated.
        worked = 0.0
        while True:
            begun = time.perf_counter()
            trace_id = f"{self._ids.getrandbits(128):032x}"
            traceparent = f"00-{trace_id}-{self._ids.getrandbits(64):016x}-01"
            attempted = msgspec.structs.replace(ask, traceparent=traceparent)
            reply, retry = await self._attempt(target, attempted)
            elapsed = time.perf_counter() - begun + worked
            if retry is not None:
                part_ms = reply.timings.latency_ms or 0.0
                reply = msgspec.structs.replace(reply, timings=Timings())
                if await self._may_retry(target, attempted, retry, attempt):
                    worked += part_ms / 1000
                    attempt += 1
                    continue
                reply = msgspec.structs.replace(reply, failure=retry.failure)
            try:
                reply = await target.observe(attempted, reply)
            except Exception as error:  # noqa: BLE001  # a plug-in's; the reply itself is there
                message = f"observing the question failed: {failure_from_exception(error).message}"
                reply = msgspec.structs.replace(reply, failure=Failure("local_resources", message))
            if target.replays:
                # A recorded reply has its own timings and trace.
                trace_id, timings = "", reply.timings
            else:
                timings = _timings(
                    reply.timings,
                    elapsed_ms=1000 * elapsed,
                    queue_ms=1000 * (first - queued),
                    retry_ms=1000 * max(0.0, begun - first - worked),
                    attempts=attempt,
                )
            return msgspec.structs.replace(
                reply,
                timings=timings,
                conversation_id=reply.conversation_id or ask.conversation_id,
                trace_id=reply.trace_id or trace_id or None,
            )

    async def _may_retry(self, target: BaseTarget, ask: Ask, retry: RetryableError, attempt: int) -> bool:
        """Whether to ask again; waits until it may be done."""
        if isinstance(retry, AskAgainError):
            await target.wait_for_room(ask)
            return True
        wait = backoff(attempt) if retry.retry_after is None else retry.retry_after
        if attempt > self._options.retries:
            return False
        if wait > LONGEST_WAIT:
            message = f"asked to wait {wait:g} s before a retry, more than {LONGEST_WAIT:g} s"
            retry.failure = Failure(retry.failure.kind, message)
            return False
        if retry.retry_after is not None:
            self._rate.pause(wait)
        await asyncio.sleep(wait)
        return True

    async def _attempt(self, target: BaseTarget, ask: Ask) -> tuple[Reply, RetryableError | None]:
        """Ask once: the reply, and the error if the target says that asking again may help."""
        begun = time.perf_counter()
        try:
            with Deadline(self._timeout):
                return await target.ask(ask), None
        except RetryableError as error:
            done = Reply() if error.so_far is None else admit_reply(error.so_far)
            return msgspec.structs.replace(done, failure=error.failure), error
        except TimeoutError:
            ours = time.perf_counter() - begun >= self._options.timeout * 0.999
            message = f"no reply within {self._options.timeout:g} s" if ours else "the chatbot timed out"
            return await self._timed_out(target, ask, message), None
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a chatbot raises is data about it
            return Reply(failure=failure_from_exception(error)), None

    async def _timed_out(self, target: BaseTarget, ask: Ask, message: str) -> Reply:
        """The reply of a question that timed out, with what it had done until then."""
        done: Reply | None = None
        try:
            async with asyncio.timeout(_SO_FAR_S):
                done = await target.so_far(ask)
        except Exception as error:  # noqa: BLE001  # whatever a chatbot raises is data about it
            message = f"{message}; its calls are unknown ({failure_from_exception(error).message})"
        return msgspec.structs.replace(done or Reply(), failure=Failure("timeout", message))


def _timings(own: Timings, *, elapsed_ms: float, queue_ms: float, retry_ms: float, attempts: int) -> Timings:
    """The timings of a reply, from those that the target measured and from the time that elapsed around it.

    A target that timed the chatbot itself, e.g. from its first to its last byte, knows its latency; the rest of the elapsed time
    was spent waiting for a thread, a process or the event loop.
    """
    latency_ms = own.latency_ms
    if latency_ms is None or not 0 <= latency_ms <= elapsed_ms:
        # Not measured, or by a clock that the chatbot changed.
        latency_ms = elapsed_ms
    return Timings(
        latency_ms=round(latency_ms, 3),
        first_byte_ms=None if own.first_byte_ms is None else round(own.first_byte_ms, 3),
        queue_ms=round(queue_ms + max(0.0, elapsed_ms - latency_ms - own.retry_ms), 3),
        retry_ms=round(retry_ms + own.retry_ms, 3),
        # A target sends again by itself only what was lost on the way.
        attempts=attempts + own.attempts - 1,
    )


async def _close_when_done(workers: list[asyncio.Task[None]], done: asyncio.Queue[Trial | None]) -> None:
    """End the stream when all workers have ended; raises the first failure among them."""
    try:
        await asyncio.gather(*workers)
    finally:
        with suppress(asyncio.CancelledError):
            await done.put(None)
