"""Readers for the parts of a reply: calls, sources, usage and errors in the shapes that chatbots send.

The kind of a system error is recognised in the error texts of chatbots, drivers and gateways.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from math import isfinite
from pathlib import Path
from typing import Literal

import msgspec

from answerkey.model.reply import ERROR_KINDS, Failure, Json, JsonObject, Source, ToolCall, Usage
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import (
    as_dict,
    as_str,
    decode_cell,
    decode_json,
    json_text,
    pick,
    read_count,
    read_duration,
    read_number,
    read_text,
    safe_text,
    spellings,
    spoken_text,
    type_in_words,
    words,
)

# Sources: ids, passages, or objects in the formats of retrievers, best first.


_IDS = spellings("id doc_id document_id source_id _id file_id chunk_id document_name")
_FALLBACK_IDS = ("source", "filename", "file", "path", "document", "uri", "url", "link", "title", "name")
_TEXTS = spellings("text page_content content snippet chunk passage body")
_SCORES = spellings("score similarity relevance_score relevance")
_NESTS = ("kwargs", "document", "chunk", "node")
_URIS = ("uri", "url", "link", "href")
_PLAIN_NAMES = frozenset(["id", "rank", "score", "text"])
# A string longer than this is a passage, not an id.
_MAX_ID_LENGTH = 200


def read_sources(value: object, *, passages: bool = False) -> tuple[Source, ...]:
    """The sources in a field, in order. `passages`: its strings are texts rather than ids."""
    if not value:
        return ()
    if isinstance(value, str):
        return (_from_string(value, 1, passages),)
    if isinstance(value, dict):
        if not any(key in value for key in (*_IDS, *_FALLBACK_IDS, *_TEXTS)):
            # {"doc-1": 0.93, …}: ids with their scores.
            return tuple(
                Source(id=safe_text(str(key)), rank=rank, score=read_number(part))
                for rank, (key, part) in enumerate(value.items(), start=1)
            )
        return (read_source(value, 1),)
    if isinstance(value, (list, tuple)):
        return tuple(
            [
                _from_string(item, rank, passages) if isinstance(item, str) else read_source(item, rank)
                for rank, item in enumerate(value, start=1)
                if item is not None
            ],
        )
    return (Source(id=json_text(value), rank=1),)


def read_source(item: object, rank: int | None) -> Source:
    """One source: an object, a pair of a document and its score, or a bare id."""
    if isinstance(item, (list, tuple)) and len(item) == 2:
        inner = item[0] if isinstance(item[0], (dict, str)) else json_text(item[0])
        return msgspec.structs.replace(
            read_source(inner, rank), rank=rank, score=read_number(item[1]), cited=None
        )
    if isinstance(item, str):
        return _from_string(item, rank, False)
    if type(item) is dict and item.keys() <= _PLAIN_NAMES and (plain := _plain(item, rank)) is not None:
        return plain
    if not isinstance(item, dict):
        return Source(id=json_text(item), rank=rank)
    # LangChain's serialisation, and {"document": {…}, "score": …}.
    for nest in _NESTS:
        inner_item = item.get(nest)
        if isinstance(inner_item, dict):
            item = {**item, **inner_item}
            if item.get(nest) is inner_item:
                del item[nest]
    found = item.get("metadata")
    metadata: JsonObject = found if isinstance(found, dict) else {}
    identity = _string(item, _IDS) or _string(metadata, (*_IDS, "source")) or _string(item, _FALLBACK_IDS)
    given_rank = item.get("rank")
    cited = item.get("cited")
    score = _number(item, _SCORES)
    text_value = next((item[key] for key in _TEXTS if item.get(key) is not None), None)
    return Source(
        id=identity,
        rank=given_rank
        if isinstance(given_rank, int) and not isinstance(given_rank, bool) and abs(given_rank) < 2**62
        else rank,
        score=score if score is not None else _number(metadata, _SCORES),
        text=read_text(text_value),
        title=_string(item, ("title",)) or _string(metadata, ("title",)),
        uri=_string(item, _URIS) or _string(metadata, _URIS),
        cited=cited if isinstance(cited, bool) else None,
        metadata=metadata,
    )


def read_citation(note: JsonObject, rank: int | None = None) -> Source:
    """A source that a text cites; its title may be called that of a document or a file."""
    title = pick(note, "title", "document_title", "filename")
    return read_source({**note, "title": title, "text": note.get("cited_text"), "cited": True}, rank)


def ranked(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Number sources in their order."""
    return tuple(msgspec.structs.replace(source, rank=rank) for rank, source in enumerate(sources, start=1))


