"""Streamed replies: assemble events into the document that the API would have sent without streaming."""

import codecs
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from typing import Literal

import msgspec

from answerkey.model.reply import Json, JsonObject
from answerkey.transcripts.fields import CALL_NAMES, RESULT_NAMES
from answerkey.transcripts.json_values import (
    TEXT_NAMES,
    as_dict,
    as_dicts,
    as_list,
    as_str,
    at,
    by_word,
    decode_strict_json,
    either,
    pick,
    spoken_text,
    words,
)
from answerkey.transcripts.messages import (
    has_known_kind,
    is_message,
    looks_like_messages,
    unwrap_message,
)
from answerkey.transcripts.stream_protocols import (
    CHAT_TEXTS,
    RESPONSE_ENDS,
    adk,
    ag_ui,
    agent_framework,
    ai_sdk,
    ai_sdk_lines,
    anthropic,
    bedrock,
    first_choice,
    gemini,
    is_closing_answer,
    langgraph,
    llama_index,
    message_stream,
    ollama,
    openai_agents,
    openai_chat,
    openai_responses,
    pydantic_ai,
    semantic_kernel,
    smolagents,
    strands,
)

# Text that arrives in pieces: joined by the part that it belongs to, or under the usual names where there is no protocol.


_NAMES = (*TEXT_NAMES, "delta", "token", "chunk")
_TEXT_FIELDS = frozenset(_NAMES)
# Fields in which an event may have all of its own.
_HOLDERS = ("data", "delta", "payload", "chunk", "token")
# Names of events whose text is not the answer's.
_ASIDES = frozenset(
    words("status progress log debug info ping heartbeat thinking thought thoughts reasoning")
)
_ERRORS = frozenset(("error", "exception"))
# Names of events, or of fields that are true, with which a stream ends.
_ENDS = frozenset(words("done end complete completed finished final is_final is_finished message_end stop"))


def assemble_pieces(events: list[Json], names: Sequence[str] = ()) -> JsonObject:
    """Pieces of text under the usual names as an answer; of other fields the last word counts.

    Calls are collected. Events that are more than pieces of text are listed under `events`, so that expressions reach each.
    """
    document: JsonObject = {}
    # Field → its pieces, each with the name of its event.
    said: dict[str, list[tuple[str, str]]] = {}
    calls: list[JsonObject] = []
    for event, sent_name in zip_longest(events, names, fillvalue=""):
        fields = _own_fields(event)
        # These names say nothing; what the event calls itself does.
        kind = event_name(fields, "" if sent_name in ("message", "data") else sent_name).lower()
        is_tools = "tool" in kind or "function" in kind
        if is_tools and _add_call(calls, fields):
            continue
        if kind in _ERRORS and "error" not in fields:
            document["error"] = pick(fields, "message", "detail", *_NAMES) or True
        is_answer = not is_tools and kind not in _ASIDES and kind not in _ERRORS
        for name, value in fields.items():
            text = spoken_text(value) if name in _TEXT_FIELDS and isinstance(value, str | list) else None
            if text is not None:
                if is_answer:
                    said.setdefault(name, []).append((text, kind))
            elif value is not None or name not in document:
                document[name] = value
    answer = next((_joined(said[name]) for name in _NAMES if name in said), None)
    if answer is not None:
        document["answer"] = answer
    if calls:
        document["tool_calls"] = [*calls]
    if any(isinstance(event, dict) and not event.keys() <= _TEXT_FIELDS for event in events):
        document["events"] = listed_events(events, names)
    return document


def _own_fields(event: Json) -> JsonObject:
    """The fields of an event, and those in the object that it holds in place of a text."""
    if not isinstance(event, dict):
        return {} if event is None else {"text": event}
    if any(isinstance(event.get(name), str) for name in _NAMES):
        return event
    inner = next((held for name in _HOLDERS if isinstance(held := event.get(name), dict)), {})
    return {**inner, **event}


def _add_call(calls: list[JsonObject], fields: JsonObject) -> bool:
    """Add the call that an event on a tool brings, or to an earlier one what came of it; False if the event names no call."""
    named = next((held for key in CALL_NAMES if isinstance(held := fields.get(key), str)), None)
    name = named or as_str(at(fields, "function", "name"))
    result = pick(fields, *RESULT_NAMES, "content")
    for call in calls if result is not None else ():
        is_open = pick(call, *RESULT_NAMES) is None
        if is_open and name in (call["name"], None) and _call_id(fields) in (_call_id(call), None):
            call |= {"result": result, "error": fields.get("error")}
            return True
    if name is not None:
        calls.append({**fields, "name": name})
    return name is not None


