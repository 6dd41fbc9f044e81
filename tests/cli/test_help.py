"""`answerkey --help`: commands by purpose, one plain line each."""

from typing import Any

import pytest
from click.testing import CliRunner

from answerkey.cli.main import COMMANDS, RENAMED, SECTIONS, cli


def test_help_groups_the_commands_by_purpose() -> None:
    lines = CliRunner().invoke(cli, ["--help"]).output.splitlines()
    titles = [line.removesuffix(":") for line in lines if line.removesuffix(":") in SECTIONS]
    assert titles == list(SECTIONS)
    for name, entry in COMMANDS.items():
        [listed] = [line for line in lines if line.startswith(f"  {name} ") and line.endswith(entry.summary)]
        assert len(listed) <= 80


def test_a_group_without_a_command_prints_its_help_as_it_is_laid_out(command: Any) -> None:
    for group in ((), ("store",)):
        told = command(*group)
        assert told.code == 2
        assert told.err.startswith("Usage: answerkey ")
        assert "\n\nCommands:\n" in told.err or "\n\nOptions:\n" in told.err


def test_no_command_is_in_two_sections() -> None:
    assert sum(map(len, SECTIONS.values())) == len(COMMANDS)


def test_renamed_commands_work_but_are_not_listed() -> None:
    assert not set(RENAMED) & set(COMMANDS)
    for name in RENAMED:
        assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_starts_its_help_with_one_sentence(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