def _plain(item: JsonObject, rank: int | None) -> Source | None:
    """Fast path for a source with our own field names and types; None if a field differs."""
    get = item.get
    identity, score, text = get("id"), get("score"), get("text")
    if type(identity) is not str or not identity or not identity.isascii():
        return None
    if score is not None and (type(score) is not float or not isfinite(score)):
        return None
    if text is not None and (type(text) is not str or not text.isascii()):
        return None
    given = get("rank")
    if given is not None and (type(given) is not int or abs(given) >= 2**62):
        return None
    return Source(id=identity, rank=rank if given is None else given, score=score, text=text)


def _from_string(text: str, rank: int | None, passages: bool) -> Source:
    text = safe_text(text)
    if len(text) > _MAX_ID_LENGTH or "\n" in text or (passages and " " in text):
        return Source(text=text, rank=rank)
    return Source(id=text, rank=rank)


def _string(item: JsonObject, names: tuple[str, ...]) -> str | None:
    for name in names:
        value = item.get(name)
        if isinstance(value, str) and value:
            return safe_text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def _number(item: JsonObject, names: tuple[str, ...]) -> float | None:
    for name in names:
        if name in item:
            number = read_number(item[name])
            if number is not None:
                return number
    return None


# Tool calls: names, objects in many formats, or a list as text.


# A call without a name; it matches no expected tool.
UNNAMED = "(unnamed)"

CALL_NAMES = spellings("name tool tool_name function function_name action")
ARGUMENT_NAMES = spellings(
    "arguments args input parameters tool_input input_parameters tool_kwargs raw_input"
)
RESULT_NAMES = ("result", "output", "response", "tool_output", "observation")
# A call of the Responses API has a second id, which its output does not refer to.
_CALL_IDS = ("toolUseId", *spellings("call_id tool_call_id tool_id id"))
_RESULT_IDS = ("tool_use_id", *_CALL_IDS)
# The fields of a separate result that have its value.
_RESULT_VALUES = ("content", "output", "result", "response", "errorText", "error")
# Fields that say whether a call failed; with one of them, the text of the result is not searched for an error.
_FLAGS = frozenset(
    {"is_error", "isError", "status", "tool_use_id", "toolUseId", "toolCallId", "part_kind", "outcome"}
)
# Values of a status, outcome or part kind that mean a failed call. A tuple: the compared value may be unhashable.
_FAILED = ("error", "failed", "denied", "retried", "tool-error", "retry-prompt", "tool-output-denied")
_OPENAI, _FUNCTION = {"id", "type", "function"}, {"name", "arguments"}
_DURATIONS = spellings("duration_ms latency_ms elapsed_ms")


@lru_cache(maxsize=4096)
def _call_by_name(name: str) -> ToolCall:
    """A call known by its name only, cached: a large log has only a handful of names."""
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
        if len(value) == 1 and (says_no_tool(value) or says_nothing_of_tools(value)):
            return ()
        return tuple(
            [
                _call_by_name(item) if type(item) is str and item.isascii() else read_call(item)
                for item in value
            ]
        )
    return (_call_by_name(json_text(value)),)


def read_call(item: object) -> ToolCall:
    """One call: a name, an object, or a pair of an action and its result."""
    if isinstance(item, str):
        return _call_by_name(safe_text(item))
    if isinstance(item, (list, tuple)) and len(item) == 2:
        call = read_call(item[0])
        return msgspec.structs.replace(call, result=item[1], result_seen=True)
    if not isinstance(item, dict):
        return _call_by_name(UNNAMED if item is None else json_text(item))
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
        id=as_str(pick(holder, *_CALL_IDS)),
        arguments=arguments,
        arguments_text=arguments_text,
        result=None if result_key is None else holder[result_key],
        result_seen=result_key is not None,
        error=_error(holder, None if result_key is None else holder[result_key]),
        start_ms=read_duration(holder.get("start_ms")),
        duration_ms=read_duration(pick(holder, *_DURATIONS)),
    )


