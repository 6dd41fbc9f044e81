"""The interface of a brain: it answers one question with the tools of a turn."""

from typing import Protocol

from answerkey.demo.planner.conversation import Conversation
from answerkey.demo.tools.toolbox import Turn

__all__ = ["Brain"]


class Brain(Protocol):
    """Something that turns a question into an answer by calling tools."""

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str | None:
        """The answer; tools are called through `turn`, which records them. None is a null reply."""
