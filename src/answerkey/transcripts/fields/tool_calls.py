"""Tool calls in the shapes that chatbots report them: names, objects of many dialects, or a list as text."""

import json
from functools import lru_cache

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import ToolCall
from answerkey.transcripts.fields.content_text import json_text, safe_text
from answerkey.transcripts.json_shapes import as_str, pick, read_duration

__all__ = [
    "ARGUMENT_NAMES",
    "CALL_NAMES",
    "RESULT_NAMES",
    "UNNAMED",
    "error_text",
    "looks_like_calls",
    "read_arguments",
    "read_call",
    "read_calls",
    "read_result",
]

# A call that was seen without its name; it can match no expected tool.
UNNAMED = "(unnamed)"

CALL_NAMES = ("name", "tool", "tool_name", "toolName", "function", "function_name", "action")
ARGUMENT_NAMES = (
    "arguments",
    "args",
    "input",
    "parameters",
    "tool_input",
    "input_parameters",
    "inputParameters",
)
RESULT_NAMES = ("result", "output", "response", "tool_output", "observation")
_IDS = ("id", "call_id", "tool_call_id", "toolCallId")
_DURATIONS = ("duration_ms", "durationMs", "latency_ms", "latencyMs", "elapsed_ms")


@lru_cache(maxsize=4096)
def _named(name: str) -> ToolCall:
    """Calls known by name only are all alike; a log of a million replies has a handful of them."""
    return ToolCall(name=name)


def read_calls(value: object) -> tuple[ToolCall, ...]:
    """The calls in a tools field, in order."""
    if not value:
        return ()
    if isinstance(value, str):
        return read_calls(_listed(value))
    if isinstance(value, dict):
        if any(name in value for name in CALL_NAMES):
            return (read_call(value),)
        # {"query_database": {"sql": …}}: the names are the keys.
        return tuple(
            ToolCall(name=str(name), arguments=part if isinstance(part, dict) else None)
            for name, part in value.items()
        )
    if isinstance(value, (list, tuple)):
        return tuple(
            [_named(item) if type(item) is str and item.isascii() else read_call(item) for item in value]
        )
    return (_named(json_text(value)),)


def read_call(item: object) -> ToolCall:
    """One call: a name, an object, or a pair of an action and what came of it."""
    if isinstance(item, str):
        return _named(safe_text(item))
    if isinstance(item, (list, tuple)) and len(item) == 2:
        call = read_call(item[0])
        return msgspec.structs.replace(call, result=item[1], result_seen=True)
    if not isinstance(item, dict):
        return _named(UNNAMED if item is None else json_text(item))
    holder = item
    name = item.get("name")
    # OpenAI nests {"function": {"name", "arguments"}}, or {"custom": {"name", "input"}}.
    for nest in ("function", "custom"):
        inner = item.get(nest)
        if isinstance(inner, dict):
            holder = {**item, **inner}
            if not isinstance(inner.get("name"), str):
                del holder[nest]
            name = None
            break
    if type(name) is not str or not name:
        name = next(
            (holder[key] for key in CALL_NAMES if isinstance(holder.get(key), str) and holder[key]), None
        )
    arguments, arguments_text = read_arguments(pick(holder, *ARGUMENT_NAMES))
    result_key = next((key for key in RESULT_NAMES if key in holder), None)
    return ToolCall(
        name=safe_text(name) if name else UNNAMED,
        id=as_str(pick(holder, *_IDS)),
        arguments=arguments,
        arguments_text=arguments_text,
        result=None if result_key is None else holder[result_key],
        result_seen=result_key is not None,
        error=_error(holder),
        duration_ms=read_duration(pick(holder, *_DURATIONS)),
    )


def read_result(identity: object, name: object, result: object, error: str | None) -> ToolCall:
    """What came of a call, where that is told apart from it; either of the call's id and name may be missing."""
    return ToolCall(
        name=as_str(name) or UNNAMED, id=as_str(identity), result=result, result_seen=True, error=error
    )


def read_arguments(value: object) -> tuple[JsonObject | None, str | None]:
    """A call's arguments as an object, or else as text. Most APIs send an object written as JSON text."""
    if value is None:
        return None, None
    if isinstance(value, dict):
        return value, None
    if isinstance(value, str):
        if not value.strip():
            return {}, None
        try:
            decoded = json.loads(value)
        except (ValueError, RecursionError):
            return None, safe_text(value)
        return (decoded, None) if isinstance(decoded, dict) else (None, safe_text(value))
    return None, json_text(value)


def looks_like_calls(value: object) -> bool:
    """Whether a list has more to tell than names."""
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def error_text(value: object) -> str | None:
    """What a call's error field says; None if there was no error."""
    if not value:
        return None
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, dict):
        kind, message = value.get("type"), value.get("message", value.get("content"))
        if isinstance(message, str):
            return safe_text(f"{kind}: {message}" if isinstance(kind, str) else message)
    return "the call failed" if value is True else json_text(value)


def _error(item: JsonObject) -> str | None:
    said = error_text(item.get("error", item.get("errorText")))
    if said is not None:
        return said
    if (
        item.get("is_error") is True
        or item.get("isError") is True
        or item.get("status") in ("error", "failed")
    ):
        result = pick(item, *RESULT_NAMES)
        return result if isinstance(result, str) and result else "the call failed"
    return None


def _listed(text: str) -> list[Json]:
    """A list that a spreadsheet or log holds as text: JSON, or names with commas."""
    text = text.strip()
    if text.startswith(("[", "{")):
        try:
            decoded = json.loads(text)
        except (ValueError, RecursionError):
            decoded = None
        if isinstance(decoded, list):
            return decoded
        if isinstance(decoded, dict):
            return [decoded]
    return [name for name in (part.strip() for part in text.split(",")) if name]
