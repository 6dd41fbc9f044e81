"""`answerkey lint` and `answerkey audit`, through the real command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = {
    "id": "ein",
    "question": "What is the EIN?",
    "expected_tools": ["db"],
    "expected_keywords": ["83-4567890"],
}
WEAK = {"id": "weak", "question": "Where?", "expected_tools": ["db"], "expected_keywords": ["the"]}
WRONG = {
    "id": "wrong",
    "question": "Who?",
    "expected_keywords": ["Archibald"],
    "forbidden_keywords": ["Archi"],
}


@pytest.fixture
def golden(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: dict[str, Any]) -> Path:
        path = tmp_path / "golden.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def test_a_clean_set(answerkey: Any, golden: Any) -> None:
    golden(GOOD)
    done = answerkey("lint", "golden.jsonl", "--strict")
    assert (done.returncode, done.stdout) == (0, "no findings in 1 question\n")


def test_warnings_fail_only_when_strict(answerkey: Any, golden: Any) -> None:
    golden(GOOD, WEAK)
    done = answerkey("lint", "golden.jsonl")
    assert done.returncode == 0
    assert done.stdout.startswith(
        "golden.jsonl:2: warning common-word [weak] the keyword “the” is a common word"
    )
    assert done.stdout.endswith("1 warning in 2 questions\n")
    assert answerkey("lint", "golden.jsonl", "--strict").returncode == 1


def test_errors_always_fail(answerkey: Any, golden: Any) -> None:
    golden(GOOD, WRONG)
    done = answerkey("lint", "golden.jsonl", "--json")
    assert done.returncode == 1
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["code"] == "forbidden-expected"
    assert (finding["line"], finding["id"], finding["severity"]) == (2, "wrong", "error")
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["lint", "audit"])
def test_a_file_that_cannot_be_read(answerkey: Any, golden: Any, command: str) -> None:
    done = answerkey(command, "missing.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    golden(GOOD).write_text('{"question": "a"}\nnot json\n')
    done = answerkey(command, "golden.jsonl", "--json")
    assert done.returncode == 2
    if command == "lint":
        # The line that can be read is checked all the same.
        assert {finding["line"] for finding in json.loads(done.stdout)["findings"]} == {1, 2}
        assert "1 problem to correct" in done.stderr
    else:
        assert done.stdout == ""
        assert "golden.jsonl:2:" in done.stderr


def test_audit(answerkey: Any, golden: Any) -> None:
    golden(GOOD, {"id": "hello", "question": "Hello"})
    done = answerkey("audit", "golden.jsonl", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert document["floor"] == 0.8
    assert {bot["name"]: bot["passed"] for bot in document["bots"]}["no-tool+echo"] == ["hello"]
    shown = answerkey("audit", "golden.jsonl")
    assert "passes 1 of 2 questions" in shown.stdout
    assert "no tool is expected; no keyword is expected" in shown.stdout
    assert answerkey("audit", "golden.jsonl", "--max-floor", "0.5").returncode == 1


def test_the_bundled_set_has_no_error_and_a_strong_key(answerkey: Any) -> None:
    assert answerkey("lint").returncode == 0
    document = json.loads(answerkey("audit", "--json").stdout)
    assert document["strength"]["value"] >= 0.95
    assert document["floor"] <= 0.65
    # Reciting the keywords of all other questions finds values that questions share; bots that say something else pass
    # nothing, except that there is no answer where there is none.
    bots = {bot["name"].partition("+")[2]: bot["passed"] for bot in document["bots"]}
    assert bots["echo"] == bots["silent"] == []
