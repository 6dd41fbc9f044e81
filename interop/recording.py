"""Runs the cases of one package: live through `python:`, and recorded for the tests as what its objects serialise to."""

import asyncio
import inspect
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from recordings import heading, keep
from model_server import ANSWER

from answerkey.model.reply import Reply
from answerkey.protocols import Ask, AskAgainError
from answerkey.targets.resolve import resolve_target
from answerkey.transcripts.json_values import as_builtin, as_json

__all__ = ["QUESTION", "case", "problem_with", "query_database", "record", "search_document_content", "write"]

QUESTION = "What is the total, and what does the lease say?"
_FOLDER = Path(__file__).parent.parent / "tests" / "transcripts" / "interop"
# What the object contains of the two calls: all; all but what came of them; all but whether they failed; names and whether they
# failed; nothing.
Seen = Literal["everything", "calls", "no errors", "names", "nothing"]
_CASES: dict[str, tuple[Callable[..., Any], Seen]] = {}


def case(seen: Seen = "everything") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function a case: it takes the question and gives back what the package does."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        _CASES[function.__name__] = (function, seen)
        return function

    return keep


def query_database(sql: str) -> str:
    """Query the database."""
    return "442300"


def search_document_content(query: str) -> str:
    """Search the documents."""
    raise ValueError("index offline")


def record(package: str, agent: str | None = None, seen: Seen = "everything") -> None:
    """Run every case of the script that calls this, and its agent as it is; exit with 1 if one is read wrongly."""
    sys.exit(1 if asyncio.run(_record(package, Path(sys.argv[0]).resolve(), agent, seen)) else 0)


async def _record(package: str, script: Path, agent: str | None, agent_seen: Seen) -> int:
    """The number of cases that are read wrongly. One event loop for all: clients keep connections between cases."""
    wrong = 0
    if agent is not None:
        problem = problem_with(await _live(f"{script}:{agent}"), agent_seen)
        wrong += problem is not None
        print(f"{package} {version(package)} python:…:{agent}: {problem or f'{agent_seen} seen'}")
    for name, (function, seen) in _CASES.items():
        problem = problem_with(await _live(f"{script}:{name}"), seen)
        wrong += problem is not None
        print(f"{package} {version(package)} {name}: {problem or f'{seen} seen'}")
        items, streams = await _items(function)
        payload = [as_builtin(item) for item in items] if streams else as_builtin(items)
        write(package, version(package), name, seen, streams, as_json(payload))
    return wrong


def write(package: str, version: str, name: str, seen: Seen, streams: bool, payload: object) -> None:
    """Keep a case for the tests."""
    document = {
        "package": package,
        "version": version,
        "case": name,
        "seen": seen,
        "streams": streams,
        "question": QUESTION,
        "payload": payload,
    }
    line = json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"
    # The machine's folders are private.
    line = re.sub(r'(?<=File \\")[^"\\]+', "file.py", line)
    keep(_FOLDER / f"{package}-{name}.json", line.encode(), heading)


async def _live(reference: str) -> Reply:
    async with resolve_target(f"python:{reference}") as target:
        while True:
            # On a busy machine, a bot that imports in its first call holds up its event loop; the engine asks again too.
            with suppress(AskAgainError):
                return await target.ask(Ask(question=QUESTION, conversation_id="c1"))


async def _items(function: Callable[..., Any]) -> tuple[Any, bool]:
    made = function(QUESTION)
    if inspect.isawaitable(made):
        made = await made
    if isinstance(made, AsyncIterator):
        return [item async for item in made], True
    return (list(made), True) if isinstance(made, Iterator) else (made, False)


def problem_with(reply: Reply, seen: Seen) -> str | None:
    """What is wrong with how a case was read; None if nothing is."""
    if reply.failure is not None:
        return f"failed: {reply.failure.message}"
    # Semantic Kernel puts the plug-in before a tool's name.
    calls = [(call.name.removeprefix("Books-"), call.arguments) for call in reply.tool_calls]
    expected: list[tuple[str, Any]] = [
        ("query_database", {"sql": "SELECT total"}),
        ("search_document_content", {"query": "lease"}),
    ]
    if seen == "names":
        expected = [(name, None) for name, _ in expected]
    if seen == "nothing":
        if calls or reply.evidence.tools_observed:
            return f"claims to have observed {calls}"
    elif calls != expected:
        return f"calls {calls}"
    elif not reply.evidence.tools_observed:
        return f"is said to be unobserved: {reply.evidence.unread}"
    if reply.text != ANSWER and not (seen == "calls" and reply.text is None):
        return f"text {reply.text!r}"
    if seen == "names" and (reply.tool_calls[0].error is not None or reply.tool_calls[1].error is None):
        return f"errors {[call.error for call in reply.tool_calls]}"
    if seen in ("everything", "no errors"):
        first, second = reply.tool_calls
        if not (first.result_seen and second.result_seen) or "442300" not in str(first.result) or first.error:
            return f"results {first.result!r} ({first.error}), {second.result!r}"
        if seen == "everything" and "index offline" not in str(second.error):
            return f"error {second.error!r}"
    return None
