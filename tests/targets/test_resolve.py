import sys
from pathlib import Path
from typing import Any

import pytest

from answerkey.errors import ConfigError, UnknownNameError, UsageError
from answerkey.protocols import Target
from answerkey.targets.command_target import CommandTarget
from answerkey.targets.http_target import HttpTarget
from answerkey.targets.isolated_target import IsolatedTarget
from answerkey.targets.model_target import ModelTarget
from answerkey.targets.python_target import PythonTarget
from answerkey.targets.resolve import DemoTarget, ReplayTarget, resolve_target

from .asking import ask


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resolve_bot.py").write_text("def bot(question):\n    return {'said': question}\n")
    (tmp_path / "replies.jsonl").write_text('{"id": "q", "answer": "x"}\n')


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("demo", DemoTarget),
        ("demo:basic", DemoTarget),
        ("http://localhost:8000/chat", HttpTarget),
        ("https://example.com", HttpTarget),
        ("python:resolve_bot:bot", IsolatedTarget),
        ("python:resolve_bot.py:bot", IsolatedTarget),
        ("resolve_bot.py:bot", IsolatedTarget),
        ("./resolve_bot.py:bot", IsolatedTarget),
        ("cmd:cat -u", CommandTarget),
        ("openai:gpt-x", ModelTarget),
        ("replay:replies.jsonl", ReplayTarget),
    ],
)
def test_every_form(spec: str, kind: type) -> None:
    target = resolve_target(spec)
    assert isinstance(target, kind)
    assert isinstance(target, Target)
    assert target.name
    assert target.fingerprint == resolve_target(spec).fingerprint


def test_a_callable_and_a_target_of_the_callers() -> None:
    target = resolve_target(lambda question: question)
    assert isinstance(target, PythonTarget)
    adapted = resolve_target(target)
    assert (adapted.name, adapted.fingerprint, adapted.code) == (target.name, target.fingerprint, target.code)
    with pytest.raises(UsageError, match="not a int"):
        resolve_target(3)  # type: ignore[arg-type]


def test_names_from_the_configuration() -> None:
    settings: dict[str, dict[str, Any]] = {
        "mine": {"python": "resolve_bot:bot", "reply": {"text": "said"}},
        "web": {"url": "http://localhost:1/chat", "headers": {"X": "${KEY}"}},
        "tool": {"cmd": [sys.executable, "-c", "print(1)"], "mode": "once"},
    }
    assert ask(resolve_target("mine", settings=settings), "hi").text == "hi"
    assert resolve_target("web", settings=settings).name == "web"
    assert ask(resolve_target("tool", settings=settings)).text == "1"


