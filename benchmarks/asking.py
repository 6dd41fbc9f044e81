"""`answerkey run` beside the same job written by hand on aiohttp: CPU time, wall time, latencies, memory, start-up.

python benchmarks/asking.py [--sizes 1000 10000] [--rounds 5] [--large 100000] [--latency]

No two questions, replies or keywords are alike, and the chatbot runs on uvloop where that is installed. Each round measures
both loops of by_hand.py, a first run of the golden set, in which the strength of its key is measured as well, and a later run,
one after the other; ratios are medians over the rounds with the lowest and the highest.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from varied import question, reply

HERE = Path(__file__).parent
ANSWERKEY = str(Path(sys.executable).parent / "answerkey")
LOOPS = ("light", "heavy")
RUNS = ("first", "later")
CONCURRENCY = 50
# Compiled files as an installed package has them: compiling is not part of asking.
ENVIRONMENT = {**os.environ, "PYTHONPYCACHEPREFIX": tempfile.gettempdir() + "/answerkey-benchmark-pyc"}
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)


def measured(*command: str) -> tuple[dict, float, float, float]:
    """(JSON it printed, or its summary; CPU seconds, wall seconds, peak MB) of one command."""
    with tempfile.TemporaryFile() as out:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command} failed with {process.returncode}")
        out.seek(0)
        # Only the beginning: what this process holds at a fork counts as the next command's memory.
        text = out.read(100_000).decode("utf-8", "ignore")
    summary = text.find('"summary":')
    return (
        json.JSONDecoder().raw_decode(text, summary + 10 if summary >= 0 else 0)[0]
        if text.startswith("{")
        else {},
        usage.ru_utime + usage.ru_stime,
        wall,
        usage.ru_maxrss / 1024,
    )


def golden(folder: Path, count: int) -> Path:
    path = folder / f"golden-{count}.jsonl"
    path.write_text("".join(json.dumps(question(number)) + "\n" for number in range(count)))
    return path


def start_bot(pause: float, says: str = "varied") -> tuple[subprocess.Popen, str]:
    command = [sys.executable, str(HERE / "bot.py"), str(pause), says]
    bot = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert bot.stdout is not None
    return bot, f"http://127.0.0.1:{bot.stdout.readline().strip()}/chat"


def latencies(folder: Path, rounds: int) -> None:
    """The p95 of a chatbot that always takes 50 ms, beside what a bare loop measures, whatever it says."""
    for says in ("plain", "figures", "ledger"):
        bot, url = start_bot(0.05, says)
        try:
            for count, concurrency in ((60, 10), (60, 50), (500, 50)):
                path = golden(folder, count)
                ratios = []
                for _ in range(rounds):
                    bare = measured(
                        sys.executable, str(HERE / "bare_loop.py"), str(path), url, str(concurrency)
                    )[0]
                    flags = ("--concurrency", str(concurrency), "--timeout", "3", "--json")
                    own = measured(*ours(path, url, folder, *flags))[0]
                    assert own["errors"] == {}, own["errors"]
                    ratios.append((own["latency_ms"]["p95"] / bare["p95"], own["latency_ms"]["p95"]))
                ratio, p95 = sorted(ratios)[len(ratios) // 2]
                shown = ", ".join(f"{one:.2f}" for one, _ in ratios)
                print(
                    f"{says}, {count} questions, {concurrency} at once: p95 {p95:.0f} ms, {ratio:.2f} times ({shown})"
                )
        finally:
            bot.kill()


def ours(path: Path, url: str, folder: Path, *extra: str, store: str = "") -> list[str]:
    address = folder / (store or f"store-{time.time_ns()}.db")
    flags = ("--concurrency", str(CONCURRENCY), "--store", str(address))
    return [ANSWERKEY, "run", str(path), "--target", url, *flags, *extra]


def spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def compare(folder: Path, count: int, pause: float, rounds: int) -> None:
    """Print answerkey's CPU or, with a chatbot that pauses, wall time as multiples of the loops'."""
    path, column = golden(folder, count), 2 if pause else 1
    found: dict[str, list[tuple[dict, float, float, float]]] = {name: [] for name in (*LOOPS, *RUNS)}
    bot, url = start_bot(pause)
    before = os.getloadavg()[0]
    try:
        for number in range(rounds):
            for loop in LOOPS:
                command = (sys.executable, str(HERE / "by_hand.py"), str(path), url, str(CONCURRENCY), loop)
                found[loop].append(measured(*command))
            for run in RUNS:
                # The later run finds the first one in its store.
                command = ours(path, url, folder, "--json", store=f"{count}-{pause}-{number}.db")
                found[run].append(measured(*command))
    finally:
        bot.kill()
    scores = [one[0]["score"] for one in [*found["light"], *found["first"], *found["later"]]]
    if max(scores) - min(scores) > 1e-9:
        raise SystemExit(f"the scores differ: {sorted(set(scores))}")
    what = "wall" if pause else "CPU"
    load = f"load {before:.1f} to {os.getloadavg()[0]:.1f}"
    print(f"\n{count} questions, the chatbot pauses {pause * 1000:.0f} ms, {rounds} rounds, {load}\n")
    print(f"| | {what} s | peak MB | times the light loop | times the heavy loop |\n|---|---|---|---|---|")
    for name, measurements in found.items():
        seconds = [one[column] for one in measurements]
        ratios = [
            spread([mine / other[column] for mine, other in zip(seconds, found[loop], strict=True)])
            for loop in LOOPS
        ]
        peak = median(one[3] for one in measurements)
        shown = f"{name} loop by hand" if name in LOOPS else f"answerkey, {name} run"
        print(f"| {shown} | {spread(seconds)} | {peak:.0f} | {' | '.join(ratios)} |")


def start_up(folder: Path, rounds: int) -> None:
    """Print what short commands cost, as multiples of `python -c pass`, one after the other in each round."""
    bot, url = start_bot(0.0)
    row = folder / "row.jsonl"
    row.write_text(json.dumps({**question(0), **reply(question(0)["question"])}) + "\n")
    run, store = ours(golden(folder, 1), url, folder, "--json", store="one.db"), str(folder / "twenty.db")
    commands = {
        "--help": ["--help"],
        "score of one row": ["score", str(row)],
        "run of one question": run[1:],
        "compare of two runs of 20 questions": ["compare", "base", "candidate", "--store", store],
    }
    try:
        for name in ("base", "candidate"):
            measured(*ours(golden(folder, 20), url, folder, "--name", name, store="twenty.db"))
        ratios: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(rounds + 1):
            for name, arguments in commands.items():
                ratio = measured(ANSWERKEY, *arguments)[1] / measured(sys.executable, "-c", "pass")[1]
                # The first round loads the files.
                ratios[name] += [ratio] if number else []
    finally:
        bot.kill()
    print(f"\nStart-up, CPU as multiples of python -c pass, {rounds} rounds, load {os.getloadavg()[0]:.1f}\n")
    print("| command | times |\n|---|---|")
    for name, found in ratios.items():
        print(f"| `{name}` | {spread(found)} |")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="*", default=[1000, 10000])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument(
        "--large", type=int, default=0, help="also run N questions and print the peak memory"
    )
    options.add_argument("--latency", action="store_true", help="only compare latencies with a bare loop's")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.latency:
            latencies(folder, chosen.rounds)
            return
        for count in chosen.sizes:
            compare(folder, count, 0.0, chosen.rounds)
        for count in chosen.sizes[:1]:
            compare(folder, count, 0.05, chosen.rounds)
        start_up(folder, 2 * chosen.rounds)
        if chosen.large:
            bot, url = start_bot(0.0)
            try:
                peak = measured(*ours(golden(folder, chosen.large), url, folder))
            finally:
                bot.kill()
            print(f"\n{chosen.large} questions: {peak[1]:.1f} CPU s, peak {peak[3]:.0f} MB")


if __name__ == "__main__":
    main()
