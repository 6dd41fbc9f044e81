"""What a command reads is never overwritten by what it writes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROW = {"id": "a", "question": "Yes or no?", "expected_keywords": ["yes"], "answer": "Yes."}
GOLDEN = {"id": "a", "question": "Yes or no?", "expected_keywords": ["yes"]}


@pytest.fixture
def files(tmp_path: Path, write_rows: Any) -> dict[str, Path]:
    (tmp_path / "dd").mkdir()
    found = {
        "log": write_rows("a.jsonl", ROW),
        "golden": write_rows("gg.jsonl", GOLDEN),
        "inside": write_rows("dd/a.jsonl", ROW),
    }
    (tmp_path / "link.jsonl").symlink_to(found["log"])
    os.link(found["log"], tmp_path / "hard.jsonl")
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "a.jsonl", "-o", "a.jsonl"],
        ["score", "a.jsonl", "-o", "link.jsonl"],
        ["score", "a.jsonl", "-o", "hard.jsonl"],
        ["score", "link.jsonl", "-o", "new.html", "-o", "a.jsonl"],
        ["score", "*.jsonl", "-o", "hard.jsonl"],
        ["score", "dd", "-o", "dd/a.jsonl"],
        ["score", "a.jsonl", "--questions", "gg.jsonl", "-o", "gg.jsonl"],
        ["run", "gg.jsonl", "--target", "replay:a.jsonl", "-o", "gg.jsonl"],
        ["run", "gg.jsonl", "--target", "replay:a.jsonl", "-o", "a.jsonl"],
        ["export", "jsonl", "gg.jsonl", "-o", "gg.jsonl"],
        ["import", "hf", "a.jsonl", "-o", "hard.jsonl"],
    ],
    ids=" ".join,
)
def test_an_output_that_is_read_is_refused(
    command: Any, tmp_path: Path, files: dict[str, Path], arguments: list[str]
) -> None:
    before = {path.name: path.read_bytes() for path in files.values()}
    outcome = command(*arguments)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert f"-o {arguments[-1]}: would overwrite the input" in outcome.err
    assert {path.name: path.read_bytes() for path in files.values()} == before
    assert not (tmp_path / "new.html").exists()


def test_a_replay_and_a_golden_set_of_the_configuration_are_not_overwritten(
    command: Any, tmp_path: Path, files: dict[str, Path]
) -> None:
    (tmp_path / "answerkey.toml").write_text(
        "questions = 'gg.jsonl'\ntarget = 'old'\n[targets.old]\nreplay = 'a.jsonl'\n"
    )
    for name in ("gg.jsonl", "a.jsonl"):
        assert "would overwrite the input" in command("run", "-o", name).err
    assert json.loads(files["log"].read_text()) == ROW
    assert command("run", "-o", "other.jsonl").code == 0


def test_somebody_elses_file_with_the_side_files_name_stays(
    command: Any, tmp_path: Path, write_rows: Any
) -> None:
    theirs = write_rows("log.bad.jsonl", {"file": "x", "line": 1, "reason": "y", "mine": True})
    before = theirs.read_bytes()
    write_rows("log.jsonl", ROW, "{broken")
    outcome = command("score", "log.jsonl", "--json")
    assert theirs.read_bytes() == before
    assert "log.bad.2.jsonl" in outcome.document["warnings"][-1]
    assert json.loads((tmp_path / "log.bad.2.jsonl").read_text())["line"] == 2


def test_a_side_file_of_an_earlier_scoring_goes_when_the_log_is_repaired(
    command: Any, tmp_path: Path, write_rows: Any
) -> None:
    write_rows("log.jsonl", ROW, "{broken")
    side = tmp_path / "log.bad.jsonl"
    command("score", "log.jsonl")
    assert side.exists()
    # One that is there is no part of a log.
    assert command("score", ".", "--json").document["summary"]["replies"] == 1
    write_rows("log.jsonl", ROW)
    assert command("score", "log.jsonl").code == 0
    assert not side.exists()
    write_rows("log.bad.jsonl", ROW)
    assert command("score", "log.jsonl").code == 0
    assert json.loads(side.read_text()) == ROW


def test_a_log_with_the_side_files_name_stays(command: Any, tmp_path: Path, write_rows: Any) -> None:
    log = write_rows("log.bad.jsonl", ROW, "{broken")
    before = log.read_bytes()
    assert command("score", "log.bad.jsonl", "-o", "out.bad.jsonl").code == 0
    assert command("score", "log.bad.jsonl").code == 0
    assert log.read_bytes() == before
    assert "score" in json.loads((tmp_path / "out.bad.jsonl").read_text())
    assert "reason" in json.loads((tmp_path / "out.bad.2.jsonl").read_text())