def test_a_replay_in_the_configuration_starts_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resolve_target("old", settings={"old": {"replay": "replies.jsonl"}}, folder=tmp_path).name == "old"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dmeo", "unknown target 'dmeo'; did you mean 'demo'?"),
        ("stagin", "unknown target 'stagin'; did you mean 'staging'?"),
        ("ftp://x:y@host", "unknown target 'ftp://host'; write one of demo, http"),
        ("xyz", "the configuration has staging"),
        ("bot.py", "did you mean 'bot.py:FUNCTION'?"),
        ("localhost:8000/chat", "did you mean 'http://localhost:8000/chat'?"),
        ("bot.example.com:443", "did you mean 'http://bot.example.com:443'?"),
    ],
)
def test_unknown_targets(spec: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        resolve_target(spec, settings={"staging": {"url": "http://x"}})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {},
            "exactly one of url, python, cmd, openai, openai-responses, anthropic, gemini, ollama, replay, demo",
        ),
        ({"url": "http://x", "cmd": "y"}, "has url and cmd"),
        ({"url": "http://x", "header": {}}, "[targets.t] unknown setting 'header'; did you mean 'headers'?"),
        ({"url": 5}, "[targets.t] url: must be text, not a whole number"),
        ({"url": "x"}, "is not an http:// or https:// address"),
        (
            {"url": "http://x", "reply": {"text": "a["}},
            "[targets.t] reply.text = 'a[' is not a JMESPath expression",
        ),
        ({"cmd": "x", "mode": "twice"}, "[targets.t] mode: 'twice' is unknown; use "),
    ],
)
def test_tables_that_are_wrong(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_target("t", settings={"t": table})
    assert message in str(caught.value)


@pytest.mark.parametrize("spec", ["python:", "cmd: ", "replay:", "openai:"])
def test_a_form_without_its_rest(spec: str) -> None:
    with pytest.raises(UsageError, match="is incomplete"):
        resolve_target(spec)


def test_the_reference_chatbot_answers() -> None:
    reply = ask(resolve_target("demo"), "What is our property address?")
    assert reply.text
    assert reply.failure is None
    assert reply.evidence.tools_observed
    with pytest.raises(UsageError, match="no-such"):
        ask(resolve_target("demo:no-such"))


def test_paths_in_the_configuration_start_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    settings: dict[str, dict[str, Any]] = {
        "file": {"python": "resolve_bot.py:bot", "reply": {"text": "said"}},
        "program": {"cmd": [sys.executable, "-c", "import os; print(os.getcwd())"], "mode": "once"},
    }
    assert ask(resolve_target("file", settings=settings, folder=tmp_path), "hi").text == "hi"
    assert ask(resolve_target("program", settings=settings, folder=tmp_path)).text == str(tmp_path)


@pytest.fixture
def parrot_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with kinds of its own."""
    package = tmp_path / "site"
    (package / "answerkey_parrot-1.dist-info").mkdir(parents=True)
    (package / "answerkey_parrot-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: answerkey-parrot\nVersion: 1\n"
    )
    (package / "answerkey_parrot-1.dist-info" / "entry_points.txt").write_text(
        "[answerkey.targets]\n"
        + "".join(f"{name} = answerkey_parrot:{name}\n" for name in ("parrot", "macaw", "broken", "failing")),
    )
    (package / "answerkey_parrot.py").write_text(
        "from answerkey.targets.python_target import PythonTarget\n"
        "def parrot(rest): return PythonTarget(lambda question: f'{rest} {question}', name='parrot')\n"
        "def macaw(rest, context):\n"
        "    words = f\"{rest} {context.settings.get('volume')}\"\n"
        "    return PythonTarget(lambda question: words, name=context.name, concurrency=context.concurrency)\n"
        "def broken(rest): return 5\n"
        "def failing(rest): raise KeyError(rest)\n",
    )
    monkeypatch.syspath_prepend(str(package))


@pytest.mark.usefixtures("parrot_package")
def test_a_kind_that_another_package_brings() -> None:
    assert ask(resolve_target("parrot:polly"), "hi").text == "polly hi"
    with pytest.raises(UsageError, match="gave a int"):
        resolve_target("broken:x")
    with pytest.raises(UsageError, match="the target 'failing' cannot be created: KeyError: 'x'"):
        resolve_target("failing:x")
    with pytest.raises(UnknownNameError, match="did you mean 'parrot'"):
        resolve_target("parot:polly")
    with pytest.raises(UnknownNameError, match="parrot:…"):
        resolve_target("xyz")


@pytest.mark.usefixtures("parrot_package")
def test_a_packages_kind_in_the_configuration() -> None:
    tables: dict[str, dict[str, Any]] = {
        "pet": {"parrot": "polly"},
        "loud": {"macaw": "polly", "volume": 11},
        "odd": {"parrot": "polly", "volume": 11},
        "wrong": {"parrot": 5},
    }
    assert ask(resolve_target("pet", settings=tables), "hi").text == "polly hi"
    loud = resolve_target("loud", settings=tables)
    assert (loud.name, ask(loud).text) == ("loud", "polly 11")
    with pytest.raises(ConfigError, match=r"\[targets.odd\] unknown setting 'volume'; there are parrot"):
        resolve_target("odd", settings=tables)
    with pytest.raises(ConfigError, match=r"\[targets.wrong\] parrot must be text"):
        resolve_target("wrong", settings=tables)
    with pytest.raises(ConfigError, match=r"exactly one of url, python, .*macaw, parrot"):
        resolve_target("none", settings={"none": {"volume": 11}})
