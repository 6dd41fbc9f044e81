"""The small real model behind llama.cpp's server: it needs no key and no network, and it is a weak judge."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from answerkey.errors import ConfigError, UsageError
from answerkey.judge.client import find_weights, local_settings
from answerkey.judge.session import Judge
from answerkey.model.options import JudgeSettings

from .judging import command, run_document


def test_weights_come_from_the_package_or_a_file(tmp_path: Path) -> None:
    assert find_weights().suffix == ".gguf"
    own = tmp_path / "mine.gguf"
    own.write_bytes(b"x")
    assert find_weights(own) == own
    with pytest.raises(UsageError, match=r"no such model file; give a \.gguf file"):
        find_weights(tmp_path / "none.gguf")


def test_local_settings_fit_the_small_model() -> None:
    settings = local_settings(JudgeSettings(model="local", concurrency=50), "http://127.0.0.1:1/v1")
    assert (settings.concurrency, settings.api_key_env, settings.max_tokens) == (1, "", 400)
    assert settings.max_chars <= 8000
    with pytest.raises(ConfigError, match="cannot be part of a panel"):
        Judge(JudgeSettings(model=("local", "gpt-4o")))


def test_a_broken_model_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"this is no model")
    ended = command("judge", "serve", "--model", str(tmp_path / "broken.gguf"), "--port", "0", check=False)
    assert ended.returncode == 2
    assert "the local judge does not start with broken.gguf" in ended.stderr.splitlines()[-1]


@pytest.mark.slow
def test_the_local_judge_grades_and_calibration_shows_how_weak_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = [
        ("What is our address?", "900 S 9th St, Montrose", "12 Oak Avenue, Denver"),
        ("What was the rent in August?", "$16,144", "$2,000"),
    ]
    questions, labels = [], []
    for number, (question, right, _) in enumerate(facts):
        for kind in ("right", "wrong"):
            identity = f"{kind}-{number}"
            questions.append({"id": identity, "question": f"{question} ({kind})", "reference_answer": right})
            labels.append({"id": identity, "correct": kind == "right"})
    answers = {
        f"{q} ({kind})": (r if kind == "right" else w) for q, r, w in facts for kind in ("right", "wrong")
    }
    (tmp_path / "bot.py").write_text(
        f"ANSWERS = {answers!r}\ndef answer(question): return ANSWERS[question]\n"
    )
    for name, rows in (("golden.jsonl", questions), ("labels.jsonl", labels)):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
    # Fifty more calls take this model minutes.
    (tmp_path / "answerkey.toml").write_text("[judge]\nown_canaries = false\n")
    document = run_document(
        *("run", "golden.jsonl", "--target", "bot.py:answer", "--judge", "local"),
        *("--judge-rubric", "correctness"),
    )
    judge = document["judge"]
    # Delimiters are random, so this weak model's verdicts vary: every item has a verdict or says why it has none.
    assert judge["judged"] + judge["unscored"] == 4
    assert judge["judged"] >= 1
    assert len(judge["canaries"]) == 4
    assert all(canary["reason"] for canary in judge["canaries"])
    assert judge["reliable"] is all(canary["passed"] for canary in judge["canaries"])
    warned = any("the judge's scores are unreliable: local" in line for line in document["warnings"])
    assert warned is not judge["reliable"]
    calibration = json.loads(
        command("judge", "calibrate", "latest", "--labels", "labels.jsonl", "--json").stdout
    )
    assert calibration["labelled"] == judge["judged"]
    # So few labels cannot show that a judge is good, whatever it said.
    kappa = calibration["kappa"]
    assert kappa is None or kappa["interval"]["low"] < 0.4
    assert calibration["warnings"]


@pytest.mark.slow
def test_the_server_is_started_with_one_command() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", "judge", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("judge at ").strip()
        models = json.load(urllib.request.urlopen(f"{address}/models"))
        assert models["data"][0]["id"] == "local"
        assert f"--judge-base-url {address}" in process.stdout.readline()
    finally:
        process.terminate()
        assert process.wait(timeout=300) == 0
        process.stdout.close()
