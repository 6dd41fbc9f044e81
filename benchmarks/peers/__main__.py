"""The same job in answerkey and in its peers, in alternation: CPU, wall time, memory, start-up and installed size.

    python benchmarks/peers [--questions 1000] [--rounds 3] [--only NAME ...] [--folder .venv/peers]

Each peer is installed in an environment of its own, with telemetry off, and asks a chatbot on loopback that never says
the same twice; the standard score is that peer's own scorer or metric, written as its documentation says. All mean scores
must agree to 1e-9. Ratios are the median over the rounds, of answerkey and the peer measured one after the other.
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
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import varied
from environments import ANSWERKEY, HERE, PEERS, ROOT, Environment, Peer, install

sys.path.insert(0, str(HERE.parent))

CONCURRENCY = 50
STARTS = 3
HEAD = (
    "| harness | CPU s | wall s | peak MB | start-up, CPU s | installed MB | keeps | mean score |\n"
    "|---|---|---|---|---|---|---|---|"
)


class Measured(NamedTuple):
    """What a process took; the memory is that of the largest one, if it starts others."""

    cpu: float
    wall: float
    peak_mb: float
    # On standard output.
    said: bytes


class JobFailedError(Exception):
    """A peer did not do the job."""


def measure(command: Sequence[str], environment: Environment, folder: Path) -> Measured:
    """Run it to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as problems:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=out, stderr=problems, env=environment.variables, cwd=folder
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        problems.seek(0)
        if process.returncode:
            raise JobFailedError(last_line(problems.read()) or f"exit code {process.returncode}")
        return Measured(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, out.read())


def last_line(text: bytes) -> str:
    """What was said last."""
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def mean_score(said: bytes) -> float:
    """From a run document, or from the last line of a job."""
    document = json.loads(said if said.startswith(b"{") else last_line(said))
    return float(document.get("summary", document)["score"])


def golden(path: Path, count: int) -> Path:
    """Questions of which no two are alike."""
    with path.open("w") as file:
        file.writelines(json.dumps(varied.question(number)) + "\n" for number in range(count))
    return path


class Rounds(NamedTuple):
    """A peer's measurements, each beside one of answerkey's."""

    jobs: list[tuple[Measured, Measured]]
    starts: list[tuple[Measured, Measured]]


def alternate(
    own: Environment, other: Environment, job: tuple[Path, str, int], folder: Path, rounds: int
) -> Rounds:
    """Measure answerkey and a peer in turn; one start of each is not counted, in which files are compiled."""
    found = Rounds([], [])
    for number in range(STARTS + 1):
        pair = (measure(own.start(), own, folder), measure(other.start(), other, folder))
        if number:
            found.starts.append(pair)
    for _ in range(rounds):
        found.jobs.append(
            (measure(own.job(*job, folder), own, folder), measure(other.job(*job, folder), other, folder))
        )
    return found


def row(own: Environment, other: Environment, found: Rounds) -> str:
    """A peer's row: each figure with its ratio to answerkey's."""
    columns = [("cpu", found.jobs), ("wall", found.jobs), ("peak_mb", found.jobs), ("cpu", found.starts)]
    cells = []
    for name, pairs in columns:
        values = [(getattr(mine, name), getattr(theirs, name)) for mine, theirs in pairs]
        value = median(theirs for _, theirs in values)
        ratio = median(theirs / mine for mine, theirs in values)
        cells.append(f"{value:.0f} ({ratio:.1f}×)" if name == "peak_mb" else f"{value:.2f} ({ratio:.1f}×)")
    cells.append(f"{other.megabytes:.0f} ({other.megabytes / own.megabytes:.1f}×)")
    mine, theirs = (mean_score(one.said) for one in found.jobs[0])
    cells += [
        other.peer.keeps,
        "the same" if abs(mine - theirs) < 1e-9 else f"DIFFERS: {theirs!r}, not {mine!r}",
    ]
    return f"| {other.peer.name} {other.version} | {' | '.join(cells)} |"


def own_row(own: Environment, found: list[Rounds]) -> str:
    """answerkey's row, over all rounds beside all peers."""
    jobs = [mine for rounds in found for mine, _ in rounds.jobs]
    start = median(mine.cpu for rounds in found for mine, _ in rounds.starts)
    cpu, wall, peak = (median(getattr(one, name) for one in jobs) for name in ("cpu", "wall", "peak_mb"))
    figures = f"{cpu:.2f} | {wall:.2f} | {peak:.0f} | {start:.2f} | {own.megabytes:.0f}"
    return f"| answerkey {own.version} | {figures} | {own.peer.keeps} | {mean_score(jobs[0].said)!r} |"


def compare(peers: Sequence[Peer], questions: int, rounds: int, place: Path) -> int:
    """Print the table; 1 if a mean score differs."""
    load = os.getloadavg()[0]
    own = install(ANSWERKEY, place)
    bot = subprocess.Popen(
        [sys.executable, str(HERE.parent / "bot.py"), "0", "varied"], stdout=subprocess.PIPE, text=True
    )
    rows: list[str] = []
    found: list[Rounds] = []
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            assert bot.stdout is not None
            url = f"http://127.0.0.1:{bot.stdout.readline().strip()}/chat"
            job = (golden(folder / "golden.jsonl", questions), url, CONCURRENCY)
            for peer in peers:
                print(f"{peer.name} …", file=sys.stderr, flush=True)
                try:
                    other = install(peer, place)
                    found.append(alternate(own, other, job, folder, rounds))
                    rows.append(row(own, other, found[-1]))
                except (subprocess.CalledProcessError, OSError, JobFailedError) as problem:
                    reason = getattr(problem, "stderr", None) or str(problem)
                    rows.append(f"| {peer.name} | not measured: {last_line(reason.encode())} |||||||")
    finally:
        bot.kill()
    print(
        f"{questions:,} questions, {CONCURRENCY} at once, a chatbot that never says the same twice; rounds: {rounds}; "
        f"load of the machine {load:.1f} to {os.getloadavg()[0]:.1f}.\n"
    )
    print("\n".join([HEAD, own_row(own, found), *rows] if found else [HEAD, *rows]))
    return int(any("DIFFERS" in one for one in rows))


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--questions", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", choices=[peer.name for peer in PEERS], action="append")
    options.add_argument(
        "--folder", type=Path, default=ROOT / ".venv" / "peers", help="where they are installed"
    )
    chosen = options.parse_args()
    peers = [peer for peer in PEERS if not chosen.only or peer.name in chosen.only]
    return compare(peers, chosen.questions, chosen.rounds, chosen.folder.resolve())


if __name__ == "__main__":
    sys.exit(main())
