"""How `answerkey score` grows with its log: CPU, wall and memory from ten thousand to ten million rows.

    python benchmarks/growth/grow_logs.py [ROWS ...]

Memory is that of all processes together, pages that they share counted once, looked at ten times a second. A log of ten
million rows takes 5 GB of disk.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAKE = Path(__file__).parents[1] / "logs" / "make_log.py"


def memory_mb(process: int) -> float:
    """Of a process and those that any of its threads started (Linux); pages that they share count once."""
    folder = Path(f"/proc/{process}")
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
        mine = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        started = [path.read_text().split() for path in folder.glob("task/*/children")]
        return mine / 1024 + sum(memory_mb(int(child)) for children in started for child in children)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def scored(log: str, *arguments: str) -> tuple[float, float, float]:
    """CPU and wall seconds of `answerkey score`, and the most memory of all its processes in MB."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "answerkey", "score", log, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "ANSWERKEY_STORE": ""})
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, memory_mb(process.pid))
        time.sleep(0.1)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.monotonic() - begun, peak


def main(sizes: list[int]) -> None:
    print(
        "| shape | rows | CPU s | CPU µs a row | wall s | memory of all processes, MB |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        for shape in ("varied", "asked"):
            for rows in sizes:
                log = f"{folder}/log.jsonl"
                subprocess.run([sys.executable, MAKE, shape, str(rows), log], check=True)
                jobs: dict[str, tuple[str, ...]] = {shape: ()}
                if shape == "varied":
                    jobs["varied, -o parquet"] = ("-o", f"{folder}/out.parquet")
                for name, arguments in jobs.items():
                    used, wall, peak = scored(log, *arguments)
                    figures = f"{used:.1f} | {1e6 * used / rows:.1f} | {wall:.1f} | {peak:.0f}"
                    print(f"| {name} | {rows:,} | {figures} |", flush=True)


if __name__ == "__main__":
    main([int(given) for given in sys.argv[1:]] or [10_000, 100_000, 1_000_000, 10_000_000])
