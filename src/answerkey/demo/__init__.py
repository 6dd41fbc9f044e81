"""The reference chatbot: an assistant for a small, fictional rental company, with real tools.

It imports nothing else of answerkey: it is an honest black box behind the same interface as any chatbot.
"""

from pathlib import Path

from answerkey.demo.chatbot import Chatbot, open_chatbot
from answerkey.demo.variant import VARIANTS, Variant, parse_variant

__all__ = ["VARIANTS", "Chatbot", "Variant", "golden_set_path", "open_chatbot", "parse_variant"]


def golden_set_path() -> Path:
    """The golden set that comes with the chatbot: questions.jsonl."""
    return Path(__file__).parent / "data" / "questions.jsonl"
