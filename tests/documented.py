"""The commands that the documentation shows, and a shell to run them in.

Commands in ```bash blocks are run, one by one, each with its here-document or continuation lines. Those in ```sh blocks need
something that the tests lack, such as a chatbot on port 8000, and are only shown.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["PAGES", "ROOT", "RUNNABLE", "Command", "commands", "every_command", "run_shell"]

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")


class Command(NamedTuple):
    """A command of a bash block."""

    text: str
    # The exit code that its comment announces ("# exit 1").
    code: int


def commands(page: Path) -> list[Command]:
    """The commands of a page but `make`, which would set up a second environment."""
    return [command for command in every_command(page) if not command.text.startswith("make ")]


def every_command(page: Path) -> list[Command]:
    """The commands of a page's bash blocks."""
    return [
        command for block in _BLOCK.findall(page.read_text()) for command in _split(iter(block.splitlines()))
    ]


def _split(lines: Iterator[str]) -> Iterator[Command]:
    """A block's commands, each with its continuation lines and here-document."""
    for first in lines:
        if not first.strip() or first.startswith("#"):
            continue
        code = re.search(r"#\s*exit (\d+)\s*$", first)
        text = first
        while text.endswith("\\"):
            text += "\n" + next(lines)
        if end := _HERE_DOCUMENT.search(first):
            for line in lines:
                text += "\n" + line
                if line == end[1]:
                    break
        yield Command(text, int(code[1]) if code else 0)


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
