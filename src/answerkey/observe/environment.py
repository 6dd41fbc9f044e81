"""The environment of the programs that answerkey starts as chatbots: the user's own, and where the observers listen."""

import os
from collections.abc import Mapping
from contextvars import ContextVar

# Names and addresses for the chatbots of this run; answerkey's own clients (a judge's) do not see them.
OBSERVERS: ContextVar[Mapping[str, str] | None] = ContextVar("answerkey_observers", default=None)


def child_environment() -> dict[str, str]:
    """The environment to start a chatbot with."""
    return {**os.environ, **(OBSERVERS.get() or {})}
