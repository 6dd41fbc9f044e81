"""A regression gate in a real git repository, as a CI job would run it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

GOOD = """
FACTS = {i: f"The rent of unit {i} is {1000 + i} dollars." for i in range(30)}


def answer(question):
    unit = int(question.split()[-1].rstrip("?"))
    return {"answer": FACTS[unit], "tools_used": ["query_database"]}
"""
# A harmless change: other words, the same facts.
REWORDED = GOOD.replace("The rent of unit {i} is", "For unit {i}, rent comes to")
# A seeded regression: units from 20 on are looked up without the tool and without the amount.
BROKEN = GOOD.replace(
    '    return {"answer"',
    '    if unit >= 20:\n        return {"answer": "I am not sure.", "tools_used": []}\n    return {"answer"',
)


class Repository:
    """A git repository with a chatbot and a golden set in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        questions = [
            {
                "id": f"rent-{i}",
                "question": f"What is the rent of unit {i}?",
                "category": "rent",
                "expected_tools": ["query_database"],
                "expected_keywords": [str(1000 + i)],
            }
            for i in range(30)
        ]
        (folder / "golden.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
        (folder / "answerkey.toml").write_text(
            'questions = "golden.jsonl"\ntarget = "bot.py:answer"\n'
            '[gates]\nexpressions = ["score >= 0.5", "no regression", "broken == 0"]\n'
        )
        (folder / ".gitignore").write_text(".answerkey/\n__pycache__/\n")
        self.git("init", "-q", "-b", "main")
        self.commit(GOOD, "A chatbot")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=ci", "-c", "user.email=ci@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self, bot: str, message: str) -> None:
        (self.folder / "bot.py").write_text(bot)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def answerkey(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ANSWERKEY_", "GITHUB_"))}
        return subprocess.run(
            [sys.executable, "-m", "answerkey", *arguments],
            cwd=self.folder,
            env={**env, **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    first = made.answerkey("run", "--gate", "score >= 0.9", "--json")
    assert first.returncode == 0, first.stderr
    named = made.answerkey("baseline", "set", "production", "latest")
    assert named.returncode == 0, named.stderr
    return made


def test_a_good_change_passes(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "reword")
    repository.commit(REWORDED, "Friendlier words")
    done = repository.answerkey("run", "--baseline", "production", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [gate["passed"] for gate in document["gates"]] == [True, True, True]
    assert document["comparison"]["verdict"] == "no clear difference"


def test_a_seeded_regression_fails_and_names_the_questions(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "faster")
    repository.commit(BROKEN, "Answer faster")
    summary = repository.folder / "summary.md"
    done = repository.answerkey(
        "run",
        "--baseline",
        "production",
        "-o",
        "result.junit.xml",
        "-o",
        "result.comment.md",
        "-o",
        "result.html",
        GITHUB_ACTIONS="true",
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert done.returncode == 1, done.stderr
    assert "worse" in done.stdout
    for unit in range(20, 30):
        assert f"rent-{unit}" in done.stdout
    failed = {
        case.get("name")
        for case in ElementTree.parse(repository.folder / "result.junit.xml").iter("testcase")
        if case.find("failure") is not None
    }
    assert failed == {*(f"rent-{unit}" for unit in range(20, 30)), "no regression", "broken == 0"}
    commands = [line for line in done.stdout.splitlines() if line.startswith("::")]
    assert len(commands) == 10
    # The first thing on the page of a failed job is the reason.
    cause = "lost points: query_database was not called for questions about rent"
    assert commands[0].startswith("::error title=Cause::")
    assert cause in commands[0]
    assert commands[1].startswith("::error title=Gate failed::no regression")
    comment = (repository.folder / "result.comment.md").read_text().split("\n\n")
    assert cause in comment[1].replace("\\", "")
    assert cause in (repository.folder / "result.html").read_text()
    # The terminal has it once, before any figure; the other is GitHub's command.
    printed = [line for line in done.stdout.splitlines() if not line.startswith("::")]
    told = [number for number, line in enumerate(printed) if "query_database was not called" in line]
    assert len(told) == 1
    assert (
        told[0] < printed.index("Components") < next(i for i, x in enumerate(printed) if "score 1.000 →" in x)
    )
    assert "rent-20" in summary.read_text()
    # Back on the good version the gate opens again.
    repository.git("checkout", "-q", "main")
    assert repository.answerkey("run", "--baseline", "production").returncode == 0


def test_one_broken_question_is_confirmed_and_stops_the_job(repository: Repository) -> None:
    repository.commit(BROKEN.replace("unit >= 20", "unit == 7"), "Forget one unit")
    # A mean cannot see it.
    assert repository.answerkey("run", "--baseline", "production", "--gate", "no regression").returncode == 0
    confirming = ("run", "--baseline", "production", "--confirm", "3", "--gate", "no regression")
    done = repository.answerkey(*confirming, "--gate", "broken == 0", "--json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert [gate["value"] for gate in document["gates"]] == ["broken", 1]
    assert document["comparison"]["confirmation"]["deterministic"]
    assert "(a regression regardless of the mean): rent-7" in repository.answerkey(*confirming).stdout
    refused = repository.answerkey("run", "--confirm", "3", "--gate", "score >= 0")
    assert (refused.returncode, "add --baseline RUN" in refused.stderr) == (2, True)


def test_compare_exit_codes(repository: Repository) -> None:
    repository.commit(BROKEN, "Broken")
    repository.answerkey("run", "--gate", "score >= 0", "--json")
    worse = repository.answerkey("compare", "production", "latest", "--fail-on", "regression", "--json")
    assert worse.returncode == 1
    assert json.loads(worse.stdout)["verdict"] == "worse"
    better = repository.answerkey("compare", "latest", "production", "--fail-on", "inconclusive")
    assert better.returncode == 0
    repository.answerkey("run", "--gate", "score >= 0", "--json")
    same = repository.answerkey("compare", "latest~1", "latest", "--fail-on", "inconclusive")
    assert same.returncode == 4
    assert repository.answerkey("compare", "latest~1", "latest").returncode == 0
    ranked = repository.answerkey("compare", "latest", "latest~1", "production", "--json")
    assert json.loads(ranked.stdout)["runs"][0]["name"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "gate 'no regression' needs a baseline: add --baseline RUN"),
        (("run", "--baseline", "nowhere"), "baseline 'nowhere' does not exist"),
        (("run", "--gate", "score >> 1"), "gate 'score >> 1', position 8: expected a number, found '>'"),
        (("run", "--gate", "speed > 1"), "unknown name 'speed'"),
        (("compare", "production"), "compare needs two runs"),
        (("compare", "production", "production"), "the same run"),
        (("compare", "production", "latest~7"), "no run 'latest~7'"),
        (("baseline", "set", "latest"), "cannot name a baseline"),
        (("baseline", "remove", "nowhere"), "no baseline 'nowhere'"),
    ],
)
def test_mistakes_are_one_clear_line(repository: Repository, arguments: tuple[str, ...], words: str) -> None:
    done = repository.answerkey(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_runs_over_different_questions_are_refused(repository: Repository) -> None:
    (repository.folder / "other.jsonl").write_text('{"id": "x", "question": "What is the rent of unit 3?"}\n')
    repository.answerkey("run", "other.jsonl", "--gate", "score >= 0")
    done = repository.answerkey("compare", "production", "latest")
    assert done.returncode == 2
    assert "no scored question in common" in done.stderr
