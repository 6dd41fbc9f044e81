"""OpenAI Chat Completions: responses, the messages of its transcripts (which Ollama and many others share), and its chunks."""

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Failure, Reply, ToolCall
from answerkey.transcripts.conversation import Message, Role, error_in_result, response_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.sources import read_citation
from answerkey.transcripts.fields.tool_calls import UNNAMED, error_text, read_call
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str, read_duration
from answerkey.transcripts.streams.pieces import Pieces

__all__ = ["assemble", "detect", "read", "read_message"]

_ROLES: dict[str, Role] = {
    "user": "user",
    "system": "system",
    "tool": "tool",
    "developer": "system",
    "function": "tool",
    "model": "assistant",
    "bot": "assistant",
    "human": "user",
    "ai": "assistant",
}


def detect(payload: JsonObject) -> bool:
    """`choices` with a message (or, of the older API, a text)."""
    choices = payload.get("choices")
    return isinstance(choices, list) and (
        payload.get("object") == "chat.completion" or bool(as_dicts(choices))
    )


def read(payload: JsonObject) -> Reply:
    """The first choice."""
    choice = next(iter(as_dicts(payload.get("choices"))), {})
    given = as_dict(choice.get("message"))
    message = read_message({"content": choice.get("text"), **given, "role": "assistant"})
    failure = None
    if choice.get("finish_reason") == "content_filter" and not message.text:
        failure = Failure("exception", "the provider's content filter held the answer back")
    return response_of(
        msgspec.structs.replace(
            message, usage=read_usage(payload.get("usage")), id=as_str(payload.get("id"))
        ),
        failure=failure,
        tools_observed=isinstance(given.get("tool_calls"), list),
    )


def read_message(item: JsonObject) -> Message:
    """One message of a transcript."""
    role = _ROLES.get(str(item.get("role")), "assistant")
    text = read_text(item.get("content"))
    if role == "tool":
        return Message(role="tool", results=(_result(item, text),))
    calls: tuple[ToolCall, ...] = ()
    if role == "assistant":
        older = item.get("function_call")
        made = [*as_list(item.get("tool_calls")), *([older] if isinstance(older, dict) else [])]
        calls = tuple(read_call(call) for call in made)
    cited = [as_dict(note.get("url_citation")) for note in as_dicts(item.get("annotations"))]
    pages = [note for note in cited if as_str(note.get("url"))]
    return Message(
        role=role,
        text=as_str(item.get("refusal")) if text is None else text,
        calls=calls,
        sources=tuple(read_citation(note, rank) for rank, note in enumerate(pages, start=1)),
        usage=read_usage(item.get("usage")),
        id=as_str(item.get("id")),
    )


def _result(item: JsonObject, text: str | None) -> ToolCall:
    # Inspect says the error and the function, Ollama the tool's name; OpenAI has neither.
    names = [name for key in ("name", "tool_name", "function") if (name := as_str(item.get(key)))]
    return ToolCall(
        name=names[0] if names else UNNAMED,
        id=as_str(item.get("tool_call_id")),
        result=text,
        result_seen=True,
        error=error_text(item.get("error")) or error_in_result(text),
        duration_ms=read_duration(item.get("duration_ms")),
    )


def assemble(events: list[JsonObject]) -> tuple[JsonObject, bool]:
    """The completion that a stream's chunks make, and whether it was told to be finished."""
    pieces = Pieces()
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
            for part in ("content", "refusal"):
                pieces.add(part, delta.get(part))
            for fragment in as_dicts(delta.get("tool_calls")):
                _add(calls, fragment)
            finish = as_str(choice.get("finish_reason")) or finish
    message: JsonObject = {"role": "assistant", "content": pieces.text("content")}
    if (refusal := pieces.text("refusal")) is not None:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = [*calls]
    document["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    return document, finish is not None


def _add(calls: list[JsonObject], fragment: JsonObject) -> None:
    """Add a fragment to its call: by id if that was seen, as a new call if its id is new, else by index or to the last."""
    identity, index = as_str(fragment.get("id")), fragment.get("index")
    if identity is not None:
        same = [one for one in calls if one["id"] == identity]
    else:
        same = [one for one in calls if index is None or one["index"] == index][-1:]
    if not same:
        same = [{"id": identity or f"call_{len(calls)}", "index": index, "type": "function"}]
        same[0]["function"] = {"name": "", "arguments": ""}
        calls += same
    whole, function = as_dict(same[0]["function"]), as_dict(fragment.get("function"))
    for part in ("name", "arguments"):
        piece, so_far = function.get(part), whole[part]
        if isinstance(piece, str) and isinstance(so_far, str):
            # A name may be sent again with every fragment.
            whole[part] = so_far if part == "name" and piece == so_far else so_far + piece
        elif part == "arguments" and isinstance(piece, dict):
            whole[part] = piece
