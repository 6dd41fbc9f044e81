"""The text of a reply: a string, or what content parts and odd types amount to."""

import json

from answerkey.model.json_value import Json
from answerkey.text.boundary import clean_text

__all__ = ["json_text", "read_text", "safe_text"]

# Parts of these types are not said to the user.
_UNSPOKEN = frozenset(
    {
        *("thinking", "reasoning", "redacted_thinking"),
        *("tool_use", "tool_result", "tool_call", "image", "image_url"),
    }
)


def safe_text(text: str) -> str:
    """`text` as files and databases take it."""
    return clean_text(text)


def json_text(value: object) -> str:
    """A value as JSON, whatever it is."""
    try:
        return safe_text(json.dumps(value, ensure_ascii=False, default=str))
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def read_text(value: object) -> str | None:
    """What a content field says: a string, a list of parts ({"type": "text", "text": …}), or JSON for other types."""
    if value is None:
        return None
    if isinstance(value, str):
        return safe_text(value)
    parts = _parts([value] if isinstance(value, dict) else value) if isinstance(value, (list, dict)) else None
    return json_text(value) if parts is None else "".join(parts)


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
    return texts
