"""Observations: what was seen of a question from outside, joined with its reply; and faults planted by the proxy.

Faults are planted in tool results inside requests to models, and in answers of tools behind the proxy. A model's API has no
memory, so an agent sends each tool result again with every later request. What was planted for a call is kept per conversation
and planted again, so that the conversation stays consistent and every other byte as the agent sent it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.model.reply import (
    Evidence,
    Fault,
    FaultRecord,
    Planted,
    Reply,
    Source,
    ToolCall,
    Usage,
    decoded,
    plant,
)
from answerkey.transcripts.json_values import as_dict, as_dicts, as_str, decode_strict_json


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


# Seconds after which a tool that hangs answers 504: longer than most clients wait.
HANG_S = 30.0
# Text parts of a tool result, in the APIs that divide it.
_TEXT_TYPES = {"chat": "text", "responses": "input_text", "anthropic": "text"}


class ResultSlot(NamedTuple):
    """The place of a tool result in a request."""

    tool: str
    # The call's id; None: the API has none.
    id: str | None
    true_result: Any
    write: Callable[[Planted], None]


class ConversationFaults:
    """What is planted in one conversation."""

    def __init__(self) -> None:
        self._fault: Fault | None = None
        # Key of a result → what was planted for it.
        self._planted: dict[str, Planted] = {}
        # Keys of results that were in a request.
        self._seen: set[str] = set()
        # Calls of the fault's tool whose result was seen since the turn began.
        self._count = 0
        # Id of a call → its tool, as the model's responses name them.
        self._tools: dict[str, str] = {}
        # Calls of the fault's tool that models asked for in the turn.
        self._asked_for = 0
        self.record: FaultRecord | None = None

    def begin_turn(self, fault: Fault | None) -> None:
        """A turn begins, or is asked again."""
        self._fault, self._count, self._asked_for, self.record = fault, 0, 0, None

    def note_call(self, tool: str, call_id: str | None) -> None:
        """A model asked for a call."""
        if call_id:
            self._tools[call_id] = tool
        if self._fault is not None and same_tool(tool, self._fault.tool):
            self._asked_for += 1

    def rewrite(self, body: bytes) -> bytes:
        """The body with planted results; the same object if there is nothing to plant."""
        try:
            # It was read before, which refuses what is nested too deeply.
            payload = as_dict(msgspec.json.decode(body))
        except ValueError:
            return body
        changed = False
        places: dict[str, int] = {}
        for slot in result_slots(payload, self._tools):
            places[slot.tool] = places.get(slot.tool, 0) + 1
            key = slot.id or f"{slot.tool}@{places[slot.tool]}"
            planted = self._planted.get(key)
            if key not in self._seen:
                self._seen.add(key)
                planted = self._decide(slot.tool, key, slot.id, slot.true_result)
            if planted is not None:
                slot.write(planted)
                changed = True
        return msgspec.json.encode(payload) if changed else body

    def _decide(self, tool: str, key: str, call_id: str | None, true_result: Any) -> Planted | None:
        """Count a new result; what to plant if it is the one to break."""
        fault = self.due(tool)
        if fault is None:
            return None
        planted = self._planted[key] = plant(fault, true_result)
        self.land(planted, call_id)
        return planted

    def due(self, tool: str) -> Fault | None:
        """Count a call; the fault if this call is the one to break."""
        fault = self._fault
        if fault is None or self.record is not None or not same_tool(tool, fault.tool):
            return None
        self._count += 1
        return fault if self._count == fault.call else None

    def land(self, planted: Planted, call_id: str | None = None) -> None:
        self.record = FaultRecord(
            fault=self._fault, landed=True, call_id=call_id, result=planted.result, error=planted.error
        )

    def missed(self) -> FaultRecord:
        """The record of a fault that did not land, with the reason."""
        fault = self._fault
        if fault is None:
            return FaultRecord(reason="no fault was planned")
        if self._asked_for >= fault.call:
            reason = (
                f"the result of {fault.tool} was in no request to a model: the provider runs the tool, or the agent sends its "
                "results as text"
            )
        else:
            often = f"{fault.call} times" if fault.call > 1 else "this time"
            reason = f"{fault.tool} was not called {often}"
        return FaultRecord(fault=fault, reason=reason)


def result_slots(payload: dict[str, Any], tools: dict[str, str]) -> Iterator[ResultSlot]:
    """The tool results in a request to a model, in order.

    Args:
        payload: The request in the API of OpenAI (chat, Responses), Anthropic, Gemini or Ollama.
        tools: Id of a call → its tool, for calls that are not in the request; those that are, are added.
    """
    if isinstance(payload.get("messages"), list):
        yield from _message_slots(as_dicts(payload["messages"]), tools)
    elif isinstance(payload.get("input"), list):
        yield from _item_slots(as_dicts(payload["input"]), tools)
    elif isinstance(payload.get("contents"), list):
        for content in as_dicts(payload["contents"]):
            for part in as_dicts(content.get("parts")):
                yield from _gemini_slot(part)


def _message_slots(messages: list[dict[str, Any]], tools: dict[str, str]) -> Iterator[ResultSlot]:
    """OpenAI's chat, Anthropic and Ollama."""
    # Names of calls without an id, which results answer in order.
    waiting: list[str] = []
    for message in messages:
        for call in as_dicts(message.get("tool_calls")):
            name = as_str(as_dict(call.get("function")).get("name")) or ""
            call_id = as_str(call.get("id"))
            if call_id:
                tools[call_id] = name
            else:
                waiting.append(name)
        blocks = as_dicts(message.get("content")) if isinstance(message.get("content"), list) else []
        for block in blocks:
            if block.get("type") == "tool_use":
                tools[str(block.get("id"))] = as_str(block.get("name")) or ""
            elif block.get("type") == "tool_result":
                call_id = as_str(block.get("tool_use_id"))
                yield _text_slot(block, "content", tools.get(call_id or "", ""), call_id, "anthropic")
        if message.get("role") in ("tool", "function"):
            call_id = as_str(message.get("tool_call_id"))
            named = as_str(message.get("tool_name")) or as_str(message.get("name"))
            first = waiting.pop(0) if waiting and not call_id else ""
            yield _text_slot(message, "content", tools.get(call_id or "") or named or first, call_id, "chat")


