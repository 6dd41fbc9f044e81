"""Asking a target in tests, as the engine would."""

import asyncio
from typing import Any

from answerkey.model.reply import Reply
from answerkey.protocols import Ask

__all__ = ["ask", "ask_all"]


def ask(target: Any, question: str = "What is our address?", **fields: Any) -> Reply:
    """Open a target, ask it once and close it."""
    return ask_all(target, Ask(question=question, **{"conversation_id": "c-1", **fields}))[0]


def ask_all(target: Any, *asks: Ask) -> list[Reply]:
    """Open a target, ask in order and close it."""

    async def run() -> list[Reply]:
        async with target:
            return [await target.ask(one) for one in asks]

    return asyncio.run(run())
