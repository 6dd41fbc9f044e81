"""Faults on purpose: the request header `Answerkey-Fault` breaks one call of one tool.

`tool=query_database; kind=error; call=1`, with the message in `error` or the replacement as JSON in `value`, both
percent-encoded. Nothing else is needed to honour the header, in any language.
"""

import json
from typing import Any
from urllib.parse import unquote

import msgspec


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
