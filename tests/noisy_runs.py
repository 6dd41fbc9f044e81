"""A run whose scorer writes to standard output in every way there is, and the check that `--json` is one document."""

import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["check_document", "run_noisily"]

# A scorer that writes as native code does, past sys.stdout, from a thread that outlives the run; and so does a child process.
NOISY = """
import os
import subprocess
import threading
import time


def write():
    while True:
        os.write(1, b"(raylet) native noise\\n")
        time.sleep(0.001)


threading.Thread(target=write, daemon=True).start()


def noisy(question, reply):
    print("python noise")
    subprocess.run(["echo", "child noise"], check=True)
    return True
"""


def project(folder: Path) -> None:
    (folder / "noise.py").write_text(NOISY)
    (folder / "bot.py").write_text("def answer(question):\n    return 'yes'\n")
    (folder / "answerkey.toml").write_text('[scorers.noisy]\npython = "noise.py:noisy"\n')
    rows = [{"id": f"q{n}", "question": f"Number {n}?", "expected_keywords": ["yes"]} for n in range(20)]
    (folder / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run_noisily(folder: Path, *flags: str) -> subprocess.CompletedProcess[bytes]:
    project(folder)
    command = [sys.executable, "-m", "answerkey", "run", "golden.jsonl", "--target", "bot.py:answer", *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, env=dict(os.environ))


def check_document(ended: subprocess.CompletedProcess[bytes]) -> None:
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout)["summary"]["score"] == 1.0
    for noise in (b"(raylet) native noise", b"python noise", b"child noise"):
        assert noise in ended.stderr
