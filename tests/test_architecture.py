"""docs/architecture.md names every package, and one question uses no more files than it says. Modules stay few and readable."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "answerkey"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
# A module is one concept of 300 to 700 lines. Lower the bound on files when modules are merged.
MOST_FILES = 171
MOST_LINES = 800


def test_every_package_is_listed_once() -> None:
    section = PAGE.split("## Packages")[1].split("A module imports only")[0]
    listed = re.findall(r"^    (\w+) {2,}", section, re.MULTILINE)
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    files = {path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")}
    assert sorted(listed) == sorted(folders | files)


def test_one_question_uses_no_more_files_than_the_page_says(
    chatbot: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    golden = write_rows(
        "one.jsonl",
        {"id": "a", "question": "What is 20?", "expected_tools": ["t"], "expected_keywords": ["20"]},
    )
    bot = chatbot(lambda body: {"answer": "It is 20.", "tools_used": ["t"]})
    script = Path(__file__).parent / "files_touched.py"
    done = subprocess.run(
        [sys.executable, str(script), "run", str(golden), "--target", bot.url],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    touched = json.loads(done.stderr)
    assert "targets/http_target.py" in touched
    [limit] = re.findall(r"functions of at most (\d+) files", PAGE)
    assert len(touched) <= int(limit), sorted(touched)


def test_what_decides_about_errors_stays_small() -> None:
    modules = [SOURCE / "detect" / name for name in ("detector.py", "model.py")]
    assert sum(len(module.read_text().splitlines()) for module in modules) <= 500


def test_modules_are_few_and_can_be_read_at_once() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert len(lines) <= MOST_FILES
    assert [(path.name, count) for path, count in lines.items() if count > MOST_LINES] == []
