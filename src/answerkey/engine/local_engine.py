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

# When the time is up, the loop looks so often for what lies in the sockets already; each look takes microseconds.
_LOOKS = 50


class Patience:
    """Many waits of the same length, with one timer for all of them: who began first is over first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # Those under way, in the order in which they began.
        self._waits: dict[_Wait, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wait(self) -> "_Wait":
        """Like `asyncio.timeout`, but what arrived in time counts even where the loop comes to read it too late."""
        return _Wait(self)

    def begin(self, wait: "_Wait", loop: asyncio.AbstractEventLoop) -> None:
        """A wait that begins now."""
        if loop is not self._loop:
            self._loop, self._timer, self._waits = loop, None, {}
        self._waits[wait] = None
        if self._timer is None:
            self._timer = loop.call_at(wait.due, self._ring, loop)

    def end(self, wait: "_Wait") -> None:
        """A wait that is over."""
        self._waits.pop(wait, None)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for wait in list(self._waits):
            if wait.due > now:
                self._timer = loop.call_at(wait.due, self._ring, loop)
                return
            del self._waits[wait]
            wait.look(loop, _LOOKS)


class _Wait:
    """One wait, for as long as the body runs."""

    __slots__ = ("_expired", "_handle", "_patience", "_task", "due")

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._expired = False
        self._handle: asyncio.Handle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self.due = loop.time() + self._patience.seconds
        self._patience.begin(self, loop)

    def look(self, loop: asyncio.AbstractEventLoop, left: int) -> None:
        """The time is up, unless what is waited for has come by now."""
        if left:
            self._handle = loop.call_soon(self.look, loop, left - 1)
        elif self._task is not None:
            self._expired = True
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._patience.end(self)
        if self._handle is not None:
            self._handle.cancel()
        # Cancelled by somebody else as well, it stays cancelled.
        if (
            self._expired
            and self._task is not None
            and self._task.uncancel() <= 0
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError


# How long a target may take to say what a question that timed out had done.
_SO_FAR_S = 10.0
# Nobody waits longer than this for a retry: a longer `Retry-After` is a failure that says so.
LONGEST_WAIT = 60.0


class Pacer:
    """Lets questions begin at most `rate` times a second, and not before a pause is over."""

    def __init__(self, rate: float | None) -> None:
        self._spacing = 1 / rate if rate else 0.0
        self._next = 0.0
        self._not_before = 0.0

    def pause(self, seconds: float) -> None:
        """Begin nothing for so long: the chatbot said that it has too much to do."""
        self._not_before = max(self._not_before, time.monotonic() + seconds)

    async def turn(self) -> None:
        """Wait until the next question may begin."""
        if not self._spacing and not self._not_before:
            return
        now = time.monotonic()
        begin = max(now, self._next, self._not_before)
        self._next = begin + self._spacing
        if begin > now:
            await asyncio.sleep(begin - now)


def backoff(attempt: int) -> float:
    """Seconds before the next attempt: doubling from half a second, spread so that retries do not come in waves."""
    return min(LONGEST_WAIT, 0.5 * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


class LocalEngine(BaseEngine):
    """Asks from this process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pacer = Pacer(options.rate)
        self._patience = Patience(options.timeout)
        # Ids must differ, not be hard to guess; asking the system for each of them lets other threads in.
        self._ids = random.Random(os.urandom(32))

    async def ask_all(
        self,
        targets: Sequence[BaseTarget],
        trials: Iterable[Trial],
        journal: Callable[[Trial], None] | None = None,
    ) -> AsyncIterator[Trial]:
        """Yield trials as they are answered, in any order; `journal` is told of each at once."""
        waiting = iter(trials)
        # Waiting for a target that is busy would count as its time.
        capacities = [target.capacity for target in targets if target.capacity is not None]
        at_once = max(1, min([self._options.concurrency, *capacities]))
        # Bounded, so that a slow reader slows the asking instead of filling the memory.
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
            answered = trial.answered(await self._converse(targets[trial.arm], trial))
            if journal is not None:
                # Before it waits for anybody: whatever ends the process now, the reply is kept.
                journal(answered)
            await done.put(answered)

    async def _converse(self, target: BaseTarget, trial: Trial) -> tuple[Reply, ...]:
        """Ask a question's turns one after the other under one conversation id."""
        conversation = f"{self._ids.getrandbits(128):032x}"
        replies: list[Reply] = []
        for turn, question in enumerate(trial.question.asks):
            ask = Ask(
                question=question.question,
                conversation_id=conversation,
                turn=turn,
                question_id=trial.question.id,
                trial=trial.number,
                context=trial.question.context,
            )
            replies.append(await self._ask(target, ask))
        return tuple(replies)

    async def _ask(self, target: BaseTarget, ask: Ask) -> Reply:
        """Ask until it counts: a first attempt, and further ones where the chatbot was merely not to be had."""
        queued = time.perf_counter()
        await self._pacer.turn()
        # Starting a process for the chatbot is not its time.
        await target.wait_for_room(ask)
        first = time.perf_counter()
        attempt = 1
        # Seconds of earlier attempts whose work counts.
        worked = 0.0
        while True:
            begun = time.perf_counter()
            trace_id = f"{self._ids.getrandbits(128):032x}"
            traceparent = f"00-{trace_id}-{self._ids.getrandbits(64):016x}-01"
            attempted = msgspec.structs.replace(ask, traceparent=traceparent)
            reply, retry = await self._attempt(target, attempted)
            ended = time.perf_counter()
            if retry is not None:
                worked += (reply.timings.latency_ms or 0.0) / 1000
                reply = msgspec.structs.replace(reply, timings=Timings())
            if isinstance(retry, AskAgainError):
                await target.wait_for_room(ask)
                attempt += 1
                continue
            if retry is not None and attempt <= self._options.retries:
                wait = retry.retry_after if retry.retry_after is not None else backoff(attempt)
                if wait <= LONGEST_WAIT:
                    if retry.retry_after is not None:
                        self._pacer.pause(wait)
                    await asyncio.sleep(wait)
                    attempt += 1
                    continue
                message = f"asked to wait {wait:g} s before a retry, more than {LONGEST_WAIT:g} s"
                reply = msgspec.structs.replace(reply, failure=Failure(retry.failure.kind, message))
            try:
                reply = await target.observe(attempted, reply)
            except Exception as error:  # noqa: BLE001  # a plug-in's; the reply itself is there
                message = f"observing the question failed: {failure_from_exception(error).message}"
                reply = msgspec.structs.replace(reply, failure=Failure("local_resources", message))
            timings = reply.timings
            if not target.replays:
                timings = _timings(
                    timings,
                    latency_ms=1000 * (ended - begun + worked),
                    queue_ms=1000 * (first - queued),
                    retry_ms=1000 * max(0.0, begun - first - worked),
                    attempts=attempt,
                )
            return msgspec.structs.replace(
                reply,
                timings=timings,
                conversation_id=reply.conversation_id or ask.conversation_id,
                trace_id=reply.trace_id or (None if target.replays else trace_id),
            )

    async def _attempt(self, target: BaseTarget, ask: Ask) -> tuple[Reply, RetryableError | None]:
        """Ask once: the reply, and the error by which the target says that asking again may help."""
        begun = time.perf_counter()
        try:
            with self._patience.wait():
                reply = await target.ask(ask)
            return reply, None
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


def _timings(own: Timings, *, latency_ms: float, queue_ms: float, retry_ms: float, attempts: int) -> Timings:
    """What was measured here, with what the target measured itself. A reply from a record has its own instead."""
    # A target that timed the chatbot itself knows what of the time was waiting (for a thread, for a process).
    measured = latency_ms if own.latency_ms is None else min(own.latency_ms, latency_ms)
    return Timings(
        latency_ms=round(measured, 3),
        first_byte_ms=None if own.first_byte_ms is None else round(own.first_byte_ms, 3),
        queue_ms=round(queue_ms + max(0.0, latency_ms - measured - own.retry_ms), 3),
        retry_ms=round(retry_ms + own.retry_ms, 3),
        # A target sends again by itself only what died on the way.
        attempts=attempts + own.attempts - 1,
    )


async def _close_when_done(workers: list[asyncio.Task[None]], done: asyncio.Queue[Trial | None]) -> None:
    """End the stream when all workers have; the first failure among them is everyone's."""
    try:
        await asyncio.gather(*workers)
    finally:
        with suppress(asyncio.CancelledError):
            await done.put(None)
