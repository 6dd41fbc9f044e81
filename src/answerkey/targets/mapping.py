"""From whatever a chatbot gives back to a Reply: the usual names, the known formats, or JMESPath expressions."""

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from answerkey.errors import ConfigError
from answerkey.reply import Evidence, Failure, Reply, Source, Timings, ToolCall
from answerkey.targets.failures import failure_from_exception, one_line
from answerkey.targets.fields.calls import looks_like_calls, read_calls
from answerkey.targets.fields.errors import read_failure
from answerkey.targets.fields.numbers import read_duration
from answerkey.targets.fields.sources import read_sources
from answerkey.targets.fields.text import json_text, read_text, safe_text
from answerkey.targets.fields.usage import read_usage
from answerkey.targets.formats.detect import MARKERS, read_format, read_list

__all__ = ["ReplyMapping", "reply_from_exception", "reply_from_object", "reply_from_payload"]

_TEXTS = (
    "answer",
    "response",
    "text",
    "output",
    "message",
    "content",
    "reply",
    "output_text",
    "final_answer",
)
_SOURCES = (
    "sources",
    "documents",
    "contexts",
    "retrieved_documents",
    "retrieved_contexts",
    "source_documents",
)
_PASSAGES = frozenset({"contexts", "retrieved_contexts"})
_USAGES = ("usage", "tokens", "tokenUsage", "token_usage", "usage_metadata")
# Where a reply may be wrapped when none of its own names is there.
_WRAPPERS = ("data", "result", "outputs")
_DEEPEST = 4

_EVIDENCE = {
    (tools, sources): Evidence(tools_observed=tools, sources_observed=sources)
    for tools in (False, True)
    for sources in (False, True)
}
_NO_TIMINGS = Timings()


class ReplyMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a chatbot's reply has its parts: JMESPath expressions; a part without one is found by its usual name."""

    text: str | None = None
    tool_calls: str | None = None
    sources: str | None = None
    error: str | None = None
    usage: str | None = None
    cost: str | None = None
    latency_ms: str | None = None
    first_byte_ms: str | None = None
    conversation_id: str | None = None
    response_id: str | None = None
    trace_id: str | None = None

    def __post_init__(self) -> None:
        for name, expression in self.expressions().items():
            _compiled(name, expression)

    def expressions(self) -> dict[str, str]:
        """The parts that have an expression."""
        given = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: expression for name, expression in given if expression is not None}


def reply_from_payload(payload: Any, *, mapping: ReplyMapping | None = None, recorded: bool = False) -> Reply:
    """The Reply in what a chatbot gave back; never raises on its contents.

    In a recorded reply `id` is the question's, elsewhere the reply's own.
    """
    if mapping is not None and isinstance(payload, (dict, list)):
        return _mapped(payload, mapping, recorded)
    if type(payload) is dict:
        # The common case first: a million recorded replies go this way.
        if payload.keys().isdisjoint(MARKERS):
            return _named(payload, recorded, 0)
        return _recognised(payload, recorded, 0)
    return _other(payload, recorded)


def reply_from_object(value: Any, *, mapping: ReplyMapping | None = None) -> Reply:
    """The same for a Python object, which may hold anything: what comes out can be written as JSON."""
    reply = reply_from_payload(_builtin(value), mapping=mapping)
    try:
        msgspec.json.encode(reply)
    except (TypeError, ValueError, OverflowError, RecursionError):
        plain = _plain_json(msgspec.structs.asdict(reply))
        return msgspec.convert(plain, Reply, strict=False)
    return reply


def reply_from_exception(error: BaseException) -> Reply:
    """A chatbot's exception as a reply: its failure, and the calls made before it if the exception carries them."""
    calls = getattr(error, "tool_calls", None)
    seen = {"tool_calls": calls} if isinstance(calls, (list, tuple)) else {}
    return msgspec.structs.replace(
        reply_from_object({"answer": None, **seen}), failure=failure_from_exception(error)
    )