def _call_id(fields: JsonObject) -> str | None:
    return as_str(pick(fields, "call_id", "tool_call_id", "toolCallId", "run_id", "id"))


def event_name(event: Json, sent_name: str) -> str:
    """The name of an event: that of its `event:` line, or its own `event` or `type`."""
    return sent_name or as_str(pick(as_dict(event), "event", "type")) or ""


def listed_events(events: list[Json], names: Sequence[str]) -> list[Json]:
    """Events as `{"event": name, "data": …}`, as expressions see them."""
    return [{"event": name, "data": event} for name, event in zip_longest(names, events, fillvalue="")]


def _joined(pieces: list[tuple[str, str]]) -> str:
    """The text of pieces; where each repeats what came before, or the last one all of them, the last one is it."""
    texts = [text for text, _ in pieces]
    grows = len(texts) > 1 and all(
        len(later) > len(earlier) and later.startswith(earlier) for earlier, later in pairwise(texts)
    )
    repeats = len(texts) > 1 and pieces[-1][1] != pieces[0][1] and texts[-1] == "".join(texts[:-1])
    return texts[-1] if grows or repeats else "".join(texts)


# Events out of a byte stream: server-sent events, JSON lines, and the line protocol of the AI SDK 4.


StreamKind = Literal["sse", "lines", "data-stream"]

_LINE_TYPES = (
    *("application/x-ndjson", "application/ndjson", "application/stream+json", "application/jsonl"),
    *("application/jsonlines", "application/x-jsonlines", "application/json-lines"),
)
# Content type → how a response of it streams; any other does not.
STREAM_KINDS: dict[str, StreamKind] = {"text/event-stream": "sse", **dict.fromkeys(_LINE_TYPES, "lines")}


class EventReader:
    """Takes bytes and gives the data of each event as text."""

    def __init__(self, kind: StreamKind) -> None:
        self._kind = kind
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._data: list[str] = []
        # The name of each event so far; empty: it had none.
        self.names: list[str] = []
        self._name = ""
        # Whether the stream said that it is over.
        self.done = False

    def feed(self, chunk: bytes, *, last: bool = False) -> list[str]:
        """The events that `chunk` completes."""
        text = self._rest + self._decoder.decode(chunk, last)
        # A CR at the very end may be half of a CRLF.
        held = "\r" if text.endswith("\r") and not last else ""
        lines = text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + held
        if last:
            # An event that the end cuts off is complete all the same.
            lines += [self._rest, ""]
            self._rest = ""
        events = []
        for line in lines:
            event = self._completed_by(line)
            if event is None:
                continue
            if event.strip() == "[DONE]":
                self.done = True
            else:
                events.append(event)
                self.names.append(self._name)
            self._name = ""
        return events

    def _completed_by(self, line: str) -> str | None:
        if self._kind != "sse":
            return line if line.strip() else None
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            self._name = line[6:].strip()
        if line or not self._data:
            return None
        event, self._data = "\n".join(self._data), []
        return event


# The protocol of a stream, recognised by the shape of its events, and the assembled document.


class _Protocol(msgspec.Struct, frozen=True):
    """One protocol: how its events are recognised, and put together into a document."""

    assemble: Callable[[list[JsonObject]], tuple[JsonObject, bool | None]]
    # Values of an event's `type`, and fields, that only this protocol's events have.
    types: str = ""
    fields: str = ""
    # Of model APIs: whether an event ends a response, and whether one after that begins the next.
    ends: Callable[[JsonObject], bool] = lambda event: False
    begins: Callable[[JsonObject], bool] = lambda event: True
    # The id of the response that an event belongs to, where each event has one.
    response_id: Callable[[JsonObject], str | None] = lambda event: None


def _has_chat_content(event: JsonObject) -> bool:
    # The usage after the end may come with an empty delta.
    deltas = [as_dict(choice.get("delta")) for choice in first_choice(event)]
    return any(delta.get(name) for delta in deltas for name in (*CHAT_TEXTS, "tool_calls"))


def _gemini_parts(event: JsonObject) -> list[JsonObject]:
    return as_dicts(at(event, "candidates", 0, "content", "parts"))


