"""The tools that the assistant works with, the turn, which calls them by name and records their calls, and faults on purpose.

The request header `Answerkey-Fault` breaks one call of one tool: `tool=query_database; kind=error; call=1`, with the message in
`error` or the replacement as JSON in `value`, both percent-encoded. Nothing else is needed to honour it, in any language.
"""

import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from answerkey_demo.language import STOPWORDS, content_stems, normalise, words_of


class Fault(msgspec.Struct):
    """One call of one tool that fails, or brings another result."""

    tool: str
    # calls of the tool before the one that is broken
    calls_before: int
    # what is raised; empty: `value` is the result
    error: str
    value: Any = None
    landed: bool = False

    def is_due(self, tool: str) -> bool:
        """Count a call; whether it is the one to break."""
        if tool != self.tool or self.landed:
            return False
        self.calls_before -= 1
        self.landed = self.calls_before < 0
        return self.landed


def read_fault(header: str | None) -> Fault | None:
    """The fault in a header; None without one, or if it cannot be read."""
    parts = dict(part.strip().partition("=")[::2] for part in (header or "").split(";"))
    given = {name: unquote(text) for name, text in parts.items()}
    call = given.get("call", "1")
    if not given.get("tool") or not call.isdecimal():
        return None
    error = given.get("error", "")
    try:
        value = json.loads(given["value"]) if "value" in given else None
    except (ValueError, RecursionError):
        return None
    if value is None and not error:
        error = "ToolError: the service is unavailable (HTTP 503)"
    return Fault(given["tool"], int(call) - 1, error, value)


def headers_of(fault: Fault | None) -> dict[str, str]:
    """What the response says of a fault: whether it landed."""
    return {"answerkey-fault": "landed"} if fault is not None and fault.landed else {}


_SCHEMAS = Path(__file__).parent / "tool_schemas.json"
TOOL_SCHEMAS: list[dict[str, Any]] = json.loads(_SCHEMAS.read_text(encoding="utf-8"))
MAX_ROWS = 200
_MAX_SQL = 4_000
# About a second of work: the handler is called after a number of steps of SQLite's machine.
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
# What SQLite says → what the caller gets.
_READ_ONLY = "refused: the database is read-only, and only SELECT from its tables is allowed"
_REASONS = dict.fromkeys(("not authorized", "readonly", "prohibited"), _READ_ONLY) | {
    "interrupted": "stopped: the query needs too much work; narrow it down",
    "one statement": "refused: only one statement at a time",
    "": "the query failed",
}
# Passages far below the best one are noise.
_KEEP = 0.45
_MAX_TERMS, _MAX_LIMIT, _MAX_OF_ONE = 40, 20, 3
# A word of a heading or a title says more than one of the text.
_BEST = """
    SELECT document AS document_id, passages.title, heading, text, -bm25(passages, 0, 1.5, 2.0, 1.0) AS score
    FROM passages JOIN documents ON documents.id = document
    WHERE passages MATCH :words AND :document IN (document, '') AND :type IN (type, '')
    ORDER BY score DESC, passages.rowid LIMIT 60
"""
_SEARCHED = "SELECT id FROM documents WHERE :document IN (id, '') AND :type IN (type, '')"


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
    with _reading(path) as db:
        db.execute("PRAGMA query_only = ON")
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        db.set_authorizer(_authorise)
        db.set_progress_handler(lambda: int(next(checks, None) is None), _STEPS_PER_CHECK)
        cursor = db.execute(sql, values)
        if cursor.description is None:
            raise ToolExecutionError("only a SELECT statement is allowed: the database is read-only")
        rows = cursor.fetchmany(MAX_ROWS + 1)
    columns = [column[0] for column in cursor.description]
    return {
        "columns": columns,
        "rows": [
            {
                c: v.decode("utf-8", "replace") if isinstance(v, bytes) else v
                for c, v in zip(columns, row, strict=True)
            }
            for row in rows[:MAX_ROWS]
        ],
        "truncated": len(rows) > MAX_ROWS,
    }


