"""Ordinary files, as people and other programs save them, through the command line: one meaning in every format."""

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from workbook_files import write_workbook

Command = Callable[..., Any]
Write = Callable[..., Path]
FORMATS = ("jsonl", "json", "yaml", "csv", "tsv", "xlsx", "parquet", "db")
TOOLS_GOLDEN = (
    {"id": "q1", "question": "Where is it?", "expected_tools": ["db", "map"], "expected_keywords": ["Main St"]},
    {"id": "q2", "question": "Say hello", "tools": "none", "expected_keywords": ["hello"]},
)


def write_log(folder: Path, ending: str, rows: list[dict[str, str]]) -> tuple[str, ...]:
    """Write a log of texts in a format; returns the arguments of `score` that read it."""
    path = folder / f"log.{ending}"
    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending in ("json", "yaml"):
        # JSON is YAML too.
        path.write_text(json.dumps(rows))
    elif ending in ("csv", "tsv"):
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter=",\t"[ending == "tsv"]).writerows(table)
    elif ending == "xlsx":
        write_workbook(path, {"Log": table})
    elif ending == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with sqlite3.connect(path) as database:
            database.execute(f"CREATE TABLE log ({', '.join(rows[0])})")
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(f"INSERT INTO log VALUES ({marks})", table[1:])
        return f"sqlite:///{path}", "--sql", "SELECT * FROM log"
    return (str(path),)


@pytest.mark.parametrize(
    ("two", "none"),
    [
        ("db; map", "none"),
        ("db, map", "n/a"),
        ("db|map", "-"),
        ("db\nmap", "None"),
        ("1. db\n2. map", "null"),
        ('["db", "map"]', '["none"]'),
        ("['db', 'map']", "[]"),
        ("db -> map", "—"),
        ("db;map;", "no tools"),
    ],
)
def test_tools_given_as_text_mean_the_same_in_every_format(
    two: str, none: str, command: Command, write_rows: Write, tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *TOOLS_GOLDEN)
    rows = [
        {"id": "q1", "answer": "It is 5 Main St", "tools_used": two},
        {"id": "q2", "answer": "hello", "tools_used": none},
    ]
    for ending in FORMATS:
        log = write_log(tmp_path, ending, rows)
        done = command("score", *log, "--questions", "golden.jsonl", "--json")
        results = done.document["results"]
        assert [result["reply"]["tools_used"] for result in results] == [["db", "map"], []], ending
        assert [result["score"] for result in results] == [1.0, 1.0], ending


def test_a_golden_set_that_expects_the_tool_none_is_refused_with_the_remedy(
    command: Command, write_rows: Write
) -> None:
    write_rows("golden.jsonl", {"question": "Hello?", "expected_tools": ["none"]})
    done = command("lint", "golden.jsonl")
    assert done.code == 2
    assert '"tools": "none"' in done.out


@pytest.mark.parametrize(("cell", "field"), [("none", {"tools": "none"}), ("n/a", {}), ("-", {"tools": "none"})])
def test_a_cell_says_that_no_tool_or_any_tool_is_expected(
    cell: str, field: dict[str, str], command: Command, tmp_path: Path
) -> None:
    (tmp_path / "golden.csv").write_text(f"id,question,expected_tools\nq1,Who?,{cell}\nq2,Where?,db\n")
    command("export", "jsonl", "golden.csv", "-o", "golden.jsonl")
    first = json.loads((tmp_path / "golden.jsonl").read_text().splitlines()[0])
    assert first == {"id": "q1", "question": "Who?", **field}
