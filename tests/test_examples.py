"""The examples are run as their users would: a FastAPI chatbot, pytest, a notebook, the GitHub Action.

The LangGraph agent has an environment of its own (`make interop`). Containers are not built: their files are read.
"""

import ast
import asyncio
import inspect
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from documented import ROOT, run_shell

EXAMPLES = ROOT / "examples"
PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of the example that the test is named after."""
    return Path(shutil.copytree(EXAMPLES / request.param, tmp_path / request.param))


def shell(text: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return run_shell(text, folder, PROGRAMS, environment=environment)


@pytest.fixture
def served(project: Path) -> Iterator[str]:
    """The FastAPI chatbot, served from its folder."""
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        # From here on the system takes connections, which wait until the server runs.
        listening.listen()
        sys.path.insert(0, str(project))
        server = uvicorn.Server(uvicorn.Config("app:app", log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(20)
        sys.path.remove(str(project))
        sys.modules.pop("app", None)


@pytest.mark.parametrize("project", ["fastapi"], indirect=True)
def test_fastapi_replies_are_read_where_the_configuration_says(project: Path, served: str) -> None:
    settings = project / "answerkey.toml"
    settings.write_text(settings.read_text().replace("127.0.0.1:8000", served))
    done = shell("answerkey run --json", project)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["summary"]["score"] == 1.0
    first = document["results"][0]["reply"]["tool_calls"][0]
    assert (first["name"], first["arguments"]) == ("order_status", {"order": "1001"})


@pytest.mark.parametrize("project", ["faults"], indirect=True)
@pytest.mark.parametrize("enabled", ["1", ""])
def test_a_fastapi_chatbot_breaks_its_tools_by_the_header(
    project: Path, served: str, enabled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERKEY_FAULTS", enabled)
    command = f"answerkey faults golden.jsonl --target http://{served}/chat --kinds error,empty,stale --per-question 3"
    done = shell(f"{command} --json", project)
    document = json.loads(done.stdout)
    outcomes = {(case["kind"], case["outcome"]) for case in document["cases"]}
    if enabled:
        assert done.returncode == 0, done.stderr
        assert outcomes == {("error", "honest"), ("empty", "crashed"), ("stale", "misled")}
    else:
        assert done.returncode == 3
        assert "no fault landed: the chatbot did not break order_status" in done.stderr
        assert document["clean"]["score"] == 1.0


@pytest.mark.parametrize("project", ["ci"], indirect=True)
def test_pytest_passes_and_fails_with_the_chatbot(project: Path) -> None:
    done = shell("pytest -p no:cacheprovider", project)
    assert done.returncode == 0, done.stdout
    break_a_policy(project)
    assert shell("pytest -p no:cacheprovider", project).returncode == 1


@pytest.mark.parametrize("project", ["ci"], indirect=True)
def test_the_action_stops_a_chatbot_that_a_change_broke(project: Path) -> None:
    """The steps of the Action as GitHub runs them: on the default branch, on a good change and on a bad one."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = {step["name"]: step for step in action["runs"]["steps"] if "name" in step}
    workflow = yaml.safe_load((project / ".github" / "workflows" / "chatbot.yml").read_text())
    (used,) = (step for step in workflow["jobs"]["grade"]["steps"] if "answerkey@" in step["uses"])
    given = {name: setting["default"] for name, setting in action["inputs"].items()} | used["with"]

    def run(step: str) -> "subprocess.CompletedProcess[str]":
        environment = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
            for name, value in steps[step].get("env", {}).items()
        } | {"MAY_BE_FIRST": "true"}
        return shell(steps[step]["run"], project, GITHUB_ACTIONS="true", **environment)

    assert set(used["with"]) <= set(action["inputs"])
    assert run("Grade").returncode == 0
    assert run("Keep as baseline").returncode == 0
    reworded = (project / "bot.py").read_text().replace("You can return anything", "Returns are taken back")
    (project / "bot.py").write_text(reworded)
    assert run("Grade").returncode == 0
    break_a_policy(project)
    # The score is still above its gate: the worse question stops it.
    stopped = run("Grade")
    assert stopped.returncode == 1
    assert "✗ worse == 0" in stopped.stdout
    assert (project / "answerkey-report.html").exists()
    assert (project / "answerkey.junit.xml").exists()
    # The first push makes the comment, later ones write the same anew.
    (project / "gh").write_text(GITHUB)
    (project / "gh").chmod(0o755)
    for _ in range(2):
        done = shell(f'PATH="$PWD:$PATH"\n{steps["Comment"]["run"]}', project, COMMENTS="c", EDITED="e")
        assert (done.returncode, done.stdout) == (0, "")
    assert (project / "asked").read_text().splitlines() == ["--method POST c", "--method PATCH e/7"]
    made = (project / "made").read_text()
    assert "❌ worse == 0 failed: " in made
    assert "14 days" in made
    (project / "made").unlink()
    (project / "gh").write_text("#!/bin/sh\nexit 1\n")
    done = shell(f'PATH="$PWD:$PATH"\n{steps["Comment"]["run"]}', project)
    assert (done.returncode, done.stdout[:22]) == (0, "::notice::no comment: ")


