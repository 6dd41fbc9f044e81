"""What answers a question with the tools of a turn: the planner, an earlier version of it, a faulty one, a model."""

import asyncio
from typing import Protocol

from answerkey_demo.planner import Conversation, Planner
from answerkey_demo.tools.toolbox import Turn

__all__ = ["Brain", "PlannedBrain"]


class Brain(Protocol):
    """Something that turns a question into an answer by calling tools."""

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str | None:
        """The answer; tools are called through `turn`, which records them. None is a null reply."""


class PlannedBrain:
    """The default: the deterministic planner, in a worker thread because it works without pause."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str:
        """Answer in a thread."""
        return await asyncio.to_thread(self._planner.answer, question, conversation, turn)
