"""The streams of agent frameworks and their protocols, put together into messages or into the result of the run."""

from collections.abc import Hashable

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str, at, either
from answerkey.transcripts.message_reading import is_message
from answerkey.transcripts.streams.pieces import Growing

# What an event of the AI SDK on a tool's call brings, and the state that the call is in then.
_CALL_EVENTS = {
    "tool-input-available": ("input", "input", "input-available"),
    "tool-call": ("input", "input", "input-available"),
    "tool-output-available": ("output", "output", "output-available"),
    "tool-result": ("output", "output", "output-available"),
    "tool-output-error": ("errorText", "errorText", "output-error"),
    "tool-input-error": ("errorText", "errorText", "output-error"),
    "tool-error": ("error", "errorText", "output-error"),
    "tool-output-denied": ("errorText", "errorText", "output-denied"),
}
_SOURCES = ("source", "source-url", "source-document")


def ai_sdk(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The UI message that the AI SDK's events build (those of its UI stream and of fullStream), and whether it was finished."""
    message: JsonObject = {"role": "assistant"}
    parts = Growing()
    text = 0
    finished = False
    for number, event in enumerate(events):
        kind = event.get("type")
        if kind == "start":
            message["id"] = event.get("messageId")
        elif kind == "start-step":
            parts.part(number, type="step-start")
        elif kind == "text-delta":
            parts.part(("text", text), type="text", text="")
            parts.grow(("text", text), "text", event.get("delta", event.get("textDelta", event.get("text"))))
            continue
        elif kind == "error":
            message["error"] = event.get("errorText") or event.get("error") or True
        elif kind == "finish":
            finished = True
            usage = event.get("totalUsage", event.get("usage"))
            message["metadata"] = as_dict(event.get("messageMetadata")) or {"usage": usage}
        elif isinstance(kind, str) and kind in _SOURCES:
            parts.part(number, **event)
        elif isinstance(kind, str) and kind.startswith("tool-"):
            _sdk_call(parts, kind, event)
        # What follows anything but a delta is another text.
        text = number
    message["parts"] = [*parts.finished()]
    return message, finished


def _sdk_call(parts: Growing, kind: str, event: JsonObject) -> None:
    identity = as_str(event.get("toolCallId")) or as_str(event.get("id"))
    if kind not in _CALL_EVENTS and kind != "tool-input-start":
        return
    part = parts.part(
        ("call", identity), type="dynamic-tool", toolCallId=identity, toolName=None, state="input-streaming"
    )
    part["toolName"] = as_str(event.get("toolName")) or part["toolName"]
    if kind in _CALL_EVENTS:
        brought, field, part["state"] = _CALL_EVENTS[kind]
        given = event.get(brought)
        part[field] = as_dict(given).get("message", given) if field == "errorText" else given


def ai_sdk_lines(lines: list[tuple[str, Json]]) -> tuple[JsonObject, bool]:
    """The same for the `CODE:JSON` lines of version 4, from (code, value) pairs."""
    return ai_sdk([event for code, value in lines for event in _events_of_line(code, value)])


def _events_of_line(code: str, value: Json) -> list[JsonObject]:
    """A line of version 4 as the events of version 5 that say the same."""
    item = as_dict(value)
    match code:
        case "0":
            return [{"type": "text-delta", "delta": value}]
        case "3":
            return [{"type": "error", "errorText": value}]
        case "9":
            return [{**item, "type": "tool-input-available", "input": item.get("args")}]
        case "a":
            return [{**item, "type": "tool-output-available", "output": item.get("result")}]
        case "f":
            return [{"type": "start", "messageId": item.get("messageId")}, {"type": "start-step"}]
        case "h":
            return [{"type": "source", "source": item}]
        case "d":
            return [{"type": "finish", "messageMetadata": {"usage": item.get("usage")}}]
        case _:
            return []


def ag_ui(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The messages that AG-UI's events build; a snapshot of them takes the place of what came before."""
    messages = Growing()
    document: JsonObject = {}
    finished = False
    for number, event in enumerate(events):
        kind = event.get("type")
        said, call = as_str(either(event, "messageId")), as_str(either(event, "toolCallId"))
        if kind in ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"):
            messages.part(("text", said), role=event.get("role") or "assistant", content="", id=said)
            messages.grow(("text", said), "content", event.get("delta"))
        elif kind in ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK"):
            begun = messages.part(("call", call), type="function_call", call_id=call, name=None, arguments="")
            begun["name"] = as_str(either(event, "toolCallName")) or begun["name"]
            messages.grow(("call", call), "arguments", event.get("delta"))
        elif kind == "TOOL_CALL_RESULT":
            messages.part(number, role="tool", tool_call_id=call, content=event.get("content"))
        elif kind == "MESSAGES_SNAPSHOT":
            messages = Growing()
            for place, message in enumerate(as_dicts(event.get("messages"))):
                messages.part(("snapshot", place), **message)
        elif kind == "RUN_ERROR":
            document["error"] = {"code": event.get("code"), "message": event.get("message")}
        elif kind == "RUN_FINISHED":
            finished = True
    return {**document, "messages": [*messages.finished()]}, finished or "error" in document


def langgraph(events: list[Json]) -> tuple[JsonObject, bool]:
    """The messages that a graph's stream brings, in any of its modes; chunks of one message are put together."""
    messages, calls = Growing(), Growing()
    # The calls of messages that have come in chunks only.
    made: dict[Hashable, dict[str, JsonObject]] = {}
    for number, event in enumerate(events):
        for place, item in enumerate(_brought(event)):
            identity, content = item.get("id"), item.get("content")
            key: Hashable = identity if isinstance(identity, str) else (number, place)
            if not str(item.get("type")).endswith("Chunk"):
                # A whole message, or one again that an update brings after its chunks.
                messages.part(key).update(item)
                messages.forget(key, "content")
                made.pop(key, None)
                continue
            message = messages.part(key, **{**item, "content": "", "tool_calls": []})
            said = [part.get("text") for part in as_dicts(content)]
            for text in [content] if isinstance(content, str) else said:
                messages.grow(key, "content", text)
            if isinstance(item.get("usage_metadata"), dict):
                message["usage_metadata"] = item["usage_metadata"]
            for position, piece in enumerate(as_dicts(item.get("tool_call_chunks"))):
                index = str(position if piece.get("index") is None else piece["index"])
                call = calls.part((key, index), name=None, id=None, args="")
                call |= {name: call[name] or piece.get(name) for name in ("name", "id")}
                calls.grow((key, index), "args", piece.get("args"))
                made.setdefault(key, {})[index] = call
    calls.finished()
    found = messages.finished()
    for key, called in made.items():
        message = messages.part(key)
        message["tool_calls"] = [*as_list(message.get("tool_calls")), *called.values()]
    return {"messages": [*found]}, True


def _brought(event: Json) -> list[JsonObject]:
    """The messages in an event: of a node's update, of a state, or a pair of a message and its metadata."""
    if isinstance(event, dict):
        if isinstance(event.get("data"), (dict, list)) and "ns" in event:
            return _brought(event["data"])
        if is_message(event):
            return [event]
        holders = [event, *event.values()]
        return [item for held in holders for item in as_dicts(as_dict(held).get("messages"))]
    pair = as_list(event)
    if len(pair) == 2 and isinstance(pair[0], dict):
        return [pair[0]] if is_message(pair[0]) else []
    # (mode, event), with the namespace of a subgraph before them.
    return _brought(pair[-1]) if pair and isinstance(pair[-1], (dict, list)) else []


def message_stream(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """A stream of whole messages (Claude's SDK, AutoGen); a result at its end that has them all is the reply."""
    last = events[-1]
    if isinstance(last.get("messages"), list):
        return last, True
    return {"messages": [*events]}, True


def openai_agents(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The items that a run made; the model's own events say the same once more."""
    items = [
        at(event, "item", "raw_item") for event in events if event.get("type") == "run_item_stream_event"
    ]
    return {"messages": [item for item in items if isinstance(item, dict)]}, True


def pydantic_ai(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The result that ends a run's events, or what its calls and texts tell without it."""
    ends = [event.get("result") for event in events if event.get("event_kind") == "agent_run_result"]
    for result in reversed(ends):
        if isinstance(result, dict):
            return result, True
    parts = Growing()
    begun = 0
    for number, event in enumerate(events):
        kind, part = event.get("event_kind"), as_dict(event.get("part"))
        if kind == "part_start" and part.get("part_kind") in ("text", "thinking"):
            begun = number
            parts.part(begun, **part)
        elif kind == "part_delta":
            parts.grow(begun, "content", at(event, "delta", "content_delta"))
        elif kind in ("function_tool_call", "function_tool_result"):
            parts.part(number, **(part or as_dict(event.get("result"))))
    messages: list[Json] = [{"kind": "response", "parts": [part]} for part in parts.finished()]
    return {"messages": messages}, False


def smolagents(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The steps of a run and its final answer."""
    steps: list[Json] = [event for event in events if "step_number" in event]
    finals = [event for event in events if event.get("$type") == "FinalAnswerStep"]
    return {"steps": steps, "output": finals[-1].get("output") if finals else None}, bool(finals)
