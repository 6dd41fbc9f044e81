"""Documentation cannot rot: its commands run, its links lead somewhere, and no command goes unmentioned."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[tuple[str, int]]:
    """The commands of a page's console blocks with the exit code that each says it has ("# exit 1")."""
    found: list[tuple[str, int]] = []
    for block in _BLOCK.findall(page.read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                code = re.search(r"#\s*exit (\d+)\s*$", line)
                found.append((line[2:], int(code[1]) if code else 0))
            elif line.startswith("> ") or line == ">":
                command, code = found[-1]
                found[-1] = (f"{command}\n{line[2:]}", code)
    return found


# `make` would set up a second environment; the targets it names are checked instead.
RUNNABLE = [page for page in PAGES if any(not command.startswith("make") for command, _ in commands(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANSWERKEY_", "GITHUB_"))
    }
    environment = {**kept, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    for command, code in commands(page):
        if command.startswith("make"):
            continue
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == code, (
            f"{page.name}: $ {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_readmes_first_numbers_are_the_demos(tmp_path: Path) -> None:
    shown = (ROOT / "README.md").read_text().split("```text\n")[1].split("```")[0]
    figures = [line for line in shown.splitlines()[1:] if line.strip()]
    done = subprocess.run(
        [sys.executable, "-m", "answerkey", "run"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert [line for line in figures if line not in done.stdout] == []


def test_make_targets_that_are_shown_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {
        command.split()[1] for page in PAGES for command, _ in commands(page) if command.startswith("make ")
    }
    assert {"demo", "test"} <= shown <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_command_is_documented() -> None:
    from answerkey.cli.main import COMMANDS

    page = (ROOT / "docs" / "commands.md").read_text()
    missing = [name for name in COMMANDS if f"## answerkey {name}\n" not in page]
    assert missing == []


def test_every_option_of_every_command_has_help_and_every_command_an_example() -> None:
    import click

    from answerkey.cli.main import cli

    def check(command: click.Command, path: str) -> None:
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                inner = command.get_command(click.Context(command), name)
                assert inner is not None
                check(inner, f"{path} {name}")
            return
        assert f"  {path}" in (command.help or ""), f"{path} --help shows no example"
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{path} {parameter.opts[0]} has no help"

    check(cli, "answerkey")


def test_every_promise_names_a_test_that_exists() -> None:
    promised = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text())
    assert promised
    for file, name in promised:
        assert re.search(rf"def {name}\(", (ROOT / file).read_text()), f"{file}::{name}"
