"""`answerkey init`: from nothing to a graded report of one's own chatbot, and a CI job that stops what breaks it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

FILES = [".github/workflows/answerkey.yml", ".gitignore", "answerkey.toml", "golden.yaml"]


def nested(body: dict[str, Any]) -> Any:
    """A FastAPI chatbot with names of its own for everything."""
    missing = [name for name in ("message", "session_id") if name not in body]
    if missing:
        wrong = [{"type": "missing", "loc": ["body", name], "msg": "Field required"} for name in missing]
        return web.json_response({"detail": wrong}, status=422)
    return {
        "status": "ok",
        "data": {
            "turns": [
                {"sender": "user", "text": body["message"]},
                {"sender": "bot", "text": "Hello! The house is at 900 S 9th St in Montrose."},
            ],
            "agent": {
                "steps": [{"type": "thought"}, {"type": "tool", "tool_id": "query_database", "params": {}}]
            },
        },
        "meta": {"error": None, "tokens": {"input": 3, "output": 4}},
    }


def written(folder: Path) -> list[str]:
    """The files of a folder, without the store."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.parts[0] not in (".answerkey", "__pycache__"))


def test_two_commands_lead_to_a_graded_report_of_a_nested_chatbot(
    command: Callable[..., Any], chatbot: Callable[..., Any], tmp_path: Path
) -> None:
    bot = chatbot(nested)
    begun = command("init", "--target", bot.url, "--question", "Where is our house?")
    assert begun.code == 0
    assert "body.message: Field required; body.session_id: Field required; trying again" in begun.err
    assert "data.turns[?sender=='bot'] | [-1].text" in begun.out
    assert written(tmp_path) == FILES
    report = command("run", "-o", "report.html", "--json")
    assert report.code == 0
    results = {result["id"]: result for result in report.document["results"]}
    house = results["where-house"]
    assert house["score"] == 1.0
    assert house["reply"]["tools_used"] == ["query_database"]
    assert house["reply"]["usage"] == {"input_tokens": 3, "output_tokens": 4}
    assert set(house["components"]["response_quality"]["found"]) == {"900", "Montrose"}
    assert results["unknowable"]["passed"] is False
    assert "900 S 9th St in Montrose" in (tmp_path / "report.html").read_text()
    assert command("lint").code == 0


