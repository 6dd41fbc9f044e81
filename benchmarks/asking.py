"""`answerkey run` beside the same job written by hand on aiohttp: CPU time, wall time, latencies, memory, start-up.

python benchmarks/asking.py [--questions 1000] [--rounds 3] [--large 100000] [--latency]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
CONCURRENCY = 50
# Compiled files as an installed package has them: compiling is not part of asking.
ENVIRONMENT = {**os.environ, "PYTHONPYCACHEPREFIX": tempfile.gettempdir() + "/answerkey-benchmark-pyc"}
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)


def measured(*command: str) -> tuple[dict, float, float, float]:
    """(JSON it printed, CPU seconds, wall seconds, peak MB) of one command."""
    with tempfile.TemporaryFile() as out:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, env=ENVIRONMENT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command} failed with {process.returncode}")
        out.seek(0)
        text = out.read()
    return (
        json.loads(text) if text.strip().startswith(b"{") else {},
        usage.ru_utime + usage.ru_stime,
        wall,
        usage.ru_maxrss / 1024,
    )


def golden(folder: Path, count: int) -> Path:
    path = folder / f"golden-{count}.jsonl"
    with path.open("w") as file:
        for number in range(count):
            row = {
                "id": f"q{number}",
                "question": f"What is the address of property {number}?",
                "category": f"category {number % 10}",
                "expected_tools": ["query_database"],
                "expected_keywords": ["900", "9th", "Montrose", "depreciation"],
            }
            file.write(json.dumps(row) + "\n")
    return path


def start_bot(pause: float, says: str = "plain") -> tuple[subprocess.Popen, str]:
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
                    own = measured(*ours(path, url, folder, *flags))[0]["summary"]
                    assert own["errors"] == {}, own["errors"]
                    ratios.append((own["latency_ms"]["p95"] / bare["p95"], own["latency_ms"]["p95"]))
                ratio, p95 = sorted(ratios)[len(ratios) // 2]
                shown = ", ".join(f"{one:.2f}" for one, _ in ratios)
                print(
                    f"{says}, {count} questions, {concurrency} at once: p95 {p95:.0f} ms, {ratio:.2f} times ({shown})"
                )
        finally:
            bot.kill()


def ours(path: Path, url: str, folder: Path, *extra: str) -> list[str]:
    store = folder / f"store-{time.time_ns()}.db"
    answerkey = str(Path(sys.executable).parent / "answerkey")
    return [
        answerkey,
        "run",
        str(path),
        "--target",
        url,
        "--concurrency",
        str(CONCURRENCY),
        "--store",
        str(store),
        *extra,
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--questions", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
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
        path = golden(folder, chosen.questions)
        for pause, column in ((0.0, 1), (0.05, 2)):
            bot, url = start_bot(pause)
            try:
                pairs = []
                for _ in range(chosen.rounds):
                    hand = measured(
                        sys.executable, str(HERE / "by_hand.py"), str(path), url, str(CONCURRENCY)
                    )
                    own = measured(*ours(path, url, folder, "--json"))
                    pairs.append((hand, own))
            finally:
                bot.kill()
            ranked = sorted(pairs, key=lambda pair: pair[1][column] / pair[0][column])
            hand, own = ranked[len(ranked) // 2]
            what = "CPU" if column == 1 else "wall"
            print(
                f"{chosen.questions} questions, bot pauses {pause * 1000:.0f} ms: by hand {hand[column]:.2f} {what} s "
                f"({hand[3]:.0f} MB), answerkey {own[column]:.2f} {what} s ({own[3]:.0f} MB): "
                f"ratio {own[column] / hand[column]:.2f} (rounds: "
                + ", ".join(f"{o[column] / h[column]:.2f}" for h, o in pairs)
                + ")"
            )
        starts = []
        for _ in range(7):
            nothing = measured(sys.executable, "-c", "print('{}')")[1]
            helped = subprocess_cpu(str(Path(sys.executable).parent / "answerkey"), "--help")
            starts.append(helped / nothing)
        print(
            f"answerkey --help against python -c pass: {sorted(starts)[len(starts) // 2]:.1f} times the CPU (median)"
        )
        if chosen.large:
            bot, url = start_bot(0.0)
            try:
                peak = measured(*ours(golden(folder, chosen.large), url, folder))
            finally:
                bot.kill()
            print(f"{chosen.large} questions: {peak[1]:.1f} CPU s, peak {peak[3]:.0f} MB")


def subprocess_cpu(*command: str) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
