"""What answers a question with the tools of a turn: the planner, or one of these in its place."""

from typing import Protocol

from answerkey_demo.planner import Conversation
from answerkey_demo.tools.turn import Turn

__all__ = ["Brain"]


class Brain(Protocol):
    """Something that turns a question into an answer by calling tools."""

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str | None:
        """The answer; tools are called through `turn`, which records them. None is a null reply."""
