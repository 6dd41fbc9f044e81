"""Which format a payload is in: the formats are tried in the order of how sure their marks are."""

from collections.abc import Callable
from typing import Any

from answerkey.model.reply import Reply
from answerkey.targets.formats import (
    adk,
    anthropic,
    gemini,
    inspect_log,
    langchain,
    langsmith,
    mcp,
    messages,
    ollama,
    openai_chat,
    openai_responses,
    vercel,
)
from answerkey.targets.formats.transcript import response_of

__all__ = ["MARKERS", "read_format", "read_list"]

# A payload with none of these names can only be in a format if its text field is not text.
MARKERS = frozenset(
    {
        "candidates",
        "choices",
        "contents",
        "conversation",
        "done",
        "eval_cases",
        "evalCases",
        "final_response",
        "finalResponse",
        "finishReason",
        "intermediate_data",
        "intermediateData",
        "isError",
        "jsonrpc",
        "lc",
        "messages",
        "parts",
        "promptFeedback",
        "response_metadata",
        "run_type",
        "samples",
        "steps",
        "structuredContent",
        "toolInvocations",
    },
)

_FORMATS: tuple[tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any]], Reply]], ...] = (
    (mcp.detect, mcp.read),
    (openai_chat.detect, openai_chat.read),
    (openai_responses.detect, openai_responses.read),
    (gemini.detect, gemini.read),
    (inspect_log.detect, inspect_log.read),
    (langsmith.detect, langsmith.read),
    (vercel.detect, vercel.read),
    (messages.detect, messages.read),
    (adk.detect, adk.read),
    (ollama.detect, ollama.read),
    (langchain.detect, langchain.read),
    (anthropic.detect, anthropic.read),
)


def read_format(payload: dict[str, Any]) -> Reply | None:
    """The reply in a payload of a known format; None if it is in none."""
    return next((read(payload) for detect, read in _FORMATS if detect(payload)), None)


def read_list(items: list[Any]) -> Reply | None:
    """The reply in a bare list: a transcript, response items or content blocks; None if it is none of them."""
    if messages.looks_like_messages(items):
        replies = messages.replies_in(items)
        return replies[-1] if replies else None
    if openai_responses.detect_items(items):
        return response_of(openai_responses.read_items(items))
    if anthropic.detect_message({"content": items}):
        return response_of(anthropic.read_message({"content": items}))
    return None
