"""Lists of messages in any dialect: each message is read by the format that it bears the marks of."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Reply
from answerkey.transcripts.conversation import Message, replies_of
from answerkey.transcripts.formats import anthropic, gemini, langchain, openai_chat, openai_responses, vercel
from answerkey.transcripts.json_shapes import as_dicts, as_str

__all__ = ["detect", "looks_like_messages", "read", "read_messages", "replies_in"]


def detect(payload: JsonObject) -> bool:
    """A transcript under `messages` (Gemini: `contents`)."""
    return looks_like_messages(payload.get("messages")) or looks_like_messages(payload.get("contents"))


def looks_like_messages(items: object) -> bool:
    """Whether a list is one of messages."""
    if not isinstance(items, list) or not items:
        return False
    found = as_dicts(items)
    return bool(found) and all(
        (
            "role" in item
            and ("content" in item or "parts" in item or "tool_calls" in item or "toolInvocations" in item)
        )
        or item.get("type") in ("function_call", "function_call_output", "reasoning", "mcp_call")
        or langchain.detect_message(item)
        for item in found
    )


def read(payload: JsonObject) -> Reply:
    """The reply to the last thing that the user said."""
    items = (
        payload.get("messages") if looks_like_messages(payload.get("messages")) else payload.get("contents")
    )
    replies = replies_in(items)
    return replies[-1] if replies else Reply()


def replies_in(items: object) -> list[Reply]:
    """The replies to everything that the user said, in order."""
    return replies_of(read_messages(items))


def read_messages(items: object) -> list[Message]:
    """The messages in one shape."""
    return [_message(item) for item in as_dicts(items)]


def _message(item: JsonObject) -> Message:
    if langchain.detect_message(item):
        return langchain.read_message(item)
    if gemini.detect_message(item):
        return gemini.read_message(item)
    if "parts" in item or "toolInvocations" in item:
        return vercel.read_message(item)
    if "role" not in item and as_str(item.get("type")):
        # A Responses history mixes messages with bare items.
        return openai_responses.read_items([item])
    if anthropic.detect_message(item):
        return anthropic.read_message(item)
    return openai_chat.read_message(item)
