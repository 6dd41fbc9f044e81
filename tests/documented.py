"""The commands that the documentation shows, and a shell to run them in."""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

__all__ = ["PAGES", "ROOT", "RUNNABLE", "Command", "commands", "every_command", "run_shell"]

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Command(NamedTuple):
    """A command of a console block."""

    text: str
    # What it says it exits with ("# exit 1").
    code: int


def commands(page: Path) -> list[Command]:
    """The commands of a page's console blocks but `make`, which would set up a second environment."""
    return [command for command in every_command(page) if not command.text.startswith("make ")]


def every_command(page: Path) -> list[Command]:
    """The commands of a page's console blocks."""
    found: list[Command] = []
    for block in _BLOCK.findall(page.read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                code = re.search(r"#\s*exit (\d+)\s*$", line)
                found.append(Command(line[2:], int(code[1]) if code else 0))
            elif line.startswith("> ") or line == ">":
                found[-1] = Command(f"{found[-1].text}\n{line[2:]}", found[-1].code)
    return found


RUNNABLE = [page for page in PAGES if commands(page)]


def run_shell(
    text: str, folder: Path, programs: Path, *, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command in a folder, with the programs of an environment before all others and no setting of ours or GitHub's."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANSWERKEY_", "GITHUB_"))
    }
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=folder,
        env={**kept, "PATH": path, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
