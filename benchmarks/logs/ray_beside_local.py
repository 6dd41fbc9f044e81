"""`answerkey score` on a Ray cluster of two nodes, started for it on this machine, beside the same cores without Ray.

    python benchmarks/logs/ray_beside_local.py [ROWS] [ROUNDS]

Each node has one CPU, so that both ways score in two processes. Both are measured in turn in each round. Rows a second, and CPU
seconds of the command and of all processes of the cluster, are those after start-up: what the larger of two logs takes more than
the smaller, so that starting processes, workers and imports are not part of it. Each row has its own keywords. That both give the
same document is a test (tests/engine).
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests"
sys.path += [str(TESTS), str(TESTS / "engine")]

from ray_clusters import OPEN, Cluster, cluster_of_two  # noqa: E402 — the tests start the same cluster

_SECONDS_BETWEEN_LOOKS = 0.2


class Cost(NamedTuple):
    """Seconds of a scoring, or of a part of one."""

    wall: float
    cpu: float

    def without(self, other: "Cost") -> "Cost":
        """What is left of it without another."""
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


class ClusterClock:
    """CPU seconds of all processes of a cluster, looked at while they run: the workers of a job end with it."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes = [psutil.Process(cluster.first), psutil.Process(cluster.second)]
        self._seen: dict[tuple[int, float], float] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopped.wait(_SECONDS_BETWEEN_LOOKS):
            self.seconds()

    def seconds(self) -> float:
        """Those so far."""
        for node in self._nodes:
            for process in (node, *node.children(recursive=True)):
                try:
                    times = process.cpu_times()
                    self._seen[process.pid, process.create_time()] = times.user + times.system
                except psutil.NoSuchProcess:
                    continue
        return sum(self._seen.copy().values())

    def stop(self) -> None:
        """Stop looking."""
        self._stopped.set()
        self._thread.join()


def score_log(log: str, flags: Sequence[str], clock: ClusterClock | None) -> Cost:
    """What one scoring takes; no journal of the same scoring shortens it."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "answerkey", "score", log, *flags]
        before = 0.0 if clock is None else clock.seconds()
        begun = time.monotonic()
        process = subprocess.Popen(
            command, env={**os.environ, **OPEN, "XDG_CACHE_HOME": cache}, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command} failed with {process.returncode}")
        after = 0.0 if clock is None else clock.seconds()
        return Cost(wall, usage.ru_utime + usage.ru_stime + after - before)


def spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def measure(cluster: Cluster, folder: str, rows: int, rounds: int) -> None:
    clock, logs = ClusterClock(cluster), {}
    for part in (rows // 4, rows):
        logs[part] = f"{folder}/{part}.jsonl"
        subprocess.run([sys.executable, HERE / "make_log.py", "varied", str(part), logs[part]], check=True)
    ways = {
        "two processes": (["--processes", "2"], None),
        "Ray, two nodes": (["--engine", "ray", "--ray-address", cluster.address], clock),
    }
    new = rows - rows // 4
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, (flags, counted) in ways.items():
            smaller = score_log(logs[rows // 4], flags, counted)
            costs[way].append(score_log(logs[rows], flags, counted).without(smaller))
    clock.stop()
    print(f"\n- load of the machine {os.getloadavg()[0]:.1f}; {rows:,} rows; rounds: {rounds}\n")
    print("| | rows a second | CPU µs a row |\n|---|---|---|")
    for way, some in costs.items():
        speed, cpu = median(new / cost.wall for cost in some), median(1e6 * cost.cpu / new for cost in some)
        print(f"| {way} | {speed:,.0f} | {cpu:.1f} |")
    local, ray = costs.values()
    pairs = list(zip(local, ray, strict=True))
    speeds = spread([mine.wall / theirs.wall for mine, theirs in pairs])
    cpus = spread([mine.cpu / theirs.cpu for mine, theirs in pairs])
    print(f"| Ray against two processes, by round | {speeds} | {cpus} |")


def main(rows: int, rounds: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="ak") as folder,
        cluster_of_two(Path(folder), cpus=1) as cluster,
    ):
        measure(cluster, folder, rows, rounds)


if __name__ == "__main__":
    main(int((sys.argv[1:2] or ["1000000"])[0]), int((sys.argv[2:3] or ["3"])[0]))
