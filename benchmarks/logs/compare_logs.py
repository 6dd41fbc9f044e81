"""`answerkey score` beside the same job by hand, in alternation, as CPU microseconds a row and as ratios with their spread.

python benchmarks/logs/compare_logs.py [ROWS] [ROUNDS]

The default, 40,000 rows and three rounds, takes six minutes on two quiet cores.

DuckDB and Polars are installed by uv in an environment of their own, which is gone afterwards; without uv they are left out.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SHAPES = ("varied", "asked")
# The varied log is measured once more with this many times the rows.
LARGER = 5


def measured(*command: str) -> tuple[float, float, float]:
    """CPU seconds with those of its children, wall seconds, and the most memory of one process in MB."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "ANSWERKEY_STORE": ""})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.monotonic() - begun, after.ru_maxrss / 1024


def peers(folder: str) -> dict[str, tuple[str, str]]:
    """Python with DuckDB and Polars, and their jobs."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        return {}
    subprocess.run([uv, "venv", "--quiet", f"{folder}/peers"], check=True)
    python = f"{folder}/peers/bin/python"
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, "duckdb", "polars"], check=True)
    return {name: (python, str(HERE / f"{name.lower()}_job.py")) for name in ("DuckDB", "Polars")}


def main(rows: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # No journal of an earlier scoring shortens a later one.
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        others = peers(folder)
        print(f"load of the machine before: {os.getloadavg()[0]:.1f}; rounds: {rounds}\n")
        print(f"| {rows:,} rows | CPU µs a row | times the light loop | times the heavy loop | wall s |")
        print("|---|---|---|---|---|")
        for shape in SHAPES:
            compare(shape, rows, rounds, others, folder)
        print(f"| **{LARGER * rows:,} rows**, of which start-up is a small part | | | | |")
        compare(SHAPES[0], LARGER * rows, rounds, None, folder)
        print(f"\nload of the machine after: {os.getloadavg()[0]:.1f}")


def compare(
    shape: str, rows: int, rounds: int, others: dict[str, tuple[str, str]] | None, folder: str
) -> None:
    """Print the rows of one log; without `others`, only the loops and answerkey, and no Parquet."""
    log, out, python = f"{folder}/{shape}.jsonl", f"{folder}/out.jsonl", sys.executable
    subprocess.run([python, HERE / "make_log.py", shape, str(rows), log], check=True)
    score = (python, "-m", "answerkey", "score", log, "--processes")
    commands = {
        "light loop": (python, str(HERE / "light_loop.py"), log, out),
        "heavy loop": (python, str(HERE / "plain_loop.py"), log, out),
        "typed loop": (python, str(HERE / "msgspec_loop.py"), log),
        **{name: (*command, log) for name, command in (others or {}).items()},
        "score, 1 process": (*score, "1"),
        "score, 2 processes": (*score, "2"),
        "score -o jsonl, 1": (*score, "1", "-o", out),
        "score -o jsonl, 2": (*score, "2", "-o", out),
        "score -o parquet, 2": (*score, "2", "-o", f"{folder}/out.parquet"),
    }
    if others is None:
        del commands["typed loop"], commands["score -o parquet, 2"]
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            found[name].append(measured(*command))
    for name, runs in found.items():
        used, wall = (statistics.median(run[part] for run in runs) for part in (0, 1))
        light, heavy = (ratios(runs, found[loop]) for loop in ("light loop", "heavy loop"))
        print(f"| {shape}: {name} | {1e6 * used / rows:.1f} | {light} | {heavy} | {wall:.1f} |", flush=True)


def ratios(runs: list[tuple[float, float, float]], loop: list[tuple[float, float, float]]) -> str:
    """CPU of a command as a multiple of a loop's, round by round: the median, and the lowest and highest."""
    found = sorted(run[0] / other[0] for run, other in zip(runs, loop, strict=True))
    return f"{statistics.median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})"


if __name__ == "__main__":
    main(*(int(given) for given in (*sys.argv[1:], *(40_000, 3)[len(sys.argv) - 1 :])))
