"""A run against its baseline in every report: verdict, difference with its interval, flips with both replies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = [{"id": f"q{i}", "question": f"What is {i}?", "expected_keywords": [str(i)]} for i in range(20, 40)]
BOT = """
def before(question):
    number = int(question.split()[-1].rstrip("?"))
    return {"answer": f"It is {number}, <i>surely</i>." if number != 39 else "Perhaps.", "tools_used": []}


def after(question):
    number = int(question.split()[-1].rstrip("?"))
    return {"answer": f"It is {number}." if number >= 30 else "No | idea.", "tools_used": []}
"""


@pytest.fixture
def decided(command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path) -> Any:
    golden = write_rows("golden.jsonl", *GOLDEN)
    (tmp_path / "bot.py").write_text(BOT)
    assert command("run", golden, "--target", "bot.py:before", "--name", "base").code == 0
    return command(
        *("run", golden, "--target", "bot.py:after", "--name", "candidate", "--baseline", "base"),
        *("-o", "report.html", "-o", "report.md", "-o", "report.json"),
    )


def test_the_report_of_a_run_with_a_baseline_decides(decided: Any, tmp_path: Path) -> None:
    assert decided.code == 1
    for name, before, after in (
        ("report.html", "It is 25, &lt;i&gt;surely&lt;/i&gt;.", "No | idea."),
        ("report.md", "It is 25, &lt;i&gt;surely&lt;/i&gt;.", "No \\| idea."),
    ):
        text = (tmp_path / name).read_text()
        assert "worse: -18.0 points (95% interval" in text
        assert "10 broken, 1 fixed" in text
        for said in (before, after, "q25: What is 25?", "Perhaps.", "missing 25"):
            assert said in text, (name, said)
    flips = json.loads((tmp_path / "report.json").read_text())["comparison"]["flips"]
    fixed = next(flip for flip in flips if flip["kind"] == "fixed")
    assert (fixed["reply_from"], fixed["reply_to"]) == ("Perhaps.", "It is 39.")
    assert fixed["because"] == "0 of 1 keywords found; missing 39"


def test_a_comparison_file_has_both_replies(
    decided: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    assert command("compare", "base", "candidate", "-o", "compared.html", "-o", "compared.md").code == 0
    for name in ("compared.html", "compared.md"):
        text = (tmp_path / name).read_text()
        assert "base said" in text
        assert "Perhaps." in text


def test_the_job_summary_says_it_once(
    command: Callable[..., Any], decided: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    command("run", "golden.jsonl", "--target", "bot.py:after", "--baseline", "base")
    assert (tmp_path / "summary.md").read_text().count("🔴 worse: -18.0 points") == 1