_PROTOCOLS: dict[str, _Protocol] = {
    "openai chat": _Protocol(
        openai_chat,
        fields="choices",
        ends=lambda event: any(choice.get("finish_reason") for choice in first_choice(event)),
        begins=_has_chat_content,
    ),
    "openai responses": _Protocol(
        openai_responses,
        ends=lambda event: event.get("type") in RESPONSE_ENDS,
        begins=lambda event: event.get("type") not in RESPONSE_ENDS,
    ),
    "anthropic": _Protocol(
        anthropic,
        "message_start content_block_start content_block_delta content_block_stop message_delta message_stop",
        ends=lambda event: event.get("type") == "message_stop",
        begins=lambda event: event.get("type") == "message_start",
    ),
    "bedrock": _Protocol(
        bedrock,
        fields="messageStart contentBlockStart contentBlockDelta messageStop",
        ends=lambda event: "messageStop" in event,
        begins=lambda event: "messageStart" in event,
    ),
    "gemini": _Protocol(
        gemini,
        fields="candidates",
        # Some end every event with a reason; but after a call nothing comes of the same response.
        ends=lambda event: (
            at(event, "candidates", 0, "finishReason") is not None
            and any("functionCall" in part for part in _gemini_parts(event))
        ),
        begins=lambda event: any(part.get("text") or "functionCall" in part for part in _gemini_parts(event)),
        response_id=lambda event: as_str(either(event, "responseId")),
    ),
    "ollama": _Protocol(ollama, ends=lambda event: event.get("done") is True),
    "ai sdk": _Protocol(
        ai_sdk,
        """start start-step finish-step finish abort text-start text-delta text-end tool-input-start tool-input-delta
        tool-input-available tool-output-available tool-output-error tool-call tool-result tool-error
        source-url source-document""",
    ),
    "ag-ui": _Protocol(ag_ui),
    "messages": _Protocol(message_stream),
    "openai agents": _Protocol(
        openai_agents, "run_item_stream_event raw_response_event agent_updated_stream_event"
    ),
    "agent framework": _Protocol(agent_framework, "agent_response_update"),
    "semantic kernel": _Protocol(semantic_kernel),
    "strands": _Protocol(strands, fields="init_event_loop start_event_loop event_loop_cycle_id"),
    "pydantic ai": _Protocol(pydantic_ai, fields="event_kind"),
    "smolagents": _Protocol(smolagents, fields="step_number"),
    "adk": _Protocol(adk, fields="invocation_id invocationId"),
    "llamaindex": _Protocol(llama_index, fields="current_agent_name tool_kwargs"),
}
_TYPES = by_word({name: words(protocol.types) for name, protocol in _PROTOCOLS.items()})
_FIELDS = by_word({name: words(protocol.fields) for name, protocol in _PROTOCOLS.items()})
_AG_UI = ("RUN_", "TEXT_MESSAGE_", "TOOL_CALL_", "STATE_", "STEP_", "MESSAGES_SNAPSHOT")


def protocol_of(event: Json) -> str | None:
    """The protocol that an event is of, by its type or the fields that it has; None if it could be of any."""
    if not isinstance(event, dict):
        # LangGraph's pairs of a message and its metadata, or of a mode and what it brings.
        pair = as_list(event)
        return "langgraph" if len(pair) in (2, 3) and isinstance(pair[-1], (dict, list)) else None
    event = unwrap_message(event) if "lc" in event else event
    kind = event.get("type")
    if isinstance(kind, str):
        if kind in _TYPES:
            return _TYPES[kind]
        if kind.startswith("response."):
            return "openai responses"
        if kind.startswith(_AG_UI):
            return "ag-ui"
        if kind.endswith("MessageChunk"):
            return "langgraph"
    for name in event:
        if name in _FIELDS:
            return _FIELDS[name]
    if at(event, "message", "content_type") is not None:
        return "semantic kernel"
    if "done" in event and ("message" in event or "response" in event):
        return "ollama"
    if is_message(event):
        return "messages"
    if any(looks_like_messages(as_dict(held).get("messages")) for held in (event, *event.values())):
        return "langgraph"
    return None


# Types that only events of a stream have, not messages or their parts.
_ONLY_STREAMED = frozenset(
    words(
        "start start-step step-start text-start text-delta text-end finish-step finish agent_response_update"
    )
)


def are_stream_events(items: list[Json]) -> bool:
    """Whether a list certainly is a recorded stream, although its events may look like messages."""
    kinds = [as_str(as_dict(item).get("type")) or "" for item in items]
    # A transcript may have whole messages of that class.
    return not _ONLY_STREAMED.isdisjoint(kinds) or (
        len(items) > 1 and all(kind.endswith("MessageChunk") for kind in kinds)
    )


SEVERAL_RESPONSES = "several responses"


