"""The toolbox: calls a tool by name and records the call, result or error, duration and sources."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from answerkey_demo.knowledge import Knowledge
from answerkey_demo.tools.database import list_business_documents, query_database
from answerkey_demo.tools.failure import ToolExecutionError
from answerkey_demo.tools.search import Searcher

__all__ = ["TOOL_SCHEMAS", "Call", "Toolbox", "Turn"]

TOOL_SCHEMAS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "schemas.json").read_text(encoding="utf-8")
)


class Call(msgspec.Struct):
    """One call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: Any = None
    # "Type: message" if the tool raised
    error: str | None = None
    duration_ms: float = 0.0


class Toolbox:
    """The tools over one knowledge folder; shared by all conversations."""

    def __init__(self, knowledge: Knowledge, *, semantic: bool = True) -> None:
        self.knowledge = knowledge
        self.searcher = Searcher(knowledge, semantic=semantic)
        self._tools: dict[str, Callable[..., Any]] = {
            "query_database": partial(query_database, knowledge.database),
            "search_document_content": self.searcher.search,
            "list_business_documents": partial(list_business_documents, knowledge.database),
        }

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Run a tool; a wrong name or wrong arguments raise ToolExecutionError as well."""
        if name not in self._tools:
            raise ToolExecutionError(f"no tool is called {name}; there are {', '.join(self._tools)}")
        try:
            return self._tools[name](**arguments)
        except TypeError as error:
            raise ToolExecutionError(f"{name}: wrong arguments ({error})") from error


class Turn:
    """What happens while one question is answered: the tool calls, in order, and the sources found."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
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
            call.result = self.toolbox.call(name, arguments)
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
            text = f"{passage['heading']}: {passage['text']}" if passage["heading"] else passage["text"]
            new = {
                "id": passage["document_id"],
                "rank": 0,
                "score": 0.0,
                "text": "",
                "title": passage["title"],
            }
            source = found.setdefault(passage["document_id"], new)
            source["score"] = max(source["score"], passage["score"])
            if text not in source["text"]:
                source["text"] = f"{source['text']}\n\n{text}".strip()
        ordered = sorted(found.values(), key=lambda s: -s["score"])
        return [{**source, "rank": rank} for rank, source in enumerate(ordered, 1)]
