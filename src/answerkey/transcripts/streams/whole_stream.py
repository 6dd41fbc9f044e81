"""Which protocol a stream's events are in, told by their shape, and the document that they make."""

from collections import Counter
from collections.abc import Callable

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict, as_list
from answerkey.transcripts.message_reading import is_message, looks_like_messages
from answerkey.transcripts.streams import agent_streams, model_streams
from answerkey.transcripts.streams.event_reader import StreamKind
from answerkey.transcripts.streams.pieces import assemble_pieces

Assembler = Callable[[list[JsonObject]], tuple[JsonObject, bool]]

_PROTOCOLS: dict[str, Assembler] = {
    "openai chat": model_streams.openai_chat,
    "openai responses": model_streams.openai_responses,
    "anthropic": model_streams.anthropic,
    "bedrock": model_streams.bedrock,
    "gemini": model_streams.gemini,
    "ollama": model_streams.ollama,
    "ai sdk": agent_streams.ai_sdk,
    "ag-ui": agent_streams.ag_ui,
    "messages": agent_streams.message_stream,
    "openai agents": agent_streams.openai_agents,
    "pydantic ai": agent_streams.pydantic_ai,
    "smolagents": agent_streams.smolagents,
}
# The values of an event's `type`, each of which only one protocol has.
_TYPES: dict[str, str] = {
    **dict.fromkeys(("message_start", "content_block_start", "content_block_delta"), "anthropic"),
    **dict.fromkeys(("content_block_stop", "message_delta", "message_stop"), "anthropic"),
    **dict.fromkeys(("start", "start-step", "finish-step", "finish", "abort", "text-start"), "ai sdk"),
    **dict.fromkeys(("text-delta", "text-end", "tool-input-start", "tool-input-delta"), "ai sdk"),
    **dict.fromkeys(("tool-input-available", "tool-output-available", "tool-output-error"), "ai sdk"),
    **dict.fromkeys(("tool-call", "tool-result", "tool-error", "source-url", "source-document"), "ai sdk"),
    **dict.fromkeys(("run_item_stream_event", "raw_response_event"), "openai agents"),
    "agent_updated_stream_event": "openai agents",
}
# Fields that only one protocol's events have.
_FIELDS: dict[str, str] = {
    "choices": "openai chat",
    "candidates": "gemini",
    "event_kind": "pydantic ai",
    "step_number": "smolagents",
    **dict.fromkeys(("messageStart", "contentBlockStart", "contentBlockDelta", "messageStop"), "bedrock"),
}
_AG_UI = ("RUN_", "TEXT_MESSAGE_", "TOOL_CALL_", "STATE_", "STEP_", "MESSAGES_SNAPSHOT")


def protocol_of(event: Json) -> str | None:
    """The protocol that an event is of, by its type or the fields that it has; None if it could be of any."""
    if not isinstance(event, dict):
        # LangGraph's pairs of a message and its metadata, or of a mode and what it brings.
        pair = as_list(event)
        return "langgraph" if len(pair) in (2, 3) and isinstance(pair[-1], (dict, list)) else None
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
    if "done" in event and ("message" in event or "response" in event):
        return "ollama"
    if is_message(event):
        return "messages"
    if any(looks_like_messages(as_dict(held).get("messages")) for held in (event, *event.values())):
        return "langgraph"
    return None


def assemble(kind: StreamKind, data: list[str], *, done: bool) -> tuple[Json, bool]:
    """The payload that the events make, and whether it is whole (`done`: the stream said that it is over)."""
    if kind == "data-stream":
        return agent_streams.ai_sdk_lines(
            [(line[0], decode_event(line[2:])) for line in data if line[1:2] == ":"]
        )
    return assemble_events([decode_event(text) for text in data], done=done)


def assemble_events(events: list[Json], *, done: bool = False) -> tuple[Json, bool]:
    """The same for events that are decoded, or objects that were made plain."""
    counted = Counter(name for event in events if (name := protocol_of(event)) is not None)
    if counted and (len(events) > 1 or not looks_like_messages(as_dict(events[0]).get("messages"))):
        protocol = "langgraph" if "langgraph" in counted else counted.most_common(1)[0][0]
        if protocol == "langgraph":
            last = as_dict(events[-1])
            # Each state of a graph, and the result at the end of AutoGen's, has all that came before.
            if looks_like_messages(last.get("messages")):
                return last, True
            return agent_streams.langgraph(events)
        payload, whole = _PROTOCOLS[protocol]([event for event in events if isinstance(event, dict)])
        return payload, whole or done
    if len(events) == 1 and isinstance(events[0], (dict, list)):
        return events[0], True
    # Without a protocol nothing says where the stream should have ended.
    return assemble_pieces(events), True


def decode_event(text: str) -> Json:
    """An event's JSON; text that is none is itself a piece of the reply."""
    try:
        decoded: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    return decoded