def split_responses(protocol: str, events: list[JsonObject]) -> list[list[JsonObject]]:
    """The events of each response of a model: the next one begins with the first content after the end of the last."""
    row = _PROTOCOLS[protocol]
    found: list[list[JsonObject]] = [[]]
    ended = False
    current: str | None = None
    for event in events:
        identity = row.response_id(event) or current
        # Where an id says which response it is, nothing else does.
        is_next = identity != current if current else ended and row.begins(event)
        current = identity
        if is_next:
            found.append([])
            ended = False
        found[-1].append(event)
        ended = ended or row.ends(event)
    return found


def assemble(
    kind: StreamKind, data: list[str], *, done: bool, closed: bool = True, names: Sequence[str] = ()
) -> tuple[Json, bool]:
    """The payload that the events make, and whether it is whole.

    `done`: the stream said that it is over. `closed`: its transport did, which counts where a protocol has no mark of its end.
    """
    if kind == "data-stream":
        return ai_sdk_lines([(line[0], decode_event(line[2:])) for line in data if line[1:2] == ":"])
    return assemble_events([decode_event(text) for text in data], done=done, closed=closed, names=names)


def assemble_events(
    events: list[Json], *, done: bool = False, closed: bool = True, names: Sequence[str] = ()
) -> tuple[Json, bool]:
    """The same for events that are decoded, or objects that were made plain."""
    payload, has_ended = _assembled(events, names)
    return payload, done or (closed if has_ended is None else has_ended)


def _assembled(events: list[Json], names: Sequence[str]) -> tuple[Json, bool | None]:
    """The payload, and whether the mark of the stream's end was seen; None: it has none."""
    counted = Counter(name for event in events if (name := protocol_of(event)) is not None)
    if counted and (len(events) > 1 or not looks_like_messages(as_dict(events[0]).get("messages"))):
        protocol = "langgraph" if "langgraph" in counted else counted.most_common(1)[0][0]
        if protocol == "langgraph":
            last = as_dict(events[-1])
            # Each state of a graph, and the result at the end of AutoGen's, has all that came before.
            if looks_like_messages(last.get("messages")):
                closing = as_list(last["messages"])[-1]
                is_open = bool(unwrap_message(as_dict(closing)).get("tool_calls"))
                return last, False if is_open else is_closing_answer(closing) or None
            return langgraph(events)
        if protocol == "messages" and any(map(_is_piece, events)):
            # A chatbot's own events, of which those on tools are called like parts of messages.
            return assemble_pieces(events, names), _ends_by_itself(events, names)
        found = split_responses(protocol, [event for event in events if isinstance(event, dict)])
        documents = [_PROTOCOLS[protocol].assemble(response) for response in found]
        if len(documents) == 1:
            return documents[0]
        # An agent that forwards the model's responses of all its steps.
        several: list[Json] = [document for document, _ in documents]
        return {"object": SEVERAL_RESPONSES, "responses": several}, documents[-1][1]
    if len(events) == 1 and isinstance(events[0], (dict, list)):
        if isinstance(events[0], dict) and any(names):
            # Expressions written for several events find a single one in the same place.
            return {**events[0], "events": listed_events(events, names)}, None
        return events[0], None
    return assemble_pieces(events, names), _ends_by_itself(events, names)


def _ends_by_itself(events: list[Json], names: Sequence[str]) -> bool | None:
    """Whether the last of a chatbot's own events says that it is the last; None if it does not: another need not either."""
    last = as_dict(events[-1]) if events else {}
    name = event_name(last, names[-1] if names else "").lower()
    return True if name in _ENDS or any(last.get(field) is True for field in _ENDS) else None


def _is_piece(event: Json) -> bool:
    """Whether an event has a text and is neither of a protocol nor a part of a message."""
    return (
        isinstance(event, dict)
        and any(isinstance(event.get(name), str) for name in _NAMES)
        and protocol_of(event) is None
        and not has_known_kind(event)
    )


def ends_in_calls(kind: StreamKind, data: list[str]) -> bool:
    """Whether the last response so far asks for tool calls, so that an agent has more to send after it."""
    payload, _ = assemble(kind, data, done=True)
    responses = as_dicts(as_dict(payload).get("responses"))
    return bool(at(responses[-1] if responses else payload, "choices", 0, "message", "tool_calls"))


def decode_event(text: str) -> Json:
    """An event's JSON; text that is none is itself a piece of the reply, and so is a bare number."""
    try:
        value = decode_strict_json(text)
    except ValueError:
        return text
    return text if isinstance(value, bool | int | float) else value
