"""What is sent for a question: templates that are filled for each one, and values that last for a conversation.

A template has `{{question}}` and the like in a JSON structure. They are replaced as values, never pasted as text.
"""

import re
from collections.abc import Callable, Mapping
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
_Fill = Callable[[Mapping[str, object]], object]


class Template(msgspec.Struct, frozen=True):
    """A compiled template."""

    fill: _Fill
    # The variables that it uses.
    names: frozenset[str]


def compile_template(template: object, where: str) -> Template:
    """Compile a template; `where` is the setting in error messages."""
    names: set[str] = set()
    return Template(_compile(template, where, names), frozenset(names))


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


def _compile(template: object, where: str, names: set[str]) -> _Fill:
    if isinstance(template, str):
        return _compile_text(template, where, names)
    if isinstance(template, Mapping):
        parts = [
            (_compile_text(str(key), where, names), _compile(part, where, names))
            for key, part in template.items()
        ]
        return lambda values: {str(key(values)): part(values) for key, part in parts}
    if isinstance(template, (list, tuple)):
        items = [_compile(part, where, names) for part in template]
        return lambda values: [item(values) for item in items]
    return lambda values: template


def _compile_text(template: str, where: str, names: set[str]) -> _Fill:
    found = _SLOT.findall(template)
    for name in found:
        if name not in VARIABLES:
            close = get_close_matches(name, VARIABLES, n=1)
            hint = f"did you mean {{{{{close[0]}}}}}?" if close else f"there are {', '.join(VARIABLES)}"
            raise ConfigError(f"{where} uses {{{{{name}}}}}, which is unknown; {hint}")
    names.update(found)
    if not found:
        return lambda values: template
    whole = _SLOT.fullmatch(template)
    if whole:
        # A slot that is the whole string keeps its type: a number stays a number, the messages a list.
        name = whole[1]
        return lambda values: values[name]
    return lambda values: _SLOT.sub(lambda slot: _as_text(values[slot[1]]), template)


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
