"""The text of a reply: the names it stands under, and what content parts amount to; an object is never written out as if said."""

import json

from answerkey.model.json_value import Json, JsonObject
from answerkey.text.sanitise import clean_text

TEXT_NAMES = (
    *("answer", "response", "text", "output", "message", "content", "reply"),
    *("output_text", "final_answer"),
)
# A payload with none of these names can only be in a format if its text field is not text.
FORMAT_MARKS = frozenset(
    {
        # OpenAI, Gemini, Ollama and MCP.
        *("choices", "object", "candidates", "promptFeedback", "prompt_feedback", "contents", "done"),
        *("isError", "jsonrpc", "structuredContent", "structured_content"),
        # Transcripts, LangChain, LangGraph and LangSmith.
        *("messages", "lc", "response_metadata", "values", "run_type"),
        *("gen_ai.input.messages", "gen_ai.output.messages"),
        # The AI SDK, CrewAI and A2A.
        *("parts", "steps", "finishReason", "toolInvocations", "tasks_output"),
        *("contextId", "context_id"),
        # Inspect and ADK.
        *("samples", "conversation", "eval_cases", "evalCases"),
        *("final_response", "finalResponse", "intermediate_data", "intermediateData"),
    }
)
# Parts of these types are not said to the user.
_UNSPOKEN = frozenset(
    {
        *("thinking", "reasoning", "redacted_thinking"),
        *("tool_use", "tool_result", "tool_call", "image", "image_url"),
    }
)
_WORDS = {
    dict: "an object",
    list: "a list",
    str: "text",
    bytes: "bytes",
    type(None): "null",
    bool: "true/false",
    int: "a number",
    float: "a number",
}


def has_reply_names(value: JsonObject) -> bool:
    """Whether an object can be a reply: it has a text under a usual name, or a format's mark."""
    return any(name in value for name in TEXT_NAMES) or not value.keys().isdisjoint(FORMAT_MARKS)


def safe_text(text: str) -> str:
    """`text` as files and databases take it."""
    return clean_text(text)


def json_text(value: object) -> str:
    """A value as JSON, whatever it is."""
    try:
        return safe_text(json.dumps(value, ensure_ascii=False, default=str))
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def type_in_words(value: object) -> str:
    """What a value is: its class where that is known, else what JSON calls it."""
    named = value.get("$type") if isinstance(value, dict) else None
    if isinstance(named, str):
        return f"a {named} object"
    return _WORDS.get(type(value), f"a {type(value).__name__} object")


def spoken_text(value: object) -> str | None:
    """What a content field says: a string, a list of parts ({"type": "text", "text": …}) or a number; else None."""
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, (list, dict)):
        parts = _parts([value] if isinstance(value, dict) else value) if value else None
        return None if parts is None else "".join(parts)
    return json_text(value) if isinstance(value, (int, float)) else None


def read_text(value: object) -> str | None:
    """The text of what a tool or a retriever brought, which may be anything: what is no text is shown as JSON."""
    if value is None:
        return None
    said = spoken_text(value)
    return json_text(value) if said is None else said


def _parts(items: list[Json]) -> list[str] | None:
    """The texts of content parts; None if the list is not one of content parts."""
    texts: list[str] = []
    for item in items:
        if isinstance(item, str):
            texts.append(safe_text(item))
            continue
        if not isinstance(item, dict):
            return None
        kind = item.get("type")
        said = item.get("text", item.get("output_text"))
        if isinstance(said, str) and kind not in _UNSPOKEN and item.get("thought") is not True:
            texts.append(safe_text(said))
        elif isinstance(said, dict) and isinstance(value := said.get("value"), str):
            # The Assistants API wraps a text once more, beside its annotations.
            texts.append(safe_text(value))
        elif not isinstance(kind, str) and "thought" not in item:
            return None
    # Images and the like say nothing.
    return texts or None