def test_nothing_is_overwritten(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def answer(question):\n    return 'I can help.'\n")
    (tmp_path / "golden.yaml").write_text("- question: mine\n")
    (tmp_path / ".gitignore").write_text("build/")
    begun = command("init", "--target", "bot.py:answer", "--no-run")
    assert begun.code == 0
    assert "already there, unchanged: golden.yaml" in begun.out
    assert (tmp_path / "golden.yaml").read_text() == "- question: mine\n"
    assert (tmp_path / ".gitignore").read_text() == "build/\n.answerkey/\n"
    before = (tmp_path / "answerkey.toml").read_text()
    again = command("init", "--target", "bot.py:other")
    assert (again.code, again.out) == (2, "")
    assert "answerkey.toml already exists" in again.err
    assert (tmp_path / "answerkey.toml").read_text() == before


def test_a_chatbot_that_cannot_be_asked_leaves_nothing_behind(
    command: Callable[..., Any], chatbot: Callable[..., Any], tmp_path: Path
) -> None:
    closed = chatbot(lambda body: web.json_response({"detail": "no token"}, status=401))
    refused = command("init", "--target", closed.url)
    assert refused.code == 3
    assert "HTTP 401: no token" in refused.err
    assert "--header" in refused.err
    silent = chatbot(lambda body: {"code": 7, "took": 1.5})
    assert command("init", "--target", silent.url).code == 3
    assert command("init", "--target", "http://127.0.0.1:1/chat").code == 3
    broken = chatbot(lambda body: web.json_response({"detail": "no database"}, status=500))
    failed = command("init", "--target", broken.url)
    assert failed.code == 3
    assert "the chatbot did not answer: HTTP 500" in failed.err
    (tmp_path / "bot.py").write_text("def answer(question):\n    raise KeyError('index')\n")
    assert command("init", "--target", "bot.py:answer").code == 3
    assert written(tmp_path) == ["bot.py"]


def test_without_a_terminal_the_target_is_a_flag(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "answerkey", "init"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--target is required" in done.stderr


def test_a_header_is_written_as_the_reference_that_it_is(
    command: Callable[..., Any], chatbot: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BOT_TOKEN", "t0p-s3cret")
    bot = chatbot(lambda body: {"answer": "I can help.", "tools_used": []})
    begun = command("init", "--target", bot.url, "--header", "Authorization: Bearer ${BOT_TOKEN}")
    assert begun.code == 0
    assert bot.asked[-1]["headers"]["Authorization"] == "Bearer t0p-s3cret"
    files = "".join((tmp_path / name).read_text() for name in FILES)
    assert "Bearer ${BOT_TOKEN}" in files
    assert "t0p-s3cret" not in files + begun.out + begun.err


def test_the_ci_job_stops_a_chatbot_that_breaks_a_question(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    bot = tmp_path / "bot.py"
    bot.write_text(
        "def answer(question):\n    return 'Hello, only books: 16144 dollars, I cannot say more.'\n"
    )
    assert (
        command("init", "--target", "bot.py:answer", "--question", "What is the rent?", "--no-run").code == 0
    )
    workflow = yaml.safe_load((tmp_path / ".github/workflows/answerkey.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["grade"]["steps"] if "answerkey" in step.get("run", "")]
    grade, keep_baseline = (step for step in steps if not step.startswith("pip"))

    def run(script: str) -> int:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "ON_DEFAULT_BRANCH": "true"},
            capture_output=True,
            check=False,
            timeout=300,
        )
        return done.returncode

    assert [run(grade), run(keep_baseline), run(grade)] == [0, 0, 0]
    bot.write_text(bot.read_text().replace("16144", "16100"))
    assert run(grade) == 1


@pytest.mark.parametrize(
    ("origin", "install"),
    [
        (None, "answerkey==7.1"),
        (
            {"url": "https://git.example/a.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "answerkey @ git+https://git.example/a.git@c0ffee",
        ),
        (
            {"url": "https://files.example/a.whl", "archive_info": {}},
            "answerkey @ https://files.example/a.whl",
        ),
        ({"url": "file:///home/ann/answerkey", "dir_info": {}}, ""),
    ],
)
def test_the_ci_job_installs_answerkey_from_where_it_came(
    command: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    origin: dict[str, Any] | None,
    install: str,
) -> None:
    metadata = tmp_path / "site" / "answerkey-7.1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Name: answerkey\nVersion: 7.1\n")
    if origin is not None:
        (metadata / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(metadata.parent)
    (tmp_path / "bot.py").write_text("def answer(question):\n    return 'Hello.'\n")
    begun = command("init", "--target", "bot.py:answer", "--no-run")
    workflow = yaml.safe_load((tmp_path / ".github/workflows/answerkey.yml").read_text())
    assert workflow["env"] == {"ANSWERKEY_INSTALL": install}
    assert ("set ANSWERKEY_INSTALL" in begun.out) == (not install)
    [step] = [
        step["run"] for step in workflow["jobs"]["grade"]["steps"] if step.get("run", "").startswith("pip")
    ]
    # Where nothing is said, the job stops and says so.
    script = ["bash", "-ec", step.replace("pip install", "echo")]
    done = subprocess.run(script, env=workflow["env"], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), "define it in this file" in done.stderr) == (install, not install)


def test_a_question_without_letters_makes_a_golden_set_that_can_be_read(
    command: Callable[..., Any], chatbot: Callable[..., Any], tmp_path: Path
) -> None:
    """As plain YAML, the ids of these questions would be a number and a boolean."""
    bot = chatbot(lambda body: {"answer": "It was a good year."})
    asked = ("--question", "2024?", "--question", "True?")
    assert command("init", "--target", bot.url, *asked, "--no-run").code == 0
    cases = yaml.safe_load((tmp_path / "golden.yaml").read_text())
    assert [case["id"] for case in cases[:2]] == ["2024", "true"]
    assert command("lint", "golden.yaml").code == 0