def read_result(item: JsonObject) -> ToolCall:
    """The result of a call, where it is separate from the call; its id and name may be missing."""
    if isinstance(origin := item.get("origin"), dict):
        # Haystack: the call is in its result.
        item = {
            **item,
            "origin": None,
            "name": origin.get("tool_name"),
            "id": origin.get("id"),
            "status": None,
        }
        item["error"] = item.get("error") or None
    value = result = next((item[key] for key in _RESULT_VALUES if item.get(key) is not None), None)
    failed = _error(item, value)
    if isinstance(value, dict):
        result, inner = _opened(value)
        failed = failed or inner
    elif isinstance(value, list):
        text = spoken_text(value)
        # Bedrock has [{"json": …}].
        result = as_dict(value[0]).get("json", value) if text is None and len(value) == 1 else text or value
    if failed is not None and item.get("part_kind") == "retry-prompt":
        failed = spoken_text(value) or failed
    if failed is None and _FLAGS.isdisjoint(item):
        failed = error_in_result(result)
    names = [name for key in CALL_NAMES if isinstance(name := item.get(key), str) and name]
    return ToolCall(
        name=safe_text(names[0]) if names else UNNAMED,
        id=as_str(pick(item, *_RESULT_IDS)),
        result=safe_text(result) if isinstance(result, str) else result,
        result_seen=True,
        error=failed,
        duration_ms=read_duration(pick(item, *_DURATIONS)),
    )


def _opened(value: JsonObject) -> tuple[Json, str | None]:
    """The value and the error in an object that wraps a result (AI SDK, LlamaIndex, hosted tools)."""
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
    """The error in the text or object of a tool's result, for formats without an error flag."""
    if isinstance(result, str):
        if result.startswith(
            ("Error:", "ERROR:", "Error executing tool", "ToolException", "Traceback (most recent call last)")
        ):
            return result
        if not result.startswith("{") or ('"error"' not in result and '"isError"' not in result):
            return None
        try:
            result = decode_json(result)
        except ValueError:
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
        except ValueError:
            return None, safe_text(value)
        return (decoded, None) if isinstance(decoded, dict) else (None, safe_text(value))
    return None, json_text(value)


def looks_like_calls(value: object) -> bool:
    """Whether a list has more than names."""
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
    if get("exception") is not None:
        # Agent Framework: the exception's name; its words are in the result.
        return spoken_text(result) or json_text(get("exception"))
    if get("type") in _FAILED or get("part_kind") in _FAILED:
        return "the call failed"
    return None


# How people write that there is no tool, and that nothing is to be said about tools.
_NO_TOOL = frozenset(("none", "no", "no tool", "no tools", "-", "--", "–", "—"))
_NOT_APPLICABLE = frozenset(("", "n/a", "na", "n.a.", "nil", "null", "nan"))
_BETWEEN_NAMES = lazy(r"[;,|\n]|->|=>|→")
_BULLET = lazy(r"(?:[-*•]|\d+[.)])\s+")


def says_no_tool(names: object) -> bool:
    """Whether a text, or a list with one text, says that there is no tool: "none"."""
    return _only_name(names) in _NO_TOOL


def says_nothing_of_tools(names: object) -> bool:
    """The same for "n/a"."""
    return _only_name(names) in _NOT_APPLICABLE


def _only_name(names: object) -> str | None:
    if isinstance(names, list) and len(names) == 1:
        names = names[0]
    return names.strip().casefold() if isinstance(names, str) else None


def _listed(text: str) -> list[Json]:
    """A list that a spreadsheet or log holds as text: JSON, Python, or names with a separator between them."""
    text = text.strip()
    if text.startswith(("[", "{")):
        try:
            decoded = decode_cell(text)
        except ValueError:
            decoded = None
        if isinstance(decoded, list):
            return decoded
        if isinstance(decoded, dict):
            return [decoded]
    names = [_BULLET.sub("", part.strip(), count=1) for part in _BETWEEN_NAMES.split(text)]
    return list(filter(None, names))


