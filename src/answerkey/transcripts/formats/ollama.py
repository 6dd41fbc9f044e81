"""Ollama /api/chat and /api/generate: one message with `done`, durations in nanoseconds."""

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Reply, Timings
from answerkey.transcripts.conversation import Message, response_of
from answerkey.transcripts.fields.json_numbers import read_duration
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.formats.openai_chat import read_message
from answerkey.transcripts.json_shapes import as_dict

__all__ = ["detect", "read"]


def detect(payload: JsonObject) -> bool:
    """`done` beside a message (or, of /api/generate, a response)."""
    return "done" in payload and (
        isinstance(payload.get("message"), dict) or isinstance(payload.get("response"), str)
    )


def read(payload: JsonObject) -> Reply:
    """The message, or the generated response."""
    given = as_dict(payload.get("message"))
    message = read_message({"role": "assistant", "content": payload.get("response"), **given})
    reply = response_of(
        Message(role="assistant", text=message.text, calls=message.calls, usage=read_usage(payload)),
        tools_observed=isinstance(given.get("tool_calls"), list),
    )
    total = read_duration(payload.get("total_duration"))
    return reply if total is None else msgspec.structs.replace(reply, timings=Timings(latency_ms=total / 1e6))
