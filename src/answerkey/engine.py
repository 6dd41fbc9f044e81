"""Engines: how questions are asked.

`LocalEngine` asks with asyncio in one process, with bounded concurrency, timeouts, retries and a rate limit. `RayEngine` asks
from the nodes of a Ray cluster, which must all have the same version of answerkey: concurrency, rate, timeouts, retries and
the journal stay in this process; a worker opens the target for itself, asks, and measures the times. The questions of a worker
that is lost are asked again on another.
"""

import asyncio
import logging
import os
import platform
import random
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from answerkey.errors import AnswerkeyError, MissingExtraError, TargetUnreachableError, UsageError
from answerkey.model.options import Options
from answerkey.model.reply import Failure, Reply, Timings
from answerkey.model.scorecard import Trial
from answerkey.protocols import Ask, AskAgainError, BaseEngine, BaseTarget, RetryableError, TargetWrapper
from answerkey.transcripts.json_values import admit_reply
from answerkey.transcripts.payloads import failure_from_exception

# When the time is up, the event loop is run this often to receive what has arrived already; each takes microseconds.
_LAST_CHANCES = 50
# How long a target may take to say what a question that timed out had done.
_SO_FAR_S = 10.0
# The longest wait before a retry: a longer `Retry-After` is a failure that says so.
LONGEST_WAIT = 60.0


class Deadline:
    """Like `asyncio.timeout`, but a reply that has arrived in time counts even if the loop was too busy to read it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle = loop.call_later(self._seconds, self._expire, loop, _LAST_CHANCES)

    def _expire(self, loop: asyncio.AbstractEventLoop, chances: int) -> None:
        """Cancel the task, after the loop has had some chances to receive the reply."""
        if chances:
            self._timer = loop.call_soon(self._expire, loop, chances - 1)
        elif self._task is not None:
            self._expired = True
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._timer.cancel()
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
            with Deadline(self._options.timeout):
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


# Ray starts a task within seconds; a cluster that does not is full or broken.
_TASK_S = 120.0
_CONNECT_S = 10.0


def connect(address: str | None) -> Any:
    """The module `ray`, connected to the cluster at `address`; without one, to that of this machine or to a new local one."""
    # Ray sends usage statistics unless this is set before it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("the engine ray", "ray") from None
    if ray.is_initialized():
        return ray
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "namespace": "answerkey"}
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        _check_reachable(address)
        ray.init(address=address or "auto", **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        if address is None:
            _start_local(ray, quiet)
            return ray
        # A cluster that wants a token refuses a client without one as if nothing were there.
        token = "" if "RAY_AUTH_MODE" in os.environ else "; if it asks for a token, set RAY_AUTH_MODE=token"
        raise UsageError(
            f"there is no Ray cluster at {address} ({error_line(error)}){token}; start one with `ray start --head`, or leave "
            "the address out to use this machine"
        ) from None
    _check_nodes(ray)
    return ray


def _has_token() -> bool:
    names = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
    return any(map(os.environ.get, names)) or (Path.home() / ".ray" / "auth_token").exists()


def _start_local(ray: Any, quiet: dict[str, Any]) -> None:
    """Start a cluster of this machine, which ends with this process."""
    if not _has_token():
        # Otherwise Ray would store one in the home folder, and later clusters of the user would ask for it.
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    sys.stderr.write(
        f"no Ray cluster is running here: starting a local one with {cores} CPUs, which ends with this command\n"
    )
    try:
        ray.init(num_cpus=cores, include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        raise UsageError(f"a local Ray cluster cannot be started: {error_line(error)}") from None


def _check_reachable(address: str | None) -> None:
    """Raise OSError if nothing listens at the address: Ray itself would try for many minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()