# Usage in the names that APIs give it: tokens in, out, cached, for reasoning, and what they cost.


# The names of OpenAI, Anthropic, the AI SDK, LangChain, promptfoo and Ollama, and Gemini's.
_COUNTS = {
    "input_tokens": "input_tokens input_token_count prompt_tokens prompt input prompt_eval_count prompt_token_count",
    "output_tokens": """
        output_tokens output_token_count completion_tokens completion output eval_count candidates_token_count""",
    "total_tokens": "total_tokens total_token_count total",
    "reasoning_tokens": "reasoning_tokens reasoning thoughts_token_count output_reasoning_tokens",
    "cached_tokens": """
        cached_tokens cached cache_read cache_read_tokens cache_read_input_tokens cached_content_token_count""",
}
# Anthropic and Bedrock count cached tokens apart from the input, Gemini its thoughts apart from the output: the field, the
# name that it has there, and what is added to it.
_APART = (
    ("input_tokens", words("input_tokens cache_read_input_tokens cache_creation_input_tokens")),
    ("input_tokens", words("inputTokens cacheReadInputTokens cacheWriteInputTokens")),
    ("input_tokens", words("prompt_token_count tool_use_prompt_token_count")),
    ("input_tokens", words("promptTokenCount toolUsePromptTokenCount")),
    ("output_tokens", words("candidates_token_count thoughts_token_count")),
    ("output_tokens", words("candidatesTokenCount thoughtsTokenCount")),
)
_ADDED = frozenset(name for _, (_, *apart) in _APART for name in apart)
_FIELD_OF = {
    name: (field, rank) for field, names in _COUNTS.items() for rank, name in enumerate(spellings(names))
}
# Only these are in an object of details.
_DETAILED = ("reasoning_tokens", "cached_tokens")
_DETAILS = spellings(
    """completion_tokens_details output_tokens_details output_token_details
    prompt_tokens_details input_tokens_details input_token_details"""
)
_COST = spellings("cost total_cost cost_usd total_cost_usd")


def read_usage(value: object, cost: object = None) -> Usage | None:
    """The usage in a field: an object, or a bare number of tokens; None if there is nothing in it."""
    total_cost = _cost(cost)
    if not isinstance(value, dict):
        tokens = read_count(value)
        return None if tokens is None and total_cost is None else Usage(total_tokens=tokens, cost=total_cost)
    if total_cost is None:
        total_cost = next((number for name in _COST if (number := _cost(value.get(name))) is not None), None)
    counts = _counts(value)
    for name in _DETAILS:
        details = value.get(name)
        if isinstance(details, dict):
            told = _counts(details)
            for field in _DETAILED:
                if field in told:
                    counts.setdefault(field, told[field])
    included = counts.get("input_tokens", 0) + counts.get("output_tokens", 0) == counts.get("total_tokens")
    # The total shows whether the input includes the cached tokens.
    if not _ADDED.isdisjoint(value) and not included:
        for field, (given, *apart) in _APART:
            if given in value and field in counts:
                counts[field] += sum(read_count(value.get(name)) or 0 for name in apart)
    usage = Usage(**counts, cost=total_cost)
    return None if usage == Usage() else usage


def _cost(value: object) -> float | None:
    """A stated cost; a negative one would keep a budget open."""
    cost = read_number(value)
    return None if cost is None or cost < 0 else cost


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """What two steps of one reply used together."""
    if first is None or second is None:
        return first or second
    sums = {}
    for name in Usage.__struct_fields__:
        one, other = getattr(first, name), getattr(second, name)
        sums[name] = other if one is None else one if other is None else one + other
    return Usage(**sums)


def _counts(value: JsonObject) -> dict[str, int]:
    """The counts in an object, by the fields that they are; of two names for one, the one that is listed first."""
    counts: dict[str, int] = {}
    ranks: dict[str, int] = {}
    for name, part in value.items():
        known = _FIELD_OF.get(name)
        if known is not None and (count := read_count(part)) is not None:
            field, rank = known
            if rank <= ranks.get(field, rank):
                counts[field], ranks[field] = count, rank
    return counts


# Errors: their kinds, and one clean line without secrets, from error fields in their many dialects.


