"""Vercel AI SDK: UI messages of version 4 (toolInvocations) and 5 (typed parts), the result of generateText, and streams."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Evidence, Reply, Source, ToolCall
from answerkey.transcripts.conversation import Message, Role, merged, reply_of
from answerkey.transcripts.fields.sources import ranked, read_source
from answerkey.transcripts.fields.tool_calls import error_text, read_call, read_result
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str, pick

__all__ = ["EVENTS", "assemble", "assemble_lines", "detect", "detect_message", "read", "read_message"]

_SOURCES = frozenset({"source", "source-url", "source-document"})
_PARTS = _SOURCES | {"text", "reasoning", "step-start", "tool-invocation", "dynamic-tool", "file"}
_STEP = frozenset({"toolCalls", "toolResults", "text", "content", "finishReason"})
_ROLES: dict[str, Role] = {"user": "user", "system": "system"}

# What a stream's event on a tool's call brings, and the state that the call is in then.
_CALL_EVENTS = {
    "tool-input-available": ("input", "input-available"),
    "tool-output-available": ("output", "output-available"),
    "tool-output-error": ("errorText", "output-error"),
    "tool-output-denied": ("errorText", "output-denied"),
}
# Events that only this format's streams have.
EVENTS = frozenset(
    {
        *("start", "start-step", "finish-step", "finish", "abort", "text-start", "text-delta", "text-end"),
        *("tool-input-start", "tool-input-available", "tool-output-available", "tool-output-error"),
        *("source-url", "source-document"),
    }
)


def detect(payload: JsonObject) -> bool:
    """A UI message of the assistant, or a generateText result (`steps`, or camelCase tool calls beside a text)."""
    if detect_message(payload):
        return True
    if any(not step.keys().isdisjoint(_STEP) for step in as_dicts(payload.get("steps"))):
        return True
    return "finishReason" in payload and isinstance(payload.get("toolCalls"), list)


def detect_message(item: JsonObject) -> bool:
    """Whether a message has the SDK's parts or invocations."""
    if isinstance(item.get("toolInvocations"), list):
        return True
    kinds = [str(part.get("type", "")) for part in as_dicts(item.get("parts"))]
    return bool(kinds) and all(kind in _PARTS or kind.startswith(("tool-", "data-")) for kind in kinds)


def read(payload: JsonObject) -> Reply:
    """One message of the assistant, or a whole result."""
    if detect_message(payload):
        return reply_of([read_message({"role": "assistant", **payload})])
    reply = reply_of([_step(step) for step in as_dicts(payload.get("steps")) or [payload]])
    text = payload.get("text")
    return msgspec.structs.replace(
        reply,
        text=text if isinstance(text, str) else reply.text,
        usage=read_usage(payload.get("totalUsage")) or reply.usage,
        evidence=Evidence(
            kind="transcript" if "steps" in payload else "response",
            tools_observed=True,
            sources_observed=bool(reply.sources),
        ),
        response_id=as_str(as_dict(payload.get("response")).get("id")),
    )


def read_message(item: JsonObject) -> Message:
    """One UI message: the calls in it carry their results."""
    parts: list[Message] = []
    for part in as_dicts(item.get("parts")):
        if part.get("type") == "step-start":
            # What was said before the last step was not yet the answer.
            parts = [msgspec.structs.replace(earlier, text=None) for earlier in parts]
        parts.append(_part(str(part.get("type", "")), part))
    whole = merged(parts)
    content = item.get("content")
    metadata = as_dict(item.get("metadata"))
    return Message(
        role=_ROLES.get(str(item.get("role")), "assistant"),
        text=content if whole.text is None and isinstance(content, str) else whole.text,
        calls=whole.calls or tuple(_invocation(call) for call in as_dicts(item.get("toolInvocations"))),
        sources=ranked(whole.sources),
        usage=read_usage(metadata.get("usage") or metadata.get("totalUsage")),
        id=as_str(item.get("id")),
    )


def _part(kind: str, part: JsonObject) -> Message:
    if kind == "text":
        said = part.get("text")
        return Message(text=said if isinstance(said, str) else None)
    if kind == "tool-invocation":
        return Message(calls=(_invocation(as_dict(part.get("toolInvocation"))),))
    if kind == "dynamic-tool" or kind.startswith("tool-"):
        return Message(calls=(_typed_call(kind, part),))
    return Message(sources=(_source(as_dict(part.get("source")) or part),) if kind in _SOURCES else ())


