"""`answerkey export`, through the real command."""

import subprocess
import sys
from pathlib import Path

import pytest

from answerkey.datasets.golden_sets import read_questions


def answerkey(*arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "answerkey", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "golden.yaml"
    path.write_text("- {id: a, question: Hi, expected_keywords: [[x, y]], relevant_documents: {d: 2}}\n")
    return path


def test_a_set_goes_through_json_lines_unchanged(golden: Path) -> None:
    done = answerkey("export", "jsonl", golden, "-o", "golden.jsonl", cwd=golden.parent)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == "wrote 1 questions to golden.jsonl\n"
    assert read_questions(golden.parent / "golden.jsonl").hash == read_questions(golden).hash
    shown = answerkey("export", "csv", golden, cwd=golden.parent)
    assert shown.stdout.splitlines()[0] == "id,question,expected_keywords,relevant_documents"


def test_a_format_of_several_files_goes_to_a_folder(golden: Path) -> None:
    done = answerkey("export", "beir", golden, "-o", "set", cwd=golden.parent)
    assert done.returncode == 0, done.stderr
    assert "note: not carried over: 'expected_keywords' (question a)" in done.stderr
    assert (golden.parent / "set" / "qrels" / "test.tsv").read_text().endswith("a\td\t2\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trek", "golden.yaml"], "unknown exporter 'trek'; did you mean 'trec'?"),
        (["excel", "golden.yaml"], "known: beir, bfcl, csv, deepeval, hf, inspect, jsonl, langfuse"),
        (["trec", "golden.yaml"], "trec has several files; add -o FOLDER"),
        (["jsonl", "golden.yaml", "-o", "x.csv"], "-o x.csv: write to a .jsonl file"),
        (["beir", "golden.yaml", "-o", "golden.yaml"], "cannot create the folder"),
        (["jsonl", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
    ],
)
def test_mistakes_are_one_line(golden: Path, arguments: list[str], message: str) -> None:
    done = answerkey("export", *arguments, cwd=golden.parent)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
