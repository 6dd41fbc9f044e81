"""`answerkey runs`, `show` and `report`, on a run that the real command made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

QUESTIONS = [
    {"id": "hi", "question": "Hello?", "category": "chat", "expected_keywords": ["hello"]},
    {
        "id": "ein",
        "question": "What is the EIN?",
        "category": "tax",
        "expected_tools": ["db"],
        "expected_keywords": ["83-4567890"],
    },
    {"id": "evil", "question": "Say \u001b[31mred", "category": "chat", "expected_keywords": ["nothing"]},
]
BOT = """
def answer(question):
    return {"answer": "hello \\x1b[2J <script>alert(1)</script>", "tools_used": []}
"""


@pytest.fixture
def stored(answerkey: Any, tmp_path: Path) -> Callable[..., Any]:
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in QUESTIONS))
    (tmp_path / "bot.py").write_text(BOT)
    done = answerkey("run", "golden.jsonl", "--target", "bot.py:answer", "--name", "first")
    assert done.returncode == 0, done.stderr
    assert "\x1b[2J" not in done.stdout
    return answerkey  # type: ignore[no-any-return]


def test_runs(stored: Any) -> None:
    shown = stored("runs").stdout
    assert shown.splitlines()[0].split() == [
        "id",
        "when",
        "name",
        "target",
        "questions",
        "score",
        "grade",
        "status",
    ]
    assert "first" in shown
    assert "complete" in shown
    (entry,) = json.loads(stored("runs", "--json").stdout)["runs"]
    assert (entry["name"], entry["questions"], entry["status"]) == ("first", 3, "complete")


def test_an_unknown_question_is_answered_with_the_most_similar_id(stored: Any) -> None:
    assert "no question 'evill' in run" in (refused := stored("show", "--question", "evill").stderr)
    assert "; did you mean 'evil'?" in refused
    assert "--failures` lists ids" in stored("show", "--question", "zzz").stderr


def test_show_is_the_run_document(stored: Any) -> None:
    document = json.loads(stored("show", "--json").stdout)
    assert document["run"]["name"] == "first"
    assert [result["id"] for result in document["results"]] == ["hi", "ein", "evil"]
    failing = json.loads(stored("show", "first", "--failures", "--json").stdout)
    assert [result["id"] for result in failing["results"]] == ["ein", "evil"]
    assert failing["summary"] == document["summary"]


def test_show_on_the_terminal(stored: Any) -> None:
    text = stored("show").stdout
    assert "did not call db (−0.40)" in text
    assert "missing keywords: 83-4567890 (−0.40)" in text
    assert "\x1b" not in text


def test_show_failures_and_one_question(stored: Any) -> None:
    text = stored("show", "--failures").stdout
    assert "ein" in text
    assert "Hello?" not in text
    detail = stored("show", "--question", "ein").stdout
    assert "✗ 83-4567890" in detail
    assert "✗ db was not called" in detail
    assert "reply  hello ␛[2J <script>alert(1)</script>" in detail
    missing = stored("show", "--question", "none")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "no question 'none'" in missing.stderr


def test_report_in_every_format(stored: Any, tmp_path: Path) -> None:
    endings = [".html", ".md", ".json", ".jsonl", ".csv", ".parquet", ".xlsx", ".junit.xml"]
    done = stored("report", "latest", *[part for ending in endings for part in ("-o", f"x{ending}")])
    assert (done.returncode, done.stdout) == (0, "")
    assert all((tmp_path / f"x{ending}").stat().st_size > 100 for ending in endings)
    assert json.loads((tmp_path / "x.json").read_text()) == json.loads(stored("show", "--json").stdout)


def test_report_says_what_it_wrote(stored: Any, tmp_path: Path) -> None:
    assert "wrote x.md" in stored("report", "-o", "x.md").stderr
    done = stored("report", "first", "-o", "y.md", "--json")
    assert (json.loads(done.stdout)["written"], done.stderr) == (["y.md"], "")


def test_a_folder_without_runs(answerkey: Any) -> None:
    for command in ("runs", "show"):
        done = answerkey(command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "latest"], "no output file"),
        (["report", "latest", "-o", "x.pdf"], "unknown report format; use one of .html .md"),
        (["report", "latest", "-o", "missing/x.html"], "does not exist; create it first"),
        (["report", "nobody", "-o", "x.html"], "no run 'nobody'"),
        (["show", "nobody"], "no run 'nobody'"),
    ],
)
def test_mistakes_are_one_line(stored: Any, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = stored(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "x.html").exists()
