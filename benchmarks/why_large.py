"""CPU seconds and memory of `answerkey why RUN` for a stored log of many questions.

python benchmarks/why_large.py [QUESTIONS]
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTIONS = 100_000


def write_log(path: Path, questions: int) -> None:
    """Replies of which a third lost points: no call, a result without the figure, a text without it, an error."""
    source = random.Random(0)
    with path.open("w") as file:
        for number in range(questions):
            figure = 1000 + number
            call = {"name": "query_database", "arguments": {"sql": f"SELECT {figure}"}, "result": [[figure]]}
            row = {
                "id": f"q{number}",
                "question": f"What was the amount of payout number {number}?",
                "category": f"category {number % 40}",
                "expected_tools": ["query_database"],
                "expected_keywords": [{"number": figure}],
                "response": f"It was {figure}.",
                "tool_calls": [call],
            }
            kind = source.random()
            if kind < 0.1:
                row["tool_calls"] = []
                row["response"] = "There is nothing on record."
            elif kind < 0.18:
                call["result"] = [[7]]
                row["response"] = "It was 7."
            elif kind < 0.26:
                row["response"] = "Please see your statement."
            elif kind < 0.33:
                row["response"] = ""
            file.write(json.dumps(row) + "\n")


def main() -> None:
    questions = int(sys.argv[1]) if len(sys.argv) > 1 else QUESTIONS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder / "log.jsonl", questions)
        answerkey = [sys.executable, "-m", "answerkey"]
        scoring = [*answerkey, "score", "log.jsonl", "--store", "runs.db", "--name", "log", "--json"]
        subprocess.run(scoring, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        why = [*answerkey, "why", "log", "--store", "runs.db", "--json"]
        # In a process of its own, so that its memory is not that of the scoring.
        code = (
            "import json, resource, subprocess, sys\n"
            "done = subprocess.run(sys.argv[1:], check=True, capture_output=True)\n"
            "groups = json.loads(done.stdout)['groups']\n"
            "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
            "for group in groups: print(f\"{group['points']:.2f} {len(group['ids']):,} {group['signature']}\")\n"
            "print(f'{used.ru_utime + used.ru_stime:.1f} CPU seconds, {used.ru_maxrss / 1024:.0f} MB')\n"
        )
        subprocess.run([sys.executable, "-c", code, *why], cwd=folder, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{questions:,} questions, {after.ru_utime - before.ru_utime:.1f} CPU seconds with the measuring process"
        )


if __name__ == "__main__":
    main()
