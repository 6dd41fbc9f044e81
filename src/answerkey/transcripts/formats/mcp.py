"""MCP tools/call results: a chatbot that is itself a tool of a Model Context Protocol server."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.fields.content_text import json_text, read_text
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.json_shapes import as_dict

__all__ = ["detect", "read"]


def detect(payload: JsonObject) -> bool:
    """A JSON-RPC answer, or the result in it."""
    if "jsonrpc" in payload:
        return isinstance(payload.get("result"), dict) or isinstance(payload.get("error"), dict)
    return isinstance(payload.get("content"), list) and (
        "isError" in payload or "structuredContent" in payload
    )


def read(payload: JsonObject) -> Reply:
    """The content's text; `isError` inside a successful answer is the tool's own failure."""
    if "jsonrpc" in payload and isinstance(payload.get("error"), dict):
        return Reply(failure=read_failure(payload["error"]))
    result = as_dict(payload.get("result")) if "jsonrpc" in payload else payload
    text = read_text(result.get("content")) if result.get("content") else None
    if text is None and result.get("structuredContent") is not None:
        text = json_text(result["structuredContent"])
    failed = result.get("isError") is True
    return Reply(
        text=text, failure=Failure("tool", failure_message(text or "the tool failed")) if failed else None
    )
