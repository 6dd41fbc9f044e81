"""Spans, and observations: what was seen of a question from outside, joined with its reply."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.model.reply import Evidence, Reply, Source, ToolCall, Usage


class MalformedError(ValueError):
    """A request is not valid OTLP."""


class Event(NamedTuple):
    """An event of a span, or a log record that belongs to it."""

    name: str
    attributes: dict[str, Any]
    # The body of a log record; None for an event.
    body: Any = None


class Span(msgspec.Struct, kw_only=True, gc=False):
    """One step of a trace."""

    trace_id: str
    span_id: str
    # Empty: none.
    parent_id: str = ""
    name: str = ""
    # The instrumentation library.
    scope: str = ""
    start_ns: int = 0
    end_ns: int = 0
    attributes: dict[str, Any] = {}
    events: list[Event] = []
    # 0 unset, 1 ok, 2 error.
    status: int = 0
    status_message: str = ""
    # Ids of linked traces, e.g. that of a gateway's caller.
    links: tuple[str, ...] = ()


class Unread(NamedTuple):
    """A span or log record with its ids; the rest is decoded when its question is graded."""

    trace_id: str
    span_id: str
    parent_id: str
    scope: str
    # Bytes of protobuf, or an object of JSON.
    encoded: bytes | dict[str, Any]
    # A log record of the span with this id.
    is_log: bool
    # Approximate memory in bytes.
    size: int


class Export(NamedTuple):
    """The content of one request."""

    items: list[Unread]
    # Log records that belong to no span.
    without_span: int = 0


def read_traceparent(traceparent: str | None) -> tuple[str, str] | None:
    """The trace id and span id of a W3C `traceparent`; None if it is not valid."""
    parts = (traceparent or "").strip().lower().split("-")
    if len(parts) < 4 or len(parts[1]) != 32 or len(parts[2]) != 16:
        return None
    return parts[1], parts[2]


_Same = Callable[[ToolCall, ToolCall], bool]


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one observer saw of a question."""

    kind: Literal["otel", "proxy"]
    tool_calls: tuple[ToolCall, ...] = ()
    sources: tuple[Source, ...] = ()
    usage: Usage | None = None
    # Whether every call was seen: only then was a call that is not listed not made.
    complete: bool = False
    # What is known to be missing or could not be read, in words.
    missing: tuple[str, ...] = ()
    # Number of model calls that it knows of, whether or not it saw their answers.
    models: int = 0


def join_observations(reply: Reply, observations: Iterable[Observation]) -> Reply:
    """Add observations to a reply. They take precedence over what the chatbot reports itself."""
    seen = [one for one in observations if one.tool_calls or one.complete or one.missing]
    if not seen:
        return reply
    own = reply.evidence
    whole = [one for one in seen if one.complete]
    # A trace of this process has no count: it compensates for spans that others lack, but not for model calls.
    in_process = own.tools_observed and own.kind == "otel"
    most = max([one.models for one in whole] + [0] * in_process, default=-1)
    # A complete observer compensates for an incomplete one only if it knows of as many model calls.
    lacking = [one for one in seen if not one.complete and not (in_process and one.kind == "otel")]
    uncovered = any(one.models > most for one in lacking)
    complete = [] if uncovered else whole
    own_stands = own.tools_observed and not (in_process and uncovered)
    missing = tuple(dict.fromkeys(text for one in seen if not one.complete for text in one.missing))
    calls = join_calls(*[one.tool_calls for one in seen], reply.tool_calls)
    sources = reply.sources or next((one.sources for one in seen if one.sources), ())
    evidence = Evidence(
        kind=(complete or seen)[0].kind,
        # The reply itself must have been read completely, too.
        completeness="complete" if complete and not own.unread else "partial",
        tools_observed=bool(complete) or own_stands,
        sources_observed=own.sources_observed or bool(sources),
        unread=(*own.unread, *(() if complete else missing)),
    )
    if not complete and own_stands and len(calls) == len(reply.tool_calls):
        # An observer that saw only a part does not diminish what the reply itself contains.
        evidence = own
    return msgspec.structs.replace(
        reply,
        tool_calls=calls,
        sources=sources,
        usage=reply.usage or next((one.usage for one in seen if one.usage is not None), None),
        evidence=evidence,
    )


def join_calls(*seen: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """One list of calls from several observers' lists: each call once, with what any of them saw of it.

    Where two differ, the first is right. Calls are the same by id, else by name and arguments, else by name in order
    where one observer saw no arguments.
    """
    joined: list[ToolCall] = []
    for calls in seen:
        places = _matches(joined, calls)
        # Next to its neighbours in the list that has it; at the end if it has none.
        after = 0 if places else len(joined)
        for number, call in enumerate(calls):
            if number in places:
                place = places[number]
                joined[place] = _filled(joined[place], call)
            else:
                place = after
                joined.insert(place, call)
                places = {key: at + (at >= place) for key, at in places.items()}
            after = max(after, place + 1)
    return tuple(joined)


def _matches(joined: Sequence[ToolCall], calls: Sequence[ToolCall]) -> dict[int, int]:
    """Index of a call → index of the same call in the list."""
    places: dict[int, int] = {}
    free = list(range(len(joined)))
    for same in (_same_id, _same_arguments, _one_without_arguments):
        for number, call in enumerate(calls):
            if number in places:
                continue
            place = next((place for place in free if same(joined[place], call)), None)
            if place is not None:
                places[number] = place
                free.remove(place)
    return places


def _same_id(one: ToolCall, other: ToolCall) -> bool:
    return one.id is not None and one.id == other.id


def _may_be(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls may be the same. A tool's name may have the server's name as a prefix (MCP)."""
    return (one.id is None or other.id is None) and (
        one.name == other.name or one.name.endswith(f"__{other.name}") or other.name.endswith(f"__{one.name}")
    )


def _same_arguments(one: ToolCall, other: ToolCall) -> bool:
    return one.arguments is not None and one.arguments == other.arguments and _may_be(one, other)


def _one_without_arguments(one: ToolCall, other: ToolCall) -> bool:
    return (one.arguments is None or other.arguments is None) and _may_be(one, other)


def _filled(first: ToolCall, second: ToolCall) -> ToolCall:
    """One call from what two observers saw of it."""
    with_arguments = (
        first if first.arguments is not None else second if second.arguments is not None else first
    )
    # A call starts after the model has ended; an observer of the tool itself knows when.
    timed = (
        second
        if first.start_ms is None or (first.duration_ms is None and second.duration_ms is not None)
        else first
    )
    with_result = first if first.result_seen or not second.result_seen else second
    return ToolCall(
        name=first.name,
        id=first.id or second.id,
        arguments=with_arguments.arguments,
        arguments_text=with_arguments.arguments_text
        or (None if with_arguments.arguments else second.arguments_text),
        result=with_result.result,
        result_seen=with_result.result_seen,
        error=first.error or second.error,
        start_ms=first.start_ms if timed.start_ms is None else timed.start_ms,
        duration_ms=second.duration_ms if first.duration_ms is None else first.duration_ms,
    )


# Environment of the programs that answerkey starts as chatbots: the user's, and the addresses of the observers.


# Variables for the chatbots of this run; answerkey's own clients (e.g. a judge's) do not get them.
OBSERVERS: ContextVar[Mapping[str, str] | None] = ContextVar("answerkey_observers", default=None)


def child_environment() -> dict[str, str]:
    """The environment to start a chatbot with."""
    return {**os.environ, **(OBSERVERS.get() or {})}
