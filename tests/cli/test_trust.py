"""What running answerkey in a folder does: commands that only look run none of its code."""

import sys
from pathlib import Path
from typing import Any

import pytest

OWN = """
import pathlib
pathlib.Path(__file__).with_name("imported").touch()
def bot(question): return {"answer": "yes", "tools_used": []}
def polite(question, reply): return 1.0
def total(): return 3
"""
CONFIGURATION = f"""
questions = "golden.jsonl"
target = "own"
[targets.own]
python = "own.py:bot"
[targets.program]
cmd = "{sys.executable} own.py"
[targets.model]
openai = "scripted"
base_url = "http://127.0.0.1:9/v1"
api_key = "none"
tools = [{{ python = "own.py:total" }}]
[scorers.polite]
python = "own.py:polite"
[truth.rules]
python = "own.py"
"""
LOOKING = [
    ["doctor"],
    ["doctor", "--target", "program"],
    ["doctor", "--target", "model"],
    ["lint", "golden.jsonl"],
    ["runs"],
    ["show"],
    ["report", "latest", "-o", "report.html"],
    ["export", "promptfoo", "golden.jsonl", "-o", "tests.yaml"],
    ["schema", "config"],
    ["plan", "golden.jsonl"],
    ["store", "check"],
]


@pytest.fixture
def foreign(tmp_path: Path, command: Any) -> Path:
    """A folder with a stored run whose configuration names code wherever it can."""
    (tmp_path / "golden.jsonl").write_text(
        '{"question": "Yes?", "expected_keywords": [{"python": "total", "from": "rules"}], '
        '"checks": [{"python": "own.py:polite"}]}\n'
    )
    (tmp_path / "own.py").write_text(OWN)
    assert command("run", "demo", "--sample", "1", "--seed", "1").code == 0
    (tmp_path / "answerkey.toml").write_text(CONFIGURATION)
    return tmp_path


def test_commands_that_only_look_run_no_code_of_the_folder(foreign: Path, command: Any) -> None:
    for arguments in LOOKING:
        outcome = command(*arguments)
        assert outcome.code in (0, 1), (arguments, outcome.err)
        assert not (foreign / "imported").exists(), arguments
    # The same configuration does run it where questions are asked.
    assert command("ask", "Yes?").code == 0
    assert (foreign / "imported").exists()
