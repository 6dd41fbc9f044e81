"""`answerkey score` beside the same job by hand, in alternation, as rows per CPU second and as ratios.

python benchmarks/logs/compare_logs.py [ROWS] [ROUNDS]
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SHAPES = ("few", "new", "own")


def measured(*command: str) -> tuple[float, float, float]:
    """CPU seconds with those of its children, wall seconds, and the most memory of one process in MB."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "ANSWERKEY_STORE": ""})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.monotonic() - begun, after.ru_maxrss / 1024


def main(rows: int, rounds: int) -> None:
    python = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out.jsonl"
        print(f"| {rows:,} rows | rows a CPU second | times the plain loop | wall s |")
        print("|---|---|---|---|")
        for shape in SHAPES:
            log = f"{folder}/{shape}.jsonl"
            subprocess.run([python, HERE / "make_log.py", shape, str(rows), log], check=True)
            commands = {
                "plain loop": (python, str(HERE / "plain_loop.py"), log, out),
                "typed loop": (python, str(HERE / "msgspec_loop.py"), log),
                "wc -l": ("wc", "-l", log),
                "score, 1 process": (python, "-m", "answerkey", "score", log, "--processes", "1"),
                "score, 2 processes": (python, "-m", "answerkey", "score", log, "--processes", "2"),
                "score -o rows, 2": (python, "-m", "answerkey", "score", log, "--processes", "2", "-o", out),
            }
            found = {name: [measured(*command) for _ in range(1)] for name, command in commands.items()}
            for _ in range(rounds - 1):
                for name, command in commands.items():
                    found[name].append(measured(*command))
            plain = statistics.median(run[0] for run in found["plain loop"])
            for name, runs in found.items():
                used, wall = (statistics.median(run[part] for run in runs) for part in (0, 1))
                print(f"| {shape}: {name} | {rows / used:,.0f} | {plain / used:.2f} | {wall:.1f} |")


if __name__ == "__main__":
    main(*(int(given) for given in (*sys.argv[1:], *(100_000, 3)[len(sys.argv) - 1 :])))
