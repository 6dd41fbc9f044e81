"""Fault points: tools of a chatbot that `answerkey faults` can break.

    @answerkey.fault_point("query_database")
    def query_database(sql): ...

A fault point calls its function and does nothing else, except while a question of a run of `faults` is answered. A chatbot
in a process of its own opens a scope for each request:

    with answerkey.fault_scope(request.headers.get("Answerkey-Fault")) as scope:
        ...
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote, unquote

import msgspec

from answerkey.model.reply import (
    ERROR_TEXTS,
    FAULT_HEADER,
    FAULT_KINDS,
    Fault,
    FaultRecord,
    Planted,
    ToolCall,
    plant,
)

__all__ = ["FaultScope", "InjectedError", "fault_point", "fault_scope"]

# A service honours the header only if this is set: what a stranger sends must not break it.
ENABLED = "ANSWERKEY_FAULTS"
# Servers refuse longer headers.
_LONGEST_HEADER = 6000
_P = ParamSpec("_P")
_R = TypeVar("_R")


class InjectedError(RuntimeError):
    """The error of a fault point, raised on purpose."""


class FaultScope:
    """The fault of one question, and what became of it."""

    def __init__(self, fault: Fault | None) -> None:
        self.fault = fault
        # Calls of the tool so far.
        self._calls = 0
        self.record: FaultRecord | None = None

    @property
    def landed(self) -> bool:
        """Whether a result was replaced."""
        return self.record is not None

    @property
    def headers(self) -> dict[str, str]:
        """Headers for the response: whether the fault landed."""
        return {FAULT_HEADER: "landed"} if self.landed else {}

    def is_due(self, tool: str) -> bool:
        """Count a call of a tool; whether it is the one to break."""
        if self.fault is None or tool != self.fault.tool:
            return False
        self._calls += 1
        return self._calls == self.fault.call

    def plant(self, true_result: Any = None) -> Planted:
        """What the chatbot gets instead of a result."""
        fault = self.fault
        if fault is None:
            return Planted(true_result)
        planted = plant(fault, true_result)
        self.record = FaultRecord(fault=fault, landed=True, result=planted.result, error=planted.error)
        return planted

    def on_call(self, call: ToolCall) -> ToolCall:
        """A call with what is planted instead of its result."""
        planted = self.plant(call.result)
        if self.record is not None:
            self.record = msgspec.structs.replace(self.record, call_id=call.id)
        return msgspec.structs.replace(
            call, result=planted.result, error=planted.error, result_seen=True, injected=True
        )

    @property
    def raises(self) -> bool:
        """Whether the fault is an error, so that the tool need not run."""
        return self.fault is not None and self.fault.kind in ERROR_TEXTS

    def error(self) -> Exception:
        """The error to raise."""
        message = self.plant().error or ""
        return (
            TimeoutError(message) if self.fault and self.fault.kind == "timeout" else InjectedError(message)
        )


_SCOPE: ContextVar[FaultScope | None] = ContextVar("answerkey_fault", default=None)


@contextmanager
def fault_scope(fault: Fault | str | None) -> Iterator[FaultScope]:
    """Break a tool while the body runs, as a fault or the value of a request's header says.

    A header counts only in a process with ANSWERKEY_FAULTS=1 in its environment.
    """
    if isinstance(fault, str):
        fault = read_header(fault) if os.environ.get(ENABLED) == "1" else None
    scope = FaultScope(fault)
    token = _SCOPE.set(scope)
    try:
        yield scope
    finally:
        _SCOPE.reset(token)


def fault_point(tool: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let `answerkey faults` break a tool; its function may be sync or async."""

    def add(function: Callable[_P, _R]) -> Callable[_P, _R]:
        if iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*args: _P.args, **kwargs: _P.kwargs) -> Any:
                scope = _SCOPE.get()
                if scope is None or not scope.is_due(tool):
                    return await function(*args, **kwargs)
                if scope.raises:
                    raise scope.error()
                return scope.plant(await function(*args, **kwargs)).result

            return call_async  # type: ignore[return-value]  # a coroutine function as well

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> Any:
            scope = _SCOPE.get()
            if scope is None or not scope.is_due(tool):
                return function(*args, **kwargs)
            if scope.raises:
                raise scope.error()
            return scope.plant(function(*args, **kwargs)).result

        return call

    return add


def write_header(fault: Fault, longest: int = _LONGEST_HEADER) -> str:
    """A fault as the value of a header: `tool=query_database; kind=error; call=1; error=…`, percent-encoded.

    A chatbot that cannot compute the result itself raises `error` or returns the JSON in `value`; a value longer than
    `longest` is left out.
    """
    parts = {"tool": fault.tool, "kind": fault.kind, "call": str(fault.call)}
    if fault.kind in ERROR_TEXTS:
        parts["error"] = plant(fault, None).error or ""
    elif fault.text:
        parts["text"] = fault.text
    if fault.value is not None:
        value = quote(msgspec.json.encode(fault.value).decode(), safe="")
        if len(value) <= longest:
            parts["value"] = value
    return "; ".join(
        f"{name}={part if name == 'value' else quote(part, safe='')}" for name, part in parts.items()
    )


def read_header(text: str) -> Fault | None:
    """The fault in a header; None if it cannot be read."""
    parts = dict(part.strip().partition("=")[::2] for part in text.split(";"))
    given = {name: unquote(part) for name, part in parts.items()}
    kind, call = given.get("kind"), given.get("call", "1")
    if not given.get("tool") or kind not in FAULT_KINDS or not call.isdecimal():
        return None
    try:
        value = msgspec.json.decode(given["value"]) if "value" in given else None
    except msgspec.DecodeError:
        return None
    return Fault(
        tool=given["tool"],
        kind=kind,
        call=int(call),
        text=given.get("error") or given.get("text") or "",
        value=value,
    )
