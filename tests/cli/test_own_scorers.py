"""Scorers and checks of one's own on the command line: in weights, gates, reports, comparisons, rescoring and pages."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import answerkey

TOML = """\
target = "bot.py:answer"
[scoring.weights]
tool_usage = 0.3
response_quality = 0.3
error_handling = 0.2
polite = 0.1
checks = 0.1
[scorers.polite]
python = "my_scorers.py:polite"
[scorers.shouting]
python = "my_scorers.py:shouting"
direction = "lower"
"""
SCORERS = """\
import answerkey

def polite(question, reply):
    return answerkey.Score("polite", float("please" in reply.text), "looked for please")

def shouting(question, reply):
    return sum(map(str.isupper, reply.text)) / len(reply.text)
"""
BOT = """\
import os
def answer(question):
    return {"answer": os.environ.get("SAYS", "please wait, it is 42"), "tools_used": []}
"""
CHECKS = [{"contains": "42", "name": "number"}, {"max_words": 5, "name": "short"}]


@pytest.fixture
def project(tmp_path: Path, write_rows: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "answerkey.toml").write_text(TOML)
    (tmp_path / "my_scorers.py").write_text(SCORERS)
    (tmp_path / "bot.py").write_text(BOT)
    questions = [{"id": f"q{n}", "question": f"What is {n}?", "checks": CHECKS} for n in range(12)]
    write_rows("golden.jsonl", *questions)
    return tmp_path


def test_they_stand_in_the_run_document_and_in_gates(project: Path, command: Any) -> None:
    ended = command(
        *("run", "golden.jsonl", "--json", "--gate", "polite >= 0.9", "--gate", "checks >= 0.5"),
        *("--gate", "shouting < 0.1", "--gate", "every category polite >= 1"),
    )
    assert ended.code == 0, ended.err
    document = ended.document
    assert document["summary"]["score"] == 1.0
    assert document["summary"]["components"]["polite"] == 1.0
    assert document["summary"]["metrics"]["shouting"] == 0.0
    assert document["run"]["directions"]["shouting"] == "lower"
    result = document["results"][0]
    assert result["components"]["polite"]["reason"] == "looked for please"
    assert [check["name"] for check in result["components"]["checks"]["checks"]] == ["number", "short"]
    refused = command("run", "golden.jsonl", "--gate", "polit >= 0.9")
    assert refused.code == 2
    assert "unknown name 'polit'; did you mean polite" in refused.err


def test_every_report_has_them(project: Path, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYS", "IT IS 42 AND NO MORE THAN THAT")
    files = ["r.html", "r.md", "r.junit.xml", "r.csv", "r.parquet", "r.xlsx", "r.json", "r.jsonl"]
    ended = command("run", "golden.jsonl", *(part for name in files for part in ("-o", name)))
    assert ended.code == 0, ended.err
    short = "short: 8 words, at most 5"
    assert "polite: looked for please (−0.10)" in ended.out
    assert short in ended.out
    assert "shouting" in ended.out
    for name in ("r.html", "r.md", "r.junit.xml"):
        text = (project / name).read_text()
        assert "polite" in text, name
        assert "shouting" in text, name
    assert short in (project / "r.html").read_text()
    assert short in (project / "r.md").read_text()
    (row, *_) = csv.DictReader((project / "r.csv").read_text(encoding="utf-8-sig").splitlines())
    assert (row["polite"], row["checks"]) == ("0.0", "0.5")
    assert json.loads(row["metrics"])["shouting"] > 0.5
    (read, *_) = parquet.read_table(project / "r.parquet").to_pylist()
    assert read["components"]["polite"]["score"] == 0.0
    assert [check["score"] for check in read["checks"]] == [1.0, 0.0]
    assert read["metrics"]["shouting"] > 0.5


def test_comparison_takes_the_direction_from_the_run(
    project: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("run", "golden.jsonl", "--name", "calm").code == 0
    monkeypatch.setenv("SAYS", "IT IS 42")
    assert command("run", "golden.jsonl", "--name", "loud").code == 0
    # The stored runs compare without their scorers.
    (project / "my_scorers.py").unlink()
    (project / "answerkey.toml").unlink()
    document = command("compare", "calm", "loud", "--json").document
    assert document["metrics"]["shouting"]["verdict"] == "worse"
    assert document["components"]["polite"]["verdict"] == "worse"


def test_rescoring_follows_an_edited_scorer(project: Path, command: Any) -> None:
    assert command("run", "golden.jsonl").code == 0
    (project / "my_scorers.py").write_text(SCORERS.replace('"please"', '"thanks"'))
    document = command("rescore", "latest", "--json").document
    assert document["summary"]["components"]["polite"] == 0.0
    assert document["summary"]["score"] == 0.9


def test_a_scorer_that_breaks_lowers_the_coverage_and_fails_gates(project: Path, command: Any) -> None:
    broken = SCORERS.replace(
        "return answerkey", "if '7' in question.question: raise ValueError('no 7')\n    return answerkey"
    )
    (project / "my_scorers.py").write_text(broken)
    ended = command("run", "golden.jsonl", "--json", "--gate", "score >= 0.5")
    assert ended.code == 1
    document = ended.document
    assert document["summary"]["coverage"] == pytest.approx(11 / 12)
    assert document["summary"]["unscored"] == {"polite: raised ValueError: no 7": 1}
    assert document["summary"]["score"] == 1.0
    (gate,) = document["gates"]
    assert (gate["passed"], gate["value"]) == (False, 1.0)
    assert gate["reason"] == "coverage is 91.6%; allow that with a gate such as coverage >= 0.91"
    assert any(
        "not scored: polite: raised ValueError: no 7 (1 of 12)" in line for line in document["warnings"]
    )
    allowed = command("run", "golden.jsonl", "--gate", "score >= 0.5", "--gate", "coverage >= 0.9")
    assert allowed.code == 0, allowed.err


def test_a_scorer_that_is_not_there_is_one_line_and_nothing_is_asked(project: Path, command: Any) -> None:
    (project / "my_scorers.py").unlink()
    ended = command("run", "golden.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert "[scorers.polite] there is no file" in ended.err
    assert not (project / ".answerkey").exists()


def test_through_the_library(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)

    def helpful(question: answerkey.Question, reply: answerkey.Reply) -> float:
        return 0.5

    run = answerkey.evaluate("golden.jsonl", scorers=[helpful])
    assert run.summary.metrics["helpful"] == 0.5
    assert run.summary.components["polite"] == 1.0


def test_the_pages_show_them(project: Path, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from answerkey.store import open_store
    from server.serving import serving

    monkeypatch.setenv("SAYS", "IT IS 42 AND NO MORE THAN THAT")
    run = command("run", "golden.jsonl", "--json").document["run"]["id"]
    with serving(lambda: open_store(str(project / ".answerkey" / "answerkey.db"))) as client:
        home = " ".join(client.get("/").text.split())
        assert '<a href="/?sort=-polite">Polite</a>' in home
        # Checks are half met, and nothing polite was said.
        assert '50% </td> <td class="num c-score"> 0% </td>' in home
        page = client.get(f"/runs/{run}").text
        assert "Polite" in page
        assert "shouting" in page
        question = client.get(f"/runs/{run}/questions/q1").text
        assert "looked for please" in question
        assert "8 words, at most 5" in question


def test_what_a_scorer_prints_goes_to_stderr(project: Path, command: Any) -> None:
    loud = SCORERS.replace(
        "def polite(question, reply):\n", "def polite(question, reply):\n    print('scored')\n"
    )
    (project / "my_scorers.py").write_text("print('loaded')\n" + loud)
    ended = command("run", "golden.jsonl", "--json")
    assert ended.code == 0, ended.err
    assert ended.document["summary"]["components"]["polite"] == 1.0
    assert ended.err.count("scored") == 12
    answers = [{"id": f"q{n}", "answer": "please wait, it is 42"} for n in range(12)]
    (project / "log.jsonl").write_text("\n".join(map(json.dumps, answers)))
    ended = command("score", "log.jsonl", "--questions", "golden.jsonl", "--json", "--processes", "1")
    assert ended.code == 0, ended.err
    assert ended.document["summary"]["components"]["polite"] == 1.0
    assert ended.err.count("scored") >= 12


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (("run", "golden.jsonl"), "summary"),
        (("ab", "golden.jsonl", "--a", "bot.py:answer", "--b", "bot.py:answer"), "verdict"),
        (("ask", "q1", "--questions", "golden.jsonl"), "scorecard"),
    ],
)
def test_what_a_library_writes_to_stdout_goes_to_stderr(
    project: Path, command: Any, arguments: tuple[str, ...], key: str
) -> None:
    loud = SCORERS.replace(
        "def polite(question, reply):\n",
        "def polite(question, reply):\n    import os\n    os.write(1, b'raylet')\n    os.system('echo child')\n",
    )
    (project / "my_scorers.py").write_text(loud)
    ended = command(*arguments, "--json")
    assert ended.code == 0, ended.err
    assert ended.document[key]
    assert "raylet" in ended.err
    assert "child" in ended.err


def test_what_a_scorer_leaves_open_is_written_when_the_command_ends(tmp_path: Path) -> None:
    (tmp_path / "answerkey.toml").write_text('[scorers.noting]\npython = "noting.py:noting"\n')
    (tmp_path / "noting.py").write_text(
        'notes = open("notes.txt", "w")\ndef noting(question, reply):\n    notes.write(reply.text)\n    return 1.0\n'
    )
    row = {"id": "a", "question": "What is it?", "expected_keywords": ["42"], "answer": "It is 42."}
    (tmp_path / "log.jsonl").write_text(json.dumps(row))
    command = [sys.executable, "-m", "answerkey", "score", "log.jsonl"]
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert "It is 42." in (tmp_path / "notes.txt").read_text()
