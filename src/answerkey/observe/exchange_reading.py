"""What passes between a chatbot and a model's API or an MCP server: requests and responses into messages and calls."""

import re
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.model.message import Message
from answerkey.model.reply import Reply, ToolCall
from answerkey.observe.receiver import unpacked
from answerkey.observe.span import MalformedError
from answerkey.transcripts.conversation import NOT_ASKED
from answerkey.transcripts.documents import read_document
from answerkey.transcripts.fields.tool_calls import read_arguments, read_result
from answerkey.transcripts.json_shapes import as_dict, as_str
from answerkey.transcripts.message_reading import read_messages
from answerkey.transcripts.streams.event_reader import STREAM_KINDS, EventReader
from answerkey.transcripts.streams.whole_stream import assemble_events

# The paths by which the APIs of models are called; others (lists of models, embeddings) call no tool.
_MODEL_PATHS = re.compile(
    r"(/completions|/responses|/v1/messages|/api/chat|/api/generate|:generateContent|:streamGenerateContent)$"
)


class ModelRequest(NamedTuple):
    """What a chatbot asks of a model."""

    messages: list[Message]
    # What it refers to: the response that it goes on from, and the calls whose results it brings.
    ids: frozenset[str]


class McpCall(NamedTuple):
    """A tool called on an MCP server."""

    call: ToolCall
    # The request's own id, by which its answer is found.
    request_id: Any
    traceparent: str | None


class SeenResponse(NamedTuple):
    """A response as it passed: its status, its headers that matter, and its bytes."""

    status: int
    content_type: str
    encoding: str
    body: bytes
    # False: it was cut off, or was too large to keep.
    whole: bool


def read_request(path: str, body: bytes) -> ModelRequest | McpCall | Literal["unread"] | None:
    """The request if it can lead to a call of a tool; None if it cannot, `unread` if it was not understood."""
    is_model = _MODEL_PATHS.search(path) is not None
    try:
        payload = msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, RecursionError):
        return "unread" if is_model else None
    if isinstance(payload, list) and any("jsonrpc" in as_dict(one) for one in payload):
        return "unread"
    given = as_dict(payload)
    if given.get("jsonrpc") == "2.0":
        return _mcp_call(given) if given.get("method") == "tools/call" else None
    if not is_model:
        return None
    said = next((given[name] for name in ("messages", "input", "contents", "prompt") if name in given), None)
    if isinstance(said, str):
        said = [{"role": "user", "content": said}]
    messages = read_messages(said)
    if not messages:
        return "unread"
    ids = {part.call.id for message in messages for part in message.parts if part.call is not None}
    return ModelRequest(
        messages, frozenset(one for one in (*ids, as_str(given.get("previous_response_id"))) if one)
    )


def _mcp_call(given: dict[str, Any]) -> McpCall | Literal["unread"]:
    parameters = as_dict(given.get("params"))
    name = as_str(parameters.get("name"))
    if name is None:
        return "unread"
    arguments, arguments_text = read_arguments(parameters.get("arguments", {}))
    traceparent = as_str(as_dict(parameters.get("_meta")).get("traceparent"))
    return McpCall(
        ToolCall(name=name, arguments=arguments, arguments_text=arguments_text), given.get("id"), traceparent
    )


def read_response(seen: SeenResponse) -> Reply | None:
    """What a model said, whole or streamed; None if that was not understood."""
    events, over = _events(seen)
    if not events or not seen.whole:
        return None
    # A response that is no stream is one event, and over.
    payload, whole = (events[0], True) if over and len(events) == 1 else assemble_events(events, done=over)
    reply = read_document(as_dict(payload), NOT_ASKED)
    return reply if reply is not None and whole and not reply.evidence.unread else None


def mcp_result(seen: SeenResponse, request_id: Any) -> dict[str, Any] | None:
    """The answer to a call of a tool on an MCP server, as what came of a call; None if it was not seen."""
    for event in _events(seen)[0]:
        answer = as_dict(event)
        if answer.get("id") != request_id or not ("result" in answer or "error" in answer):
            continue
        if "error" in answer:
            message = as_str(as_dict(answer["error"]).get("message")) or "the call failed"
            return {"result": None, "error": message}
        result = as_dict(answer["result"])
        read = read_result({"content": result.get("content"), "isError": result.get("isError", False)})
        return {"result": result.get("structuredContent") or read.result, "error": read.error}
    return None


def _events(seen: SeenResponse) -> tuple[list[Any], bool]:
    """The JSON of a response, of each event if it is a stream; and whether it says by itself that it is over."""
    try:
        body = unpacked(seen.body, seen.encoding)
    except MalformedError:
        body = None
    if body is None:
        return [], False
    kind = STREAM_KINDS.get(seen.content_type.partition(";")[0].strip().lower())
    try:
        if kind is None:
            whole = msgspec.json.decode(body)
            # Gemini streams a list where it is not asked for events.
            return (whole, False) if isinstance(whole, list) else ([whole], True)
        reader = EventReader(kind)
        return [msgspec.json.decode(text) for text in reader.feed(body, last=True)], reader.done
    except (msgspec.DecodeError, RecursionError):
        return [], False
