"""Entailment models, with a tiny one: labels, batches, calibration and groundedness."""

import json
import re
from pathlib import Path

import pytest

from answerkey.cli.main import run_command
from answerkey.errors import ConfigError
from answerkey.evidence.links import load_cross_encoder

from .tiny_model import write_model

PREMISE = "the roof was repaired in spring"
ROWS = [
    {
        "id": f"r{number}",
        "question": "What of the roof?",
        "tool_calls": [],
        "sources": [{"id": "s", "text": f"{PREMISE} {number}"}],
        "answer": "The roof was repaired. A burglar stole paintings.",
        "sentences": [
            {"text": "The roof was repaired.", "supported": True},
            {"text": "A burglar stole paintings.", "supported": False},
            {"text": "Ask me more?", "supported": None},
        ],
    }
    for number in range(10)
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    words = re.findall(r"\w+|[.]", f"{PREMISE} a burglar stole paintings .".lower())
    write_model(tmp_path / "model", words)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "answerkey.toml").write_text('[grounded]\nmodel = "model"\n')
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_command([*arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_what_stands_in_the_premise_follows_from_it(project: Path) -> None:
    model = load_cross_encoder("model", project)
    pairs = [(PREMISE, "the roof was repaired"), (PREMISE, "a burglar stole paintings")] * 20
    found = model.probabilities(pairs)
    assert len(found) == 40
    assert all(value > 0.8 for value in found[::2])
    assert all(value < 0.05 for value in found[1::2])


def test_the_label_is_found_by_its_name(project: Path) -> None:
    write_model(project / "other", ["roof"], labels=("ENTAILMENT".lower(), "neutral", "contradiction"))
    model = load_cross_encoder("other", project)
    assert model.probabilities([("roof", "roof")])[0] > 0.7


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("model.onnx", "model.onnx is missing"),
        ("tokenizer.json", "tokenizer.json is missing"),
        ("config.json", "config"),
    ],
)
def test_a_folder_that_lacks_something_is_one_line(project: Path, gone: str, message: str) -> None:
    (project / "model" / gone).unlink()
    with pytest.raises(ConfigError, match=message):
        load_cross_encoder("model", project)


def test_wrong_files_are_one_line(project: Path) -> None:
    (project / "model" / "config.json").write_text('{"id2label": {"0": "yes", "1": "no"}}')
    with pytest.raises(ConfigError, match="none of the labels yes, no is called entailment"):
        load_cross_encoder("model", project)
    (project / "model" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        load_cross_encoder("model", project)
    with pytest.raises(ConfigError, match="no such folder"):
        load_cross_encoder("nowhere", project)


def test_groundedness_by_the_model(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, "score", "rows.jsonl", "--json", "--gate", "groundedness >= 0.4")
    document = json.loads(out)
    assert code == 0
    assert document["summary"]["metrics"]["groundedness"] == 0.5
    finding = document["results"][0]["findings"]["groundedness"]
    assert [claim["supported"] for claim in finding["claims"]] == [True, False]
    assert finding["reliability"].startswith("not calibrated")


def test_it_is_calibrated_by_one_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(
        capsys, "judge", "calibrate", "--sentences", "rows.jsonl", "-o", "calibration.json"
    )
    assert code == 0
    assert "on 20 labelled sentences it finds 100% of the supported ones" in out
    (project / "answerkey.toml").write_text('[grounded]\nmodel = "model"\ncalibration = "calibration.json"\n')
    _, out, _ = printed(capsys, "score", "rows.jsonl", "--json")
    finding = json.loads(out)["results"][0]["findings"]["groundedness"]
    assert finding["reliability"].startswith("on 20 labelled sentences it finds 100%")


def test_a_calibration_of_another_model_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "judge", "calibrate", "--sentences", "rows.jsonl", "-o", "calibration.json")
    write_model(project / "second", ["roof"])
    (project / "answerkey.toml").write_text(
        '[grounded]\nmodel = "second"\ncalibration = "calibration.json"\n'
    )
    code, _, err = printed(capsys, "score", "rows.jsonl")
    assert code == 2
    assert "calibrates 'model', not 'second'" in err


def test_a_gate_without_anybody_who_judges_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "answerkey.toml").write_text("")
    code, _, err = printed(capsys, "score", "rows.jsonl", "--gate", "groundedness >= 0.4")
    assert code == 2
    assert "needs a judge or an entailment model" in err
