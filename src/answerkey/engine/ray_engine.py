"""The Ray cluster that answerkey uses: connected to once, the same answerkey on every node, and one line if it is not so."""

import asyncio
import logging
import os
import platform
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from answerkey.engine.local_engine import LocalEngine
from answerkey.errors import AnswerkeyError, MissingExtraError, TargetUnreachableError, UsageError
from answerkey.model.options import Options
from answerkey.model.reply import Failure, Reply
from answerkey.protocols import Ask, AskAgainError, RetryableError, Target

# Ray starts what it needs for a task within seconds; a cluster that cannot is full or broken.
_PATIENCE_S = 120.0
_KNOCK_S = 10.0


def connect(address: str | None) -> Any:
    """The module `ray`, connected to the cluster at `address` (None: the one that this machine belongs to)."""
    # Ray reports how it is used to its makers unless it is told not to, before it is loaded.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("the engine ray", "ray") from None
    if ray.is_initialized():
        return ray
    try:
        _knock(address)
        ray.init(
            address=address or "auto", log_to_driver=False, logging_level=logging.ERROR, namespace="answerkey"
        )
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        where = f"at {address}" if address else "on this machine"
        raise UsageError(
            f"there is no Ray cluster {where} ({error_line(error)}); start one with `ray start --head`, or name it "
            "with --ray-address HOST:PORT"
        ) from None
    _check_nodes(ray)
    return ray


def _knock(address: str | None) -> None:
    """Raise what a plain connection raises: Ray tries for many minutes to reach what is not there."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()


def error_line(error: BaseException) -> str:
    """What an error of Ray's says, without the trace that it carries."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:200]


def _versions() -> tuple[str, str]:
    return version("answerkey"), ".".join(platform.python_version_tuple()[:2])


def _check_nodes(ray: Any) -> None:
    """Refuse a cluster with a node that would score otherwise."""
    ours = _versions()
    affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    nodes = [node for node in ray.nodes() if node["Alive"]]
    task = ray.remote(num_cpus=0)(_versions)
    # Ray lists a node that has died for some seconds more; what is gone scores nothing.
    gone = (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError)
    for node in nodes:
        place = f"the node {node['NodeManagerHostname']}"
        try:
            found = ray.get(
                task.options(scheduling_strategy=affinity(node["NodeID"], soft=False)).remote(),
                timeout=_PATIENCE_S,
            )
        except gone:
            continue
        except Exception as error:  # noqa: BLE001  # a cluster can fail in any way
            cause = error_line(error)
            missing = "No module named" in str(error)
            remedy = "install answerkey there" if missing else "look at `ray status`"
            raise UsageError(f"{place} of the Ray cluster cannot work: {cause}; {remedy}") from None
        if tuple(found) != ours:
            raise UsageError(
                f"{place} of the Ray cluster has answerkey {found[0]} on Python {found[1]}, here it is {ours[0]} on "
                f"{ours[1]}; install the same"
            )


# RayEngine: the asking of LocalEngine, with the chatbot's side spread over the workers of a Ray cluster.
#
# Concurrency, rate, timeouts, retries and the journal stay here; a worker opens the target for itself, asks, and stamps the
# times. A worker that is lost loses what it was asking, which is asked again elsewhere.


# So many times what is under way, lost in a row: no worker or node explains that.
_MOST_LOST = 10


class RayEngine(LocalEngine):
    """Asks from the nodes of a cluster."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._options = options

    def placed(self, target: Target, make: Callable[[], Target]) -> Target:
        """The target as the workers have it; `make` makes it anew, on whatever machine it is called."""
        return SpreadTarget(target, make, self._options)


class _TurnedAway(NamedTuple):
    """A RetryableError on its way from a worker."""

    failure: Failure
    retry_after: float | None
    so_far: Reply | None
    # It ended through no fault of the question.
    in_any_case: bool


class _Worker:
    """One place in the cluster that asks; its methods run there."""

    def __init__(self, make: Callable[[], Target], folder: str) -> None:
        self._make = make
        # Where the user is: files are named from there.
        self._folder = folder
        self._target: Target | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Open the target; what is wrong with it is raised to whoever waits."""
        async with self._opening:
            if self._target is None:
                with suppress(FileNotFoundError):
                    # A chatbot that is no file needs no shared folder; one that is says so itself.
                    os.chdir(self._folder)
                made = self._make()
                await made.__aenter__()
                self._target = made

    async def ask(self, ask: Ask) -> "Reply | _TurnedAway":
        """The reply; or why it is to be asked again."""
        await self.open()
        if self._target is None:
            raise RuntimeError("the target is not open")
        try:
            return await self._target.ask(ask)
        except RetryableError as error:
            # An exception of ours would come back wrapped in one of Ray's.
            return _TurnedAway(
                error.failure, error.retry_after, error.so_far, isinstance(error, AskAgainError)
            )

    async def close(self) -> None:
        """Close the target."""
        if self._target is not None:
            await self._target.__aexit__(None, None, None)


