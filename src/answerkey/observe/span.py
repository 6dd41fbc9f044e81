"""Span: one step of a trace in the one form that both encodings of OTLP are read into."""

from typing import Any, NamedTuple

import msgspec


class MalformedError(ValueError):
    """What was sent is not OTLP; the message says where."""


class Event(NamedTuple):
    """Something that happened within a span: an event of it, or a log record that names it."""

    name: str
    attributes: dict[str, Any]
    # What a log record says; an event has none.
    body: Any = None


class Span(msgspec.Struct, kw_only=True, gc=False):
    """One step of a trace."""

    trace_id: str
    span_id: str
    # Empty: it has none.
    parent_id: str = ""
    name: str = ""
    # The instrumentation that made it.
    scope: str = ""
    start_ns: int = 0
    end_ns: int = 0
    attributes: dict[str, Any] = {}
    events: list[Event] = []
    # 0 unset, 1 ok, 2 error.
    status: int = 0
    status_message: str = ""
    # The traces that it is linked to: gateways put the caller's there.
    links: tuple[str, ...] = ()


class Unread(NamedTuple):
    """A span or log record as it arrived: its ids, and the rest still encoded, to be read when its question is graded."""

    trace_id: str
    span_id: str
    parent_id: str
    scope: str
    # Bytes of protobuf, or an object of JSON.
    encoded: bytes | dict[str, Any]
    # A log record, which belongs to the span whose id it has.
    is_log: bool
    # What it takes in memory, about.
    size: int


class Export(NamedTuple):
    """What one request brings."""

    items: list[Unread]
    # Log records that belong to no span.
    without_span: int = 0


def read_traceparent(traceparent: str | None) -> tuple[str, str] | None:
    """The trace id and span id of a W3C `traceparent`; None if it is none."""
    parts = (traceparent or "").strip().lower().split("-")
    if len(parts) < 4 or len(parts[1]) != 32 or len(parts[2]) != 16:
        return None
    return parts[1], parts[2]
