"""What comparing two large stored runs costs: CPU seconds and peak memory of the whole `answerkey compare`, start included.

python benchmarks/compare_large.py [--questions 100000] [--repeats 5] [--folder KEPT]

Beside it, in the same minute, a script of a dozen lines that reads the two columns of scores with sqlite3 and numpy and
makes SciPy's paired t test: the least that anybody would write by hand, without components, categories, flips, latency
or an interval that holds. Byte code is compiled first, as an installation does. Take the ratio, and the CPU seconds of
a quiet machine: seconds of a busy one are up to twice as many.
"""

import argparse
import compileall
import importlib
import math
import os
import resource
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "store"))

from made_runs import made_info, made_questions, made_trials, store_run

from answerkey.store import open_store


def fill(path: Path, count: int) -> None:
    """Two complete runs over the same questions."""
    questions = made_questions(count)
    with open_store(str(path)) as store:
        for number, skill in enumerate((0.90, 0.91)):
            trials = list(made_trials(questions, seed=number, skill=skill))
            store_run(store, made_info(number, questions), questions, trials)


# Runs a module or a script, then says how much memory it had at most.
WATCHED = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    if sys.argv[0] == "answerkey":
        runpy.run_module("answerkey", run_name="__main__")
    else:
        exec(sys.argv[0])
finally:
    # Not getrusage: its peak begins with that of the program which started this one.
    print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0], file=sys.stderr)
"""

BY_HAND = """
import sqlite3, sys
import numpy as np
from scipy import stats
def scores(run):
    query = "SELECT question, score FROM scorecards JOIN runs ON runs.key = run WHERE runs.id = ?"
    rows = store.execute(query, (run,))
    return dict(rows)
store = sqlite3.connect(sys.argv[1])
first, second = scores("run0"), scores("run1")
pairs = np.array([(first[q], second[q]) for q in first if q in second])
print(pairs.mean(axis=0), stats.ttest_rel(pairs[:, 1], pairs[:, 0]).pvalue)
"""


def measure(*command: str, times: int) -> tuple[float, float, str]:
    """CPU seconds (the best of several) and peak megabytes of a command in a process of its own, and what it said."""
    best = math.inf
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", WATCHED, *command],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best, int(done.stderr.split()[-1]) / 1024, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5, help="measurements, of which the best counts")
    parser.add_argument("--folder", type=Path, help="keep the stores here, and use them again")
    options = parser.parse_args()
    for name in ("answerkey", "numpy", "scipy", "click", "rich", "msgspec"):
        folder = importlib.import_module(name).__path__[0]
        compileall.compile_dir(folder, quiet=2)
    print("| questions | what | CPU s | peak MB |\n|---|---|---|---|")
    with ExitStack() as kept:
        folder = options.folder or Path(kept.enter_context(tempfile.TemporaryDirectory()))
        for count in (options.questions // 10, options.questions):
            path = folder / f"{count}.db"
            if not path.exists():
                fill(path, count)
            measured = {}
            for name, command in {
                "answerkey compare": ("answerkey", "compare", "run0", "run1", "--store", str(path)),
                "answerkey compare --json": (
                    "answerkey",
                    "compare",
                    "run0",
                    "run1",
                    "--store",
                    str(path),
                    "--json",
                ),
                "scores and a t test by hand": (BY_HAND, str(path)),
            }.items():
                cpu, megabytes, _ = measure(*command, times=options.repeats)
                measured[name] = cpu
                print(f"| {count:,} | {name} | {cpu:.2f} | {megabytes:.0f} |", flush=True)
            ratio = measured["answerkey compare"] / measured["scores and a t test by hand"]
            print(f"| {count:,} | the first to the last of these | {ratio:.2f} | |")


if __name__ == "__main__":
    main()
