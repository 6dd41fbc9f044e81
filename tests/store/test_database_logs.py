"""Recorded replies in a database: `score sqlite:///app.db --sql …`."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .postgres_server import PostgresServer

_TOOLS = (
    '{"tools": [{"name": "query_database", "arguments": {"sql": "SELECT 1"}, "result": [{"rent": 1200}]}]}'
)
_ROWS = [
    (1, "What is the rent?", "It is $1,200.", _TOOLS, None),
    (2, "What is the deposit?", None, '{"tools": []}', "DatabaseError: refused"),
]
_SELECT = "SELECT query AS question, response, details, error FROM audit_log ORDER BY id"


@pytest.fixture
def audit_log(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of two replies on each kind of database."""
    monkeypatch.chdir(tmp_path)
    create = "CREATE TABLE audit_log (id INTEGER, query TEXT, response TEXT, details TEXT, error TEXT)"
    if "://" in store_url:
        import psycopg

        with psycopg.connect(store_url) as server, server.cursor() as cursor:
            cursor.execute(create)
            cursor.executemany("INSERT INTO audit_log VALUES (%s, %s, %s, %s, %s)", _ROWS)
        return store_url
    with sqlite3.connect("app.db") as connection:
        connection.execute(create)
        connection.executemany("INSERT INTO audit_log VALUES (?, ?, ?, ?, ?)", _ROWS)
    connection.close()
    return "sqlite:///app.db"


def test_rows_of_a_query_are_graded(audit_log: str, command: Callable[..., Any], tmp_path: Path) -> None:
    golden = tmp_path / "golden.jsonl"
    golden.write_text(
        '{"question": "What is the rent?", "expected_tools": ["query_database"], "expected_keywords": ["1200"]}\n'
        '{"question": "What is the deposit?", "expected_keywords": ["2400"]}\n'
    )
    mapped = ("--map", "tool_calls=details.tools", "--questions", golden, "-o", "rows.jsonl", "--json")
    done = command("score", audit_log, "--sql", _SELECT, *mapped)
    assert done.code == 0, done.err
    rent, deposit = (json.loads(line) for line in Path("rows.jsonl").read_text().splitlines())
    assert rent["score"] == 1.0
    assert rent["reply"]["tool_calls"][0]["result"] == [{"rent": 1200}]
    assert (deposit["reply"]["text"], deposit["error"]["message"]) == (None, "DatabaseError: refused")
    assert [rent["line"], deposit["line"]] == [1, 2]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT * FROM missing", "missing"),
        ("UPDATE audit_log SET id = 3", ""),
        ("SELECT * FROM audit_log WHERE id > 9", "the query returns no rows"),
        ("SELEC", "syntax error"),
        ("", 'is a database; add --sql "SELECT …"'),
    ],
)
def test_a_query_that_gives_nothing_ends_with_one_line(
    audit_log: str, query: str, problem: str, command: Callable[..., Any]
) -> None:
    refused = command("score", audit_log, "--sql", query)
    assert refused.code == 2
    assert len(refused.err.splitlines()) == 1
    assert problem in refused.err
    assert (
        command("score", audit_log, "--sql", "SELECT MAX(id) AS id, 'x' AS answer FROM audit_log").code == 0
    )
    assert not [path for path in Path().iterdir() if path.suffix != ".db"]


def test_a_bad_row_has_its_number(audit_log: str, command: Callable[..., Any]) -> None:
    rows = "SELECT id, query AS question, response, CASE id WHEN 1 THEN -1 END AS trial FROM audit_log ORDER BY id"
    done = command("score", audit_log, "--sql", rows, "--json")
    [bad] = [
        json.loads(line) for path in Path().glob("*.bad.jsonl") for line in path.read_text().splitlines()
    ]
    assert (done.code, bad["line"]) == (0, 1)
    assert "'trial' must be a whole number" in bad["reason"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("sqlite:///none.db", "--sql", "SELECT 1"), "none.db: no such file"),
        (("text.jsonl", "--sql", "SELECT 1"), "--sql reads a database"),
        (("app.db",), 'is a database; write sqlite:///app.db --sql "SELECT …"'),
        (("sqlite:///text.jsonl", "--sql", "SELECT 1"), "file is not a database"),
        (("sqlite:///app.db", "--sql", "SELECT id FROM t"), "database is locked"),
        (("postgresql://u:secret@localhost:1/db", "--sql", "SELECT 1"), "postgresql://u@localhost:1/db: "),
    ],
)
def test_a_database_that_cannot_be_read(
    arguments: tuple[str, ...], problem: str, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("answerkey.transcripts.files._LOCK_SECONDS", 0.05)
    Path("text.jsonl").write_text('{"question": "?", "answer": "!"}\n' * 200)
    writer = sqlite3.connect("app.db", isolation_level=None)
    writer.execute("CREATE TABLE t (id INTEGER)")
    writer.execute("BEGIN EXCLUSIVE")
    try:
        refused = command("score", *arguments)
    finally:
        writer.close()
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert problem in refused.err
    assert "secret" not in refused.err


def test_an_address_without_a_host(postgres_server: PostgresServer, command: Callable[..., Any]) -> None:
    """Its slashes count: postgresql:///db is not postgresql://db."""
    refused = command("score", "postgresql:///none?host=/nowhere", "--sql", "SELECT 1")
    assert refused.code == 2
    assert "/nowhere" in refused.err


def test_a_mapped_column_of_replies_is_text_like_one_called_answer(
    audit_log: str, command: Callable[..., Any]
) -> None:
    select = """SELECT id, query AS question, '{"patient": 4711, "balance": 86.4}' AS {name} FROM audit_log ORDER BY id"""
    mapped = ("--map", "answer=bot_said", "-o", "mapped.jsonl")
    assert command("score", audit_log, "--sql", select.replace("{name}", "bot_said"), *mapped).code == 0
    assert (
        command("score", audit_log, "--sql", select.replace("{name}", "answer"), "-o", "named.jsonl").code
        == 0
    )
    mapped_rows, named_rows = (
        [json.loads(line) for line in Path(name).read_text().splitlines()]
        for name in ("mapped.jsonl", "named.jsonl")
    )
    assert [row["reply"]["text"] for row in mapped_rows] == ['{"patient": 4711, "balance": 86.4}'] * 2
    assert [row["error"] for row in mapped_rows] == [row["error"] for row in named_rows] == [None, None]
