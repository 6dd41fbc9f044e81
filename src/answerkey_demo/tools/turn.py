"""The turn: calls tools by name while one question is answered, and records calls, results, errors and sources."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from answerkey_demo.tools.database import ToolExecutionError, list_business_documents, query_database
from answerkey_demo.tools.search import search_document_content

__all__ = ["TOOL_SCHEMAS", "Call", "Turn"]

TOOL_SCHEMAS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "schemas.json").read_text(encoding="utf-8")
)
_TOOLS: dict[str, Callable[..., Any]] = {
    "query_database": query_database,
    "search_document_content": search_document_content,
    "list_business_documents": list_business_documents,
}


class Call(msgspec.Struct):
    """One call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: Any = None
    # "Type: message" if the tool raised
    error: str | None = None
    duration_ms: float = 0.0


class Turn:
    """What happens while one question is answered: the tool calls, in order, and the sources found."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.calls: list[Call] = []
        # what every call raises instead of running: how faults get into real calls
        self.broken: Exception | None = None
        # filled in by a brain that talks to a model
        self.usage: dict[str, int] = {}

    def use(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool and record it; what the tool raises is recorded and raised on."""
        started = time.perf_counter()
        call = Call(f"call_{len(self.calls) + 1}", name, arguments)
        self.calls.append(call)
        try:
            if self.broken is not None:
                raise self.broken
            if name not in _TOOLS:
                raise ToolExecutionError(f"no tool is called {name}; there are {', '.join(_TOOLS)}")
            call.result = _TOOLS[name](self._database, **arguments)
        except TypeError as error:
            call.error = f"ToolExecutionError: {name}: wrong arguments ({error})"
            raise ToolExecutionError(f"{name}: wrong arguments ({error})") from error
        except Exception as error:
            call.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            call.duration_ms = round((time.perf_counter() - started) * 1000, 3)
        return call.result

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query through query_database."""
        given = {"parameters": list(parameters)} if parameters else {}
        rows: list[dict[str, Any]] = self.use("query_database", sql=sql, **given)["rows"]
        return rows

    @property
    def sources(self) -> list[dict[str, Any]]:
        """One source for each document that was found, best first, with all its passages."""
        found: dict[str, dict[str, Any]] = {}
        searches = [c.result for c in self.calls if c.name == "search_document_content" and c.result]
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
