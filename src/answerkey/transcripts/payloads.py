"""Payloads without configuration: a reply under the usual names, in a known format, wrapped in another, or bare."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Evidence, Failure, Reply, Source, Timings, ToolCall, Usage
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.documents import read_document, read_list, streamed
from answerkey.transcripts.failures import failure_message, not_text, read_failure
from answerkey.transcripts.fields.content_text import (
    FORMAT_MARKS,
    TEXT_NAMES,
    has_reply_names,
    json_text,
    safe_text,
    spoken_text,
)
from answerkey.transcripts.fields.sources import read_sources
from answerkey.transcripts.fields.tool_calls import looks_like_calls, read_calls
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import read_duration
from answerkey.transcripts.plain_json import as_builtin
from answerkey.transcripts.streams.whole_stream import assemble_events, protocol_of

SOURCE_NAMES = (
    *("sources", "documents", "contexts"),
    *("retrieved_documents", "retrieved_contexts", "source_documents"),
)
_PASSAGES = frozenset({"contexts", "retrieved_contexts"})
_USAGES = ("usage", "tokens", "tokenUsage", "token_usage", "usage_metadata")
# Names that mean the same beside a format's own fields; the others (`output`, `content`, …) are the format's.
_OWN_NAMES = frozenset(
    {
        *("answer", "response", "text", "tools_used", "tool_calls", "intermediate_steps", *SOURCE_NAMES),
        *("error", "usage", "cost", "latency_ms", "latencyMs", "first_byte_ms", "ttft_ms"),
        *("conversation_id", "response_id", "trace_id"),
    }
)
# Where a reply may be wrapped when none of its own names is there.
_WRAPPERS = ("data", "result", "outputs")
# Every name at the top of a payload that is looked at.
NAMES_READ = _OWN_NAMES.union(
    TEXT_NAMES, FORMAT_MARKS, _WRAPPERS, _USAGES, {"toolCalls", "replies", "turns", "tools"}
)
_DEEPEST = 4

_NOTHING = Reply()
EVIDENCE = {
    (tools, sources): Evidence(tools_observed=tools, sources_observed=sources)
    for tools in (False, True)
    for sources in (False, True)
}


def read_payload(payload: object, asked: Asked) -> Reply:
    """The Reply in a payload; `asked` says to what. In a recorded one `id` is the question's, elsewhere the reply's own."""
    if type(payload) is dict:
        # The common case first: a million recorded replies go this way.
        if payload.keys().isdisjoint(FORMAT_MARKS):
            return read_named(payload, asked, 0)
        return _recognised(payload, asked, 0)
    return _other(payload, asked)


def read_named(payload: JsonObject, asked: Asked, depth: int = 0, base: Reply = _NOTHING) -> Reply:
    """A reply under the usual names; what has none of them is taken from `base`."""
    get = payload.get
    text = base.text
    has_text = False
    odd: Failure | None = None
    for name in TEXT_NAMES:
        if name in payload:
            has_text = True
            given = payload[name]
            if given is None or type(given) is str:
                text = given
            elif base is _NOTHING:
                return _unusual(payload, name, asked, depth)
            else:
                text = spoken_text(given)
                odd = not_text(name, given) if text is None else None
            break
    error = get("error")
    failure = read_failure(error) if error else odd
    used, made = get("tools_used"), get("tool_calls", get("toolCalls", get("intermediate_steps")))
    tools_observed = used is not None or made is not None
    # Objects tell more than names, but an empty list of them does not take the names back.
    tools = made if used is None or (made and looks_like_calls(made)) else used
    calls: tuple[ToolCall, ...] = read_calls(tools) if tools else ()
    told_sources = _sources(payload)
    sources_observed, sources = told_sources is not None, told_sources or ()

    if base is _NOTHING:
        if not (has_text or failure or tools_observed or sources_observed):
            return _without_text(payload, asked, depth)
        evidence = EVIDENCE[tools_observed, sources_observed]
    else:
        evidence = base.evidence
        if not tools_observed:
            tools_observed, calls = evidence.tools_observed, base.tool_calls
        if not sources_observed:
            sources_observed, sources = evidence.sources_observed, base.sources
        evidence = msgspec.structs.replace(
            evidence, tools_observed=tools_observed, sources_observed=sources_observed
        )
    response_id = get("response_id")
    if response_id is None and not asked.recorded:
        response_id = get("id")
    return Reply(
        text=text if text is None or text.isascii() else safe_text(text),
        tool_calls=calls,
        sources=sources,
        failure=failure or base.failure,
        timings=_timings(payload, base.timings),
        usage=_usage(payload) or base.usage,
        evidence=evidence,
        conversation_id=_identity(get("conversation_id")) or base.conversation_id,
        response_id=_identity(response_id) or base.response_id,
        trace_id=_identity(get("trace_id")) or base.trace_id,
        finish=base.finish,
        reasoning=base.reasoning,
    )


def _sources(payload: JsonObject) -> tuple[Source, ...] | None:
    """The sources that are told; None if nothing is said of them."""
    for name in SOURCE_NAMES:
        if name in payload:
            found = payload[name]
            return None if found is None else read_sources(found, passages=name in _PASSAGES)
    return None


def _usage(payload: JsonObject) -> Usage | None:
    for name in _USAGES:
        if name in payload:
            return read_usage(payload[name], payload.get("cost"))
    return read_usage(None, payload["cost"]) if "cost" in payload else None


def _timings(payload: JsonObject, base: Timings) -> Timings:
    """The timings that are told; others are taken from `base`."""
    latency = payload.get("latency_ms", payload.get("latencyMs"))
    first = payload.get("first_byte_ms", payload.get("ttft_ms"))
    if latency is None and first is None:
        return base
    latency, first = read_duration(latency), read_duration(first)
    return Timings(
        latency_ms=base.latency_ms if latency is None else latency,
        first_byte_ms=base.first_byte_ms if first is None else first,
    )


def _identity(value: object) -> str | None:
    if value is None or type(value) is str:
        return value if not value or value.isascii() else safe_text(value)
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None
    )


def _recognised(payload: JsonObject, asked: Asked, depth: int) -> Reply:
    """A reply with a format's mark: read as that, with the usual names on top where both are there."""
    found = read_document(payload, asked)
    return read_named(payload, asked, depth) if found is None else _with_names(found, payload, asked, depth)


