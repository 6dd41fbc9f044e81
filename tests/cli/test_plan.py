import json
from pathlib import Path
from typing import Any

import pytest

BOT = """
import itertools
TRIAL = itertools.count()


def steady(question):
    return "The answer is " + question.split()[-1].rstrip("?")


def moody(question):
    number = int(question.split()[-1].rstrip("?"))
    return "No idea." if number % 5 == 0 and next(TRIAL) % 2 else steady(question)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    questions = [
        {"id": f"q{i}", "question": f"What is {i}?", "expected_keywords": [str(i)]} for i in range(100, 141)
    ]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    return tmp_path


def test_a_plan_from_a_guess_a_run_and_two_runs(folder: Path, answerkey) -> None:
    guess = json.loads(answerkey("plan", "golden.jsonl", "--json").stdout)
    assert (guess["source"], guess["questions"]) == ("guess", 41)
    assert guess["needed"][0]["questions"] == pytest.approx(285, rel=0.15)
    run = ("run", "golden.jsonl", "--target", "bot.py:moody", "--repeat", 4, "--concurrency", 1, "--json")
    for _ in range(2):
        assert answerkey(*run).returncode == 0
    one = json.loads(answerkey("plan", "latest", "--json").stdout)
    assert one["source"] == "one run"
    assert one["variance"]["between_repeats"] > 0
    assert {row["id"] for row in one["flaky"]} <= {f"q{i}" for i in range(100, 141, 5)}
    assert one["flaky"]
    questions = [row["questions"] for row in one["needed"]]
    assert questions == sorted(questions, reverse=True)
    two = json.loads(answerkey("plan", "latest~1", "latest", "--difference", 0.1, "--json").stdout)
    assert two["source"] == "two runs"
    assert [scenario["name"] for scenario in two["scenarios"]] == ["one way", "as these two"]
    assert two["needed"] == two["scenarios"][0]["needed"]
    assert "This plan is a guess: 41 are too few" in answerkey("plan", "latest~1", "latest").stdout
    same = json.loads(answerkey("plan", "latest", "--margin", 0.02, "--json").stdout)
    # Even if nothing changes.
    assert same["same"]["least"] == 117
    assert same["wanted"]["margin"] == 0.02
    shown = answerkey("plan")
    assert "Questions needed for 80% power" in shown.stdout
    assert "Flaky questions" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "golden.jsonl", "--difference", 5), "0.05 is 5 points"),
        (("plan", "golden.jsonl", "--power", 1), "--power 1"),
        (("plan", "golden.jsonl", "--margin", 2), "0.02 is 2 points"),
        (("plan", "missing.jsonl"), "missing.jsonl"),
        (("plan", "a", "b", "c"), "one run or two runs"),
    ],
)
def test_mistakes(folder: Path, answerkey, arguments: tuple[object, ...], words: str) -> None:
    done = answerkey(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_difference_needs_one_number_of_questions(command: Any, write_rows: Any) -> None:
    golden = write_rows(
        "g.jsonl", *({"question": f"Price {n}?", "expected_keywords": [str(n)]} for n in range(60))
    )
    plans = {
        wanted: command("plan", golden, "--difference", wanted, "--json").document
        for wanted in (0.1, 0.05, 0.01)
    }
    tables = [plan["table"] for plan in plans.values()]
    assert tables[0] == tables[1] == tables[2]
    by_difference = {row["difference"]: row["questions"] for row in tables[0]}
    for wanted, plan in plans.items():
        assert plan["needed"][0]["questions"] == by_difference[wanted]
    # The textbook's size of a normal test: (1.96 + 0.84)² · 0.3² / 0.01².
    assert abs(by_difference[0.01] - 7064) < 80