# What `gh api` does of it: lists the comment that has the mark, and makes or changes it.
GITHUB = """#!/bin/sh
case "$*" in
  *--paginate*) [ -f made ] && [ "$(head -n 1 made)" = "$MARKER" ] && echo 7; exit 0 ;;
  *) echo "$3 $4 $5" >> asked; cp answerkey.comment.md made ;;
esac
"""


def break_a_policy(project: Path) -> None:
    bot = project / "bot.py"
    bot.write_text(bot.read_text().replace("30 days", "14 days").replace("4.90", "9.90"))


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_run_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every cell in one running loop, as a notebook's kernel does it."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text())["cells"]
    names: dict[str, Any] = {}

    async def run() -> None:
        for cell in cells:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [], "keep notebooks without outputs"
                code = compile("".join(cell["source"]), path.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                value = eval(code, names)
                if inspect.isawaitable(value):
                    await value

    asyncio.run(run())
    assert (names["base"].summary.score, names["run"].summary.score) == (0.8, 1.0)
    assert "return 1.0" in capsys.readouterr().out


def test_the_commands_of_the_containers_exist() -> None:
    """What the services run is parsed by the commands themselves."""
    import click

    from answerkey.cli.main import cli

    composed = yaml.safe_load((EXAMPLES / "compose" / "compose.yaml").read_text())
    for name, service in composed["services"].items():
        assert ("image" in service) != ("build" in service), name
        if "build" in service:
            assert (EXAMPLES / "compose" / service["build"] / "Dockerfile").exists()
            parse(click.Context(cli), service["command"])
        assert set(service.get("depends_on", ())) <= set(composed["services"])


def parse(context: Any, arguments: list[str]) -> None:
    while hasattr(context.command, "get_command"):
        name, *arguments = arguments
        command = context.command.get_command(context, name)
        assert command is not None, name
        if hasattr(command, "get_command"):
            context = type(context)(command, parent=context)
        else:
            command.make_context(name, arguments)
            return


def test_the_dockerfile_copies_what_exists_and_installs_what_there_is() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    words = {line.split()[0] for line in text.splitlines() if line and not line.startswith("#")}
    assert words <= {"FROM", "WORKDIR", "RUN", "COPY", "ENV", "USER", "ENTRYPOINT", "CMD"}
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert all((ROOT / name).exists() for name in kept)
    # Building the wheel needs these.
    assert {"pyproject.toml", "README.md", "LICENSE", "src"} <= set(kept)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r'"\.\[([\w,-]+)\]"', text)[0].split(",")) <= set(extras)


def test_each_example_is_described() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    assert [folder.name for folder in EXAMPLES.iterdir() if f"`examples/{folder.name}" not in page] == []
