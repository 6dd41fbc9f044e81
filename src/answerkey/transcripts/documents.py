"""Payloads of known formats: the table of all shapes, and transcripts, which are read in one way everywhere.

Formats are told apart by shape: a payload is read by the row all of whose marks it has, the one with the most if there
are several. The order of the rows has no meaning.
"""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Failure, Reply
from answerkey.transcripts.conversation import Asked, exchange_for, reply_of, response_of, with_evidence
from answerkey.transcripts.failures import read_failure
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.formats import Format, agent_results, is_marked, model_apis, run_logs
from answerkey.transcripts.json_shapes import as_dict, as_list, as_str, at
from answerkey.transcripts.message_reading import looks_like_messages, read_messages
from answerkey.transcripts.plain_json import decode_json

_OTEL = ("gen_ai.input.messages", "gen_ai.output.messages")


def formats_of(payload: JsonObject) -> list[Format]:
    """The rows whose marks a payload has, the most marks first."""
    found = [
        row for name in payload if name in _BY_MARK for row in _BY_MARK[name] if is_marked(payload, row.marks)
    ]
    return sorted(found, key=lambda row: -len(row.marks)) if len(found) > 1 else found


def read_document(payload: JsonObject, asked: Asked) -> Reply | None:
    """The reply in a payload of a known format; None if it is in none."""
    found = formats_of(payload)
    return found[0].read(payload, asked) if found else None


def read_list(items: list[Json], asked: Asked) -> Reply | None:
    """The reply in a bare list: a transcript, response items, or content blocks; None if it is none of them."""
    if looks_like_messages(items):
        return read_transcript(items, asked)
    if model_apis.are_items(items):
        return response_of(model_apis.read_items(items))
    return model_apis.read_blocks(items) if model_apis.are_blocks(items) else None


def streamed(reply: Reply, whole: bool) -> Reply:
    """A reply that came as a stream; `whole` if its end was seen."""
    complete = whole and reply.evidence.completeness == "complete"
    return with_evidence(reply, kind="stream", completeness="complete" if complete else "partial")


def read_transcript(items: Json, asked: Asked) -> Reply | None:
    """The reply to what was asked, in a list of messages; None if a recorded one has no such turn."""
    chosen = exchange_for(read_messages(items), asked)
    if chosen is None:
        return None
    reply = reply_of(chosen)
    last = as_dict(as_list(items)[-1]) if items else {}
    return _with_result(reply, last) if "total_cost_usd" in last else reply


def _with_result(reply: Reply, result: JsonObject) -> Reply:
    """A transcript that ends with the result of Claude's agent: what it used in all, and whether it failed."""
    failure = None
    if result.get("is_error") is True:
        failure = Failure("exception", f"the agent ended with {result.get('subtype') or 'an error'}")
    usage = read_usage(result.get("usage"), result.get("total_cost_usd"))
    identity = as_str(result.get("session_id")) or reply.conversation_id
    return msgspec.structs.replace(
        reply, usage=usage or reply.usage, failure=failure, conversation_id=identity
    )


def _messages_at(*path: str) -> Callable[[JsonObject, Asked], Reply]:
    return lambda payload, asked: read_transcript(at(payload, *path), asked) or Reply()


def _are_state(value: Json) -> bool:
    return looks_like_messages(as_dict(value).get("messages"))


def _otel(payload: JsonObject, asked: Asked) -> Reply:
    """The messages on a span, which are often JSON in a string; the input holds what was said and called before."""
    items: list[Json] = []
    for given in (payload.get(name) for name in _OTEL):
        with suppress(ValueError, RecursionError):
            items += as_list(decode_json(given) if isinstance(given, str) else given)
    return read_transcript(items, asked) or Reply()


def _rpc(payload: JsonObject, asked: Asked) -> Reply:
    """A JSON-RPC answer (MCP, A2A): its error, or the result in its own format."""
    result = as_dict(payload.get("result"))
    if not result:
        return Reply(failure=read_failure(payload.get("error")))
    # A2A's newer versions wrap once more.
    inner = next((result[name] for name in ("task", "message") if isinstance(result.get(name), dict)), result)
    reply = read_document(as_dict(inner), asked) or read_document({"isError": False, **as_dict(inner)}, asked)
    if reply is not None:
        return reply
    names = ", ".join(list(result)[:8])
    return Reply(failure=Failure("malformed", f"the JSON-RPC result is in no known format (it has: {names})"))


def _langsmith(payload: JsonObject, asked: Asked) -> Reply:
    return run_logs.read_langsmith(payload, asked, read_document)


FORMATS: tuple[Format, ...] = (
    *model_apis.ROWS,
    *agent_results.ROWS,
    *run_logs.ROWS,
    *(Format("JSON-RPC", {"jsonrpc": str, name: dict}, _rpc) for name in ("result", "error")),
    *(Format("LangSmith run", {"run_type": str, name: object}, _langsmith) for name in ("inputs", "outputs")),
    Format("transcript", {"messages": looks_like_messages}, _messages_at("messages")),
    Format("Gemini history", {"contents": looks_like_messages}, _messages_at("contents")),
    Format("LangGraph state", {"values": _are_state}, _messages_at("values", "messages")),
    Format("AI SDK response", {"response": _are_state}, _messages_at("response", "messages")),
    *(Format("OpenTelemetry messages", {name: object}, _otel) for name in _OTEL),
)
_BY_MARK: dict[str, list[Format]] = {}
for _row in FORMATS:
    _BY_MARK.setdefault(next(iter(_row.marks)), []).append(_row)
