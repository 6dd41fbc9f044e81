"""Events of Anthropic Messages: blocks that start, grow and stop."""

from answerkey.model.json_value import JsonObject
from answerkey.transcripts.fields.tool_calls import read_arguments
from answerkey.transcripts.json_shapes import as_dict, as_list

__all__ = ["assemble"]


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The message, and whether its stop was seen."""
    message: JsonObject = {"type": "message", "role": "assistant"}
    blocks: dict[str, JsonObject] = {}
    pieces: dict[str, list[str]] = {}
    finished = False
    for event in events:
        kind, index = event.get("type"), str(event.get("index"))
        if kind == "message_start":
            message.update(as_dict(event.get("message")))
        elif kind == "content_block_start":
            blocks[index] = dict(as_dict(event.get("content_block")))
        elif kind == "content_block_delta":
            _grow(
                blocks.setdefault(index, {"type": "text"}),
                pieces.setdefault(index, []),
                as_dict(event.get("delta")),
            )
        elif kind == "message_delta":
            message.update(as_dict(event.get("delta")))
            message["usage"] = {**as_dict(message.get("usage")), **as_dict(event.get("usage"))}
        elif kind == "message_stop":
            finished = True
        elif kind == "error":
            message["error"] = event.get("error") or True
    for index, block in blocks.items():
        said = "".join(pieces.get(index, []))
        if block.get("type") in ("tool_use", "server_tool_use"):
            if said:
                block["input"] = read_arguments(said)[0]
        elif block.get("type") == "text":
            block["text"] = str(block.get("text") or "") + said
    message["content"] = list(blocks.values())
    return message, finished


def _grow(block: JsonObject, pieces: list[str], delta: JsonObject) -> None:
    kind = delta.get("type")
    piece = delta.get({"text_delta": "text", "input_json_delta": "partial_json"}.get(str(kind), ""))
    if isinstance(piece, str):
        pieces.append(piece)
    elif kind == "citations_delta":
        block["citations"] = [*as_list(block.get("citations")), delta.get("citation")]
