"""Where a Python chatbot raised an error, in every output."""

import json
from pathlib import Path
from typing import Any

import pytest

BOT = """
import os

def look_up(name):
    return {"a": 1}[name]

def answer(question):
    raise_for = "hunter2-token-value"
    if "basis" in question: look_up("hunter2-token-value <b>")
    return "fine"
"""


def test_every_output_shows_where_a_chatbot_raised(
    command: Any, write_rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    golden = write_rows(
        "golden.jsonl",
        {"id": "basis", "question": "What is the basis?", "expected_keywords": ["442300"]},
        {"id": "other", "question": "Are you well?", "expected_keywords": ["fine"]},
    )
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-token-value")
    done = command("run", golden, "--target", "bot.py:answer", "-o", "report.html", "--json")
    errors = {one["id"]: one["reply"]["error"] for one in json.loads(done.out)["results"]}
    trace = errors["basis"]["traceback"]
    assert errors["other"] is None
    assert 'bot.py", line 9, in answer' in trace
    assert 'bot.py", line 5, in look_up' in trace
    assert "answerkey" not in trace.replace(str(tmp_path), ""), (
        "frames of answerkey say nothing about the chatbot"
    )
    assert "hunter2" not in trace
    assert "${SHOP_TOKEN} <b>" in trace
    shown = command("show", "--question", "basis").out
    assert "hunter2" not in shown
    assert 'bot.py", line 5, in look_up' in shown
    page = (tmp_path / "report.html").read_text()
    assert "hunter2" not in page
    assert "line 5, in look_up" in page
    assert "${SHOP_TOKEN} &lt;b&gt;" in page


def test_a_deep_recursion_shows_its_innermost_frames(command: Any, write_rows: Any, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def answer(question):\n    return answer(question)\n")
    golden = write_rows("golden.jsonl", {"id": "a", "question": "Hi?"})
    done = command("run", golden, "--target", "bot.py:answer", "--json")
    [result] = json.loads(done.out)["results"]
    trace = result["reply"]["error"]["traceback"]
    assert trace.startswith("  … ")
    assert "[Previous line repeated 7 more times]" in trace
