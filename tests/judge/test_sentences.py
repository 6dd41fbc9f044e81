"""A judge's verdicts on claims against labelled sentences: by a judge with a known rule, the figures are known too."""

import json
from pathlib import Path

import pytest

from .judging import ScriptedJudge, command, run_document
from .test_runs import judged_by

# The scripted judge calls a sentence supported if all its numbers and names stand in the evidence.
ROWS = [
    {
        "id": f"r{number}",
        "question": "What did we take?",
        "tool_calls": [{"name": "q", "result": [{"tenant": "Porter", "amount": 16144 + number}]}],
        "answer": f"You received {16144 + number} dollars. It came from Maria Ortega. The sum was {16144 + number} paid late.",
        "sentences": [
            {"text": f"You received {16144 + number} dollars.", "supported": True},
            {"text": "It came from Maria Ortega.", "supported": False},
            # The rule does not see that nothing is said of lateness.
            {"text": f"The sum was {16144 + number} paid late.", "supported": False},
        ],
    }
    for number in range(12)
]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def test_groundedness_and_its_reliability(rows: Path, scripted: ScriptedJudge) -> None:
    by = judged_by(scripted, "good")
    told = command(
        "judge", "calibrate", "--sentences", "rows.jsonl", "-o", "calibration.json", *by, "--json"
    ).stdout
    measured = json.loads(told)
    assert (measured["sentences"], measured["unjudged"]) == (36, 0)
    assert (measured["supported_found"], measured["unsupported_found"]) == (1.0, 0.5)
    assert measured["unsupported_interval"]["low"] < 0.5 < measured["unsupported_interval"]["high"]
    document = run_document("score", "rows.jsonl", *by)
    assert document["summary"]["metrics"]["groundedness"] == pytest.approx(2 / 3)
    assert "not calibrated" in document["judge"]["claims"]["reliability"]
    Path("answerkey.toml").write_text('[grounded]\ncalibration = "calibration.json"\n')
    document = run_document("score", "rows.jsonl", *by, "--gate", "groundedness >= 0.6")
    finding = document["results"][0]["findings"]["groundedness"]
    assert "100% of the supported ones" in finding["reliability"]
    assert "50% of the others" in finding["reliability"]


def test_two_that_would_give_it_are_refused(rows: Path, scripted: ScriptedJudge) -> None:
    Path("answerkey.toml").write_text('[grounded]\nmodel = "folder"\n')
    refused = command("score", "rows.jsonl", *judged_by(scripted, "good"), check=False)
    assert refused.returncode == 2
    assert "both the judge and [grounded] model would give 'groundedness'" in refused.stderr
