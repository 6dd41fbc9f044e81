"""Span: one step of a trace in the one form that both encodings of OTLP are read into."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.model.reply import Evidence, Reply, Source, ToolCall, Usage


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


# Observations, and the one merger that joins what several observers saw of a question.


_Same = Callable[[ToolCall, ToolCall], bool]


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one observer saw of a question on its way to the reply."""

    kind: Literal["otel", "proxy"]
    tool_calls: tuple[ToolCall, ...] = ()
    sources: tuple[Source, ...] = ()
    usage: Usage | None = None
    # Whether every call was seen: only then is a call that is not listed a call that was not made.
    complete: bool = False
    # What is known to be missing or was not understood, in words.
    missing: tuple[str, ...] = ()
    # How many calls of models it knows of, whether or not it saw what came of them.
    models: int = 0


def join_observations(reply: Reply, observations: Iterable[Observation]) -> Reply:
    """The reply with what observers saw. What was seen from outside goes before what the chatbot says of itself."""
    seen = [one for one in observations if one.tool_calls or one.complete or one.missing]
    if not seen:
        return reply
    own = reply.evidence
    whole = [one for one in seen if one.complete]
    # A trace of this process comes without its count: it makes up for spans that others lack, and for no exchange.
    in_process = own.tools_observed and own.kind == "otel"
    most = max([one.models for one in whole] + [0] * in_process, default=-1)
    # Who saw everything makes up for another's lack only by knowing of as many calls of models as the other.
    lacking = [one for one in seen if not one.complete and not (in_process and one.kind == "otel")]
    uncovered = any(one.models > most for one in lacking)
    complete = [] if uncovered else whole
    own_stands = own.tools_observed and not (in_process and uncovered)
    missing = tuple(dict.fromkeys(text for one in seen if not one.complete for text in one.missing))
    calls = join_calls(*[one.tool_calls for one in seen], reply.tool_calls)
    sources = reply.sources or next((one.sources for one in seen if one.sources), ())
    evidence = Evidence(
        kind=(complete or seen)[0].kind,
        # What the reply itself holds must have been understood, too.
        completeness="complete" if complete and not own.unread else "partial",
        tools_observed=bool(complete) or own_stands,
        sources_observed=own.sources_observed or bool(sources),
        unread=(*own.unread, *(() if complete else missing)),
    )
    if not complete and own_stands and len(calls) == len(reply.tool_calls):
        # What the reply tells by itself is not less for an observer that saw a part of it.
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
        places = _places(joined, calls)
        # Beside its neighbours in the list that has it; at the end if it has none.
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


def _places(joined: Sequence[ToolCall], calls: Sequence[ToolCall]) -> dict[int, int]:
    """Which of the calls are in the list already, and where."""
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
    """Whether nothing speaks against two calls being one. A server's own name may stand before a tool's (MCP)."""
    return (one.id is None or other.id is None) and (
        one.name == other.name or one.name.endswith(f"__{other.name}") or other.name.endswith(f"__{one.name}")
    )


def _same_arguments(one: ToolCall, other: ToolCall) -> bool:
    return one.arguments is not None and one.arguments == other.arguments and _may_be(one, other)


def _one_without_arguments(one: ToolCall, other: ToolCall) -> bool:
    return (one.arguments is None or other.arguments is None) and _may_be(one, other)


def _filled(first: ToolCall, second: ToolCall) -> ToolCall:
    """A call as two saw it."""
    with_arguments = (
        first if first.arguments is not None else second if second.arguments is not None else first
    )
    # A model's end is when a call can begin at the earliest; who saw it run knows when it did.
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


# The environment of the programs that answerkey starts as chatbots: the user's own, and where the observers listen.


# Names and addresses for the chatbots of this run; answerkey's own clients (a judge's) do not see them.
OBSERVERS: ContextVar[Mapping[str, str] | None] = ContextVar("answerkey_observers", default=None)


def child_environment() -> dict[str, str]:
    """The environment to start a chatbot with."""
    return {**os.environ, **(OBSERVERS.get() or {})}
