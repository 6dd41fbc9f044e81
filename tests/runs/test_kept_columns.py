"""Lines and other columns of a log's rows in its outputs."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROWS = [
    {
        "id": "a",
        "question": "Who?",
        "expected_keywords": ["Ann"],
        "answer": "Bob",
        "chat_id": 7,
        "user": {"n": 1},
    },
    {"id": "b", "question": "Where?", "expected_keywords": ["Rome"], "answer": "Rome", "chat_id": "x y"},
    {"id": "a", "question": "Who?", "expected_keywords": ["Ann"], "answer": "Ann"},
]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_rows: Callable[..., Path]) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_rows("log.jsonl", *ROWS)


def test_rows_have_their_line_and_the_columns_that_were_asked_for(log: Path, command: Any) -> None:
    keep = ("--keep", "chat_id", "--keep", "user")
    outputs = [f"-ox.{ending}" for ending in ("csv", "jsonl", "xlsx", "parquet")]
    assert command("score", "log.jsonl", *keep, *outputs).code == 0
    assert command("score", "log.jsonl", *keep, "-o", "alone.parquet").code == 0
    with Path("x.csv").open(encoding="utf-8-sig", newline="") as file:
        table = [(row["id"], row["line"], row["chat_id"], row["user"]) for row in csv.DictReader(file)]
    assert table == [("a", "1", "7", '{"n":1}'), ("b", "2", "x y", ""), ("a", "3", "", "")]
    rows = [json.loads(line) for line in Path("x.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert rows[0]["columns"] == {"chat_id": 7, "user": {"n": 1}}
    parquet = pytest.importorskip("pyarrow.parquet", reason="the parquet extra is not installed")
    for name in ("x", "alone"):
        rows = parquet.read_table(f"{name}.parquet", columns=["line", "columns"]).to_pylist()
        assert [row["line"] for row in rows] == [1, 2, 3]
        assert [row["columns"] and row["columns"]["chat_id"] for row in rows] == ["7", "x y", None]
        assert rows[0]["columns"]["user"] == '{"n":1}'
    document = command("score", "log.jsonl", "--json").document
    assert [row["line"] for row in document["results"]] == [1, 2, 3]
    assert "columns" not in document["results"][0]


def test_tables_list_the_worst_first_on_request(log: Path, command: Any) -> None:
    assert command("score", "log.jsonl", "--worst-first", "-o", "x.csv").code == 0
    with Path("x.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [row["line"] for row in csv.DictReader(file)] == ["1", "2", "3"]
    log.write_text("\n".join(json.dumps(row) for row in reversed(ROWS)))
    assert command("score", "log.jsonl", "--worst-first", "-o", "x.csv").code == 0
    with Path("x.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [(row["id"], row["line"]) for row in csv.DictReader(file)] == [
            ("a", "3"),
            ("a", "1"),
            ("b", "2"),
        ]


def test_a_column_that_no_row_has_is_reported(log: Path, command: Any) -> None:
    document = command("score", "log.jsonl", "--keep", "chat_id", "--keep", "chatid", "--json").document
    assert "no row has the column 'chatid' (--keep)" in document["warnings"]
    assert not any("'chat_id'" in line for line in document["warnings"])
