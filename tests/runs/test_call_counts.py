"""How many function calls of answerkey a further question and a logged row cost: their paths stay short."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# Bounds of `answerkey run` over HTTP, with a margin for how replies are batched. Lower them when the path gets shorter: it
# was 342 calls in 44 files before the rebuild, and 199 in 24 when it was last counted; 200 are allowed.
MOST_CALLS = 204
MOST_FILES = 25
# Bound of `answerkey score` of one row, without what is only loaded once, and without laying out the text of the report, which
# rich did uncounted when the bound was set.
MOST_CALLS_OF_A_LOG = 900
LAYOUT = "report/layout.py:"
# Questions of the longer run: the mean over many evens out how replies are batched.
MORE = 20

COUNTER = """
import json, sys, threading
from collections import Counter
from pathlib import Path
import answerkey
from answerkey.cli.main import run_command

SOURCE = str(Path(answerkey.__file__).parent) + "/"
calls = Counter()


def count(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith(SOURCE):
        calls[code.co_filename.removeprefix(SOURCE) + ":" + code.co_qualname] += 1


for _ in range(int(sys.argv[1])):
    # What is loaded only once is not counted.
    run_command(sys.argv[2:])
threading.setprofile(count)
sys.setprofile(count)
code = run_command(sys.argv[2:])
sys.setprofile(None)
threading.setprofile(None)
sys.stderr.write("\\n" + json.dumps(calls))
sys.exit(code)
"""


def counted(folder: Path, url: str, questions: int) -> dict[str, int]:
    """Function → its calls in a run."""
    golden = folder / f"golden-{questions}.jsonl"
    rows = [
        {"id": f"q{number}", "question": f"What is {number}?", "expected_keywords": [str(number)]}
        for number in range(questions)
    ]
    golden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    # The strength of the key is computed once for a golden set, in the first of two runs.
    return counted_command(
        folder,
        *("run", golden.name, "--target", url, "--concurrency", "1", "--store", f"runs-{questions}.db"),
        warmed_up=True,
    )


def counted_command(folder: Path, *arguments: str, warmed_up: bool = False) -> dict[str, int]:
    """Function → its calls in a command."""
    command = [sys.executable, "-c", COUNTER, str(int(warmed_up)), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    calls: dict[str, int] = json.loads(done.stderr.splitlines()[-1])
    return calls


def test_a_further_question_needs_few_calls_in_few_files(tmp_path: Path, chatbot: Any) -> None:
    bot = chatbot(lambda body: {"answer": body["question"], "tools_used": []})
    counted(tmp_path, bot.url, 1)
    few, many = counted(tmp_path, bot.url, 1), counted(tmp_path, bot.url, 1 + MORE)
    further = {name: (calls - few.get(name, 0)) / MORE for name, calls in many.items()}
    # What happens less often than with every question is not part of its path.
    path = {name: calls for name, calls in further.items() if calls >= 0.9}
    files = sorted({name.partition(":")[0] for name in path})
    shown = "\n".join(f"{calls:6.1f} {name}" for name, calls in sorted(path.items(), key=lambda one: -one[1]))
    assert sum(further.values()) <= MOST_CALLS, shown
    assert len(files) <= MOST_FILES, files


def test_a_log_of_one_row_needs_few_calls(tmp_path: Path) -> None:
    row = {
        "id": "q",
        "question": "What is 1?",
        "expected_keywords": ["1"],
        "answer": "It is 1.",
        "tools_used": [],
    }
    (tmp_path / "log.jsonl").write_text(json.dumps(row))
    calls = counted_command(tmp_path, "score", "log.jsonl", warmed_up=True)
    shown = "\n".join(f"{times:6} {name}" for name, times in sorted(calls.items(), key=lambda one: -one[1]))
    scoring = sum(times for name, times in calls.items() if not name.startswith(LAYOUT))
    assert scoring <= MOST_CALLS_OF_A_LOG, f"{scoring}\n{shown}"
