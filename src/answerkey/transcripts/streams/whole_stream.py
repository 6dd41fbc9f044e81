"""Which protocol a stream's events are in, and the document that they make."""

import msgspec

from answerkey.model.json_value import Json
from answerkey.transcripts.formats import anthropic, gemini, ollama, openai_chat, openai_responses, vercel
from answerkey.transcripts.streams.event_reader import StreamKind
from answerkey.transcripts.streams.pieces import assemble_pieces

__all__ = ["assemble"]


def assemble(kind: StreamKind, data: list[str], *, done: bool) -> tuple[Json, bool]:
    """The payload that the events make, and whether it is whole (`done`: the stream said that it is over)."""
    if kind == "data-stream":
        return vercel.assemble_lines([(line[0], _decoded(line[2:])) for line in data if line[1:2] == ":"])
    events = [_decoded(text) for text in data]
    objects = [event for event in events if isinstance(event, dict)]
    kinds = {name for event in objects if isinstance(name := event.get("type"), str)}
    whole: bool
    if any(isinstance(event.get("choices"), list) for event in objects):
        payload, whole = openai_chat.assemble(objects)
        return payload, whole or done
    if any(name.startswith("response.") for name in kinds):
        return openai_responses.assemble(objects)
    if kinds & {"message_start", "content_block_delta", "content_block_start"}:
        return anthropic.assemble(objects)
    if kinds & vercel.EVENTS:
        payload, whole = vercel.assemble(objects)
        return payload, whole or done
    if any("done" in event and ("message" in event or "response" in event) for event in objects):
        return ollama.assemble(objects)
    if any(isinstance(event.get("candidates"), list) for event in objects):
        return gemini.assemble(objects)
    if len(events) == 1 and isinstance(events[0], (dict, list)):
        return events[0], True
    # Without a protocol nothing says where the stream should have ended.
    return assemble_pieces(events), True


def _decoded(text: str) -> Json:
    """An event's JSON; text that is none is itself a piece of the reply."""
    try:
        decoded: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    return decoded