def _item_slots(items: list[dict[str, Any]], tools: dict[str, str]) -> Iterator[ResultSlot]:
    """OpenAI's Responses."""
    for item in items:
        call_id = as_str(item.get("call_id"))
        if item.get("type") in ("function_call", "custom_tool_call") and call_id:
            tools[call_id] = as_str(item.get("name")) or ""
        elif item.get("type") in ("function_call_output", "custom_tool_call_output"):
            yield _text_slot(item, "output", tools.get(call_id or "", ""), call_id, "responses")


def _text_slot(
    holder: dict[str, Any],
    key: str,
    tool: str,
    call_id: str | None,
    api: Literal["chat", "responses", "anthropic"],
) -> ResultSlot:
    """A result that is a text, or a list of parts with texts."""
    value = holder.get(key)
    parts = as_dicts(value) if isinstance(value, list) else None
    true_result = value if parts is None else "".join(as_str(part.get("text")) or "" for part in parts)

    def write(planted: Planted) -> None:
        text = as_text(planted)
        holder[key] = text if parts is None else [{"type": _TEXT_TYPES[api], "text": text}]
        if api == "anthropic":
            holder.pop("is_error", None)
            if planted.error is not None:
                holder["is_error"] = True

    return ResultSlot(tool, call_id, true_result, write)


def _gemini_slot(part: dict[str, Any]) -> Iterator[ResultSlot]:
    """A part of Gemini's contents: the result is an object, often with the value under one name."""
    for name in ("functionResponse", "function_response"):
        answer = as_dict(part.get(name))
        if not answer:
            continue
        response = as_dict(answer.get("response"))
        wrapped = next((key for key in ("result", "output") if list(response) == [key]), None)
        true_result = response if wrapped is None else response[wrapped]

        def write(planted: Planted, answer: dict[str, Any] = answer, wrapped: str | None = wrapped) -> None:
            if planted.error is not None:
                answer["response"] = {"error": planted.error}
            elif wrapped is None and isinstance(planted.result, dict):
                answer["response"] = planted.result
            else:
                answer["response"] = {wrapped or "result": planted.result}

        yield ResultSlot(as_str(answer.get("name")) or "", as_str(answer.get("id")), true_result, write)


def as_text(planted: Planted) -> str:
    """What is planted as the text of a tool result."""
    if planted.error is not None:
        return planted.error
    result = planted.result
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()


class ToolAnswer(NamedTuple):
    """The answer of a tool behind the proxy."""

    status: int
    body: bytes
    # Bytes after which the connection is cut; None: it is sent whole.
    cut: int | None = None
    # Seconds before it is sent.
    delay_s: float = 0.0


def needs_true_answer(fault: Fault) -> bool:
    """Whether the tool must be asked first."""
    return fault.kind not in ("error", "timeout", "rate_limit", "garbage")


def broken_answer(fault: Fault, body: bytes, request_id: Any = None) -> tuple[ToolAnswer, Planted]:
    """The answer of an HTTP tool or, with a request id, of an MCP server; and what the chatbot gets as the result."""
    if fault.kind == "truncated":
        return ToolAnswer(200, body, cut=len(body) // 3), Planted(error="the answer was cut off")
    if fault.kind == "garbage":
        planted = plant(fault, None)
        return ToolAnswer(200, as_text(planted).encode()), planted
    if request_id is None:
        planted = plant(fault, decoded(body.decode("utf-8", "replace")))
        content: Any = planted.result if planted.error is None else {"error": planted.error}
    else:
        planted = plant(fault, _mcp_text(body))
        inner = {
            "content": [{"type": "text", "text": as_text(planted)}],
            "isError": planted.error is not None,
        }
        content = {"jsonrpc": "2.0", "id": request_id, "result": inner}
    answer = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    if fault.kind == "timeout":
        return ToolAnswer(504, answer, delay_s=HANG_S), planted
    if fault.kind == "rate_limit":
        return ToolAnswer(429, answer), planted
    # An MCP server reports a tool's failure in a message that is itself in order.
    return ToolAnswer(503 if fault.kind == "error" and request_id is None else 200, answer), planted


def _mcp_text(body: bytes) -> str | None:
    """The text of the result in an MCP server's answer: JSON, or an event stream of it."""
    for line in body.decode("utf-8", "replace").splitlines() or [""]:
        text = line.removeprefix("data:").strip()
        try:
            result = as_dict(as_dict(decode_strict_json(text)).get("result"))
        except ValueError:
            continue
        if result:
            return "".join(as_str(part.get("text")) or "" for part in as_dicts(result.get("content")))
    return None
