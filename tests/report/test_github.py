import io
from pathlib import Path

import msgspec
import pytest

from answerkey.model.run import GateResult, Run
from answerkey.report.documents import annotations, write_to_github


def test_failed_gates_come_first_and_ten_are_the_most(golden_run: Run) -> None:
    gates = tuple(GateResult(f"score >= 0.{i}", i % 2 == 0, 0.5) for i in range(30))
    lines = annotations(msgspec.structs.replace(golden_run, gates=gates))
    assert len(lines) == 10
    assert lines[0] == "::error title=Gate failed::score >= 0.1: the value is 0.500"
    assert lines[-1].startswith("::notice")


def test_a_reply_cannot_command_the_runner(hostile_run: Run) -> None:
    commanding = "x\n::set-env name=PATH::/evil\r::error::forged%0A::stop-commands::x"
    results = [
        msgspec.structs.replace(
            result,
            question=msgspec.structs.replace(result.question, id=commanding),
            scorecard=msgspec.structs.replace(result.scorecard, passed=False),
        )
        for result in hostile_run.results
    ]
    changed = msgspec.structs.replace(hostile_run, results=results, gates=())
    written = io.StringIO()
    write_to_github(changed, written)
    lines = written.getvalue().splitlines()
    assert lines
    assert all(line.startswith("::warning title=Failed%3A ") for line in lines)
    assert all("%0A" not in line.replace("%250A", "") for line in lines)
    assert "\x1b" not in written.getvalue()


def test_the_job_summary_is_appended(
    golden_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "summary.md"
    place.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
    write_to_github(golden_run, io.StringIO())
    assert place.read_text().startswith("before\n- ❌ tax.score")


def test_a_summary_that_cannot_be_written_is_a_warning(
    golden_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    written = io.StringIO()
    write_to_github(golden_run, written)
    assert "cannot write the job summary" in written.getvalue()
