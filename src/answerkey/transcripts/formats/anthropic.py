"""Anthropic Messages: content blocks, with an explicit error flag on tool results; its stream's blocks start, grow and stop."""

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply, Usage
from answerkey.transcripts.conversation import Message, Role, merged, response_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.sources import read_citation, read_sources
from answerkey.transcripts.fields.tool_calls import read_arguments, read_call, read_result
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str, pick, read_count
from answerkey.transcripts.streams.pieces import Pieces

__all__ = ["assemble", "detect", "detect_message", "read", "read_message"]

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
# Blocks that only this format has.
_OWN_BLOCKS = frozenset(
    {"tool_use", "tool_result", "server_tool_use", "thinking", "search_result", "redacted_thinking"}
)


def detect(payload: JsonObject) -> bool:
    """`type: message` with content blocks."""
    return isinstance(payload.get("content"), list) and (
        payload.get("type") == "message" or detect_message(payload)
    )


def detect_message(item: JsonObject) -> bool:
    """Whether a message has blocks that only this format has."""
    return any(as_str(block.get("type")) in _OWN_BLOCKS for block in as_dicts(item.get("content")))


def read(payload: JsonObject) -> Reply:
    """A single response."""
    message = read_message({"role": "assistant", **payload})
    failure = None
    if payload.get("stop_reason") == "refusal" and not message.text:
        failure = Failure("exception", "the model refused to answer")
    return response_of(message, failure=failure)


def read_message(item: JsonObject) -> Message:
    """A message; a user message that only brings tool results is a tool's."""
    content = item.get("content")
    parts = (
        [Message(text=content)] if isinstance(content, str) else [_part(part) for part in as_dicts(content)]
    )
    message = merged(parts)
    role: Role = "assistant" if item.get("role", "assistant") == "assistant" else "user"
    if role == "user" and message.results and message.text is None:
        role = "tool"
    return msgspec.structs.replace(
        message, role=role, usage=_usage(as_dict(item.get("usage"))), id=as_str(item.get("id"))
    )


def _part(block: JsonObject) -> Message:
    kind = str(block.get("type"))
    content = block.get("content")
    if kind == "text":
        cited = [read_citation(note) for note in as_dicts(block.get("citations"))]
        return Message(text=str(block.get("text") or ""), sources=tuple(cited))
    if kind in _CALLS:
        return Message(calls=(read_call(block),))
    if not kind.endswith("tool_result"):
        return Message()
    text = read_text(content)
    # A hosted tool's failure is an object with an error code in place of its results.
    error = as_str(as_dict(content).get("error_code"))
    if error is None and block.get("is_error") is True:
        error = text or "the call failed"
    found = [part for part in as_dicts(content) if part.get("type") in ("search_result", "web_search_result")]
    return Message(
        results=(read_result(block.get("tool_use_id"), None, text, error),), sources=read_sources(found)
    )


def _usage(given: JsonObject) -> Usage | None:
    usage = read_usage(given)
    if usage is None or usage.input_tokens is None:
        return usage
    # The API counts cached tokens apart from the input.
    apart = [read_count(given.get(f"cache_{way}_input_tokens")) or 0 for way in ("read", "creation")]
    return msgspec.structs.replace(usage, input_tokens=usage.input_tokens + sum(apart))


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The message that a stream's events make, and whether its stop was seen."""
    message: JsonObject = {"type": "message", "role": "assistant"}
    blocks: dict[str, JsonObject] = {}
    pieces = Pieces()
    finished = False
    for event in events:
        kind, index, delta = event.get("type"), str(event.get("index")), as_dict(event.get("delta"))
        if kind == "message_start":
            message.update(as_dict(event.get("message")))
        elif kind == "content_block_start":
            blocks[index] = dict(as_dict(event.get("content_block")))
        elif kind == "content_block_delta":
            block = blocks.setdefault(index, {"type": "text"})
            pieces.add(index, pick(delta, "text", "partial_json"))
            if "citation" in delta:
                block["citations"] = [*as_list(block.get("citations")), delta["citation"]]
        elif kind == "message_delta":
            message.update(delta)
            message["usage"] = {**as_dict(message.get("usage")), **as_dict(event.get("usage"))}
        elif kind == "message_stop":
            finished = True
        elif kind == "error":
            message["error"] = event.get("error") or True
    for index, block in blocks.items():
        said = pieces.text(index) or ""
        if block.get("type") == "text":
            block["text"] = str(block.get("text") or "") + said
        elif said and block.get("type") in ("tool_use", "server_tool_use"):
            block["input"] = read_arguments(said)[0]
    message["content"] = list(blocks.values())
    return message, finished
