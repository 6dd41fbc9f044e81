"""`answerkey score` on a Ray cluster of two nodes, started for it on this machine, beside the same cores without Ray.

    python benchmarks/logs/ray_beside_local.py [ROWS]

Rows a second after start-up: what the larger of two logs takes longer than the smaller, so that starting processes, workers and
imports are not part of it. Each row has its own keywords. That both give the same document is a test (tests/engine).
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests" / "engine"))

from ray_clusters import cluster_of_two  # noqa: E402 — the tests start the same cluster


def scored(log: str, *flags: str) -> float:
    """Wall seconds of one scoring; no journal of the same scoring shortens it."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "answerkey", "score", log, *flags]
        begun = time.monotonic()
        subprocess.run(
            command, env={**os.environ, "XDG_CACHE_HOME": cache}, stdout=subprocess.DEVNULL, check=True
        )
        return time.monotonic() - begun


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ak") as name, cluster_of_two(Path(name)) as cluster:
        logs = {}
        for part in (rows // 4, rows):
            logs[part] = f"{name}/{part}.jsonl"
            subprocess.run(
                [sys.executable, HERE / "make_log.py", "varied", str(part), logs[part]], check=True
            )
        ways = {
            "two processes": ("--processes", "2"),
            "Ray, two nodes": ("--engine", "ray", "--ray-address", cluster.address),
        }
        speeds = []
        for way, flags in ways.items():
            # Ray's workers have loaded everything after a first log.
            scored(logs[rows // 4], *flags)
            walls = {part: scored(log, *flags) for part, log in logs.items()}
            speeds.append((rows - rows // 4) / (walls[rows] - walls[rows // 4]))
            took = ", ".join(f"{part:,} rows {wall:.1f} s" for part, wall in walls.items())
            print(f"{way}: {speeds[-1]:,.0f} rows a second after start-up ({took})", flush=True)
        print(f"Ray against two processes: {speeds[1] / speeds[0]:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
