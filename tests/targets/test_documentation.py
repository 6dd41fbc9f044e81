"""The examples of docs/targets.md are real: its tables resolve, its programs answer."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from answerkey.targets.model_target import ModelTarget
from answerkey.targets.resolve import resolve_target

from .asking import ask

PAGE = (Path(__file__).parents[2] / "docs" / "targets.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", [block for block in blocks("toml") if "[targets." in block])
def test_tables(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text("def query_database(sql: str):\n    'Runs a query.'\n")
    tables = tomllib.loads(block)["targets"]
    for name in tables:
        target = resolve_target(name, settings=tables, folder=tmp_path)
        assert target.name == name
        if isinstance(target, ModelTarget):
            assert len(target.settings.tools) == 5


def test_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function, program = blocks("python")
    (tmp_path / "bot.py").write_text(function)
    reply = ask(resolve_target("bot.py:bot"), "hi")
    assert (reply.text, reply.evidence.tools_observed) == ("You asked: hi", True)
    (tmp_path / "bot.py").write_text(program)
    assert ask(resolve_target(f"cmd:{sys.executable} bot.py"), "hi").text == "HI"


def test_records(tmp_path: Path) -> None:
    (tmp_path / "replies.jsonl").write_text(blocks("json")[0])
    target = resolve_target(f"replay:{tmp_path}/replies.jsonl")
    assert ask(target, "?", question_id="q1").text == "900 S 9th St"
    assert ask(target, "?", question_id="q3", turn=1).text == "second turn"
