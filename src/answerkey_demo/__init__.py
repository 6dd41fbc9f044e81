"""The reference chatbot: an assistant for a small, fictional rental company, with real tools.

A separate package that imports nothing of answerkey: a black box behind the same interface as any chatbot.
"""

from pathlib import Path

from answerkey_demo.chatbot import VARIANTS, Chatbot, Variant, open_chatbot, parse_variant
from answerkey_demo.knowledge import BUNDLED_DATA, open_knowledge

__all__ = [
    "VARIANTS",
    "Chatbot",
    "Variant",
    "database_path",
    "golden_set_path",
    "open_chatbot",
    "parse_variant",
]


def golden_set_path() -> Path:
    """The golden set that comes with the chatbot: questions.jsonl."""
    return BUNDLED_DATA / "questions.jsonl"


def database_path(data: Path | None = None) -> Path:
    """The SQLite database that the chatbot reads, built from a folder of data files (by default its own)."""
    return open_knowledge(data).database
