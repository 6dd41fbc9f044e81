"""The example plug-in is built, installed and used: its target, scorer, importer and report through the command line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "answerkey-example-plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plug-in as pip installs it; built from a copy, without the network."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(
        EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    )
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", folder / "site", folder / "source"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture
def answerkey(installed: Path, tmp_path: Path) -> Any:
    """The command line in a process that has the plug-in."""
    path = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH")]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSWERKEY_")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "answerkey", *arguments],
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def test_all_four_parts_are_used_like_built_in_ones(answerkey: Any, tmp_path: Path) -> None:
    (tmp_path / "faq.txt").write_text("What does it cost? $5\nWhen do you open? At nine\nnot a question\n")
    imported = answerkey("import", "faq", "faq.txt", "-o", "golden.jsonl")
    assert imported.returncode == 0, imported.stderr
    assert "wrote 2 questions" in imported.stderr
    (tmp_path / "answerkey.toml").write_text(
        "[scoring.weights]\ntool_usage = 0.4\nresponse_quality = 0.4\nerror_handling = 0.1\n"
        "[scorers.brevity]\nwords = 2\nweight = 0.1\n"
    )
    ended = answerkey(
        *("run", "golden.jsonl", "--target", "canned:It costs five dollars", "--json"),
        *("--gate", "brevity >= 0.4", "-o", "run.summary.txt"),
    )
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["run"]["target"] == "canned"
    assert document["summary"]["components"]["brevity"] == 0.5
    assert document["results"][0]["components"]["brevity"]["reason"] == "4 words"
    head, *lines = (tmp_path / "run.summary.txt").read_text().splitlines()
    assert head.startswith("canned: ")
    assert [line.partition(":")[0] for line in lines] == ["faq-1", "faq-2"]


def test_its_scorer_can_be_a_check_and_is_named_where_it_is_mistyped(answerkey: Any, tmp_path: Path) -> None:
    golden = tmp_path / "golden.jsonl"
    golden.write_text(json.dumps({"question": "a?", "checks": [{"brevity": {"words": 1}}]}))
    ended = answerkey("run", "golden.jsonl", "--target", "canned:Two words", "--json")
    assert json.loads(ended.stdout)["summary"]["metrics"]["checks"] == 0.5
    golden.write_text(json.dumps({"question": "a?", "checks": [{"brevety": {}}]}))
    refused = answerkey("run", "golden.jsonl", "--target", "canned:Two words")
    assert refused.returncode == 2
    assert (
        "golden.jsonl:1: 'checks' item 1: unknown kind of check 'brevety'; did you mean 'brevity'?"
        in refused.stderr
    )


def test_it_is_small() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in (EXAMPLE / "src").rglob("*.py"))
    assert lines < 100
