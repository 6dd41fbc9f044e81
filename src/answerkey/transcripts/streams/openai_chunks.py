"""Chunks of OpenAI Chat Completions, also as the providers that bend the protocol send them."""

from answerkey.model.json_value import JsonObject
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_str

__all__ = ["assemble"]


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The completion, and whether it was told to be finished."""
    content: list[str] = []
    refusal: list[str] = []
    calls: list[JsonObject] = []
    document: JsonObject = {"object": "chat.completion"}
    finish: str | None = None
    for event in events:
        document["id"] = document.get("id") or event.get("id")
        if isinstance(event.get("usage"), dict):
            document["usage"] = event["usage"]
        if event.get("error"):
            document["error"] = event["error"]
        for choice in as_dicts(event.get("choices"))[:1]:
            # Some gateways end with a whole message in place of a delta.
            delta = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
            for pieces, piece in ((content, delta.get("content")), (refusal, delta.get("refusal"))):
                if isinstance(piece, str):
                    pieces.append(piece)
            for fragment in as_dicts(delta.get("tool_calls")):
                _add(calls, fragment)
            finish = as_str(choice.get("finish_reason")) or finish
    message: JsonObject = {"role": "assistant", "content": "".join(content) if content else None}
    if refusal:
        message["refusal"] = "".join(refusal)
    if calls:
        message["tool_calls"] = [*calls]
    document["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    return document, finish is not None


def _add(calls: list[JsonObject], fragment: JsonObject) -> None:
    """Add a fragment to its call: by id if that was seen, as a new call if its id is new, else by index or to the last."""
    identity, index = as_str(fragment.get("id")), fragment.get("index")
    call: JsonObject | None = None
    if identity is not None:
        call = next((one for one in calls if one["id"] == identity), None)
    elif index is not None:
        call = next((one for one in reversed(calls) if one["index"] == index), None)
    elif calls:
        call = calls[-1]
    function = as_dict(fragment.get("function"))
    if call is None:
        call = {
            "id": identity or f"call_{len(calls)}",
            "index": index,
            "type": "function",
            "function": {"name": "", "arguments": ""},
        }
        calls.append(call)
    whole = as_dict(call["function"])
    name, name_so_far = function.get("name"), whole["name"]
    if isinstance(name, str) and isinstance(name_so_far, str) and name != name_so_far:
        whole["name"] = name_so_far + name
    arguments, arguments_so_far = function.get("arguments"), whole["arguments"]
    if isinstance(arguments, str) and isinstance(arguments_so_far, str):
        whole["arguments"] = arguments_so_far + arguments
    elif isinstance(arguments, dict):
        whole["arguments"] = arguments
