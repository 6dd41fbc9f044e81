"""Events of OpenAI Responses: the last one brings the whole response."""

from answerkey.model.json_value import Json, JsonObject
from answerkey.transcripts.json_shapes import as_dict

__all__ = ["assemble"]

_ENDS = ("response.completed", "response.incomplete", "response.failed")


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The response, or what of it arrived before the stream broke off."""
    items: list[Json] = []
    text: list[str] = []
    document: JsonObject = {"object": "response"}
    for event in events:
        kind = event.get("type")
        if kind in _ENDS and isinstance(response := event.get("response"), dict):
            return response, True
        if kind == "response.created":
            document["id"] = as_dict(event.get("response")).get("id")
        elif kind == "response.output_item.done":
            items.append(event.get("item"))
            text.clear()
        elif kind == "response.output_text.delta" and isinstance(delta := event.get("delta"), str):
            text.append(delta)
        elif kind == "error":
            document["error"] = {"code": event.get("code"), "message": event.get("message")}
    if text:
        items.append({"type": "message", "content": [{"type": "output_text", "text": "".join(text)}]})
    return {**document, "output": items}, False
