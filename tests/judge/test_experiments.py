"""`answerkey ab` with a judge: replies are graded while both targets are asked, and the grades decide."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .judging import ScriptedJudge, command, run_document

BOT = """
import time

SLEEP = 0.0

def knows(question):
    time.sleep(SLEEP)
    return f"The answer to {question!r} is Montrose"

def guesses(question):
    time.sleep(SLEEP)
    return knows(question) if "0 " in question else "I do not know, sorry"
"""
JUDGED = '[judge]\nown_canaries = false\n[scoring]\nquality = "judge"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    questions = [
        {"id": f"q{n}", "question": f"Question {n} of many?", "reference_answer": "It is in Montrose."}
        for n in range(60)
    ]
    (tmp_path / "golden.jsonl").write_text("\n".join(map(json.dumps, questions)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ab(scripted: ScriptedJudge, *more: str, model: str = "good") -> list[str]:
    judge = ["--judge", model, "--judge-base-url", scripted.base_url]
    targets = ["--a", "bot.py:knows", "--b", "bot.py:guesses"]
    return ["ab", "golden.jsonl", *targets, *judge, *more]


def test_the_judge_decides_an_experiment_whose_quality_it_is(project: Path, scripted: ScriptedJudge) -> None:
    (project / "answerkey.toml").write_text(JUDGED)
    found = run_document(*ab(scripted, "--early-stop", "--concurrency", "2"))
    assert found["verdict"] == "worse"
    assert found["stopped_early"]
    assert found["asked"] < 120
    quality = found["comparison"]["components"]["response_quality"]
    assert quality["base"] == 1.0
    assert quality["candidate"] < 0.5
    # The pairs were judged as well, once the asking had ended.
    assert found["judge"]["losses"] > found["judge"]["wins"] == 0
    shown = run_document("show", found["b"]["run"])
    assert shown["judge"]["judged"] == shown["summary"]["replies"]
    assert shown["summary"]["metrics"]["judge"] == pytest.approx(
        found["comparison"]["metrics"]["judge"]["candidate"], abs=0.2
    )


def test_an_interrupted_judged_experiment_goes_on_and_pays_nothing_twice(
    project: Path, scripted: ScriptedJudge
) -> None:
    (project / "answerkey.toml").write_text(JUDGED)
    (project / "bot.py").write_text(BOT.replace("SLEEP = 0.0", "SLEEP = 0.1"))
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", *ab(scripted, "--concurrency", "2")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(6000):
        if scripted.count > 30:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    run = errors.split("--resume ")[1].split()[0]
    found = run_document("ab", "--resume", run)
    assert (found["asked"], found["comparison"]["paired"]) == (120, 60)
    assert found["verdict"] == "worse"
    graded = [call["data"]["fields"] for call in scripted.calls if "reply" in call["data"]["fields"]]
    # Of the same question and reply, the judge was asked once by each run (claims aside, of which there are none).
    asked = [(fields["question"], fields["reply"]) for fields in graded if "Question" in fields["question"]]
    assert len(asked) <= 120
    assert (
        len(set(asked))
        == len({fields["question"] for fields in graded if "Question" in fields["question"]}) + 54
    )


def test_a_budget_is_shared_out(project: Path, scripted: ScriptedJudge) -> None:
    found = run_document(
        *ab(scripted, "--judge-price", "1000/1000", "--judge-budget", "30", "--sample", "20")
    )
    costs = [found["judge"]["cost"]]
    costs += [run_document("show", found[arm]["run"])["judge"]["cost"] for arm in ("a", "b")]
    assert all(0 < cost <= 10 for cost in costs)
    assert sum(costs) <= 30


def test_a_judge_that_cannot_be_asked_leaves_no_runs(project: Path, scripted: ScriptedJudge) -> None:
    arguments = ("ab", "golden.jsonl", "--a", "bot.py:knows", "--b", "bot.py:guesses", "--judge", "no-such")
    ended = command(*arguments, "--judge-base-url", scripted.base_url, check=False)
    assert ended.returncode == 2
    assert "nothing was judged or asked" in ended.stderr
    assert run_document("runs")["runs"] == []


def test_a_judge_that_failed_its_canaries_stops_every_way_of_refusing_a_worse_version(
    project: Path, scripted: ScriptedJudge
) -> None:
    (project / "answerkey.toml").write_text(JUDGED)
    same = ["--b", "bot.py:knows", "--name", "gullible"]
    arguments = ab(scripted, *same, "--fail-on", "regression", model="gullible")
    failed = command(*arguments, "--json", check=False)
    assert failed.returncode == 1
    [gate] = json.loads(failed.stdout)["gates"]
    assert gate["value"] == "no clear difference"
    assert "the judge is not reliable" in gate["reason"]
    found = run_document(*ab(scripted, "--b", "bot.py:knows", "--name", "good", "--gate", "no regression"))
    assert [gate["passed"] for gate in found["gates"]] == [True]

    def compared(base: str, candidate: str, *more: str) -> str:
        return command("compare", base, candidate, *more, check=False).stdout

    # The judge of either run is behind the difference; and with more than two, each run says why it fails.
    assert "FAILED: no regression" in compared("good-a", "gullible-a", "--fail-on", "regression")
    of_the_base = compared("gullible-a", "good-a", "--gate", "no regression")
    assert "the judge of the baseline is not reliable" in of_the_base
    many = " ".join(compared("good-a", "good-b", "gullible-a", "--gate", "score >= 0.5").split())
    assert re.search(
        r"gate FAILED on gullible-a: score >= 0\.5: the value is [01]\.\d+ \(the judge is not reliable", many
    )
