"""The Ray cluster that answerkey uses: connected to once, the same answerkey on every node, and one line if it is not so."""

import logging
import os
import platform
import socket
from importlib.metadata import version
from typing import Any

from answerkey.errors import MissingExtraError, UsageError

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
