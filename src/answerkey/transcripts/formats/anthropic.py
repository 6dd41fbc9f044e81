"""Anthropic Messages: content blocks, with an explicit error flag on tool results."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply, Source, ToolCall, Usage
from answerkey.transcripts.conversation import Message, Role, ToolResult, response_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.json_numbers import read_count
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str

__all__ = ["detect", "detect_message", "read", "read_message"]

_BLOCKS = frozenset(
    {"tool_use", "tool_result", "server_tool_use", "thinking", "search_result", "redacted_thinking"}
)


def detect(payload: JsonObject) -> bool:
    """`type: message` with content blocks."""
    return isinstance(payload.get("content"), list) and (
        payload.get("type") == "message" or detect_message(payload)
    )


def detect_message(item: JsonObject) -> bool:
    """Whether a message has blocks that only this format has."""
    return any(
        block.get("type") in _BLOCKS
        for block in as_dicts(item.get("content"))
        if isinstance(block.get("type"), str)
    )


def read(payload: JsonObject) -> Reply:
    """A single response."""
    message = read_message({"role": "assistant", **payload})
    failure = None
    if payload.get("stop_reason") == "refusal" and not message.text:
        failure = Failure("exception", "the model refused to answer")
    return response_of(message, failure=failure)


def read_message(item: JsonObject) -> Message:
    """A message; a user message that only brings tool results is a tool's."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    sources: list[Source] = []
    content = item.get("content")
    if isinstance(content, str):
        texts.append(content)
    for block in as_dicts(content):
        kind = block.get("type")
        if kind == "text":
            texts.append(str(block.get("text") or ""))
            sources += _citations(block)
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            given = block.get("input")
            calls.append(
                ToolCall(
                    name=as_str(block.get("name")) or "(unnamed)",
                    id=as_str(block.get("id")),
                    arguments=given if isinstance(given, dict) else None,
                ),
            )
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            results.append(_result(block))
            sources += _retrieved(block)
    role: Role = "assistant" if item.get("role", "assistant") == "assistant" else "user"
    if role == "user" and results and not texts:
        role = "tool"
    return Message(
        role=role,
        text="".join(texts) if texts else None,
        calls=tuple(calls),
        results=tuple(results),
        sources=tuple(sources),
        usage=_usage(item.get("usage")),
        id=as_str(item.get("id")),
    )


def _result(block: JsonObject) -> ToolResult:
    content = block.get("content")
    text = read_text(content)
    # A hosted tool's failure is an object with an error code in place of its results.
    code = as_str(as_dict(content).get("error_code"))
    failed = block.get("is_error") is True
    return ToolResult(
        call_id=as_str(block.get("tool_use_id")),
        result=text,
        error=code or ((text or "the call failed") if failed else None),
    )


def _retrieved(block: JsonObject) -> list[Source]:
    return [
        Source(
            id=as_str(part.get("source")) or as_str(part.get("url")),
            uri=as_str(part.get("url")),
            title=as_str(part.get("title")),
            text=read_text(part.get("content")),
            rank=rank,
        )
        for rank, part in enumerate(
            (
                part
                for part in as_dicts(block.get("content"))
                if part.get("type") in ("search_result", "web_search_result")
            ),
            start=1,
        )
    ]


def _citations(block: JsonObject) -> list[Source]:
    return [
        Source(
            id=as_str(note.get("source")) or as_str(note.get("url")) or as_str(note.get("document_title")),
            uri=as_str(note.get("url")),
            title=as_str(note.get("title")) or as_str(note.get("document_title")),
            text=as_str(note.get("cited_text")),
            cited=True,
        )
        for note in as_dicts(block.get("citations"))
    ]


def _usage(value: object) -> Usage | None:
    given = as_dict(value)
    usage = read_usage(given)
    if usage is None or usage.input_tokens is None:
        return usage
    # The API counts cached tokens apart from the input.
    read, written = (
        read_count(given.get("cache_read_input_tokens")),
        read_count(given.get("cache_creation_input_tokens")),
    )
    return Usage(
        input_tokens=usage.input_tokens + (read or 0) + (written or 0),
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        cached_tokens=read,
    )
