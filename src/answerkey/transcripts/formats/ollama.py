"""Ollama /api/chat and /api/generate: one message with `done`, durations in nanoseconds; streamed in pieces of it."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Reply, Timings
from answerkey.transcripts.conversation import response_of
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.formats.openai_chat import read_message
from answerkey.transcripts.json_shapes import as_dict, as_list, read_duration
from answerkey.transcripts.streams.pieces import Pieces

__all__ = ["assemble", "detect", "read"]


def detect(payload: JsonObject) -> bool:
    """`done` beside a message (or, of /api/generate, a response)."""
    return "done" in payload and (
        isinstance(payload.get("message"), dict) or isinstance(payload.get("response"), str)
    )


def read(payload: JsonObject) -> Reply:
    """The message, or the generated response."""
    given = as_dict(payload.get("message"))
    message = read_message({"content": payload.get("response"), **given, "role": "assistant"})
    reply = response_of(
        msgspec.structs.replace(message, usage=read_usage(payload), id=None),
        tools_observed=isinstance(given.get("tool_calls"), list),
    )
    total = read_duration(payload.get("total_duration"))
    return reply if total is None else msgspec.structs.replace(reply, timings=Timings(latency_ms=total / 1e6))


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """One document from messages that each carry a piece; the last one has the counts."""
    pieces = Pieces()
    calls: list[Json] = []
    document: JsonObject = {}
    for event in events:
        document.update(event)
        message = as_dict(event.get("message"))
        pieces.add("content", message.get("content", event.get("response")))
        calls += as_list(message.get("tool_calls"))
    document.pop("response", None)
    whole: JsonObject = {"role": "assistant", "content": pieces.text("content") or ""}
    document["message"] = {**whole, "tool_calls": calls} if calls else whole
    return document, document.get("done") is True
