"""What comparing two large stored runs costs: CPU seconds and peak memory of `answerkey compare --json`.

python benchmarks/compare_large.py [--questions 100000]
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from answerkey.protocols import Exchange, Graded, Task
from answerkey.question import Question, QuestionSet
from answerkey.reply import Reply, Timings
from answerkey.run import RunInfo
from answerkey.scorecard import DEFAULT_WEIGHTS, Score, Scorecard, grade, total
from answerkey.store import open_store


def fill(path: Path, count: int) -> None:
    """Two complete runs over the same questions, with the components and reasons that real scorecards hold."""
    source = random.Random(1)
    questions = QuestionSet(
        questions=tuple(
            Question(id=f"q{i}", question=f"What is the rent of unit {i}?", category=f"c{i % 12}")
            for i in range(count)
        )
    )
    with open_store(str(path)) as store:
        for number, skill in enumerate((0.90, 0.91)):
            info = RunInfo(
                id=f"run{number}",
                name=("base", "candidate")[number],
                status="complete",
                created_at=f"2026-01-01T00:00:0{number}",
                target="made",
                target_hash="t",
                question_set="set",
                question_set_hash=questions.hash,
                weights=dict(DEFAULT_WEIGHTS),
                scoring_hash="s",
            )
            store.create_run(info, questions)
            batch: list[Graded] = []
            for position, question in enumerate(questions):
                values = {
                    "tool_usage": float(source.random() < skill),
                    "response_quality": sum(source.random() < skill for _ in range(4)) / 4,
                    "error_handling": float(source.random() < 0.98),
                }
                points = total(dict(values), DEFAULT_WEIGHTS) or 0.0
                card = Scorecard(
                    components={
                        name: Score(
                            name,
                            value,
                            "why it is so, in words",
                            DEFAULT_WEIGHTS[name],
                            {"missing": ["a", "b"]},
                        )
                        for name, value in values.items()
                    },
                    total=points,
                    grade=grade(points),
                    passed=points >= 0.7,
                    metrics={"tool_f1": values["tool_usage"]},
                )
                reply = Reply(text="A reply. " * 50, timings=Timings(latency_ms=source.uniform(50, 900)))
                batch.append(Graded(Exchange(Task(question, 1, position), (reply,)), card))
                if len(batch) == 5000:
                    store.add(info, batch)
                    batch = []
            store.add(info, batch)


def measure(path: Path) -> tuple[float, float, str]:
    """CPU seconds, peak megabytes and verdict of one comparison in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    watched = (
        "import resource, sys, os, runpy\n"
        "sys.argv = ['answerkey', *sys.argv[1:]]\n"
        "try:\n    runpy.run_module('answerkey', run_name='__main__')\n"
        "finally:\n    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", watched, "compare", "run0", "run1", "--store", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, int(done.stderr.split()[-1]) / 1024, json.loads(done.stdout)["verdict"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--questions", type=int, default=100_000)
    questions = parser.parse_args().questions
    with tempfile.TemporaryDirectory() as folder:
        for count in (questions // 10, questions):
            path = Path(folder) / f"{count}.db"
            fill(path, count)
            cpu, megabytes, verdict = measure(path)
            print(f"{count:>8,} questions: {cpu:.2f} CPU s, {megabytes:.0f} MB, {verdict}", flush=True)


if __name__ == "__main__":
    main()
