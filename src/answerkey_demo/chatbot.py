"""The chatbot: which variant, what is not a question, and the reply as a document."""

import asyncio
import time
import uuid
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from answerkey_demo.brains import FAULTS, BasicBrain, FlakyBrain, OpenAIBrain
from answerkey_demo.faults import Fault
from answerkey_demo.knowledge import Knowledge, open_knowledge
from answerkey_demo.planner import Brain, Conversation, Planner
from answerkey_demo.tools import Turn

# Longer questions are refused: users do not type them, and every word of them would be searched for.
MAX_QUESTION = 4_000
_MAX_CONVERSATIONS = 1_000
VARIANTS = ("default", "basic", "openai", "flaky")
_BRAINS: dict[str, Callable[[Knowledge], Brain]] = {"basic": BasicBrain, "openai": OpenAIBrain}


class Variant(msgspec.Struct, frozen=True):
    """Which brain, and how it is set up."""

    # one of VARIANTS
    name: str
    # of the faults
    seed: int = 0
    # flaky: which faults occur
    kinds: tuple[str, ...] = FAULTS
    # flaky: the share of questions that meets one
    rate: float = 0.3


class Chatbot:
    """A variant of the assistant with its knowledge and conversations. Safe to use from several tasks at once."""

    def __init__(self, variant: Variant, brain: Brain, knowledge: Knowledge) -> None:
        self.variant = variant
        self.brain = brain
        self.knowledge = knowledge
        # by id; the one that was not used for the longest time is forgotten first
        self._conversation = lru_cache(_MAX_CONVERSATIONS)(lambda key: Conversation())

    async def ask(
        self, question: str, conversation_id: str | None = None, *, fault: Fault | None = None
    ) -> dict[str, Any]:
        """The reply to a question, as the HTTP service gives it; an exception where the assistant fails.

        With a conversation id, follow-up questions ("And in September?") are understood. `fault` breaks a tool on purpose.
        """
        if not isinstance(question, str):
            raise TypeError(f"question must be a string, not {type(question).__name__}")
        started = time.perf_counter()
        turn = Turn(self.knowledge.database)
        turn.fault = fault
        conversation = Conversation() if conversation_id is None else self._conversation(conversation_id)
        # without control characters and lone surrogates
        printable = "".join(c if c.isprintable() else " " for c in question)
        try:
            answer = _refusal(question) or await self.brain.answer(printable, conversation, turn)
        except Exception as error:
            # the caller still learns which tools were called
            error.add_note(f"tools called: {', '.join(c['name'] for c in turn.calls) or 'none'}")
            error.tool_calls = turn.calls  # type: ignore[attr-defined]
            raise
        # words as a stand-in for tokens where no model is involved
        asked, said = len(question.split()), len((answer or "").split())
        counted = {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said}
        return {
            "answer": answer,
            "tools_used": list(dict.fromkeys(call["name"] for call in turn.calls)),
            "tool_calls": turn.calls,
            "sources": turn.sources,
            "error": None,
            "usage": turn.usage or counted,
            "latency_ms": round((time.perf_counter() - started) * 1000, 3),
            "conversation_id": conversation_id,
            "response_id": f"demo-{uuid.uuid4().hex}",
        }

    def ask_sync(self, question: str, conversation_id: str | None = None) -> dict[str, Any]:
        """The same, for callers without an event loop."""
        return asyncio.run(self.ask(question, conversation_id))


def open_chatbot(variant: str = "default", *, data: Path | None = None) -> Chatbot:
    """Open a variant: default, basic, openai or flaky (also "flaky?kinds=timeout,empty&rate=0.3&seed=7").

    `data` is another folder of data files.
    """
    chosen, knowledge = parse_variant(variant), open_knowledge(data)
    brain: Brain = _BRAINS.get(chosen.name, Planner)(knowledge)
    if chosen.name == "flaky":
        brain = FlakyBrain(brain, kinds=chosen.kinds, rate=chosen.rate, seed=chosen.seed)
    return Chatbot(chosen, brain, knowledge)


def parse_variant(text: str) -> Variant:
    """Read NAME or NAME?kinds=…&rate=…&seed=…, with or without "demo:" before it, or raise ValueError."""
    name, _, query = text.strip().removeprefix("demo:").partition("?")
    name = "default" if name in ("", "demo") else name
    if name not in VARIANTS:
        raise ValueError(f"no variant {name!r} of the demo: choose from {', '.join(VARIANTS)}")
    if query and name != "flaky":
        raise ValueError(f"demo:{name} takes no settings: only demo:flaky does")
    try:
        given = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
        rate, seed = float(given.pop("rate", "0.3")), int(given.pop("seed", "0"))
    except ValueError as error:
        form = "must be like kinds=timeout,empty&rate=0.3&seed=7, where rate must be a number and seed a whole number"
        raise ValueError(f"demo:{name}: the part after ? {form} ({error})") from error
    kinds = tuple(k.strip() for k in given.pop("kinds", ",".join(FAULTS)).split(","))
    if unknown := ", ".join(repr(k) for k in kinds if k not in FAULTS):
        raise ValueError(f"demo:{name}: no fault {unknown}: choose from {', '.join(FAULTS)}")
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"demo:{name}: rate must be between 0 and 1, not {rate}")
    if given:
        raise ValueError(f"demo:{name}: unknown setting {', '.join(given)}: only kinds, rate and seed")
    return Variant(name, seed, kinds, rate)


def _refusal(question: str) -> str | None:
    """A polite reply to what is not a question, or None."""
    if len(question) > MAX_QUESTION:
        return f"That is too long for me: please ask in at most {MAX_QUESTION:,} characters (yours has {len(question):,})."
    letters = sum(c.isalnum() for c in question)
    if not letters:
        return "I did not get a question. Please ask about the properties, the books, the deadlines or the documents."
    if sum(not c.isprintable() and c not in "\n\r\t" for c in question) > max(3, letters // 4):
        return "I could not read that: it looks like binary data rather than text. Please type your question in words."
    return None
