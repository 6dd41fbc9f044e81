"""RayEngine: asks from the nodes of a Ray cluster, which must all have the same version of answerkey.

Concurrency, rate, timeouts, retries and the journal stay in this process; a worker opens the target for itself, asks, and
measures the times. The questions of a worker that is lost are asked again on another.
"""

import asyncio
import logging
import os
import platform
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from answerkey.engine.local_engine import LocalEngine
from answerkey.errors import AnswerkeyError, MissingExtraError, TargetUnreachableError, UsageError
from answerkey.model.options import Options
from answerkey.model.reply import Failure, Reply
from answerkey.protocols import Ask, AskAgainError, BaseTarget, RetryableError, TargetWrapper

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

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._options = options

    def place_target(self, target: BaseTarget, make: Callable[[], BaseTarget]) -> BaseTarget:
        """The target as a client of the workers, each of which calls `make` on its own machine."""
        return SpreadTarget(target, make, self._options)


class _Retry(NamedTuple):
    """A RetryableError on its way from a worker: an exception would come back wrapped in one of Ray's."""

    failure: Failure
    retry_after: float | None
    so_far: Reply | None
    # It is an AskAgainError.
    always: bool


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
        """Open the target, without sending it back."""
        await self.open()

    async def ask(self, ask: Ask) -> "Reply | _Retry | None":
        """The reply as observed here; or why the question is to be asked again; None if it was cancelled."""
        target = await self.open()
        # In the same call, which is sent through the cluster once.
        await target.wait_for_room(ask)
        begun = time.perf_counter()
        task = self._asking[ask.conversation_id] = asyncio.create_task(target.ask(ask))
        try:
            reply = await task
        except RetryableError as error:
            return _Retry(error.failure, error.retry_after, error.so_far, isinstance(error, AskAgainError))
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
        kind = AskAgainError if answered.always else RetryableError
        raise kind(answered.failure, answered.retry_after, answered.so_far)

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