class SpreadTarget:
    """A target whose asking happens on the workers of a cluster."""

    def __init__(self, target: Target, make: Callable[[], Target], options: Options) -> None:
        self.name = target.name
        self.fingerprint = target.fingerprint
        self.replays = bool(getattr(target, "replays", False))
        # What its version is known by.
        self.code, self.model = getattr(target, "code", None), getattr(target, "model", None)
        self.prompt_hash = getattr(target, "prompt_hash", None)
        self._make = make
        self._options = options
        self._ray: Any = None
        self._workers: list[Any] = []
        # Which worker a conversation began on: the target there may know what was said before.
        self._places: dict[str, Any] = {}
        self._next = 0
        # Workers that were lost since the last reply: a cluster that has gone loses every one.
        self._lost = 0

    async def __aenter__(self) -> "SpreadTarget":
        self._ray = await asyncio.to_thread(connect, self._options.ray_address)
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        self._workers = [self._start() for _ in range(max(1, min(self._options.concurrency, processors)))]
        try:
            await asyncio.gather(*(worker.open.remote() for worker in self._workers))
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, AnswerkeyError) else None
            await self.__aexit__()
            raise (cause or TargetUnreachableError(f"{self.name}: {error_line(error)}")) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        workers, self._workers = self._workers, []
        await asyncio.gather(*(worker.close.remote() for worker in workers), return_exceptions=True)
        for worker in workers:
            self._ray.kill(worker)

    async def ask(self, ask: Ask) -> Reply:
        """Ask on a worker; one that is lost on the way is replaced, and the question asked again."""
        worker = self._worker_for(ask)
        if worker is None:
            lost = "the worker that knew the conversation was lost"
            return Reply(failure=Failure("local_resources", lost))
        try:
            answered = await worker.ask.remote(ask)
        except self._ray.exceptions.RayTaskError as error:
            # What a chatbot raised is the engine's to describe.
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except self._ray.exceptions.RayError as error:
            self._replace(worker)
            self._lost += 1
            if ask.turn or self._lost > _MOST_LOST * self._options.concurrency:
                return Reply(failure=Failure("local_resources", f"a worker was lost: {error_line(error)}"))
            raise AskAgainError(Failure("local_resources", error_line(error))) from None
        self._lost = 0
        if isinstance(answered, Reply):
            return answered
        kind = AskAgainError if answered.in_any_case else RetryableError
        raise kind(answered.failure, answered.retry_after, answered.so_far)

    def _worker_for(self, ask: Ask) -> Any:
        if ask.turn:
            return self._places.get(ask.conversation_id)
        self._next = (self._next + 1) % len(self._workers)
        worker = self._workers[self._next]
        self._places[ask.conversation_id] = worker
        # Older conversations have ended: no more are under way than are asked at once.
        if len(self._places) > 4 * self._options.concurrency:
            del self._places[next(iter(self._places))]
        return worker

    def _replace(self, worker: Any) -> None:
        """Put a new worker in the place of one that is lost; the first who notices does."""
        if worker in self._workers:
            self._workers[self._workers.index(worker)] = self._start()
            self._places = {name: place for name, place in self._places.items() if place is not worker}

    def _start(self) -> Any:
        # A chatbot is waited for, not computed: workers share processors with whatever else the cluster does.
        actor = self._ray.remote(num_cpus=0, max_concurrency=self._options.concurrency)(_Worker)
        return actor.options(scheduling_strategy="SPREAD").remote(self._make, str(Path.cwd()))
