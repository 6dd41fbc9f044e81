"""Spans, and observations: what was seen of a question from outside, joined with its reply."""

import os
from collections.abc import Iterable, Mapping, Sequence
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
    # In protobuf.
    encoded: bytes
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


class Gap(NamedTuple):
    """Something that an observer knows that it missed."""

    # In words.
    text: str
    # Ids of the model call whose outcome is unknown: of its span, and of its response. Without any, no other observer can make up
    # for it: that it saw as many model calls does not mean that it saw the same.
    ids: frozenset[str] = frozenset()
    # Spans that did not arrive here; an observer in the chatbot's own process has them.
    is_lost_span: bool = False


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one observer saw of a question."""

    kind: Literal["otel", "proxy"]
    tool_calls: tuple[ToolCall, ...] = ()
    sources: tuple[Source, ...] = ()
    usage: Usage | None = None
    # Whether calls could be seen at all, and if not, why.
    shows_calls: bool = False
    unable: str = ""
    gaps: tuple[Gap, ...] = ()
    # Ids of model calls whose outcome it saw.
    known: frozenset[str] = frozenset()
    # Hashes of the system prompt and of the tools in the request that began the conversation; None: not seen.
    first_request: tuple[str | None, str | None] | None = None

    @property
    def complete(self) -> bool:
        """Whether every call was seen: only then was a call that is not listed not made."""
        return self.shows_calls and not self.gaps

    @property
    def missing(self) -> tuple[str, ...]:
        """The gaps in words."""
        return tuple(gap.text for gap in self.gaps)


def join_observations(reply: Reply, observations: Iterable[Observation]) -> Reply:
    """Add observations to a reply. They take precedence over what the chatbot reports itself.

    Every call could be seen if an observer could see calls and no observer knows of a gap that another does not fill.
    """
    seen = [one for one in observations if one.tool_calls or one.shows_calls or one.gaps or one.unable]
    if not seen:
        return reply
    own = reply.evidence
    in_process = own.tools_observed and own.kind == "otel"
    gaps = [gap.text for one in seen for gap in one.gaps if not _is_filled(gap, one, seen, in_process)]
    able = [one for one in seen if one.shows_calls]
    complete = bool(able) and not gaps
    calls = join_calls(*[one.tool_calls for one in seen], reply.tool_calls)
    sources = reply.sources or next((one.sources for one in seen if one.sources), ())
    # What the chatbot itself reports counts as complete if no observer saw more.
    reported = own.tools_observed and len(calls) == len(reply.tool_calls) and not (in_process and gaps)
    if reported and not complete:
        evidence = own
    else:
        evidence = Evidence(
            kind=(able or seen)[0].kind,
            # The reply itself must have been read completely, too.
            completeness="complete" if complete and not own.unread else "partial",
            tools_observed=complete,
            sources_observed=own.sources_observed or bool(sources),
            unread=(*own.unread, *dict.fromkeys(gaps or [one.unable for one in seen if not able])),
        )
    return msgspec.structs.replace(
        reply,
        tool_calls=calls,
        sources=sources,
        usage=_usage(reply.usage, [one.usage for one in seen if one.usage is not None], complete),
        evidence=evidence,
    )


def _is_filled(gap: Gap, observer: Observation, seen: Sequence[Observation], in_process: bool) -> bool:
    """Whether another observer saw what one of them missed."""
    return (gap.is_lost_span and in_process) or any(
        gap.ids & other.known for other in seen if other is not observer
    )


def _usage(own: Usage | None, seen: Sequence[Usage], complete: bool) -> Usage | None:
    """The observed tokens: a chatbot's own count may be that of all its questions so far. Its cost is its own."""
    if not seen or (own is not None and not complete):
        return own
    most = max(seen, key=lambda usage: usage.input_tokens or 0)
    return most if own is None or own.cost is None else msgspec.structs.replace(most, cost=own.cost)


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
    """Whether two calls may be the same."""
    return (one.id is None or other.id is None) and same_tool(one.name, other.name)


def same_tool(one: str, other: str) -> bool:
    """Whether two names may be of the same tool: one may have the server's name as a prefix (MCP)."""
    return one == other or one.endswith(f"__{other}") or other.endswith(f"__{one}")


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
