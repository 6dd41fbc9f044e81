"""Objects that run instead of being called: chains, graphs and agents with `.ainvoke`, `.invoke`, `.run` or `.ask`."""

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["callable_of"]

# In the order of preference: what is awaited can be cancelled.
_METHODS = ("ainvoke", "invoke", "ask", "run")


def callable_of(found: object) -> Callable[..., object] | None:
    """The callable to ask; None if there is nothing to call."""
    if not inspect.isroutine(found) and not isinstance(found, type):
        for name in _METHODS:
            method = getattr(found, name, None)
            if name in ("ask", "run") and callable(found):
                # Many callables happen to have such a method.
                break
            if callable(method):
                return method if name in ("ask", "run") else _invoking(found, method)
    return found if callable(found) else None


def _invoking(found: Any, method: Callable[..., object]) -> Callable[..., object]:
    """`invoke` with the input that the object takes, and with the conversation's id as its thread."""
    takes_config = "config" in _parameters(method)

    def arguments(question: str, conversation_id: str) -> tuple[list[object], dict[str, object]]:
        config = {"configurable": {"thread_id": conversation_id}}
        return [_input(found, question)], {"config": config} if takes_config else {}

    async def ask_awaiting(question: str, conversation_id: str) -> object:
        given, named = arguments(question, conversation_id)
        result: Any = method(*given, **named)
        return await result

    def ask(question: str, conversation_id: str) -> object:
        given, named = arguments(question, conversation_id)
        return method(*given, **named)

    asking: Callable[..., object] = ask_awaiting if inspect.iscoroutinefunction(method) else ask
    kind = type(found)
    asking.__module__, asking.__qualname__ = kind.__module__, kind.__qualname__
    return asking


def _input(found: Any, question: str) -> object:
    """A graph takes messages, an executor its input keys, everything else the question itself."""
    if type(found).__module__.partition(".")[0] == "langgraph":
        return {"messages": [{"role": "user", "content": question}]}
    keys = getattr(found, "input_keys", None)
    if isinstance(keys, list) and len(keys) == 1 and isinstance(keys[0], str):
        return {keys[0]: question}
    return question


def _parameters(method: Callable[..., object]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return frozenset()