def _invocation(item: JsonObject) -> ToolCall:
    # A result that is undefined in JavaScript has no field.
    return read_call({"result": None, **item} if item.get("state") == "result" else item)


def _typed_call(kind: str, part: JsonObject) -> ToolCall:
    state = part.get("state")
    call: JsonObject = {
        "name": as_str(part.get("toolName")) or kind.removeprefix("tool-"),
        "id": part.get("toolCallId"),
        "input": pick(part, "input", "rawInput"),
    }
    if state in ("output-available", "output-error") or "output" in part:
        call["output"] = part.get("output")
    if state == "output-error":
        call["error"] = part.get("errorText") or True
    elif state == "output-denied":
        call["error"] = "the call was denied"
    return read_call(call)


def _source(part: JsonObject) -> Source:
    return read_source({**part, "title": pick(part, "title", "filename")}, None)


def _step(step: JsonObject) -> Message:
    """One step of generateText: its calls and results under names of their own, or among its content."""
    of_kind: dict[str, list[JsonObject]] = {}
    for part in as_dicts(step.get("content")):
        of_kind.setdefault(str(part.get("type")), []).append(part)
    made = as_dicts(step.get("toolCalls")) or of_kind.get("tool-call", [])
    given = as_dicts(step.get("toolResults")) or of_kind.get("tool-result", [])
    said = step.get("text")
    if not isinstance(said, str):
        said = "".join(str(part.get("text") or "") for part in of_kind.get("text", [])) or None
    return Message(
        text=said,
        calls=tuple(read_call(call) for call in made),
        results=tuple(
            read_result(
                part.get("toolCallId"),
                part.get("toolName"),
                pick(part, "result", "output"),
                error_text(part.get("error")),
            )
            for part in [*given, *of_kind.get("tool-error", [])]
        ),
        sources=ranked(_source(part) for part in as_dicts(step.get("sources"))),
        usage=read_usage(step.get("usage")),
    )


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The UI message that the events of version 5 build, and whether it was finished."""
    message: JsonObject = {"role": "assistant"}
    parts: list[JsonObject] = []
    finished = False
    for event in events:
        kind = event.get("type")
        if kind == "start":
            message["id"] = event.get("messageId")
        elif kind == "start-step":
            parts.append({"type": "step-start"})
        elif kind == "text-delta":
            _say(parts, event.get("delta", event.get("textDelta")))
        elif isinstance(kind, str) and kind.startswith("tool-"):
            _call(parts, kind, event)
        elif isinstance(kind, str) and kind in _SOURCES:
            parts.append(event)
        elif kind == "error":
            message["error"] = event.get("errorText") or True
        elif kind == "finish":
            finished = True
            message["metadata"] = as_dict(event.get("messageMetadata"))
    message["parts"] = [*parts]
    return message, finished


def assemble_lines(lines: list[tuple[str, Json]]) -> tuple[JsonObject, bool]:
    """The same for the `CODE:JSON` lines of version 4, from (code, value) pairs."""
    return assemble([event for code, value in lines for event in _events_of_line(code, value)])


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


def _say(parts: list[JsonObject], text: object) -> None:
    if not isinstance(text, str):
        return
    last = parts[-1] if parts else {}
    if last.get("type") == "text" and isinstance(said := last.get("text"), str):
        last["text"] = said + text
    else:
        parts.append({"type": "text", "text": text})


def _call(parts: list[JsonObject], kind: str, event: JsonObject) -> None:
    identity = as_str(event.get("toolCallId"))
    same = [one for one in parts if one["type"] == "dynamic-tool" and one["toolCallId"] == identity]
    if same:
        part = same[0]
    else:
        part = {"type": "dynamic-tool", "toolCallId": identity, "toolName": None, "state": "input-streaming"}
        parts.append(part)
    part["toolName"] = as_str(event.get("toolName")) or part["toolName"]
    if kind in _CALL_EVENTS:
        brought, part["state"] = _CALL_EVENTS[kind]
        part[brought] = event.get(brought)
