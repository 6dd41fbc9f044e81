"""Events of Anthropic Messages: blocks that start, grow and stop."""

from typing import Any

from answerkey.transcripts.fields.tool_calls import read_arguments
from answerkey.transcripts.json_shapes import as_dict

__all__ = ["assemble"]


def assemble(events: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """The message, and whether its stop was seen."""
    message: dict[str, Any] = {"type": "message", "role": "assistant"}
    blocks: dict[Any, dict[str, Any]] = {}
    pieces: dict[Any, list[str]] = {}
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


def _grow(block: dict[str, Any], pieces: list[str], delta: dict[str, Any]) -> None:
    kind = delta.get("type")
    if kind == "text_delta" and isinstance(delta.get("text"), str):
        pieces.append(delta["text"])
    elif kind == "input_json_delta" and isinstance(delta.get("partial_json"), str):
        pieces.append(delta["partial_json"])
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
