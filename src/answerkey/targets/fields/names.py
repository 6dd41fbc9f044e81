"""The names under which chatbots give a reply's text."""

from typing import Any

from answerkey.targets.formats.detect import MARKERS

__all__ = ["TEXT_NAMES", "has_reply_names"]

TEXT_NAMES = (
    "answer",
    "response",
    "text",
    "output",
    "message",
    "content",
    "reply",
    "output_text",
    "final_answer",
)


def has_reply_names(value: dict[str, Any]) -> bool:
    """Whether an object can be a reply: it has a text under a usual name, or a format's mark."""
    return any(name in value for name in TEXT_NAMES) or not value.keys().isdisjoint(MARKERS)