def _with_names(found: Reply, payload: JsonObject, asked: Asked, depth: int) -> Reply:
    """A format's reply with what stands beside it under the usual names."""
    names = {name: part for name, part in payload.items() if name in _OWN_NAMES}
    for name in ("text", "response"):
        if not isinstance(names.get(name, ""), str):
            # Read by the format already, or a configuration, which the Responses API has under `text`.
            del names[name]
    if found.evidence.kind != "transcript" or payload.keys().isdisjoint({"messages", "contents"}):
        # In a response these names are the format's own, and were read as it means them.
        names.pop("tool_calls", None)
        if found.usage is not None:
            names.pop("usage", None)
    if "id" in payload and not asked.recorded and found.response_id is None:
        names["id"] = payload["id"]
    return read_named(names, asked, depth, found) if names else found


def _unusual(payload: JsonObject, name: str, asked: Asked, depth: int) -> Reply:
    """A text field that is not text: a format, a reply inside a reply, content parts, or an odd type."""
    found = read_document(payload, asked)
    if found is not None:
        return _with_names(found, payload, asked, depth)
    value = payload[name]
    if isinstance(value, dict) and depth < _DEEPEST and has_reply_names(value):
        found = _recognised(value, asked, depth + 1)
    else:
        inner = read_list(value, asked) if isinstance(value, list) else None
        text = spoken_text(value)
        found = inner or Reply(text=text, failure=None if text is not None else not_text(name, value))
    rest = {key: part for key, part in payload.items() if key != name}
    return read_named(rest, asked, depth, found)


def _without_text(payload: JsonObject, asked: Asked, depth: int) -> Reply:
    """None of the usual names: a format, a reply inside a wrapper, or nothing that can be read."""
    found = read_document(payload, asked)
    if found is not None:
        return found
    if depth < _DEEPEST:
        for name in _WRAPPERS:
            inner = payload.get(name)
            if isinstance(inner, dict):
                return _recognised(inner, asked, depth + 1)
            if isinstance(inner, str):
                return read_named({**payload, "answer": inner}, asked, depth)
    names = ", ".join(str(name) for name in list(payload)[:8]) or "no field at all"
    message = (
        f"the reply has no text under answer, response, text, output, message or messages (it has: {names})"
    )
    return Reply(
        failure=Failure("malformed", failure_message(message)), timings=_timings(payload, _NOTHING.timings)
    )


def _other(payload: object, asked: Asked) -> Reply:
    """A payload that is not a plain dict."""
    if payload is None:
        return Reply()
    if isinstance(payload, str):
        return Reply(text=safe_text(payload))
    if isinstance(payload, Reply):
        return payload
    if isinstance(payload, list):
        return _list(payload, asked)
    if isinstance(payload, (bool, int, float)):
        return Reply(text=json_text(payload))
    if isinstance(payload, bytes):
        try:
            return Reply(text=payload.decode())
        except UnicodeDecodeError:
            message = f"the reply is {len(payload)} bytes that are not UTF-8 text"
            return Reply(failure=Failure("malformed", message))
    plain = as_builtin(payload)
    if isinstance(plain, dict):
        return _recognised(plain, asked, 0)
    return Reply(failure=not_text(None, payload)) if plain is payload else _other(plain, asked)


def _list(items: list[Json], asked: Asked) -> Reply:
    """A bare list: messages, parts, or the events of a stream."""
    found = read_list(items, asked)
    if found is not None:
        return found
    if any(protocol_of(item) is not None for item in items if isinstance(item, dict)):
        payload, whole = assemble_events(items)
        return streamed(read_payload(payload, asked), whole)
    text = spoken_text(items)
    return Reply(text=text, failure=not_text(None, items) if text is None else None)