def _named(payload: dict[str, Any], recorded: bool, depth: int, base: Reply | None = None) -> Reply:
    """A reply under the usual names; what has none of them is taken from `base`."""
    get = payload.get
    text: str | None = None
    text_name: str | None = None
    for name in _TEXTS:
        if name in payload:
            text_name = name
            text = payload[name]
            if text is not None and type(text) is not str:
                if base is None:
                    return _unusual(payload, name, recorded, depth)
                text = base.text
            break

    error = get("error")
    failure = read_failure(error) if error else None

    used, made = get("tools_used"), get("tool_calls")
    if made is None:
        made = get("toolCalls")
    if made is None:
        made = get("intermediate_steps")
    tools_observed = used is not None or made is not None
    # Objects tell more than names, but an empty list of them does not take the names back.
    tools = made if used is None or (made and looks_like_calls(made)) else used
    calls: tuple[ToolCall, ...] = read_calls(tools) if tools else ()

    sources: tuple[Source, ...] = ()
    sources_observed = False
    for name in _SOURCES:
        if name in payload:
            found = payload[name]
            if found is not None:
                sources_observed = True
                sources = read_sources(found, passages=name in _PASSAGES)
            break

    usage = None
    for name in _USAGES:
        if name in payload:
            usage = read_usage(payload[name], get("cost"))
            break
    else:
        if "cost" in payload:
            usage = read_usage(None, payload["cost"])

    if base is not None:
        text = base.text if text_name is None else text
        failure = failure or base.failure
        if not tools_observed:
            tools_observed, calls = base.evidence.tools_observed, base.tool_calls
        if not sources_observed:
            sources_observed, sources = base.evidence.sources_observed, base.sources
        usage = usage or base.usage
        evidence = Evidence(
            kind=base.evidence.kind,
            completeness=base.evidence.completeness,
            tools_observed=tools_observed,
            sources_observed=sources_observed,
        )
        timings = _timings(payload, base.timings)
    else:
        if text_name is None and failure is None and not tools_observed and not sources_observed:
            return _without_text(payload, recorded, depth)
        evidence = _EVIDENCE[tools_observed, sources_observed]
        timings = _timings(payload, _NO_TIMINGS)
    response_id = get("response_id")
    if response_id is None and not recorded:
        response_id = get("id")
    return Reply(
        text=text if text is None or text.isascii() else safe_text(text),
        tool_calls=calls,
        sources=sources,
        failure=failure,
        timings=timings,
        usage=usage,
        evidence=evidence,
        conversation_id=_identity(get("conversation_id")) or (base.conversation_id if base else None),
        response_id=_identity(response_id) or (base.response_id if base else None),
        trace_id=_identity(get("trace_id")) or (base.trace_id if base else None),
    )


def _timings(payload: dict[str, Any], base: Timings) -> Timings:
    latency = payload.get("latency_ms")
    if latency is None:
        latency = payload.get("latencyMs")
    first = payload.get("first_byte_ms")
    if first is None:
        first = payload.get("ttft_ms")
    if latency is None and first is None:
        return base
    latency, first = read_duration(latency), read_duration(first)
    return Timings(
        latency_ms=base.latency_ms if latency is None else latency,
        first_byte_ms=base.first_byte_ms if first is None else first,
    )


def _identity(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value if not value or value.isascii() else safe_text(value)
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None
    )


def _recognised(payload: dict[str, Any], recorded: bool, depth: int) -> Reply:
    """A reply with a format's mark: read as that, with the usual names on top where both are there."""
    found = read_format(payload)
    if found is None:
        return _named(payload, recorded, depth)
    names = {name: part for name, part in payload.items() if name in _OWN_NAMES}
    if "id" in payload and not recorded and found.response_id is None:
        names["id"] = payload["id"]
    return _named(names, recorded, depth, found) if names else found


# Names that mean the same beside a format's own fields; the others (`output`, `content`, `usage`, …) are the format's.
_OWN_NAMES = frozenset(
    {
        *(
            "answer",
            "response",
            "tools_used",
            "tool_calls",
            "intermediate_steps",
            "sources",
            "documents",
            "contexts",
        ),
        *(
            "retrieved_documents",
            "retrieved_contexts",
            "source_documents",
            "error",
            "cost",
            "latency_ms",
            "latencyMs",
        ),
        *("first_byte_ms", "ttft_ms", "conversation_id", "response_id", "trace_id", "usage", "text"),
    },
)


def _unusual(payload: dict[str, Any], name: str, recorded: bool, depth: int) -> Reply:
    """A text field that is not text: a format, a reply inside a reply, content parts, or an odd type."""
    found = read_format(payload)
    value = payload[name]
    if found is None and isinstance(value, dict) and depth < _DEEPEST and _has_reply(value):
        found = _recognised(value, recorded, depth + 1)
    if found is None:
        found = Reply(text=read_text(value))
    rest = {key: part for key, part in payload.items() if key != name}
    return _named(rest, recorded, depth, found)


def _without_text(payload: dict[str, Any], recorded: bool, depth: int) -> Reply:
    """None of the usual names: a format, a reply inside a wrapper, or nothing that can be read."""
    found = read_format(payload)
    if found is not None:
        return found
    if depth < _DEEPEST:
        for name in _WRAPPERS:
            inner = payload.get(name)
            if isinstance(inner, dict):
                return _recognised(inner, recorded, depth + 1)
            if isinstance(inner, str):
                return _named({**payload, "answer": inner}, recorded, depth)
    names = ", ".join(str(name) for name in list(payload)[:8]) or "no field at all"
    return Reply(
        failure=Failure(
            "malformed",
            one_line(
                f"the reply has no text under answer, response, text, output or message (it has: {names})"
            ),
        ),
        timings=_timings(payload, _NO_TIMINGS),
    )


def _has_reply(value: dict[str, Any]) -> bool:
    return any(name in value for name in _TEXTS) or not value.keys().isdisjoint(MARKERS)