def _authorise(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    known = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _ALLOWED_FUNCTIONS
    # what documents say is found by search_document_content only
    hidden = action == sqlite3.SQLITE_READ and (first or "").startswith("passages")
    allowed = known or (action in _ALLOWED_ACTIONS and not hidden)
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, read-only; what SQLite refuses is reported to the brain."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        try:
            yield db
        except (sqlite3.Error, sqlite3.Warning) as error:
            reason = next(told for said, told in _REASONS.items() if said in str(error))
            raise ToolExecutionError(f"{reason} ({error})") from error


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
    columns = "id, title, type, dated_on, property_id, expires_on, pages"
    sql = f"SELECT {columns} FROM documents WHERE {where} ORDER BY dated_on, id"
    documents = query_database(path, sql, list(filters.values()))["rows"]
    return {"documents": documents, "count": len(documents)}


def search_document_content(
    path: Path,
    query: object = None,
    *,
    document_id: str | None = None,
    type: str | None = None,  # noqa: A002 (the tool's schema has it)
    limit: object = 5,
) -> dict[str, Any]:
    """The best passages: {"passages": [{"document_id", "title", "heading", "text", "score"}], "documents_searched"}.

    They are ranked by the words that they share with the query (BM25). The score of the best one is the share of the
    query's words that it has, that of the others in proportion.
    """
    if not isinstance(query, str) or not query.strip():
        raise ToolExecutionError("search_document_content needs some words in `query`")
    if not isinstance(limit, int) or not 1 <= limit <= _MAX_LIMIT:
        raise ToolExecutionError(f"`limit` must be a number from 1 to {_MAX_LIMIT}")
    said = " ".join(w.text for w in words_of(normalise(query)) if w.text not in STOPWORDS)
    terms = list(dict.fromkeys(re.findall(r"[a-z0-9]+", said)))[:_MAX_TERMS]
    given = {"words": " OR ".join(f'"{term}"' for term in terms) or '""'}
    given |= {"document": document_id or "", "type": type or ""}
    with _reading(path) as db:
        found = [dict(row) for row in db.execute(_BEST, given)]
        searched = len(db.execute(_SEARCHED, given).fetchall())
    if document_id and not searched:
        raise ToolExecutionError(f"Document not found: {document_id}")
    passages: list[dict[str, Any]] = []
    if found:
        best, asked = found[0], content_stems(" ".join(terms))
        in_best = asked & content_stems(f"{best['title']} {best['heading']} {best['text']}")
        scale = max(1, len(in_best)) / len(asked) / best["score"] if asked else 0.0
        of_one: Counter[str] = Counter()
        for passage in [p for p in found if p["score"] >= _KEEP * best["score"]]:
            of_one[passage["document_id"]] += 1
            # no document crowds out the others
            if document_id or of_one[passage["document_id"]] <= _MAX_OF_ONE:
                passages.append(passage | {"score": round(passage["score"] * scale, 4)})
    return {"passages": passages[:limit], "documents_searched": searched}


_TOOLS: dict[str, Callable[..., Any]] = {
    "query_database": query_database,
    "search_document_content": search_document_content,
    "list_business_documents": list_business_documents,
}


# The list that a tool's result has.
_LISTS = {
    "query_database": "rows",
    "search_document_content": "passages",
    "list_business_documents": "documents",
}


def _is_result(name: str, value: object) -> bool:
    """Whether a value has the form of a tool's result."""
    items = value.get(_LISTS[name]) if isinstance(value, dict) else None
    return isinstance(items, list) and all(isinstance(item, dict) for item in items)


class Turn:
    """What happens while one question is answered: the tool calls, in order, and the sources found."""

    def __init__(self, database: Path) -> None:
        self._database = database
        # id, name, arguments, result, error ("Type: message" if the tool raised) and duration_ms of each
        self.calls: list[dict[str, Any]] = []
        # what every call raises instead of running: how faults get into real calls
        self.broken: Exception | None = None
        # one call that is broken on purpose, by the caller
        self.fault: Fault | None = None
        # filled in by a brain that talks to a model
        self.usage: dict[str, int] = {}

    def use(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool and record it; what the tool raises is recorded and raised on."""
        started = time.perf_counter()
        call: dict[str, Any] = {"id": f"call_{len(self.calls) + 1}", "name": name, "arguments": arguments}
        call |= {"result": None, "error": None}
        self.calls.append(call)
        try:
            if self.broken is not None:
                raise self.broken
            due = self.fault if self.fault is not None and self.fault.is_due(name) else None
            if due is not None and due.error:
                raise ToolExecutionError(due.error)
            if name not in _TOOLS:
                raise ToolExecutionError(f"no tool is called {name}; there are {', '.join(_TOOLS)}")
            try:
                call["result"] = due.value if due is not None else _TOOLS[name](self._database, **arguments)
            except TypeError as error:
                raise ToolExecutionError(f"{name}: wrong arguments ({error})") from error
        except Exception as error:
            call["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            call["duration_ms"] = round((time.perf_counter() - started) * 1000, 3)
        if due is not None and not _is_result(name, due.value):
            raise ToolExecutionError(f"{name} returned something that cannot be read")
        return call["result"]

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query through query_database."""
        given = {"parameters": list(parameters)} if parameters else {}
        return list(self.use("query_database", sql=sql, **given)["rows"])

    @property
    def sources(self) -> list[dict[str, Any]]:
        """One source for each document that was found, best first, with all its passages."""
        found: dict[str, dict[str, Any]] = {}
        name = "search_document_content"
        searches = [c["result"] for c in self.calls if c["name"] == name and _is_result(name, c["result"])]
        for passage in [p for result in searches for p in result["passages"]]:
            key, text = passage["document_id"], passage["text"]
            new = {"id": key, "rank": 0, "score": 0.0, "text": "", "title": passage["title"]}
            source = found.setdefault(key, new)
            source["score"] = max(source["score"], passage["score"])
            if text not in source["text"]:
                section = f"{passage['heading']}: {text}" if passage["heading"] else text
                source["text"] = f"{source['text']}\n\n{section}".strip()
        ordered = sorted(found.values(), key=lambda s: -s["score"])
        return [{**source, "rank": rank} for rank, source in enumerate(ordered, 1)]
