"""A real Ray cluster of two nodes on this machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from free_ports import free_port

RAY = Path(sys.executable).with_name("ray")
# Whether the machine has a token must not decide what is tested.
OPEN = {"RAY_AUTH_MODE": "disabled"}


class Cluster(NamedTuple):
    address: str
    # The processes of its nodes.
    first: int
    second: int


@contextmanager
def cluster_of_two(folder: Path, *, cpus: int = 2) -> Iterator[Cluster]:
    """A cluster of two nodes, each of which claims to have `cpus` CPUs."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    # Sockets are found by their paths, which may not be long.
    common = [f"--num-cpus={cpus}", "--disable-usage-stats", "--block"]
    head = _start(folder, "--head", f"--port={port}", "--include-dashboard=false", *common)
    nodes = [head]
    try:
        _wait_for_nodes(address, 1, head)
        nodes.append(_start(folder, f"--address={address}", *common))
        _wait_for_nodes(address, 2, head)
        yield Cluster(address, nodes[0].pid, nodes[1].pid)
    finally:
        for node in reversed(nodes):
            end_node(node.pid)
            node.wait()


def end_node(pid: int) -> None:
    """Kill a node with all that it started, which are in process groups of their own."""
    with suppress(psutil.NoSuchProcess):
        node = psutil.Process(pid)
        for process in (node, *node.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _start(folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    log = (folder / "nodes.log").open("ab")
    environment = {**os.environ, **OPEN, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(folder)}
    command = [str(RAY), "start", *arguments]
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


WAIT = """
import ray, sys, time
while True:
    try:
        ray.init(address=sys.argv[1], log_to_driver=False, logging_level=50)
        while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[2]):
            time.sleep(0.1)
        break
    except ConnectionError:
        time.sleep(0.2)
"""


def _wait_for_nodes(address: str, count: int, head: "subprocess.Popen[bytes]") -> None:
    """Until the cluster has so many nodes; a head that ends is a cluster that will not come."""
    waiting = subprocess.Popen(
        [sys.executable, "-c", WAIT, address, str(count)],
        env={**os.environ, **OPEN},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while waiting.poll() is None:
        assert head.poll() is None, "the head node ended"
        try:
            waiting.wait(timeout=1)
        except subprocess.TimeoutExpired:
            continue
    assert waiting.returncode == 0
