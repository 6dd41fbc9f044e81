"""Streams without a known protocol: Ollama's and Gemini's partial documents, and pieces of text under the usual names."""

from itertools import pairwise

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list

__all__ = ["assemble_gemini", "assemble_ollama", "assemble_pieces"]

_PIECES = ("answer", "response", "text", "output", "message", "content", "reply", "delta", "token", "chunk")


def assemble_ollama(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """One document from messages that each carry a piece; the last one has the counts."""
    content: list[str] = []
    calls: list[Json] = []
    document: JsonObject = {}
    for event in events:
        document.update(event)
        message = as_dict(event.get("message"))
        said = message.get("content", event.get("response"))
        content += [said] if isinstance(said, str) else []
        calls += as_list(message.get("tool_calls"))
    document.pop("response", None)
    document["message"] = {
        "role": "assistant",
        "content": "".join(content),
        **({"tool_calls": calls} if calls else {}),
    }
    return document, document.get("done") is True


def assemble_gemini(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """One response from responses that each carry some parts."""
    parts: list[Json] = []
    document: JsonObject = {}
    first: JsonObject = {}
    for event in events:
        document.update(event)
        for candidate in as_dicts(event.get("candidates"))[:1]:
            parts += as_dicts(as_dict(candidate.get("content")).get("parts"))
            first.update(candidate)
    document["candidates"] = [{**first, "content": {"role": "model", "parts": parts}}]
    return document, bool(first.get("finishReason") or first.get("finish_reason"))


def assemble_pieces(events: list[Json]) -> JsonObject:
    """Pieces of text joined, or the last one if each repeats what came before; of other fields the last word counts."""
    document: JsonObject = {}
    pieces: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, str):
            pieces.setdefault("text", []).append(event)
            continue
        for name, value in as_dict(event).items():
            if name in _PIECES and isinstance(value, str):
                pieces.setdefault(name, []).append(value)
            elif value is not None or name not in document:
                document[name] = value
    for name in _PIECES:
        if name in pieces:
            document["answer"] = _joined(pieces[name])
            break
    return document


def _joined(pieces: list[str]) -> str:
    grows = len(pieces) > 1 and all(
        len(later) > len(earlier) and later.startswith(earlier) for earlier, later in pairwise(pieces)
    )
    return pieces[-1] if grows else "".join(pieces)