SystemErrorKind = Literal["connection", "tool", "timeout", "memory", "rate_limit", "http", "exception"]
# "module.ClassName: what happened"; the class says more than the words after it.
_CLASS = lazy(r"^\s*(?:[A-Za-z_]\w*\.)*([A-Z]\w{2,})\s*(?:[:(]|$)")


@cache
def _kinds(table: Literal["messages", "classes"]) -> dict[SystemErrorKind, re.Pattern[str]]:
    """A table of `error_kinds.toml`."""
    import tomllib  # few replies have an error

    tables = tomllib.loads(Path(__file__).with_name("error_kinds.toml").read_text("utf-8"))
    flags = re.IGNORECASE if table == "messages" else re.NOFLAG
    return {kind: re.compile("|".join(patterns), flags) for kind, patterns in tables[table].items()}


def kind_of_status(status: int) -> SystemErrorKind:
    """The kind of a reply with this HTTP status (400 or above)."""
    return "rate_limit" if status == 429 else "http"


def kind_of_class_name(name: str) -> SystemErrorKind | None:
    """The kind that an exception class's bare name settles, or None if it does not."""
    return next((kind for kind, pattern in _kinds("classes").items() if pattern.search(name)), None)


def classify_error(message: str) -> SystemErrorKind:
    """The kind of system error in an error message; `exception` if it gives no hint."""
    # The hint is at the start; a trace of a megabyte is not searched.
    message = message[:2000]
    named = _CLASS.match(message)
    if named and (kind := kind_of_class_name(named[1])):
        return kind
    return next(
        (kind for kind, pattern in _kinds("messages").items() if pattern.search(message)), "exception"
    )


def failure_message(text: str, longest: int = 500) -> str:
    """`text` on one line, without control characters, not longer than `longest`."""
    # Far more than can be shown is enough to work on.
    text = text[: longest * 8]
    if not text.isprintable():
        text = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn")
        )
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


# The fields of an error's object that name it, have its HTTP status and say what happened.
_ERROR_NAMES = ("kind", "type", "name", "code", "status")
_ERROR_STATUSES = ("code", "status", "status_code", "statusCode")
_ERROR_MESSAGES = ("message", "detail", "error", "description", "reason", "content", "title")
# What programs write for no error.
_NO_ERRORS = frozenset(("", "none", "null", "nil", "nan", "false", "no", "no error", "ok", "0", "n/a", "-"))


def read_failure(value: object) -> Failure | None:
    """The failure in an error field; None if the field is empty."""
    if not value:
        return None
    if isinstance(value, str):
        if value.strip().casefold() in _NO_ERRORS:
            return None
        return Failure(classify_error(value), failure_message(safe_text(value)))
    if isinstance(value, dict):
        return _failure_from_object(value)
    if isinstance(value, list):
        return (
            read_failure(value[0])
            if len(value) == 1
            else Failure("exception", failure_message(json_text(value)))
        )
    if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
        return Failure(kind_of_status(value), f"HTTP {value}")
    return Failure(
        "exception",
        "the reply says that there was an error" if value is True else failure_message(json_text(value)),
    )


NOT_TEXT_REMEDY = "return its text, a dict with the text under 'answer', or say where it is with reply.text"


def not_text(name: str | None, value: object) -> Failure:
    """The failure of a reply whose text is an object: as JSON it would be graded although no user saw it."""
    where = "the reply" if name is None else f"the reply's {name}"
    return Failure("malformed", f"{where} is {type_in_words(value)}, not text; {NOT_TEXT_REMEDY}")


def _failure_from_object(value: JsonObject) -> Failure:
    named = next((name for key in _ERROR_NAMES if isinstance(name := value.get(key), str)), None)
    said = next((text for key in _ERROR_MESSAGES if isinstance(text := value.get(key), str) and text), None)
    for kind in ERROR_KINDS:
        if named == kind:
            return Failure(kind, failure_message(safe_text(said or kind)))
    message = failure_message(
        safe_text(": ".join(part for part in (named, said) if part) or json_text(value))
    )
    status = next(
        (code for key in _ERROR_STATUSES if isinstance(code := value.get(key), int) and 400 <= code <= 599),
        None,
    )
    return Failure(classify_error(message) if status is None else kind_of_status(status), message)
