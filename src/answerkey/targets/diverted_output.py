"""What a chatbot in answerkey's own process prints goes to standard error: standard output may carry a document."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["divert_here", "diverting"]

# Whether the code that runs is a chatbot's; worker threads run in a copy of the context.
_in_chatbot: ContextVar[bool] = ContextVar("answerkey_in_chatbot", default=False)


class _DividedOutput:
    """Standard output for everyone but chatbots."""

    def __init__(self, real: Any) -> None:
        self.real = real
        # How many targets are open.
        self.users = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if _in_chatbot.get() else self.real, name)


@contextmanager
def diverting() -> Iterator[None]:
    """While a target is open: let `divert_here` have an effect."""
    divided = sys.stdout if isinstance(sys.stdout, _DividedOutput) else _DividedOutput(sys.stdout)
    divided.users += 1
    sys.stdout = divided
    try:
        yield
    finally:
        divided.users -= 1
        # Somebody may have put something else in its place since.
        if not divided.users and sys.stdout is divided:
            sys.stdout = divided.real


@contextmanager
def divert_here() -> Iterator[None]:
    """What is printed by the code inside, and by threads that it starts through answerkey, goes to standard error."""
    token = _in_chatbot.set(True)
    try:
        yield
    finally:
        _in_chatbot.reset(token)
