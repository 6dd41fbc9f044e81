"""Streams of the Vercel AI SDK: the UI message stream of version 5 and the `CODE:JSON` lines of version 4."""

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict, as_str

__all__ = ["KINDS", "assemble", "assemble_lines"]

KINDS = frozenset(
    {
        "start",
        "start-step",
        "finish-step",
        "finish",
        "text-start",
        "text-delta",
        "text-end",
        "tool-input-start",
        "tool-input-available",
        "tool-output-available",
        "tool-output-error",
        "source-url",
        "source-document",
        "abort",
    },
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
        elif kind in ("source-url", "source-document"):
            parts.append(event)
        elif kind == "error":
            message["error"] = event.get("errorText") or True
        elif kind == "finish":
            finished = True
            message["metadata"] = as_dict(event.get("messageMetadata"))
    message["parts"] = [*parts]
    return message, finished


def assemble_lines(events: list[tuple[str, Json]]) -> tuple[JsonObject, bool]:
    """The same for version 4, from (code, value) pairs."""
    message: JsonObject = {"role": "assistant"}
    parts: list[JsonObject] = []
    finished = False
    for code, value in events:
        item = as_dict(value)
        if code == "0":
            _say(parts, value)
        elif code == "3":
            message["error"] = value or True
        elif code == "9":
            _call(parts, "tool-input-available", {**item, "input": item.get("args")})
        elif code == "a":
            _call(parts, "tool-output-available", {**item, "output": item.get("result")})
        elif code == "f":
            message["id"] = item.get("messageId")
            parts.append({"type": "step-start"})
        elif code == "h":
            parts.append({"type": "source", "source": item})
        elif code == "d":
            finished = True
            message["metadata"] = {"usage": item.get("usage")}
    message["parts"] = [*parts]
    return message, finished


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
    part = next(
        (one for one in parts if one["type"] == "dynamic-tool" and one["toolCallId"] == identity), None
    )
    if part is None:
        part = {"type": "dynamic-tool", "toolCallId": identity, "toolName": None, "state": "input-streaming"}
        parts.append(part)
    part["toolName"] = as_str(event.get("toolName")) or part["toolName"]
    if kind == "tool-input-available":
        part.update(input=event.get("input"), state="input-available")
    elif kind == "tool-output-available":
        part.update(output=event.get("output"), state="output-available")
    elif kind == "tool-output-error":
        part.update(errorText=event.get("errorText"), state="output-error")
    elif kind == "tool-output-denied":
        part.update(state="output-denied")
