"""Which format a payload or a message is in: the formats are tried in the order of how sure their marks are."""

from collections.abc import Callable

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Reply
from answerkey.transcripts.conversation import Message, replies_of, response_of
from answerkey.transcripts.formats import (
    anthropic,
    gemini,
    inspect_log,
    langchain,
    langsmith,
    mcp,
    ollama,
    openai_chat,
    openai_responses,
    vercel,
)
from answerkey.transcripts.json_shapes import as_dicts, as_str

__all__ = ["looks_like_messages", "read_format", "read_list", "read_messages"]

_CONTENT = frozenset({"content", "parts", "tool_calls", "toolInvocations"})
# Items that stand between the messages of a Responses history.
_BARE_ITEMS = ("function_call", "function_call_output", "reasoning", "mcp_call")


def read_format(payload: JsonObject) -> Reply | None:
    """The reply in a payload of a known format; None if it is in none."""
    return next((read(payload) for detect, read in _FORMATS if detect(payload)), None)


def read_list(items: list[Json]) -> Reply | None:
    """The reply in a bare list: a transcript, response items or content blocks; None if it is none of them."""
    if looks_like_messages(items):
        return _last_reply(items)
    if openai_responses.detect_items(items):
        return response_of(openai_responses.read_items(items))
    if anthropic.detect_message({"content": items}):
        return response_of(anthropic.read_message({"content": items}))
    return None


def looks_like_messages(items: object) -> bool:
    """Whether a list is one of messages, in any dialect."""
    found = as_dicts(items)
    return bool(found) and all(
        ("role" in item and not item.keys().isdisjoint(_CONTENT))
        or item.get("type") in _BARE_ITEMS
        or langchain.detect_message(item)
        for item in found
    )


def read_messages(items: object) -> list[Message]:
    """The messages in one shape: each is read by the format that it bears the marks of."""
    return [_message(item) for item in as_dicts(items)]


def _message(item: JsonObject) -> Message:
    if langchain.detect_message(item):
        return langchain.read_message(item)
    if gemini.detect_message(item):
        return gemini.read_message(item)
    if "parts" in item or "toolInvocations" in item:
        return vercel.read_message(item)
    if "role" not in item and as_str(item.get("type")):
        return openai_responses.read_items([item])
    if anthropic.detect_message(item):
        return anthropic.read_message(item)
    return openai_chat.read_message(item)


def _transcript(payload: JsonObject) -> list[Json] | None:
    """The messages of a payload that is a transcript (Gemini calls them contents)."""
    lists = (payload.get(name) for name in ("messages", "contents"))
    return next((items for items in lists if isinstance(items, list) and looks_like_messages(items)), None)


def _last_reply(items: list[Json] | None) -> Reply | None:
    """The reply to the last thing that the user said."""
    replies = replies_of(read_messages(items))
    return replies[-1] if replies else None


_FORMATS: tuple[tuple[Callable[[JsonObject], bool], Callable[[JsonObject], Reply]], ...] = (
    (mcp.detect, mcp.read),
    (openai_chat.detect, openai_chat.read),
    (openai_responses.detect, openai_responses.read),
    (gemini.detect, gemini.read),
    (inspect_log.detect, inspect_log.read),
    (langsmith.detect, lambda payload: langsmith.read(payload, read_format)),
    (vercel.detect, vercel.read),
    (
        lambda payload: _transcript(payload) is not None,
        lambda payload: _last_reply(_transcript(payload)) or Reply(),
    ),
    (gemini.detect_invocation, gemini.read_invocation),
    (ollama.detect, ollama.read),
    (langchain.detect, langchain.read),
    (anthropic.detect, anthropic.read),
)