def _other(payload: Any, recorded: bool) -> Reply:
    """A payload that is not a plain dict."""
    if payload is None:
        return Reply()
    if isinstance(payload, str):
        return Reply(text=safe_text(payload))
    if isinstance(payload, Reply):
        return payload
    if isinstance(payload, list):
        found = read_list(payload)
        return found if found is not None else Reply(text=read_text(payload))
    if isinstance(payload, (bool, int, float)):
        return Reply(text=json_text(payload))
    if isinstance(payload, bytes):
        try:
            return Reply(text=payload.decode())
        except UnicodeDecodeError:
            return Reply(
                failure=Failure("malformed", f"the reply is {len(payload)} bytes that are not UTF-8 text")
            )
    plain = _builtin(payload)
    if isinstance(plain, dict):
        return _recognised(plain, recorded, 0)
    if plain is not payload:
        return _other(plain, recorded)
    return Reply(
        failure=Failure(
            "malformed", f"the reply is a {type(payload).__name__} object, which is neither text nor a dict"
        ),
    )


def _builtin(value: Any) -> Any:
    """An SDK's or a user's object as the dict that it would be in JSON."""
    if value is None or isinstance(value, (str, bytes, int, float, Reply)):
        return value
    if type(value) is dict:
        return (
            {key: _builtin(part) for key, part in value.items()} if _holds_objects(value.values()) else value
        )
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return [_builtin(part) for part in value]
    if isinstance(value, Mapping):
        return {str(key): part for key, part in value.items()}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    for method in ("model_dump", "to_dict", "_asdict", "dict"):
        dump = getattr(value, method, None)
        if callable(dump) and not isinstance(value, type):
            dumped = dump()
            if isinstance(dumped, Mapping):
                return dict(dumped)
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and _has_reply(own):
        return dict(own)
    return value


def _holds_objects(parts: Any) -> bool:
    return any(not isinstance(part, (str, int, float, type(None), dict)) for part in parts)


def _plain_json(value: Any, depth: int = 0) -> Any:
    """`value` in types that JSON has; what is nested too deep or unknown becomes text."""
    if depth > 100:
        return "…"
    if isinstance(value, str):
        return safe_text(str(value))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        return {safe_text(str(key)): _plain_json(part, depth + 1) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain_json(part, depth + 1) for part in value]
    plain = _builtin(value)
    return _plain_json(plain, depth + 1) if plain is not value else safe_text(str(value))


@lru_cache(maxsize=256)
def _compiled(name: str, expression: str) -> Any:
    import jmespath
    from jmespath.exceptions import JMESPathError, LexerError, ParseError

    try:
        return jmespath.compile(expression)
    except (ParseError, LexerError) as error:
        position = getattr(error, "lex_position", None)
        if position is None:
            position = getattr(error, "lexer_position", None)
        where = "" if position is None else f" at position {position + 1}"
        raise ConfigError(
            f"reply.{name} = {expression!r} is not a JMESPath expression: error{where}"
        ) from None
    except JMESPathError as error:
        raise ConfigError(
            f"reply.{name} = {expression!r} is not a JMESPath expression: {one_line(str(error))}"
        ) from None


def _mapped(payload: Any, mapping: ReplyMapping, recorded: bool) -> Reply:
    """A reply whose parts are where the configuration says, and under their usual names where it says nothing."""
    from jmespath.exceptions import JMESPathError

    base = reply_from_payload(payload, recorded=recorded)
    found: dict[str, Any] = {}
    for name, expression in mapping.expressions().items():
        try:
            found[name] = _compiled(name, expression).search(payload)
        except (JMESPathError, TypeError, ValueError, RecursionError) as error:
            message = f"reply.{name} = {expression!r} cannot be applied to the reply: {error}"
            return msgspec.structs.replace(base, failure=Failure("malformed", one_line(message)))
    changes: dict[str, Any] = {}
    evidence = base.evidence
    if "text" in found:
        changes["text"] = read_text(found["text"])
        if base.failure is not None and base.failure.kind == "malformed":
            changes["failure"] = None
    if "error" in found:
        changes["failure"] = read_failure(found["error"])
    if "tool_calls" in found:
        changes["tool_calls"] = read_calls(found["tool_calls"])
        evidence = msgspec.structs.replace(evidence, tools_observed=found["tool_calls"] is not None)
    if "sources" in found:
        changes["sources"] = read_sources(found["sources"])
        evidence = msgspec.structs.replace(evidence, sources_observed=found["sources"] is not None)
    if "usage" in found or "cost" in found:
        changes["usage"] = read_usage(found.get("usage"), found.get("cost"))
    changes["timings"] = _timings(
        {name: found.get(name) for name in ("latency_ms", "first_byte_ms")}, base.timings
    )
    for name in ("conversation_id", "response_id", "trace_id"):
        if name in found:
            changes[name] = _identity(found[name])
    return msgspec.structs.replace(base, evidence=evidence, **changes)
