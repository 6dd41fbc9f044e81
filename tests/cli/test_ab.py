"""`answerkey ab` through the real command: interleaving, early stop, interruption and going on."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

BOT = """
import random, time, json, threading

SLEEP = 0.0
LOCK = threading.Lock()


def _note(arm, question):
    with LOCK, open("asked.log", "a") as file:
        file.write(f"{arm} {question}\\n")


def good(question):
    _note("a", question)
    time.sleep(SLEEP)
    return "The answer is " + question.split()[-1].rstrip("?")


def bad(question):
    _note("b", question)
    time.sleep(SLEEP)
    number = int(question.split()[-1].rstrip("?"))
    return "I do not know." if number % 2 else good_text(number)


def good_text(number):
    return f"The answer is {number}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    questions = [
        {"id": f"q{i}", "question": f"What is {i}?", "expected_keywords": [str(i), f"answer is {i}"]}
        for i in range(100, 180)
    ]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    return tmp_path


def test_targets_are_interleaved_in_random_order(folder: Path, answerkey) -> None:
    done = answerkey(
        "ab",
        "golden.jsonl",
        "--a",
        "bot.py:good",
        "--b",
        "bot.py:bad",
        "--concurrency",
        1,
        "--seed",
        5,
        "--json",
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["verdict"] == "worse"
    assert document["comparison"]["paired"] == 80
    assert document["asked"] == document["planned"] == 160
    lines = (folder / "asked.log").read_text().splitlines()
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    # Each question goes to both before the next one, first to either.
    assert all(one.split(" ", 1)[1] == two.split(" ", 1)[1] for one, two in pairs)
    firsts = [one[0] for one, _ in pairs]
    assert 20 < firsts.count("a") < 60
    order = [one.split()[-1] for one, _ in pairs]
    assert order != sorted(order)
    runs = json.loads(answerkey("runs", "--json").stdout)["runs"]
    assert {run["name"] for run in runs} == {"ab-a", "ab-b"}
    again = answerkey("compare", document["a"]["run"], document["b"]["run"], "--json")
    assert json.loads(again.stdout)["difference"] == document["comparison"]["difference"]


def test_early_stop_asks_less_and_says_so(folder: Path, answerkey) -> None:
    done = answerkey(
        "ab", "golden.jsonl", "--a", "bot.py:good", "--b", "bot.py:bad", "--concurrency", 2, "--early-stop", "--json",
        "--fail-on", "regression",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["stopped_early"]
    assert document["asked"] < 160
    assert document["sequential"]["verdict"] == document["verdict"] == "worse"
    assert document["sequential"]["p_value"] <= 0.05
    assert document["sequential"]["high"] < 0
    # One verdict, the test's, also in the comparison.
    comparison = document["comparison"]
    assert comparison["verdict"] == "worse"
    assert comparison["difference"]["p_value"] == document["sequential"]["p_value"]
    assert any("stopped early" in reason for reason in comparison["reasons"])
    # Interleaved, so that latencies are tested.
    assert comparison["latency_ms"]["p_value"] is not None
    shown = answerkey("ab", "golden.jsonl", "--a", "bot.py:good", "--b", "bot.py:bad", "--early-stop").stdout
    assert shown.count("interval") == 1 + shown.count("95% interval")
    assert len([line for line in shown.splitlines() if line.startswith((" worse ", " no clear "))]) == 1


def test_two_equal_targets_are_inconclusive(folder: Path, answerkey) -> None:
    done = answerkey(
        "ab",
        "golden.jsonl",
        "--a",
        "bot.py:good",
        "--b",
        "bot.py:good",
        "--early-stop",
        "--fail-on",
        "inconclusive",
    )
    assert done.returncode == 4, done.stderr
    assert "no clear difference" in done.stdout


def test_an_interrupted_experiment_is_resumed(folder: Path, answerkey) -> None:
    (folder / "bot.py").write_text(BOT.replace("SLEEP = 0.0", "SLEEP = 0.05"))
    arguments = [
        "ab",
        "golden.jsonl",
        "--a",
        "bot.py:good",
        "--b",
        "bot.py:bad",
        "--concurrency",
        "2",
        "--json",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = folder / "asked.log"
    for _ in range(6000):
        if log.exists() and len(log.read_text().splitlines()) > 40:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert "continue with: answerkey ab --resume " in errors
    resumed = answerkey("ab", "--resume", errors.split("--resume ")[1].split()[0], "--json")
    assert resumed.returncode == 0, resumed.stderr
    document = json.loads(resumed.stdout)
    assert document["comparison"]["paired"] == 80
    assert document["asked"] == 160
    asked = log.read_text().splitlines()
    # Only what was under way at the interruption is asked twice.
    assert len(asked) - len(set(asked)) <= 4
    with sqlite3.connect(folder / ".answerkey" / "answerkey.db") as database:
        assert {status for (status,) in database.execute("SELECT status FROM runs")} == {"complete"}


@pytest.mark.parametrize("early_stop", [False, True])
def test_a_killed_experiment_scores_the_replies_of_its_journals(
    folder: Path, answerkey, early_stop: bool
) -> None:
    (folder / "bot.py").write_text(BOT.replace("SLEEP = 0.0", "SLEEP = 0.02"))
    same = ["ab", "golden.jsonl", "--a", "bot.py:good", "--b", "bot.py:good", "--concurrency", "4"]
    process = subprocess.Popen(
        [sys.executable, "-m", "answerkey", *same, *(["--early-stop"] if early_stop else [])],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = folder / "asked.log"
    while not log.exists() or len(log.read_text().splitlines()) < 60:
        time.sleep(0.01)
    process.kill()
    process.wait()
    runs = json.loads(answerkey("runs", "--json").stdout)["runs"]
    assert {run["status"] for run in runs} == {"interrupted"}
    resumed = answerkey("ab", "--resume", runs[0]["id"], "--json")
    assert resumed.returncode == 0, resumed.stderr
    document = json.loads(resumed.stdout)
    assert (document["asked"], document["comparison"]["paired"]) == (160, 80)
    for arm in ("a", "b"):
        shown = json.loads(answerkey("show", document[arm]["run"], "--json").stdout)
        assert (shown["run"]["status"], shown["summary"]["coverage"]) == ("complete", 1.0)
        assert all(result["score"] == 1.0 for result in shown["results"])
    asked = log.read_text().splitlines()
    assert len(asked) - len(set(asked)) <= 80 + 4, (
        "both arms are the same function; only trials in flight are lost"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("golden.jsonl", "--a", "bot.py:good"), "needs two targets"),
        (("golden.jsonl", "--a", "bot.py:good", "--b", "nobody"), "unknown target 'nobody'"),
        (("golden.jsonl", "--resume", "latest"), "cannot be combined with questions or targets"),
    ],
)
def test_mistakes(folder: Path, answerkey, arguments: tuple[str, ...], words: str) -> None:
    done = answerkey("ab", *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_an_ordinary_run_is_not_an_experiment(folder: Path, answerkey) -> None:
    answerkey("run", "golden.jsonl", "--target", "bot.py:good", "--sample", 2)
    done = answerkey("ab", "--resume", "latest")
    assert done.returncode == 2
    assert "is not an experiment" in done.stderr
