"""The plugin in a pytest of its own, as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

BOT = """
def good(question):
    return {"answer": "It is " + question.split()[-1].rstrip("?"), "tools_used": ["lookup"]}


def half(question):
    number = int(question.split()[-1].rstrip("?"))
    return good(question) if number < 110 else "No idea \\x1b[31m::error::x"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    questions = [
        {
            "id": f"q{i}",
            "question": f"What is {i}?",
            "expected_tools": ["lookup"],
            "expected_keywords": [str(i)],
        }
        for i in range(100, 120)
    ]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(folder: Path, *arguments: str, autoload: bool = False) -> "subprocess.CompletedProcess[str]":
    """Run pytest with this plugin and xdist; with `autoload`, with every installed plugin, which takes seconds to load."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ANSWERKEY_", "PYTEST_"))}
    plugins = () if autoload else ("-p", "answerkey.pytest_plugin", "-p", "xdist")
    if not autoload:
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugins, *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_question_is_an_item(folder: Path) -> None:
    target = ("--answerkey-target", "bot.py:good")
    done = run(folder, "--answerkey", "golden.jsonl", *target, "-v", autoload=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 passed" in done.stdout
    assert "golden.jsonl::q100 PASSED" in done.stdout
    assert "score 1.000 (A" in done.stdout
    shown = subprocess.run(
        [sys.executable, "-m", "answerkey", "show", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(shown.stdout)
    assert document["run"]["name"] == "pytest"
    assert document["summary"]["questions"] == 20


def test_without_gates_a_failed_question_fails_the_session(folder: Path) -> None:
    done = run(folder, "--answerkey", "golden.jsonl", "--answerkey-target", "bot.py:half")
    assert done.returncode == 1
    assert "10 failed, 10 passed" in done.stdout
    assert "did not call lookup" in done.stdout
    assert "\x1b[31m::error" not in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize(("gate", "code"), [("score >= 0.5", 0), ("score >= 0.9", 1)])
@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_gates_decide_the_session_also_under_xdist(
    folder: Path, gate: str, code: int, workers: tuple[str, ...]
) -> None:
    done = run(
        folder,
        "--answerkey",
        "golden.jsonl",
        "--answerkey-target",
        "bot.py:half",
        "--answerkey-gate",
        gate,
        *workers,
    )
    assert done.returncode == code, done.stdout + done.stderr
    counted = "1 failed, 10 passed, 10 xfailed" if code else "11 passed, 10 xfailed"
    assert counted in done.stdout
    assert f"gate {'FAILED' if code else 'passed'}: {gate}" in done.stdout
    assert "score 0.600" in done.stdout


def test_gates_do_not_hide_other_tests(folder: Path) -> None:
    (folder / "test_own.py").write_text("def test_own():\n    assert False\n")
    done = run(
        folder,
        "--answerkey",
        "golden.jsonl",
        "--answerkey-target",
        "bot.py:good",
        "--answerkey-gate",
        "score >= 0.5",
    )
    assert done.returncode == 1
    assert "1 failed, 21 passed" in done.stdout


def test_a_baseline_and_a_choice_of_questions(folder: Path) -> None:
    base = run(
        folder, "--answerkey", "golden.jsonl", "--answerkey-target", "bot.py:good", "--answerkey-name", "base"
    )
    assert base.returncode == 0
    done = run(
        folder,
        "--answerkey",
        "golden.jsonl",
        "--answerkey-target",
        "bot.py:half",
        "--answerkey-baseline",
        "base",
    )
    assert done.returncode == 1
    assert "worse" in done.stdout
    some = run(
        folder, "--answerkey", "golden.jsonl", "--answerkey-target", "bot.py:good", "-k", "q105 or q106"
    )
    assert some.returncode == 0
    assert "2 passed, 18 deselected" in some.stdout


def test_a_junit_file_of_pytests_own_stays_small(folder: Path) -> None:
    run(folder, "--answerkey", "golden.jsonl", "--answerkey-target", "bot.py:good", "--junit-xml", "out.xml")
    names = {case.get("name") for case in ElementTree.parse(folder / "out.xml").iter("testcase")}
    assert names == {f"q{i}" for i in range(100, 120)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--answerkey", "missing.jsonl"), "missing.jsonl"),
        (("--answerkey", "golden.jsonl", "--answerkey-gate", "score >"), "position 8"),
        (("--answerkey", "golden.jsonl", "--answerkey-target", "nobody"), "unknown target"),
        (("--answerkey", "golden.jsonl", "--answerkey-gate", "no regression"), "--baseline"),
    ],
)
def test_mistakes_are_one_line(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run(folder, *arguments)
    assert done.returncode == 4
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreachable_target_fails_every_item_with_its_reason(folder: Path) -> None:
    done = run(folder, "--answerkey", "golden.jsonl", "--answerkey-target", "http://127.0.0.1:9/chat")
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stdout


def test_the_plugin_loads_nothing_of_ours_until_it_is_used(folder: Path) -> None:
    (folder / "test_own.py").write_text(
        "import sys\n\n\ndef test_own():\n"
        "    assert {n for n in sys.modules if n.startswith('answerkey.')} == {'answerkey.pytest_plugin'}\n"
    )
    done = run(folder, autoload=True)
    assert done.returncode == 0, done.stdout


MARKED = """
import pytest
from bot import good, half


@pytest.fixture
def polite():
    return "yes"


@pytest.mark.answerkey("golden.jsonl")
def test_answers(answerkey_case, polite):
    result = answerkey_case.check({bot}(answerkey_case.question))
    assert result.score == 1.0 and result.reply.tools_used == ("lookup",)


@pytest.mark.answerkey("golden.jsonl", target={bot}, gates=["score >= 0.9"])
def test_gates(answerkey_run):
    assert answerkey_run.check("pass_rate >= 0.9")
"""


@pytest.mark.parametrize(("bot", "counted"), [("good", "21 passed"), ("half", "11 failed, 10 passed")])
def test_the_marker_and_its_fixtures_fail_tests_with_reasons(folder: Path, bot: str, counted: str) -> None:
    (folder / "test_own.py").write_text(MARKED.replace("{bot}", bot))
    done = run(folder, "--strict-markers")
    assert counted in done.stdout, done.stdout + done.stderr
    assert done.returncode == (1 if bot == "half" else 0)
    if bot == "half":
        assert "did not call lookup" in done.stdout
        assert "gate failed: score >= 0.9: the value is 0.600" in done.stdout
        assert "test_answers[q115]" in done.stdout


def test_a_fixture_without_a_golden_set_says_so(folder: Path) -> None:
    (folder / "test_own.py").write_text("def test_one(answerkey_run):\n    pass\n")
    done = run(folder)
    assert done.returncode == 1
    assert "mark the test with @pytest.mark.answerkey" in done.stdout
