"""Which format a payload is in: the formats are tried in the order of how sure their marks are."""

from collections.abc import Callable

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Reply
from answerkey.transcripts import message_lists
from answerkey.transcripts.conversation import response_of
from answerkey.transcripts.formats import (
    adk,
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

__all__ = ["read_format", "read_list"]

_FORMATS: tuple[tuple[Callable[[JsonObject], bool], Callable[[JsonObject], Reply]], ...] = (
    (mcp.detect, mcp.read),
    (openai_chat.detect, openai_chat.read),
    (openai_responses.detect, openai_responses.read),
    (gemini.detect, gemini.read),
    (inspect_log.detect, inspect_log.read),
    (langsmith.detect, lambda payload: langsmith.read(payload, read_format)),
    (vercel.detect, vercel.read),
    (message_lists.detect, message_lists.read),
    (adk.detect, adk.read),
    (ollama.detect, ollama.read),
    (langchain.detect, langchain.read),
    (anthropic.detect, anthropic.read),
)


def read_format(payload: JsonObject) -> Reply | None:
    """The reply in a payload of a known format; None if it is in none."""
    return next((read(payload) for detect, read in _FORMATS if detect(payload)), None)


def read_list(items: list[Json]) -> Reply | None:
    """The reply in a bare list: a transcript, response items or content blocks; None if it is none of them."""
    if message_lists.looks_like_messages(items):
        replies = message_lists.replies_in(items)
        return replies[-1] if replies else None
    if openai_responses.detect_items(items):
        return response_of(openai_responses.read_items(items))
    if anthropic.detect_message({"content": items}):
        return response_of(anthropic.read_message({"content": items}))
    return None
