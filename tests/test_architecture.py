"""The house as docs/architecture.md draws it: the tree, the walks, and names that occur once."""

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "answerkey"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
STEPS = sorted(set(re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)))
# Replaced as a whole by the next change to the text decisions.
_TEXT_WING = ("match", "detect", "grounded")


def defined(path: Path) -> set[str]:
    """Functions, classes and methods of a file, methods as Class.name."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found


def test_there_are_four_walks() -> None:
    assert len(STEPS) > 25


@pytest.mark.parametrize(("file", "name"), STEPS, ids=lambda value: str(value))
def test_every_step_of_a_walk_exists(file: str, name: str) -> None:
    assert name in defined(SOURCE / file)


def test_the_tree_names_every_folder_once() -> None:
    tree = PAGE.split("## The tree")[1].split("`src/answerkey_demo`")[0]
    drawn = re.findall(r"^    (\w+) {2,}", tree, re.MULTILINE)
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    files = {path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")}
    assert sorted(drawn) == sorted(folders | files)


def test_a_file_name_occurs_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE)
        named_for_what_it_serves = place.parts[0] == "cli" or place.parts[:2] == ("server", "views")
        if path.name != "__init__.py" and not named_for_what_it_serves and place.parts[0] not in _TEXT_WING:
            places[path.name].append(str(place))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_one_question_goes_through_no_more_files_than_the_page_says(
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
    [limit] = re.findall(r"goes through at most (\d+) files", PAGE)
    assert len(touched) <= int(limit), sorted(touched)
