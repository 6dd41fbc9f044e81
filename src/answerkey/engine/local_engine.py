"""LocalEngine: asyncio in one process, with bounded concurrency, timeouts, retries and a rate limit."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress

import msgspec

from answerkey.engine.pacing import LONGEST_WAIT, Pacer, backoff
from answerkey.engine.patience import Patience
from answerkey.model.options import Options
from answerkey.model.reply import Failure, Reply, Timings
from answerkey.model.trial import Trial
from answerkey.protocols import Ask, AskAgainError, RetryableError, Target
from answerkey.transcripts.admission import admit_reply
from answerkey.transcripts.failures import failure_from_exception

__all__ = ["LocalEngine"]


class LocalEngine:
    """Asks from this process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pacer = Pacer(options.rate)
        self._patience = Patience(options.timeout)
        # Ids must differ, not be hard to guess; asking the system for each of them lets other threads in.
        self._ids = random.Random(os.urandom(32))

    async def ask_all(
        self, target: Target, trials: Iterable[Trial], journal: Callable[[Trial], None] | None = None
    ) -> AsyncIterator[Trial]:
        """Yield trials as they are answered, in any order; `journal` is told of each at once."""
        waiting = iter(trials)
        at_once = _at_once(target, self._options.concurrency)
        # Bounded, so that a slow reader slows the asking instead of filling the memory.
        done: asyncio.Queue[Trial | None] = asyncio.Queue(maxsize=4 * at_once)
        workers = [asyncio.create_task(self._work(target, waiting, done, journal)) for _ in range(at_once)]
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
        target: Target,
        waiting: Iterator[Trial],
        done: asyncio.Queue[Trial | None],
        journal: Callable[[Trial], None] | None,
    ) -> None:
        for trial in waiting:
            answered = trial.answered(await self._converse(target, trial))
            if journal is not None:
                # Before it waits for anybody: whatever ends the process now, the reply is kept.
                journal(answered)
            await done.put(answered)

    async def _converse(self, target: Target, trial: Trial) -> tuple[Reply, ...]:
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

    async def _ask(self, target: Target, ask: Ask) -> Reply:
        """Ask until it counts: a first attempt, and further ones where the chatbot was merely not to be had."""
        queued = time.perf_counter()
        await self._pacer.turn()
        # Starting a process for the chatbot is not its time.
        wait_for_room = getattr(target, "wait_for_room", None)
        if wait_for_room is not None:
            await wait_for_room(ask)
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
                if wait_for_room is not None:
                    await wait_for_room(ask)
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
            observe = getattr(target, "observe", None)
            if observe is not None:
                reply = admit_reply(await observe(attempted, reply))
            replayed = bool(getattr(target, "replays", False))
            timings = reply.timings
            if not replayed:
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
                trace_id=reply.trace_id or (None if replayed else trace_id),
            )

    async def _attempt(self, target: Target, ask: Ask) -> tuple[Reply, RetryableError | None]:
        """Ask once: the reply, and the error by which the target says that asking again may help."""
        begun = time.perf_counter()
        try:
            with self._patience.wait():
                reply = await target.ask(ask)
            return admit_reply(reply), None
        except RetryableError as error:
            so_far = msgspec.structs.replace(error.so_far or Reply(), failure=error.failure)
            return admit_reply(so_far), error
        except TimeoutError:
            ours = time.perf_counter() - begun >= self._options.timeout * 0.999
            message = f"no reply within {self._options.timeout:g} s" if ours else "the chatbot timed out"
            done = getattr(target, "so_far", None)
            reply = (done and done(ask)) or Reply()
            return msgspec.structs.replace(reply, failure=Failure("timeout", message)), None
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a chatbot raises is data about it
            return Reply(failure=failure_from_exception(error)), None


def _at_once(target: Target, wanted: int) -> int:
    """How many questions to have under way: no more than the target can work on, or waiting for it would time out."""
    capacity = getattr(target, "capacity", None)
    return wanted if capacity is None else max(1, min(wanted, capacity))


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
