"""Tool calls in the shapes that chatbots report them: names, objects of many dialects, or a list as text."""

import json
from functools import lru_cache

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import ToolCall
from answerkey.transcripts.fields.content_text import json_text, safe_text, spoken_text
from answerkey.transcripts.json_shapes import as_dict, as_str, pick, read_duration
from answerkey.transcripts.plain_json import decode_json

# A call that was seen without its name; it can match no expected tool.
UNNAMED = "(unnamed)"

CALL_NAMES = ("name", "tool", "tool_name", "toolName", "function", "function_name", "action")
ARGUMENT_NAMES = (
    *("arguments", "args", "input", "parameters", "tool_input", "input_parameters", "inputParameters"),
    *("tool_kwargs", "rawInput"),
)
RESULT_NAMES = ("result", "output", "response", "tool_output", "observation")
# A call of the Responses API has an id of its own beside the one that its output refers to.
_IDS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_id", "id")
_RESULT_IDS = ("tool_use_id", *_IDS)
# Where a result told apart from its call has what was brought back.
_BROUGHT = ("content", "output", "result", "response", "errorText", "error")
# Fields of the dialects that say whether a call failed: there the result's own words are not searched for it.
_FLAGS = frozenset(
    {"is_error", "isError", "status", "tool_use_id", "toolUseId", "toolCallId", "part_kind", "outcome"}
)
# The words by which a call's status, outcome or kind of part says that it failed.
# (A tuple, since what is compared with them may be an object, which no set can be asked for.)
_FAILED = ("error", "failed", "denied", "retried", "tool-error", "retry-prompt", "tool-output-denied")
_OPENAI, _FUNCTION = {"id", "type", "function"}, {"name", "arguments"}
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
    if (
        len(item) == 3
        and item.keys() == _OPENAI
        and type(function := item["function"]) is dict
        and function.keys() == _FUNCTION
    ):
        # The form that most transcripts have.
        name, identity = function["name"], item["id"]
        if type(name) is str and name and name.isascii() and type(identity) is str:
            arguments, arguments_text = read_arguments(function["arguments"])
            return ToolCall(name=name, id=identity, arguments=arguments, arguments_text=arguments_text)
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
        error=_error(holder, None if result_key is None else holder[result_key]),
        start_ms=read_duration(holder.get("start_ms")),
        duration_ms=read_duration(pick(holder, *_DURATIONS)),
    )


def read_result(item: JsonObject) -> ToolCall:
    """What came of a call, where that is told apart from it; the call's id and name may each be missing."""
    value = brought = next((item[key] for key in _BROUGHT if item.get(key) is not None), None)
    failed = _error(item, value)
    if isinstance(value, dict):
        brought, inner = _opened(value)
        failed = failed or inner
    elif isinstance(value, list):
        text = spoken_text(value)
        # Bedrock has [{"json": …}].
        brought = as_dict(value[0]).get("json", value) if text is None and len(value) == 1 else text or value
    if failed is not None and item.get("part_kind") == "retry-prompt":
        failed = spoken_text(value) or failed
    if failed is None and _FLAGS.isdisjoint(item):
        failed = error_in_result(brought)
    names = [name for key in CALL_NAMES if isinstance(name := item.get(key), str) and name]
    return ToolCall(
        name=safe_text(names[0]) if names else UNNAMED,
        id=as_str(pick(item, *_RESULT_IDS)),
        result=safe_text(brought) if isinstance(brought, str) else brought,
        result_seen=True,
        error=failed,
        duration_ms=read_duration(pick(item, *_DURATIONS)),
    )


def _opened(value: JsonObject) -> tuple[Json, str | None]:
    """What an object that wraps a result holds, and its error: the AI SDK's, LlamaIndex's and hosted tools'."""
    if isinstance(kind := value.get("type"), str) and "value" in value:
        inner = value["value"]
        return inner, (error_text(inner) or "the call failed") if kind.startswith("error") else None
    if value.get("type") == "execution-denied":
        return None, as_str(value.get("reason")) or "the call was denied"
    if "raw_output" in value:
        inner = value["raw_output"]
        return inner, (spoken_text(inner) or "the call failed") if value.get("is_error") is True else None
    if isinstance(code := value.get("error_code"), str):
        return value, code
    return value, None


def error_in_result(result: object) -> str | None:
    """An error that a tool's result admits by itself, for formats without an error flag."""
    if isinstance(result, str):
        if result.startswith(
            ("Error:", "ERROR:", "Error executing tool", "ToolException", "Traceback (most recent call last)")
        ):
            return result
        if not result.startswith("{") or ('"error"' not in result and '"isError"' not in result):
            return None
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return None
    if isinstance(result, dict):
        error = result.get("error")
        if isinstance(error, str) and error:
            return safe_text(error)
        if result.get("isError") is True or error is True or isinstance(error, dict):
            return json_text(result.get("error", result.get("content")))
    return None


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
            decoded = decode_json(value)
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


def _error(item: JsonObject, result: object) -> str | None:
    said = error_text(item.get("error", item.get("errorText")))
    if said is not None:
        return said
    get = item.get
    if (
        get("is_error") is True
        or get("isError") is True
        or get("status") in _FAILED
        or get("outcome") in _FAILED
    ):
        return spoken_text(result) or "the call failed"
    if get("type") in _FAILED or get("part_kind") in _FAILED:
        return "the call failed"
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
