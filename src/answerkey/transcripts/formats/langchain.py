"""LangChain and LangGraph messages in their three serialisations: model_dump, message_to_dict and dumpd."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Reply, Source, ToolCall
from answerkey.transcripts.conversation import Message, Role, response_of
from answerkey.transcripts.fields.content_text import read_text
from answerkey.transcripts.fields.sources import ranked, read_sources
from answerkey.transcripts.fields.tool_calls import read_call, read_result
from answerkey.transcripts.fields.usage import read_usage
from answerkey.transcripts.json_shapes import as_dict, as_dicts, as_list, as_str

__all__ = ["detect", "detect_message", "read", "read_message"]

_ROLES: dict[str, Role] = {
    "human": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "tool": "tool",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "function": "tool",
    "FunctionMessage": "tool",
    "system": "system",
    "SystemMessage": "system",
}


def detect(payload: JsonObject) -> bool:
    """A single message, as a chain that ends in a model gives it back."""
    return detect_message(payload) and _ROLES.get(str(_flat(payload).get("type"))) == "assistant"


def detect_message(item: JsonObject) -> bool:
    """Whether a message is one of LangChain's."""
    return "role" not in item and _flat(item).get("type") in _ROLES and "content" in _flat(item)


def _flat(item: JsonObject) -> JsonObject:
    """The model_dump form of a message, from any of the three."""
    kind, kwargs, path, data = item.get("type"), item.get("kwargs"), item.get("id"), item.get("data")
    if isinstance(kwargs, dict) and isinstance(path, list) and "lc" in item:
        return {**kwargs, "type": path[-1] if path and isinstance(path[-1], str) else None}
    if isinstance(data, dict) and isinstance(kind, str):
        return {**data, "type": kind}
    return item if isinstance(kind, str) else {}


def read(payload: JsonObject) -> Reply:
    """A single message."""
    return response_of(read_message(payload))


def read_message(item: JsonObject) -> Message:
    """One message of a transcript."""
    message = _flat(item)
    role = _ROLES.get(str(message.get("type")), "assistant")
    text = read_text(message.get("content"))
    if role == "tool":
        error = (text or "the call failed") if message.get("status") == "error" else None
        result = read_result(message.get("tool_call_id"), message.get("name"), text, error)
        return Message(role="tool", results=(result,), sources=_artifact(message.get("artifact")))
    calls: list[ToolCall] = []
    if role == "assistant":
        unread = [
            {**call, "error": call.get("error") or "the call's arguments could not be read"}
            for call in as_dicts(message.get("invalid_tool_calls"))
        ]
        made = [*as_list(message.get("tool_calls")), *unread]
        # Messages of older versions keep the provider's own form.
        older = as_list(as_dict(message.get("additional_kwargs")).get("tool_calls"))
        calls = [read_call(call) for call in made or older]
    usage = read_usage(message.get("usage_metadata")) or read_usage(
        as_dict(message.get("response_metadata")).get("token_usage"),
    )
    return Message(role=role, text=text, calls=tuple(calls), usage=usage, id=as_str(message.get("id")))


def _artifact(value: object) -> tuple[Source, ...]:
    """Documents that a retriever tool put beside its text."""
    if isinstance(value, dict):
        value = value.get("documents", [value] if "page_content" in value else None)
    return ranked(read_sources([item for item in as_list(value) if _is_document(item)]))


def _is_document(item: object) -> bool:
    if isinstance(item, list) and len(item) == 2:
        item = item[0]
    item = as_dict(item)
    return "page_content" in item or "page_content" in as_dict(item.get("kwargs"))
