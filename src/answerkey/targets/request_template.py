"""Request templates: `{{question}}` and the like in a JSON structure, filled in as values and never pasted as text."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches

import msgspec

from answerkey.errors import ConfigError
from answerkey.protocols import Ask

# What a template may name. The question's id and expectations are not among them: a chatbot never sees those.
VARIABLES = ("question", "conversation_id", "turn", "trial", "context", "messages")

_SLOT = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_Fill = Callable[[Mapping[str, object]], object]


class Template(msgspec.Struct, frozen=True):
    """A compiled template."""

    fill: _Fill
    # The variables that it names.
    names: frozenset[str]


def compile_template(template: object, where: str) -> Template:
    """A template that is checked once and filled for every question; `where` names the setting in errors."""
    names: set[str] = set()
    return Template(_compile(template, where, names), frozenset(names))


def values_of(ask: Ask, messages: list[dict[str, str]] | None = None) -> dict[str, object]:
    """What the variables stand for in one ask."""
    return {
        "question": ask.question,
        "conversation_id": ask.conversation_id,
        "turn": ask.turn,
        "trial": ask.trial,
        "context": ask.context,
        "messages": messages,
    }


def encode_body(body: object) -> bytes:
    """What a filled template comes to, as JSON."""
    try:
        return msgspec.json.encode(body)
    except ValueError:
        import json

        # A lone surrogate in a question is sent as the escape that it is in the golden set.
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
            raise ConfigError(f"{where} names {{{{{name}}}}}, which is unknown; {hint}")
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
