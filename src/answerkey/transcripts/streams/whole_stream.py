"""Which protocol a stream's events are in, and the document that they make."""

import msgspec

from answerkey.model.json_value import Json
from answerkey.transcripts.streams import (
    anthropic_events,
    openai_chunks,
    partial_documents,
    responses_events,
    vercel_events,
)
from answerkey.transcripts.streams.event_reader import StreamKind

__all__ = ["assemble"]


def assemble(kind: StreamKind, data: list[str], *, done: bool) -> tuple[Json, bool]:
    """The payload that the events make, and whether it is whole (`done`: the stream said that it is over)."""
    if kind == "data-stream":
        pairs = [(line[0], _decoded(line[2:])) for line in data if line[1:2] == ":"]
        return vercel_events.assemble_lines(pairs)
    events = [_decoded(text) for text in data]
    objects = [event for event in events if isinstance(event, dict)]
    kinds = {name for event in objects if isinstance(name := event.get("type"), str)}
    whole: bool
    if any(isinstance(event.get("choices"), list) for event in objects):
        payload, whole = openai_chunks.assemble(objects)
        return payload, whole or done
    if any(name.startswith("response.") for name in kinds):
        return responses_events.assemble(objects)
    if kinds & {"message_start", "content_block_delta", "content_block_start"}:
        return anthropic_events.assemble(objects)
    if kinds & vercel_events.KINDS:
        payload, whole = vercel_events.assemble(objects)
        return payload, whole or done
    if any("done" in event and ("message" in event or "response" in event) for event in objects):
        return partial_documents.assemble_ollama(objects)
    if any(isinstance(event.get("candidates"), list) for event in objects):
        return partial_documents.assemble_gemini(objects)
    if len(events) == 1 and isinstance(events[0], (dict, list)):
        return events[0], True
    # Without a protocol nothing says where the stream should have ended.
    return partial_documents.assemble_pieces(events), True


def _decoded(text: str) -> Json:
    """An event's JSON; text that is none is itself a piece of the reply."""
    try:
        decoded: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    return decoded
