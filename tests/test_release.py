"""The wheel alone, with its core dependencies: what the documentation shows runs, or names the extra that it needs.

`make release-check` sets ANSWERKEY_RELEASE to the programs of an environment made from the package index, and runs every page.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from documented import ROOT, RUNNABLE, commands, run_shell
from release_environment import core_environment

RELEASED = os.environ.get("ANSWERKEY_RELEASE")
# The pages of the first hour; the one that needs an extra.
SHORT = ("README.md", "quickstart.md", "formats.md", "python.md", "retrieval.md")
# What is documented and needs an extra.
EXTRAS = {
    "answerkey serve": "server",
    "answerkey run golden.jsonl --target bot.py:answer --traces": "observe",
    "answerkey run golden.jsonl --target bot.py:answer --proxy": "observe",
    "answerkey run golden.jsonl --target ws://127.0.0.1:9/": "observe",
    "answerkey demo serve": "server",
    "answerkey judge serve --model weights.gguf": "local-judge",
    "answerkey report latest -o run.parquet": "parquet",
    "answerkey report latest -o run.xlsx": "excel",
    "answerkey lint golden.parquet": "parquet",
    "answerkey export hf golden.jsonl": "parquet",
    "answerkey run golden.jsonl --target bot.py:answer --store postgresql://localhost/answerkey": "postgres",
    "answerkey store check postgresql://localhost/answerkey": "postgres",
    "answerkey score run.txt --qrels qrels.txt --metrics Bpref": "retrieval",
}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(RELEASED) if RELEASED else core_environment(tmp_path_factory.mktemp("release"))


def in_core(text: str, folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    # An empty PYTHONPATH: the checkout that is tested must not stand in for the wheel.
    return run_shell(text, folder, programs, environment={"PYTHONPATH": ""})


def test_it_is_alone(programs: Path, tmp_path: Path) -> None:
    found = in_core("python -c 'import answerkey; print(answerkey.__file__)'", tmp_path, programs)
    assert Path(found.stdout.strip()).is_relative_to(programs.parent)
    for extra in ("aiohttp", "pyarrow", "starlette", "psycopg", "xlsxwriter", "ir_measures", "pytest"):
        assert in_core(f"python -c 'import {extra}'", tmp_path, programs).returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in RUNNABLE if RELEASED or page.name in SHORT], ids=lambda page: page.name
)
def test_the_commands_of_a_page_run_or_name_the_extra(page: Path, tmp_path: Path, programs: Path) -> None:
    for command, code in commands(page):
        done = in_core(command, tmp_path, programs)
        named = done.returncode == 2 and "pip install 'answerkey[" in done.stderr
        assert done.returncode == code or named, f"$ {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def test_every_command_has_help(programs: Path, tmp_path: Path) -> None:
    documented = re.findall(
        r"^## answerkey (\w+)$", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE
    )
    assert "run" in documented
    script = (
        "import sys\n"
        "from answerkey.cli.main import run_command\n"
        "sys.exit(any(run_command([name, '--help']) for name in sys.argv[1:]))\n"
    )
    done = in_core(f'python -c "{script}" {" ".join(documented)}', tmp_path, programs)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_needs_an_extra_names_it(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(
        '{"id": "a", "question": "Where?", "expected_keywords": ["Montrose"]}\n'
    )
    (tmp_path / "bot.py").write_text("def answer(question):\n    return 'In Montrose.'\n")
    (tmp_path / "golden.parquet").write_bytes(b"PAR1 PAR1")
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    (tmp_path / "run.txt").write_text("q Q0 d 1 1.0 x\n")
    (tmp_path / "qrels.txt").write_text("q 0 d 1\n")
    assert in_core("answerkey run golden.jsonl --target bot.py:answer", tmp_path, programs).returncode == 0
    for command, extra in EXTRAS.items():
        done = in_core(command, tmp_path, programs)
        assert done.returncode == 2, f"$ {command}\n{done.stderr}"
        assert done.stderr.endswith(f"needs an optional dependency: pip install 'answerkey[{extra}]'\n")
        assert done.stderr.count("\n") == 1
