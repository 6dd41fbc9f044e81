"""The default brain: the deterministic planner, in a worker thread because it works without pause."""

import asyncio

from answerkey.demo.planner.conversation import Conversation
from answerkey.demo.planner.planner import Planner
from answerkey.demo.tools.toolbox import Turn

__all__ = ["PlannedBrain"]


class PlannedBrain:
    """Plans with rules; the same question gets the same answer."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str:
        """Answer in a thread."""
        return await asyncio.to_thread(self._planner.answer, question, conversation, turn)
