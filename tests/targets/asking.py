"""Asking a target in tests, as the engine would."""

import asyncio
import time
from pathlib import Path
from typing import Any

from answerkey.model.reply import Reply
from answerkey.protocols import Ask

__all__ = ["ask", "ask_all", "is_gone"]


def ask(target: Any, question: str = "What is our address?", **fields: Any) -> Reply:
    """Open a target, ask it once and close it."""
    return ask_all(target, Ask(question=question, **{"conversation_id": "c-1", **fields}))[0]


def ask_all(target: Any, *asks: Ask) -> list[Reply]:
    """Open a target, ask in order and close it."""

    async def run() -> list[Reply]:
        async with target:
            return [await target.ask(one) for one in asks]

    return asyncio.run(run())


def is_gone(pid: int) -> bool:
    """Whether a process has ended, or does so now."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
