"""query_database reads, and nothing that is sent through it can write."""

import hashlib
from pathlib import Path

import pytest

from answerkey_demo import Chatbot
from answerkey_demo.tools import MAX_ROWS, ToolExecutionError, query_database

HOSTILE = [
    "DROP TABLE transactions",
    "drop table if exists properties",
    "DELETE FROM transactions",
    "DELETE FROM transactions RETURNING *",
    "UPDATE properties SET purchase_price = 1",
    "INSERT INTO properties (id) VALUES ('X')",
    "REPLACE INTO units (id) VALUES ('U1')",
    "CREATE TABLE evil (a)",
    "CREATE TEMP TABLE evil (a)",
    "CREATE TRIGGER t AFTER INSERT ON units BEGIN DELETE FROM units; END",
    "CREATE VIRTUAL TABLE evil USING fts5(a)",
    "ALTER TABLE units RENAME TO gone",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA table_info(units)",
    "SELECT * FROM pragma_database_list",
    "ATTACH DATABASE '/tmp/evil.db' AS evil",
    "ATTACH DATABASE ':memory:' AS evil",
    "DETACH DATABASE main",
    "VACUUM",
    "VACUUM INTO '/tmp/stolen.db'",
    "REINDEX",
    "ANALYZE",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "SAVEPOINT s",
    "SELECT 1; DROP TABLE transactions",
    "SELECT 1; SELECT 2",
    "SELECT 1 /* ; */ ; DELETE FROM units --",
    "-- harmless\nDROP TABLE units",
    "/* SELECT */ DELETE FROM units",
    "WITH gone AS (SELECT id FROM units) DELETE FROM units WHERE id IN gone",
    "WITH x AS (SELECT 1) INSERT INTO units (id) SELECT 'X' FROM x",
    "EXPLAIN DELETE FROM units",
    "SELECT load_extension('/tmp/evil.so')",
    "SELECT writefile('/tmp/evil', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT hex(randomblob(1000000000))",
    "SELECT zeroblob(1000000000)",
    "SELECT printf('%*s', 1000000000, 'x')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT text FROM passages",
    "SELECT block FROM passages_data",
    "",
    "   ",
    "SELECT 1\0; DROP TABLE units",
    "not sql at all",
]


def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("statement", HOSTILE)
def test_refuses_everything_but_reading(bot: Chatbot, statement: str) -> None:
    path = bot.knowledge.database
    before, files = content(path), sorted(path.parent.iterdir())
    with pytest.raises(ToolExecutionError):
        query_database(path, statement)
    assert content(path) == before
    assert sorted(path.parent.iterdir()) == files


def test_reads_with_bound_values(bot: Chatbot) -> None:
    path = bot.knowledge.database
    result = query_database(path, "SELECT tenant FROM units WHERE label = ?", ["Unit A"])
    assert result == {"columns": ["tenant"], "rows": [{"tenant": "Marisol Quintana"}], "truncated": False}


def test_a_value_is_never_read_as_sql(bot: Chatbot) -> None:
    path = bot.knowledge.database
    assert query_database(path, "SELECT id FROM units WHERE label = ?", ["x' OR '1'='1"])["rows"] == []


def test_common_table_expressions_and_windows_may_read(bot: Chatbot) -> None:
    sql = (
        "WITH monthly AS (SELECT substr(date, 1, 7) AS month, SUM(amount) AS total FROM transactions GROUP BY 1) "
        "SELECT month, total, rank() OVER (ORDER BY total DESC) AS place FROM monthly LIMIT 3"
    )
    assert len(query_database(bot.knowledge.database, sql)["rows"]) == 3


def test_rows_are_limited_and_that_is_said(bot: Chatbot) -> None:
    result = query_database(bot.knowledge.database, "SELECT id FROM transactions")
    assert len(result["rows"]) == MAX_ROWS
    assert result["truncated"]


def test_endless_work_is_stopped(bot: Chatbot) -> None:
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
    with pytest.raises(ToolExecutionError, match="too much work"):
        query_database(bot.knowledge.database, sql)


@pytest.mark.parametrize("parameters", ["text", {"a": 1}, [["nested"]], [b"bytes"]])
def test_values_of_other_types_are_refused(bot: Chatbot, parameters: object) -> None:
    with pytest.raises(ToolExecutionError, match="list of strings"):
        query_database(bot.knowledge.database, "SELECT 1", parameters)


def test_a_statement_of_absurd_length_is_refused(bot: Chatbot) -> None:
    with pytest.raises(ToolExecutionError, match="longer than"):
        query_database(bot.knowledge.database, "SELECT 1 -- " + "x" * 10_000)
