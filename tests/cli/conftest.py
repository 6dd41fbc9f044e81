"""The real command, run in a folder of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Answerkey = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def answerkey(tmp_path: Path) -> Answerkey:
    def run(*arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
        env = {name: value for name, value in os.environ.items() if not name.startswith("ANSWERKEY_")}
        return subprocess.run(
            [sys.executable, "-m", "answerkey", *map(str, arguments)],
            cwd=tmp_path,
            env={**env, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
