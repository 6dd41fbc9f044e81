"""Retrieval measures over recorded replies: their cost beside that of reading the file.

    python benchmarks/retrieval.py [REPLIES]

Writes REPLIES (100,000) rows with ten sources each, then measures in processor time: reading the file line by line with
`json.loads` and with msgspec, reading it as `answerkey score` does, and the default retrieval measures of every reply.
The measures must cost less than ten times any of the three ways to read. Memory must not grow with the number of replies.
"""

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from answerkey.runs.recorded import read_trials

from answerkey.scorers.retrieval import RetrievalQuality

_TIMES = 3


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replies.jsonl"
        _write(path, count)
        plain = _least(lambda: _read_json(path))
        quick = _least(lambda: _read_msgspec(path))
        before = _peak()
        reading = _least(lambda: _read(path))
        measuring = _least(lambda: _measure(path))
        peak = _peak()
    alone = min(_MEASURED)
    print(f"{count} replies with ten sources each, processor time, best of {_TIMES}")
    print(f"json.loads of every line:              {plain:7.2f} s")
    print(f"msgspec.json.decode of every line:     {quick:7.2f} s")
    print(f"reading as `answerkey score` does:     {reading:7.2f} s")
    print(f"reading and retrieval measures:        {measuring:7.2f} s")
    print(f"retrieval measures alone:              {alone:7.2f} s, which is")
    print(
        f"  {alone / plain:5.1f} times json.loads, {alone / quick:5.1f} times msgspec, {alone / reading:5.1f} times reading"
    )
    print(f"memory: {before / 1024:.0f} MB before, {peak / 1024:.0f} MB at most")


_MEASURED: list[float] = []


def _write(path: Path, count: int) -> None:
    draw = random.Random(0)
    with path.open("wb") as stream:
        for number in range(count):
            found = [f"doc-{draw.randrange(50)}" for _ in range(10)]
            row = {
                "id": str(number),
                "question": f"Question {number}?",
                "answer": "The rent is $1,200.",
                "relevant_documents": {f"doc-{draw.randrange(50)}": draw.randint(1, 3) for _ in range(3)},
                "sources": [{"id": name, "score": 1 / (rank + 1)} for rank, name in enumerate(found)],
            }
            stream.write(msgspec.json.encode(row) + b"\n")


def _read_json(path: Path) -> None:
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            json.loads(line)


def _read_msgspec(path: Path) -> None:
    with path.open("rb") as stream:
        for line in stream:
            msgspec.json.decode(line)


def _read(path: Path) -> None:
    for _ in read_trials([path]):
        pass


def _measure(path: Path) -> None:
    """A new scorer each time, so that nothing is known from the time before."""
    scorer = RetrievalQuality()
    clock = time.process_time
    taken = 0.0
    batch = []
    for trial in read_trials([path]):
        batch.append(trial)
        # In batches, so that the clock itself costs nothing and memory stays flat.
        if len(batch) == 100:
            taken += _score(scorer, batch, clock)
            batch.clear()
    taken += _score(scorer, batch, clock)
    _MEASURED.append(taken)


def _score(scorer: RetrievalQuality, batch: list, clock: Callable[[], float]) -> float:  # type: ignore[type-arg]
    begin = clock()
    for trial in batch:
        scorer.score(trial.question, trial.replies[0])
    return clock() - begin


def _least(work: Callable[[], None]) -> float:
    taken = []
    for _ in range(_TIMES):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)


def _peak() -> int:
    """The most memory so far, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
