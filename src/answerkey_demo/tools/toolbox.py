"""The toolbox: calls a tool by name and records the call, result or error, duration and sources."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from answerkey_demo.knowledge import Knowledge
from answerkey_demo.tools import database, documents, search
from answerkey_demo.tools.failure import ToolExecutionError

__all__ = ["TOOL_SCHEMAS", "Call", "Toolbox", "Turn"]

TOOL_SCHEMAS: list[dict[str, Any]] = [database.SCHEMA, search.SCHEMA, documents.SCHEMA]


class Call(msgspec.Struct):
    """One call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: Any
    # "Type: message" if the tool raised
    error: str | None
    duration_ms: float


class Toolbox:
    """The tools over one knowledge folder; shared by all conversations."""

    def __init__(self, knowledge: Knowledge, *, semantic: bool = True) -> None:
        self.knowledge = knowledge
        self.searcher = search.Searcher(knowledge, semantic=semantic)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Run a tool; a wrong name or wrong arguments raise ToolExecutionError as well."""
        tools: dict[str, Callable[..., Any]] = {
            "query_database": lambda **given: database.query_database(self.knowledge.database, **given),
            "search_document_content": self.searcher.search,
            "list_business_documents": lambda **given: documents.list_business_documents(
                self.knowledge.database, **given
            ),
        }
        if name not in tools:
            raise ToolExecutionError(f"no tool is called {name}; there are {', '.join(tools)}")
        try:
            return tools[name](**arguments)
        except TypeError as error:
            raise ToolExecutionError(f"{name}: wrong arguments ({error})") from error


class Turn:
    """What happens while one question is answered: the tool calls, in order, and the sources found."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        self.calls: list[Call] = []
        # document id → its source, in order of first appearance
        self._sources: dict[str, dict[str, Any]] = {}
        # what every call raises instead of running: how faults get into real calls
        self._broken: Exception | None = None
        # filled in by a brain that talks to a model
        self.usage: dict[str, int] = {}

    def use(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool and record it; what the tool raises is recorded and raised on."""
        started = time.perf_counter()
        call = Call(f"call_{len(self.calls) + 1}", name, arguments, None, None, 0.0)
        self.calls.append(call)
        try:
            if self._broken is not None:
                raise self._broken
            call.result = self.toolbox.call(name, arguments)
        except Exception as error:
            call.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            call.duration_ms = round((time.perf_counter() - started) * 1000, 3)
        if name == "search_document_content":
            self._remember(call.result["passages"])
        return call.result

    def break_tools(self, error: Exception) -> None:
        """From now on every call raises this."""
        self._broken = error

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query through query_database."""
        arguments: dict[str, Any] = {"sql": sql}
        if parameters:
            arguments["parameters"] = list(parameters)
        rows: list[dict[str, Any]] = self.use("query_database", **arguments)["rows"]
        return rows

    def _remember(self, passages: list[dict[str, Any]]) -> None:
        for passage in passages:
            text = f"{passage['heading']}: {passage['text']}" if passage["heading"] else passage["text"]
            source = self._sources.get(passage["document_id"])
            if source is None:
                self._sources[passage["document_id"]] = {
                    "id": passage["document_id"],
                    "rank": 0,
                    "score": passage["score"],
                    "text": text,
                    "title": passage["title"],
                }
            elif text not in source["text"]:
                source["text"] += "\n\n" + text
                source["score"] = max(source["score"], passage["score"])

    @property
    def sources(self) -> list[dict[str, Any]]:
        """One source for each document, best first, with all its passages that were found."""
        ordered = sorted(self._sources.values(), key=lambda s: -s["score"])
        return [{**source, "rank": rank} for rank, source in enumerate(ordered, 1)]
