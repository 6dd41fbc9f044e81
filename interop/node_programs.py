"""Runs a program of `node/` in the folder that its npm packages were installed in: the script's first argument."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["npm_version", "run_node"]

_PLACE = Path(sys.argv[1])


def npm_version(package: str) -> str:
    """The version that was installed."""
    return str(json.loads((_PLACE / "node_modules" / package / "package.json").read_text())["version"])


def run_node(program: str, *arguments: str) -> str:
    """What the program prints."""
    for file in (Path(__file__).parent / "node").glob("*.mjs"):
        shutil.copy(file, _PLACE)
    ran = subprocess.run(
        ["node", program, *arguments], cwd=_PLACE, capture_output=True, check=True, text=True, timeout=60
    )
    return ran.stdout
