"""`--json` prints one document on stdout, whatever else writes to the descriptor."""

import json
import subprocess
import sys
from pathlib import Path

from noisy_runs import check_document, run_noisily


def test_one_document_whatever_native_code_and_child_processes_write(tmp_path: Path) -> None:
    check_document(run_noisily(tmp_path, "--json"))


def test_one_document_from_the_demo_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "answerkey", "ask", "What is our address?", "--target", "demo", "--json"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["reply"]["text"]
