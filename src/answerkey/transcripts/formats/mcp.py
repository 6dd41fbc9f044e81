"""MCP tools/call results: a chatbot that is itself a tool of a Model Context Protocol server."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.fields.content_text import spoken_text
from answerkey.transcripts.fields.error_field import not_text
from answerkey.transcripts.formats.shape import Format
from answerkey.transcripts.json_shapes import pick

__all__ = ["ROWS"]


def _read(payload: JsonObject, asked: Asked) -> Reply:
    """The content's text; `isError` inside a successful answer is the tool's own failure."""
    text = spoken_text(payload.get("content")) or None
    if pick(payload, "isError", "is_error") is True:
        return Reply(text=text, failure=Failure("tool", failure_message(text or "the tool failed")))
    structured = pick(payload, "structuredContent", "structured_content")
    if text is None and structured is not None:
        return Reply(failure=not_text("structuredContent", structured))
    return Reply(text=text)


ROWS = (
    Format("MCP result", {"isError": bool, "content": list}, _read),
    Format("MCP result, without a flag", {"structuredContent": object, "content": list}, _read),
    Format("MCP SDK result", {"structured_content": object, "content": list, "is_error": object}, _read),
)
