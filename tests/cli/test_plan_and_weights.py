import json
import random
from pathlib import Path

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
    shown = answerkey("plan")
    assert "Questions needed for 80% power" in shown.stdout
    assert "Flaky questions" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "golden.jsonl", "--difference", 5), "0.05 is five points"),
        (("plan", "golden.jsonl", "--power", 1), "--power 1"),
        (("plan", "missing.jsonl"), "missing.jsonl"),
        (("plan", "a", "b", "c"), "from one run or from two"),
        (("weights", "missing.jsonl"), "missing.jsonl: no such file"),
        (("weights", "golden.jsonl"), "golden.jsonl:1: has no verdict"),
    ],
)
def test_mistakes(folder: Path, answerkey, arguments: tuple[object, ...], words: str) -> None:
    done = answerkey(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_weights_from_a_labelled_file(folder: Path, answerkey) -> None:
    source = random.Random(1)
    lines = []
    for i in range(300):
        quality = source.choice([0.0, 0.5, 1.0])
        row = {
            "id": f"q{i}",
            "components": {"tool_usage": float(source.random() < 0.5), "response_quality": quality},
        }
        row["components"]["error_handling"] = {"score": 1.0}
        row["verdict"] = source.random() < 0.1 + 0.8 * quality
        lines.append(json.dumps(row))
    (folder / "labelled.jsonl").write_text("\n".join(lines))
    done = answerkey("weights", "labelled.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["fitted"]["response_quality"] > 0.8
    assert document["verdict"] == "better"
    assert document["constant"] == ["error_handling"]
    shown = answerkey("weights", "labelled.jsonl").stdout
    assert "[scoring.weights]" in shown


RATED = """
import random


def answer(question):
    number = int(question.split()[-1].rstrip("?"))
    luck = random.Random(number)
    return {
        "answer": f"The answer is {number}" if luck.random() < 0.6 else "It depends on many things.",
        "tools_used": ["lookup"] if luck.random() < 0.5 else [],
        "response_id": f"r-{number}",
    }
"""


def test_weights_from_the_stores_feedback(folder: Path, answerkey) -> None:
    """Users thumb up what answers them, whichever tool was called."""
    (folder / "rated.py").write_text(RATED)
    numbers = range(1000, 1200)
    questions = [
        {
            "id": f"q{n}",
            "question": f"What is {n}?",
            "expected_tools": ["lookup"],
            "expected_keywords": [str(n)],
        }
        for n in numbers
    ]
    (folder / "rated.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    run = json.loads(answerkey("run", "rated.jsonl", "--target", "rated.py:answer", "--json").stdout)
    said = {result["id"]: result for result in run["results"]}
    source = random.Random(2)
    thumbs = []
    for n in numbers:
        answered = said[f"q{n}"]["components"]["response_quality"]["score"] == 1.0
        thumbs.append({"response_id": f"r-{n}", "value": source.random() < (0.9 if answered else 0.15)})
    (folder / "thumbs.jsonl").write_text("".join(json.dumps(thumb) + "\n" for thumb in thumbs))
    before = answerkey("weights")
    assert before.returncode == 2
    assert "0 verdicts (0 positive) are too few" in before.stderr
    assert answerkey("feedback", "import", "jsonl", "thumbs.jsonl").returncode == 0
    done = answerkey("weights", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["verdicts"] == 200
    assert found["fitted"]["response_quality"] > 0.8
    assert found["fitted"]["tool_usage"] < 0.2
    # Better than 40/40/20 on questions left out of the fit, and nothing failed: errors say nothing.
    assert found["verdict"] == "better"
    assert found["constant"] == ["error_handling"]
    shown = answerkey("weights").stdout
    assert "200" in shown
    assert "[scoring.weights]" in shown
