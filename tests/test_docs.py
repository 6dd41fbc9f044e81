"""The documentation's commands run, its links exist, and every command is documented."""

import re
import sys
from pathlib import Path

import pytest

from documented import PAGES, ROOT, RUNNABLE, commands, every_command, run_shell


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    if page.name == "ci.md":
        # How long the demo takes depends on what else the machine does.
        (tmp_path / "answerkey.toml").write_text("[gates]\nlatency_factor = 1000\n")
    for command, code in commands(page):
        done = run_shell(command, tmp_path, Path(sys.executable).parent)
        assert done.returncode == code, f"{page.name}: {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr


def test_the_screenshots_are_there_and_small() -> None:
    for image in ("report.png", "dashboard.png", "dashboard-compare.png"):
        assert 10_000 < (ROOT / "docs" / "images" / image).stat().st_size < 300_000


def test_make_targets_that_are_shown_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {
        command.split()[1]
        for page in [*PAGES, ROOT / "CONTRIBUTING.md"]
        for command, _ in every_command(page)
        if command.startswith("make ")
    }
    assert {"demo", "test"} <= shown <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_exist(page: Path) -> None:
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


@pytest.mark.parametrize("page", ["reliability.md", "security.md"])
def test_the_tests_of_every_guarantee_exist(page: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs" / page).read_text())
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).is_file()] == []