def error_line(error: BaseException) -> str:
    """The message of a Ray error, without its traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:200]


def _versions() -> tuple[str, str]:
    from importlib.metadata import version  # slow to load

    return version("answerkey"), ".".join(platform.python_version_tuple()[:2])


def _check_nodes(ray: Any) -> None:
    """Refuse a cluster with a node that has another version of answerkey or Python."""
    ours = _versions()
    affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    nodes = [node for node in ray.nodes() if node["Alive"]]
    task = ray.remote(num_cpus=0)(_versions)
    # Ray lists a dead node for some more seconds; it gets no work.
    gone = (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError)
    for node in nodes:
        name = f"the node {node['NodeManagerHostname']}"
        try:
            theirs = ray.get(
                task.options(scheduling_strategy=affinity(node["NodeID"], soft=False)).remote(),
                timeout=_TASK_S,
            )
        except gone:
            continue
        except Exception as error:  # noqa: BLE001  # a cluster can fail in any way
            cause = error_line(error)
            missing = "No module named" in str(error)
            remedy = "install answerkey there" if missing else "check `ray status`"
            raise UsageError(f"{name} of the Ray cluster cannot be used: {cause}; {remedy}") from None
        if tuple(theirs) != ours:
            raise UsageError(
                f"{name} of the Ray cluster has answerkey {theirs[0]} on Python {theirs[1]}, this machine has {ours[0]} on "
                f"{ours[1]}; install the same versions"
            )


# Workers lost in a row, as a multiple of the concurrency, before the cluster itself is taken to be gone.
_MOST_LOST = 10
# How long a cancelled question may take to end.
_CANCEL_S = 5.0


class RayEngine(LocalEngine):
    """Asks from the nodes of a cluster."""

    def place_target(self, target: BaseTarget, make: Callable[[], BaseTarget]) -> BaseTarget:
        """The target as a client of the workers, each of which calls `make` on its own machine."""
        return SpreadTarget(target, make, self._options)


class AskingWorker:
    """Asks on one node of the cluster; its methods run there."""

    def __init__(self, make: Callable[[], BaseTarget], folder: str) -> None:
        self._make = make
        # The user's working directory, from which relative paths start.
        self._folder = folder
        self._target: BaseTarget | None = None
        self._opening = asyncio.Lock()
        # Conversation id → the question being asked, so that one that timed out can be cancelled.
        self._asking: dict[str, asyncio.Task[Reply]] = {}

    async def open(self) -> BaseTarget:
        """Open the target; raises what is wrong with it."""
        async with self._opening:
            if self._target is None:
                with suppress(FileNotFoundError):
                    # A target without files needs no shared folder; one with files reports what is missing.
                    os.chdir(self._folder)
                made = self._make()
                await made.__aenter__()
                self._target = made
            return self._target

    async def start(self) -> None:
        await self.open()

    async def ask(self, ask: Ask) -> Reply | RetryableError | None:
        """The reply as observed here; or why the question is to be asked again; None if it was cancelled."""
        target = await self.open()
        # In the same call, which is sent through the cluster once.
        await target.wait_for_room(ask)
        begun = time.perf_counter()
        task = self._asking[ask.conversation_id] = asyncio.create_task(target.ask(ask))
        try:
            reply = await task
        except RetryableError as error:
            # Raised here, it would come back wrapped in an error of Ray's.
            return error
        except asyncio.CancelledError:
            return None
        finally:
            self._asking.pop(ask.conversation_id, None)
        if reply.timings.latency_ms is None:
            timings = msgspec.structs.replace(reply.timings, latency_ms=1000 * (time.perf_counter() - begun))
            reply = msgspec.structs.replace(reply, timings=timings)
        return await target.observe(ask, reply)

    async def so_far(self, ask: Ask) -> Reply | None:
        """Cancel a question that timed out; what it had done."""
        target = await self.open()
        if (task := self._asking.get(ask.conversation_id)) is not None:
            task.cancel()
            await asyncio.wait([task], timeout=_CANCEL_S)
        return await target.so_far(ask)

    async def close(self) -> list[str]:
        """Close the target; its warnings."""
        if self._target is None:
            return []
        await self._target.__aexit__(None, None, None)
        return self._target.warnings()


class SpreadTarget(TargetWrapper):
    """A target that is asked by the workers of a cluster; the wrapped one, which is never opened, describes it."""

    def __init__(self, target: BaseTarget, make: Callable[[], BaseTarget], options: Options) -> None:
        super().__init__(target)
        self._make = make
        self._options = options
        self._ray: Any = None
        self._workers: list[Any] = []
        # Conversation id → its worker: the target there may remember the earlier turns.
        self._worker_of: dict[str, Any] = {}
        self._next = 0
        # Workers lost since the last reply: a cluster that is gone loses every one.
        self._lost = 0
        self._warnings: list[str] = []

    @property
    def capacity(self) -> int | None:  # type: ignore[override]  # it is not set on a wrapper
        """That of all workers together."""
        own = self.target.capacity
        return None if own is None else own * max(1, len(self._workers))

    async def __aenter__(self) -> Self:
        self._ray = await asyncio.to_thread(connect, self._options.ray_address)
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        self._workers = [self._start() for _ in range(max(1, min(self._options.concurrency, processors)))]
        try:
            await asyncio.gather(*(worker.start.remote() for worker in self._workers))
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, AnswerkeyError) else None
            await self.__aexit__()
            raise (cause or TargetUnreachableError(f"{self.name}: {error_line(error)}")) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        workers, self._workers = self._workers, []
        closed = await asyncio.gather(*(worker.close.remote() for worker in workers), return_exceptions=True)
        lines = [line for found in closed if isinstance(found, list) for line in found]
        self._warnings = list(dict.fromkeys(lines))
        for worker in workers:
            self._ray.kill(worker)

    async def wait_for_room(self, ask: Ask) -> None:
        """The worker waits, as part of `ask`."""

    async def ask(self, ask: Ask) -> Reply:
        """Ask on a worker; a worker that is lost meanwhile is replaced, and the question asked again."""
        worker = self._worker_for(ask)
        if worker is None:
            lost = "the worker with the earlier turns of the conversation was lost"
            return Reply(failure=Failure("local_resources", lost))
        try:
            answered = await worker.ask.remote(ask)
        except self._ray.exceptions.RayTaskError as error:
            # What a chatbot raised is described by the engine.
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except self._ray.exceptions.RayError as error:
            self._replace(worker)
            self._lost += 1
            if ask.turn or self._lost > _MOST_LOST * self._options.concurrency:
                return Reply(failure=Failure("local_resources", f"a worker was lost: {error_line(error)}"))
            raise AskAgainError(Failure("local_resources", error_line(error))) from None
        self._lost = 0
        if answered is None:
            raise TimeoutError
        if isinstance(answered, Reply):
            return answered
        raise answered

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        """The worker observes, as part of `ask`."""
        return reply

    async def so_far(self, ask: Ask) -> Reply | None:
        """What the worker had done of a question that timed out."""
        worker = self._worker_of.get(ask.conversation_id)
        done: Reply | None = None if worker is None else await worker.so_far.remote(ask)
        return done

    def warnings(self) -> list[str]:
        """Those of the workers, once they are closed."""
        return self._warnings

    def _worker_for(self, ask: Ask) -> Any:
        if ask.turn:
            return self._worker_of.get(ask.conversation_id)
        self._next = (self._next + 1) % len(self._workers)
        worker = self._workers[self._next]
        self._worker_of[ask.conversation_id] = worker
        # Older conversations have ended: at most `concurrency` are in progress.
        if len(self._worker_of) > 4 * self._options.concurrency:
            del self._worker_of[next(iter(self._worker_of))]
        return worker

    def _replace(self, worker: Any) -> None:
        """Start a worker for one that is lost, unless another question has done so."""
        if worker in self._workers:
            self._workers[self._workers.index(worker)] = self._start()
            self._worker_of = {name: other for name, other in self._worker_of.items() if other is not worker}

    def _start(self) -> Any:
        # Workers mostly wait for the chatbot, so they need no processor of their own.
        actor = self._ray.remote(num_cpus=0, max_concurrency=self._options.concurrency)(AskingWorker)
        return actor.options(scheduling_strategy="SPREAD").remote(self._make, str(Path.cwd()))
