"""The chatbot: takes a question, refuses what is none, asks its brain, and gives the reply as a document."""

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any

import msgspec

from answerkey.demo.brains.basic import BasicBrain
from answerkey.demo.brains.brain import Brain
from answerkey.demo.brains.flaky import FlakyBrain
from answerkey.demo.brains.planned import PlannedBrain
from answerkey.demo.knowledge import open_knowledge
from answerkey.demo.planner.conversation import Conversation, Conversations
from answerkey.demo.planner.planner import Planner
from answerkey.demo.tools.toolbox import Toolbox, Turn
from answerkey.demo.variant import Variant, parse_variant

__all__ = ["MAX_QUESTION", "Chatbot", "open_chatbot"]

# Longer questions are refused: nobody types them, and every word of them would be searched for.
MAX_QUESTION = 4_000


class Chatbot:
    """A variant of the assistant with its tools and conversations. Safe to use from several tasks at once."""

    def __init__(self, variant: Variant, brain: Brain, toolbox: Toolbox) -> None:
        self.variant = variant
        self.toolbox = toolbox
        self._brain = brain
        self._conversations = Conversations()

    @property
    def company(self) -> str:
        """The business that it answers for."""
        return self.toolbox.knowledge.company

    async def ask(self, question: str, conversation_id: str | None = None) -> dict[str, Any]:
        """The reply to a question, as the HTTP service gives it; an exception where the assistant fails.

        With a conversation id, follow-up questions ("And in September?") are understood.
        """
        if not isinstance(question, str):
            raise TypeError(f"question must be a string, not {type(question).__name__}")
        started = time.perf_counter()
        turn = Turn(self.toolbox)
        conversation = Conversation() if conversation_id is None else self._conversations.get(conversation_id)
        refusal = _refusal(question)
        try:
            answer = refusal or await self._brain.answer(_printable(question), conversation, turn)
        except Exception as error:
            # whoever catches it still learns which tools were called
            error.add_note(f"tools called: {', '.join(c.name for c in turn.calls) or 'none'}")
            error.tool_calls = [msgspec.to_builtins(call) for call in turn.calls]  # type: ignore[attr-defined]
            raise
        return {
            "answer": answer,
            "tools_used": list(dict.fromkeys(call.name for call in turn.calls)),
            "tool_calls": [msgspec.to_builtins(call) for call in turn.calls],
            "sources": turn.sources,
            "error": None,
            "usage": turn.usage or _usage(question, answer),
            "latency_ms": round((time.perf_counter() - started) * 1000, 3),
            "conversation_id": conversation_id,
            "response_id": f"demo-{uuid.uuid4().hex}",
        }

    def ask_sync(self, question: str, conversation_id: str | None = None) -> dict[str, Any]:
        """The same, for callers without an event loop."""
        return asyncio.run(self.ask(question, conversation_id))

    async def warm_up(self) -> None:
        """Load what the first question would otherwise wait for (the embedding model)."""
        await asyncio.to_thread(self.toolbox.searcher.warm_up)

    @property
    def notice(self) -> str:
        """What does not work as it should (a missing optional dependency), or ""."""
        return self.toolbox.searcher.degraded


def open_chatbot(
    variant: str = "default",
    *,
    seed: int = 0,
    data: Path | None = None,
    kinds: tuple[str, ...] | None = None,
    rate: float | None = None,
) -> Chatbot:
    """Open a variant: default, basic, openai or flaky (also "flaky?kinds=timeout,empty&rate=0.3&seed=7").

    `data` is another folder of data files; `kinds` and `rate` set up the faults of "flaky".
    """
    settings = parse_variant(variant, seed=seed)
    if kinds is not None:
        settings = msgspec.structs.replace(settings, kinds=tuple(kinds))
    if rate is not None:
        settings = msgspec.structs.replace(settings, rate=rate)
    knowledge = open_knowledge(data)
    toolbox = Toolbox(knowledge, semantic=settings.name != "basic")
    brain: Brain
    if settings.name == "basic":
        brain = BasicBrain(knowledge)
    elif settings.name == "openai":
        from answerkey.demo.brains.openai import OpenAIBrain

        brain = OpenAIBrain.from_environment(knowledge)
    else:
        brain = PlannedBrain(Planner(knowledge))
        if settings.name == "flaky":
            brain = FlakyBrain(brain, kinds=settings.kinds, rate=settings.rate, seed=settings.seed)
    return Chatbot(settings, brain, toolbox)


def _refusal(question: str) -> str | None:
    """A polite reply to what is not a question, or None."""
    if len(question) > MAX_QUESTION:
        return (
            f"That is too long for me: please ask in at most {MAX_QUESTION:,} characters (yours has "
            f"{len(question):,})."
        )
    letters = sum(c.isalnum() for c in question)
    if not letters:
        return (
            "I did not get a question. Please ask me something about the properties, the books, the "
            "deadlines or the documents."
        )
    odd = sum(1 for c in question if not c.isprintable() and c not in "\n\r\t")
    if odd > max(3, letters // 4):
        return (
            "I could not read that: it looks like binary data rather than text. Please type your "
            "question in words."
        )
    return None


def _printable(question: str) -> str:
    """Without control characters and lone surrogates."""
    return "".join(c if c.isprintable() else " " for c in question)


def _usage(question: str, answer: str | None) -> dict[str, int]:
    """Words as a stand-in for tokens: no model is involved, and nothing costs money."""
    asked, said = len(question.split()), len((answer or "").split())
    return {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said}
