"""The demo chatbot is asked only if it is asked for, or if nothing at all suggests another one."""

from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., "object"]
CASE = {"question": "What is our address?", "expected_keywords": ["Montrose"]}


def test_a_bare_run_in_an_empty_folder_asks_the_demo_and_says_so(command) -> None:
    done = command("run", "--sample", "3", "--json")
    assert (done.code, done.document["run"]["target"]) == (0, "demo")
    [warning] = [text for text in done.document["warnings"] if "demo" in text]
    assert "nothing is configured here" in warning
    assert "answerkey init --target" in warning


@pytest.mark.parametrize("arguments", [["run", "demo"], ["demo", "run"], ["run", "--target", "demo"]])
def test_the_demo_can_be_asked_for(command, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    done = command(*arguments, "--sample", "3", "--json", "--gate", "score >= 0.1")
    assert (done.code, done.document["run"]["target"]) == (0, "demo")
    assert not [text for text in done.document["warnings"] if "nothing is configured" in text]


def test_demo_as_the_golden_set_asks_another_chatbot_the_bundled_questions(command) -> None:
    Path("bot.py").write_text("def answer(question):\n    return 'no idea'\n")
    document = command("run", "demo", "--target", "bot.py:answer", "--sample", "3", "--json").document
    assert (document["run"]["target"], document["run"]["question_set"]) == (
        "python:bot.py:answer",
        "questions",
    )


@pytest.mark.parametrize(
    "arguments",
    [["run", "--target"], ["faults", "--target"], ["ab", "--a", "demo", "--b"]],
)
def test_another_chatbot_is_not_asked_the_questions_of_the_demo(command, arguments: list[str]) -> None:
    Path("bot.py").write_text("def answer(question):\n    return 'no idea'\n")
    done = command(*arguments, "bot.py:answer")
    assert (done.code, done.out) == (2, "")
    assert (
        "no golden set to ask: name it, e.g. `answerkey run golden.jsonl --target bot.py:answer`" in done.err
    )
    assert not Path(".answerkey").exists()


def test_a_configured_demo_is_asked_its_own_questions(command) -> None:
    Path("answerkey.toml").write_text("target = 'reference'\n[targets.reference]\ndemo = 'flaky'\n")
    assert command("run", "--sample", "3").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--gate", "score >= 0.85"], "the demo must not decide a gate"),
        (["run", "golden.jsonl"], "a golden set was given and there is no answerkey.toml"),
    ],
)
def test_a_run_without_a_target_is_refused(command, write_rows, arguments: list[str], message: str) -> None:
    write_rows("golden.jsonl", CASE)
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "--target T" in done.err
    assert not Path(".answerkey").exists()


def test_a_baseline_is_not_compared_with_the_demo(command) -> None:
    assert command("run", "demo", "--sample", "3", "--name", "base").code == 0
    done = command("run", "--baseline", "base", "--sample", "3")
    assert done.code == 2
    assert "the demo must not decide a gate" in done.err


@pytest.mark.parametrize("variable", ["CI", "GITHUB_ACTIONS", "JENKINS_URL"])
def test_a_ci_job_never_falls_back_to_the_demo(
    command, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "true")
    done = command("run")
    assert done.code == 2
    assert f"this is a CI job ({variable} is set)" in done.err


@pytest.mark.parametrize("name", ["anserkey.toml", "answerKey.toml", "answerkey.tml.toml", "answer-key.toml"])
def test_a_misspelt_configuration_is_named(command, name: str) -> None:
    Path(name).write_text("target = 'bot.py:answer'\n")
    done = command("run")
    assert done.code == 2
    assert f"{name} is not read; rename it to answerkey.toml" in done.err


def test_the_folder_above_the_project_is_named(command) -> None:
    Path("project").mkdir()
    Path("project/answerkey.toml").write_text("target = 'bot.py:answer'\n")
    done = command("run")
    assert done.code == 2
    assert "run the command in project/" in done.err


def test_a_golden_set_in_the_folder_is_not_ignored(command, write_rows) -> None:
    write_rows("golden.jsonl", CASE)
    done = command("run")
    assert done.code == 2
    assert "there is a golden set (golden.jsonl) but no answerkey.toml" in done.err


def test_a_configuration_without_a_target_is_named(command) -> None:
    Path("answerkey.toml").write_text("[scoring]\nmatch = 'smart'\n")
    for arguments in (["run"], ["ask", "Hello!"]):
        done = command(*arguments)
        assert done.code == 2
        assert "answerkey.toml names no target" in done.err


def test_doctor_does_not_check_the_demo_in_place_of_a_chatbot(command) -> None:
    checks = {one["check"]: one for one in command("doctor", "--json").document["checks"]}
    assert checks["chatbot"]["state"] == "note"
    assert "none configured" in checks["chatbot"]["found"]


def test_doctor_does_not_show_the_bundled_golden_set_as_that_of_another_chatbot(command) -> None:
    Path("bot.py").write_text("def answer(question):\n    return 'no idea'\n")
    for target, state in (("bot.py:answer", "note"), ("demo:basic", "ok")):
        checks = {
            one["check"]: one for one in command("doctor", "--target", target, "--json").document["checks"]
        }
        assert checks["golden set"]["state"] == state
