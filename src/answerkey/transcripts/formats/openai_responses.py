"""OpenAI Responses: `output` items, with the calls of functions, MCP servers and hosted tools, and its events."""

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Failure, Reply
from answerkey.transcripts.conversation import Message, error_in_result, merged, response_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.fields.sources import read_citation, read_sources
from answerkey.transcripts.fields.tool_calls import read_call, read_result
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str
from answerkey.transcripts.streams.pieces import Pieces

__all__ = ["assemble", "detect", "detect_items", "read", "read_items"]

# Hosted tools: the item's type is the tool's name with "_call" after it.
_HOSTED = frozenset(
    {
        *("file_search_call", "web_search_call", "tool_search_call", "image_generation_call"),
        *("code_interpreter_call", "computer_call", "shell_call", "local_shell_call", "apply_patch_call"),
    }
)
_CALLS = frozenset({"function_call", "custom_tool_call", "mcp_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_ITEMS = _HOSTED | _CALLS | _RESULTS | {"reasoning"}
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def detect(payload: JsonObject) -> bool:
    """`object: response`, or `output` as a list of typed items."""
    output = payload.get("output")
    return isinstance(output, list) and (payload.get("object") == "response" or detect_items(output))


def detect_items(items: list[Json]) -> bool:
    """Whether a list is one of response items."""
    return any(
        as_str(item.get("type")) in _ITEMS
        or (
            item.get("type") == "message"
            and any(part.get("type") == "output_text" for part in as_dicts(item.get("content")))
        )
        for item in as_dicts(items)
    )


def read(payload: JsonObject) -> Reply:
    """The whole response."""
    message = read_items(as_list(payload["output"]))
    failure = read_failure(payload.get("error"))
    if failure is None and payload.get("status") in ("failed", "incomplete") and message.text is None:
        reason = as_str(as_dict(payload.get("incomplete_details")).get("reason"))
        failure = Failure(
            "exception", f"the response is {payload['status']}{f': {reason}' if reason else ''}"
        )
    message = msgspec.structs.replace(
        message, usage=read_usage(payload.get("usage")), id=as_str(payload.get("id"))
    )
    return response_of(message, failure=failure)


def read_items(items: list[Json]) -> Message:
    """A list of items as one message: what it says, and every call in order."""
    parts = [(item.get("phase"), _part(item)) for item in as_dicts(items)]
    whole = merged([part for _, part in parts])
    # Commentary is not the answer where the model says which is which.
    final = [part.text for phase, part in parts if phase == "final_answer" and part.text is not None]
    return msgspec.structs.replace(whole, text="".join(final)) if final else whole


def _part(item: JsonObject) -> Message:
    kind = str(item.get("type"))
    if kind == "message" and item.get("role", "assistant") == "assistant":
        content = as_dicts(item.get("content"))
        said = [part for part in content if part.get("type") in ("output_text", "refusal", "text")]
        return Message(
            text="".join(str(part.get("text", part.get("refusal", ""))) for part in said),
            sources=tuple(
                read_citation(note) for part in content for note in as_dicts(part.get("annotations"))
            ),
        )
    if kind in _CALLS:
        told = {name: part for name, part in item.items() if part is not None}
        # A call has an id of its own, and another that its output refers to.
        return Message(calls=(read_call({**told, "id": as_str(item.get("call_id")) or item.get("id")}),))
    if kind in _RESULTS:
        result = read_text(item.get("output"))
        return Message(results=(read_result(item.get("call_id"), None, result, error_in_result(result)),))
    return _hosted(kind, item) if kind in _HOSTED else Message()


def _hosted(kind: str, item: JsonObject) -> Message:
    action, results = as_dict(item.get("action")), item.get("results")
    given = {**action, "queries": item.get("queries"), "code": item.get("code"), "sources": None}
    call: JsonObject = {
        "name": kind.removesuffix("_call"),
        "id": item.get("id"),
        "arguments": {name: part for name, part in given.items() if part is not None},
        "status": item.get("status"),
    }
    if results is not None:
        call["result"] = results
    sources = (*read_sources(results), *read_sources(action.get("sources")))
    return Message(calls=(read_call(call),), sources=sources)


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The response that a stream's last event brings, or what of it arrived before the stream broke off."""
    items: list[Json] = []
    pieces = Pieces()
    document: JsonObject = {"object": "response"}
    for event in events:
        kind = event.get("type")
        if kind in _ENDS and isinstance(response := event.get("response"), dict):
            return response, True
        if kind == "response.created":
            document["id"] = as_dict(event.get("response")).get("id")
        elif kind == "response.output_item.done":
            items.append(event.get("item"))
            pieces = Pieces()
        elif kind == "response.output_text.delta":
            pieces.add("text", event.get("delta"))
        elif kind == "error":
            document["error"] = {"code": event.get("code"), "message": event.get("message")}
    if text := pieces.text("text"):
        items.append({"type": "message", "content": [{"type": "output_text", "text": text}]})
    return {**document, "output": items}, False
