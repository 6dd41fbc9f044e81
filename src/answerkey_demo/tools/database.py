"""query_database: one read-only SELECT over the business database, with limits on rows and on work."""

import sqlite3
from pathlib import Path
from typing import Any

from answerkey_demo.tools.failure import ToolExecutionError

__all__ = ["MAX_ROWS", "SCHEMA", "query_database"]

MAX_ROWS = 200
_MAX_SQL = 4_000
# About a second of work: the handler is called every so many steps of SQLite's machine.
_STEPS_PER_CHECK, _MAX_CHECKS = 20_000, 400
_ALLOWED_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
# Everything else is refused: load_extension, writefile, randomblob (memory), printf with giant widths …
_ALLOWED_FUNCTIONS = frozenset(
    """
        abs avg count max min sum total round coalesce ifnull nullif iif upper lower length substr
        substring trim ltrim rtrim instr replace date julianday strftime group_concat cast like typeof
        row_number rank dense_rank lag lead first_value last_value
    """.split()
)

SCHEMA: dict[str, Any] = {
    "name": "query_database",
    "description": (
        "Run one read-only SQL SELECT (SQLite) over the business database. Tables: properties, "
        "depreciation, units, transactions, "
        "obligations, documents (metadata only). At most 200 rows are returned."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "sql": {"type": "string", "description": "One SELECT statement; use ? for values."},
            "parameters": {
                "type": "array",
                "items": {"type": ["string", "number", "null"]},
                "description": "Values for each ?.",
            },
        },
        "required": ["sql"],
        "additionalProperties": False,
    },
}


def query_database(path: Path, sql: object, parameters: object = None) -> dict[str, Any]:
    """Rows of one SELECT: {"columns", "rows": [{column: value}], "truncated"}. Nothing can be written.

    Four independent guards: the file is opened read-only, query_only is set, an authorizer refuses every
    action but reading, and sqlite3 executes a single statement only.
    """
    if not isinstance(sql, str) or not sql.strip():
        raise ToolExecutionError("query_database needs a SELECT statement in `sql`")
    if len(sql) > _MAX_SQL:
        raise ToolExecutionError(f"the statement is longer than {_MAX_SQL:,} characters")
    if "\0" in sql:
        raise ToolExecutionError("the statement contains a NUL character")
    values = _values(parameters)
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        db.execute("PRAGMA query_only = ON")
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        db.set_authorizer(_authorise)
        checks = 0

        def out_of_budget() -> int:
            nonlocal checks
            checks += 1
            return int(checks > _MAX_CHECKS)

        db.set_progress_handler(out_of_budget, _STEPS_PER_CHECK)
        cursor = db.execute(sql, values)
        if cursor.description is None:
            raise ToolExecutionError("only a SELECT statement is allowed: the database is read-only")
        columns = [column[0] for column in cursor.description]
        rows = cursor.fetchmany(MAX_ROWS + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise ToolExecutionError(_explain(error)) from error
    finally:
        db.close()
    return {
        "columns": columns,
        "rows": [{c: _plain(v) for c, v in zip(columns, row, strict=True)} for row in rows[:MAX_ROWS]],
        "truncated": len(rows) > MAX_ROWS,
    }


def _authorise(
    action: int, first: str | None, second: str | None, database: str | None, source: str | None
) -> int:
    if action in _ALLOWED_ACTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _ALLOWED_FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _explain(error: Exception) -> str:
    text = str(error)
    if "not authorized" in text or "readonly" in text or "prohibited" in text:
        return f"refused: the database is read-only and only SELECT is allowed ({text})"
    if "interrupted" in text:
        return "stopped: the query needs too much work; narrow it down"
    if "one statement" in text:
        return "refused: only one statement at a time"
    return f"the query failed: {text}"


def _values(parameters: object) -> list[Any]:
    if parameters is None:
        return []
    if not isinstance(parameters, list) or not all(
        v is None or isinstance(v, str | int | float) for v in parameters
    ):
        raise ToolExecutionError("`parameters` must be a list of strings, numbers or nulls")
    return parameters


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
