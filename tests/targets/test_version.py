"""Which version of a chatbot a run says that it asked."""

import shutil
import subprocess
from pathlib import Path

import pytest

import answerkey
from answerkey.config import load_settings
from answerkey.errors import ConfigError, UsageError
from answerkey.store import open_store
from answerkey.targets.resolve import TargetLabels, resolve_target, target_labels, target_version

QUESTIONS = [{"id": "q1", "question": "How many?", "expected_keywords": ["42"]}]
BOT = "def answer(question):\n    return '42'\n"


def git(folder: Path, *arguments: str) -> str:
    """What git says, as somebody who has no settings of their own."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a chatbot in a git checkout, of which everything is committed; the user is there."""
    if shutil.which("git") is None:
        pytest.skip(reason="git is not installed")
    folder = tmp_path / "bots"
    folder.mkdir()
    (folder / "bot.py").write_text(BOT)
    (folder / "bot.sh").write_text("#!/bin/sh\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "A bot")
    monkeypatch.chdir(folder)
    return folder


def words(spec: str) -> str:
    return target_version(resolve_target(spec), TargetLabels()).words


@pytest.mark.parametrize("spec", ["bot.py:answer", "python:bot:answer", "cmd:sh bot.sh"])
def test_a_chatbot_in_a_checkout_has_its_commit(checkout: Path, spec: str) -> None:
    commit = git(checkout, "rev-parse", "--short=10", "HEAD")
    assert words(spec) == commit
    # A report that git does not know changes nothing; neither does another folder.
    (checkout / "report.html").write_text("")
    (checkout.parent / "notes.md").write_text("")
    git(checkout, "add", "../notes.md")
    assert words(spec) == commit
    (checkout / "bot.sh").write_text("#!/bin/sh\nexit\n")
    assert words(spec) == f"{commit} changed"


def test_a_chatbot_that_git_does_not_know_is_a_change(checkout: Path) -> None:
    (checkout / "new.py").write_text(BOT)
    assert words("new.py:answer").endswith(" changed")


def test_a_hook_of_another_checkout_does_not_mislead(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    commit = words("bot.py:answer")
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert commit
    assert words("bot.py:answer") == commit


def test_without_a_checkout_or_git_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    monkeypatch.chdir(tmp_path)
    assert words("bot.py:answer") == ""
    monkeypatch.setenv("PATH", "")
    assert words("bot.py:answer") == ""


def test_a_model_has_its_name_and_the_hashes_of_its_prompt_and_tools() -> None:
    common = {"openai": "small-1", "api_key": "k", "version": "12", "tags": ["canary"]}
    tables = {
        name: {**common, "system": system, "tools": [{"name": "add", "python": path}]}
        for name, system, path in (("a", "Be brief.", "tools.py:add"), ("b", "Be kind.", "tools.py:add_all"))
    }
    first, second = (
        target_version(resolve_target(name, settings=tables), target_labels(name, tables))
        for name in ("a", "b")
    )
    assert first.prompt_hash
    assert first.prompt_hash != second.prompt_hash
    assert first.tools_hash
    assert first.tools_hash != second.tools_hash
    assert first.words == f"12, small-1, prompt {first.prompt_hash}"
    assert target_labels("a", tables).tags == ("canary",)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"version": 3}, r"\[targets\.bot\] version: must be text, not a whole number"),
        ({"tags": "x"}, r"\[targets\.bot\] tags: must be a list, not text"),
    ],
)
def test_wrong_labels_are_named(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        target_labels("bot", {"bot": {"demo": "", **wrong}})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=r"\[targets\.bot\] version '': use up to 60 printable"):
        target_labels("bot", {"bot": {"version": ""}})


def test_a_run_keeps_it_with_the_tags_of_table_and_options(checkout: Path) -> None:
    (checkout / "answerkey.toml").write_text(
        '[targets.bot]\npython = "bot.py:answer"\nversion = "2.1"\ntags = ["canary"]\n'
    )
    run = answerkey.evaluate(QUESTIONS, "bot", settings=load_settings(), store="runs.db", tags=("nightly",))
    with open_store("runs.db") as store:
        kept = store.find_run(run.id)
    commit = git(checkout, "rev-parse", "--short=10", "HEAD")
    assert kept.target_version.words == f"2.1, {commit}"
    assert kept.tags == ("canary", "nightly")
    assert run.to_dict()["run"]["target_version"] == {"version": "2.1", "commit": commit}


def test_replies_of_another_version_are_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text(BOT)
    made_from = []
    for version in ("1", "1", "2"):
        (tmp_path / "answerkey.toml").write_text(
            f'[targets.bot]\npython = "bot.py:answer"\nversion = "{version}"\n'
        )
        run = answerkey.evaluate(QUESTIONS, "bot", settings=load_settings(), store="runs.db", reuse=True)
        made_from.append(run.info.made_from is not None)
    assert made_from == [False, True, False]
