"""What is sent for a question: templates that are filled for each one, and values that last for a conversation.

A template has `{{question}}` and the like in a JSON structure. They are replaced as values, never pasted as text.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Generic, TypeVar

import msgspec

from answerkey.errors import ConfigError
from answerkey.protocols import Ask

Messages = list[dict[str, str]]
_Value = TypeVar("_Value")

# The variables of a template. The question's id and expectations are not among them: a chatbot never sees those.
VARIABLES = ("question", "conversation_id", "turn", "trial", "context", "messages")

_SLOT = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")


class Template:
    """A JSON structure with variables; `where` is its setting in error messages."""

    def __init__(self, structure: object, where: str) -> None:
        self._structure = structure
        # The variables that it uses.
        self.names = frozenset(_names_in(structure, where))

    def fill(self, values: Mapping[str, object]) -> object:
        """The structure with values for its variables."""
        return _filled(self._structure, values) if self.names else self._structure


def values_of(ask: Ask, messages: list[dict[str, str]] | None = None) -> dict[str, object]:
    """The values of the variables for one question."""
    return {
        "question": ask.question,
        "conversation_id": ask.conversation_id,
        "turn": ask.turn,
        "trial": ask.trial,
        "context": ask.context,
        "messages": messages,
    }


def encode_body(body: object) -> bytes:
    """A filled template as JSON."""
    try:
        return msgspec.json.encode(body)
    except ValueError:
        import json

        # A lone surrogate in a question is sent as an escape, as in the golden set.
        return json.dumps(body).encode()


def _names_in(structure: object, where: str) -> Iterator[str]:
    if isinstance(structure, str):
        for name in _SLOT.findall(structure):
            if name not in VARIABLES:
                close = get_close_matches(name, VARIABLES, n=1)
                hint = f"did you mean {{{{{close[0]}}}}}?" if close else f"there are {', '.join(VARIABLES)}"
                raise ConfigError(f"{where} uses {{{{{name}}}}}, which is unknown; {hint}")
            yield name
    elif isinstance(structure, (Mapping, list, tuple)):
        parts = structure.items() if isinstance(structure, Mapping) else structure
        for part in parts:
            yield from _names_in(part, where)


def _filled(structure: object, values: Mapping[str, object]) -> object:
    if isinstance(structure, Mapping):
        return {str(_filled(key, values)): _filled(part, values) for key, part in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [_filled(part, values) for part in structure]
    if not isinstance(structure, str):
        return structure
    if whole := _SLOT.fullmatch(structure):
        # A slot that is the whole string keeps its type: a number stays a number, the messages a list.
        return values[whole[1]]
    return _SLOT.sub(lambda slot: _as_text(values[slot[1]]), structure)


def _as_text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()


class PerConversation(Generic[_Value]):
    """A value for each conversation in progress; older ones are dropped, so that memory stays flat."""

    def __init__(self, concurrency: int) -> None:
        # The turns of a conversation are asked one after the other, so older ones than these have ended.
        self._most = 2 * concurrency + 16
        self._values: dict[str, _Value] = {}

    def get(self, conversation_id: str) -> _Value | None:
        """The value of a conversation."""
        return self._values.get(conversation_id)

    def set(self, conversation_id: str, value: _Value) -> None:
        """Store it for the next turns."""
        self._values.pop(conversation_id, None)
        self._values[conversation_id] = value
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]


class MessageHistory:
    """The messages of each conversation, for chatbots that are sent all of them."""

    def __init__(self, concurrency: int) -> None:
        self._messages: PerConversation[Messages] = PerConversation(concurrency)

    def begin_turn(self, conversation_id: str, question: str, turn: int) -> Messages:
        """The messages to send: everything before this turn, and the question."""
        # A turn that is retried or repeated starts from the same messages.
        before = (self._messages.get(conversation_id) or [])[: 2 * turn]
        return [*before, {"role": "user", "content": question}]

    def end_turn(self, conversation_id: str, sent: Messages, answer: str | None) -> None:
        """Add the answer for the next turns."""
        self._messages.set(conversation_id, [*sent, {"role": "assistant", "content": answer or ""}])
