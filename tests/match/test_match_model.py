"""`[match] model`: an entailment model decides for `smart`, in the scores and in what a run keeps."""

import json
from pathlib import Path

import pytest

from answerkey.cli.main import run_command
from answerkey.config import load_settings
from answerkey.errors import ConfigError
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import details
from answerkey.scorers.components import ResponseQuality
from evidence.tiny_model import write_model

QUESTION = Question(id="q", question="roof repaired", expected_keywords=("spring", "burglar"))
REPLY = Reply(text="the roof was not repaired in spring")


def test_the_model_decides_and_the_features_show_where(tmp_path: Path) -> None:
    write_model(tmp_path / "model", ["the", "roof", "was", "not", "repaired", "in", "spring"])
    scorer = ResponseQuality("smart", model="model", folder=tmp_path)
    score = scorer.score(QUESTION, REPLY)
    listed = details(score)
    assert (listed["found"], listed["missing"]) == (["spring"], ["burglar"])
    assert listed["matches"][0]["text"] == "spring"
    assert scorer.version == ResponseQuality("smart").version + "/model"


def test_it_is_a_setting_that_a_run_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "model", ["the", "roof", "was", "not", "repaired", "in", "spring"])
    row = {
        "question": QUESTION.question,
        "expected_keywords": list(QUESTION.expected_keywords),
        "answer": REPLY.text,
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (tmp_path / "answerkey.toml").write_text('[scoring]\nmatch = "smart"\n[match]\nmodel = "model"\n')
    assert run_command(["score", "rows.jsonl", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["results"][0]["components"]["response_quality"]["score"] == 0.5


def test_a_setting_that_there_is_not_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answerkey.toml"
    path.write_text('[match]\nmodle = "model"\n')
    with pytest.raises(ConfigError, match=r"unknown setting 'modle' in \[match\]; did you mean 'model'"):
        load_settings(tmp_path)
