"""query_database and list_business_documents: the business database, read-only, with limits on rows and on work."""

import sqlite3
from pathlib import Path
from typing import Any

__all__ = ["MAX_ROWS", "ToolExecutionError", "list_business_documents", "query_database"]

MAX_ROWS = 200
_MAX_SQL = 4_000
# About a second of work: the handler is called every so many steps of SQLite's machine.
_STEPS_PER_CHECK, _MAX_CHECKS = 20_000, 400
_ALLOWED_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
# Everything else is refused: load_extension, writefile, randomblob (memory), printf with giant widths …
_ALLOWED_FUNCTIONS = frozenset(
    """
        abs avg count max min sum total round coalesce ifnull nullif iif upper lower length substr substring
        trim ltrim rtrim instr replace date julianday strftime group_concat cast like typeof row_number rank
        dense_rank lag lead first_value last_value
    """.split()
)
# What SQLite says → what the caller is told.
_READ_ONLY = "refused: the database is read-only, and only SELECT from its tables is allowed"
_REASONS = {
    "not authorized": _READ_ONLY,
    "readonly": _READ_ONLY,
    "prohibited": _READ_ONLY,
    "interrupted": "stopped: the query needs too much work; narrow it down",
    "one statement": "refused: only one statement at a time",
}


class ToolExecutionError(Exception):
    """A tool was called and could not do it; the message is meant for the brain that called it."""


def query_database(path: Path, sql: object, parameters: object = None) -> dict[str, Any]:
    """Rows of one SELECT: {"columns", "rows": [{column: value}], "truncated"}. Nothing can be written.

    Four independent guards: the file is opened read-only, query_only is set, an authorizer refuses every
    action but reading, and sqlite3 executes a single statement only.
    """
    if not isinstance(sql, str) or not sql.strip():
        raise ToolExecutionError("query_database needs a SELECT statement in `sql`")
    if len(sql) > _MAX_SQL or "\0" in sql:
        raise ToolExecutionError(f"the statement is longer than {_MAX_SQL:,} characters or contains a NUL")
    values = [] if parameters is None else parameters
    if not isinstance(values, list) or not all(v is None or isinstance(v, str | int | float) for v in values):
        raise ToolExecutionError("`parameters` must be a list of strings, numbers or nulls")
    checks = iter(range(_MAX_CHECKS))
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        db.execute("PRAGMA query_only = ON")
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        db.set_authorizer(_authorise)
        db.set_progress_handler(lambda: int(next(checks, None) is None), _STEPS_PER_CHECK)
        cursor = db.execute(sql, values)
        if cursor.description is None:
            raise ToolExecutionError("only a SELECT statement is allowed: the database is read-only")
        columns = [column[0] for column in cursor.description]
        rows = cursor.fetchmany(MAX_ROWS + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        reason = next((told for said, told in _REASONS.items() if said in str(error)), "the query failed")
        raise ToolExecutionError(f"{reason} ({error})") from error
    finally:
        db.close()
    return {
        "columns": columns,
        "rows": [{c: _plain(v) for c, v in zip(columns, row, strict=True)} for row in rows[:MAX_ROWS]],
        "truncated": len(rows) > MAX_ROWS,
    }


def list_business_documents(
    path: Path,
    *,
    type: object = None,  # noqa: A002 (the tool's schema has it)
    property_id: object = None,
    year: object = None,
) -> dict[str, Any]:
    """The documents that pass the filters, oldest first: {"documents": [...], "count"}."""
    wanted = {"type": type, "property_id": property_id, "substr(dated_on, 1, 4)": year and str(year)}
    filters = {column: value for column, value in wanted.items() if value is not None}
    where = " AND ".join(f"{column} = ?" for column in filters) or "1 = 1"
    sql = (
        "SELECT id, title, type, dated_on, property_id, expires_on, pages FROM documents "
        f"WHERE {where} ORDER BY dated_on, id"
    )
    documents = query_database(path, sql, list(filters.values()))["rows"]
    return {"documents": documents, "count": len(documents)}


def _authorise(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    known = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _ALLOWED_FUNCTIONS
    # what documents say is found by search_document_content only
    hidden = action == sqlite3.SQLITE_READ and (first or "").startswith("passages")
    allowed = known or (action in _ALLOWED_ACTIONS and not hidden)
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
