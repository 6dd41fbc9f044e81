"""Faults on purpose: breaks some replies in the ways that real chatbots break, seeded and reproducible."""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Sequence

from answerkey_demo.brains import Brain
from answerkey_demo.planner import Conversation
from answerkey_demo.tools.database import ToolExecutionError
from answerkey_demo.tools.turn import Turn

__all__ = ["FAULTS", "FlakyBrain"]

# Faults that are replies.
_REPLIES = {
    "empty": "",
    "null": None,
    "error_text": "I encountered an error while searching the documents. Please try again later.",
    "trace": "Traceback (most recent call last):\n"
    '  File "assistant/agent.py", line 88, in answer\n'
    "    rows = tools.query_database(sql)\n"
    "sqlite3.OperationalError: no such column: total_basiss",
}
FAULTS = ("connection", "tool", "timeout", "memory", *_REPLIES)
_MAX_REMEMBERED = 100_000


class FlakyBrain:
    """Breaks a share of the replies; which and how depends on seed, question and attempt only."""

    def __init__(
        self, brain: Brain, *, kinds: Sequence[str] = FAULTS, rate: float = 0.3, seed: int = 0
    ) -> None:
        self._brain, self._kinds, self._rate, self._seed = brain, tuple(kinds), rate, seed
        self._attempts: Counter[str] = Counter()

    def fault(self, question: str, attempt: int) -> str | None:
        """The fault that this attempt at this question meets, or None."""
        digest = hashlib.sha256(f"{self._seed}\0{attempt}\0{question}".encode()).digest()
        if int.from_bytes(digest[:8], "big") / 2**64 >= self._rate:
            return None
        return self._kinds[int.from_bytes(digest[8:16], "big") % len(self._kinds)]

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str | None:
        """The brain's answer, or the fault."""
        fault = self.fault(question, self._attempts[question])
        if len(self._attempts) > _MAX_REMEMBERED:
            self._attempts.clear()
        self._attempts[question] += 1
        if fault in _REPLIES:
            return _REPLIES[fault]
        if fault == "timeout":
            raise TimeoutError("the assistant did not answer in time")
        if fault == "memory":
            raise MemoryError("out of memory while loading the embedding index")
        if fault == "connection":
            turn.broken = ConnectionRefusedError(111, "database: Connection refused")
        elif fault == "tool":
            turn.broken = ToolExecutionError("Document not found: index shard 3 is unavailable")
        answer = await self._brain.answer(question, conversation, turn)
        if turn.broken is not None and not turn.calls:
            # no tool was needed: the fault shows after the answer instead
            if fault == "connection":
                raise sqlite3.OperationalError("unable to open database file")
            raise ToolExecutionError("no tool is available")
        return answer
