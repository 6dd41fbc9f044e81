"""Plain JSON out of anything: SDKs' and users' objects, and JSON text as chatbots write it."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from enum import Enum
from math import isfinite
from typing import Any

import msgspec

from answerkey.model.json_value import Json
from answerkey.model.reply import Reply
from answerkey.transcripts.fields.content_text import safe_text
from answerkey.transcripts.fields.reply_names import has_reply_names

__all__ = ["DEEPEST", "as_builtin", "as_json", "decode_json"]

# Nobody's reply is nested deeper; an object that holds itself would be.
DEEPEST = 50
_MOST_VISITS = 100_000


# What frameworks' results are made of, by the attributes that only they have: no framework is imported for it.
_RESULTS: tuple[tuple[tuple[str, ...], Callable[[Any], Mapping[str, object]]], ...] = (
    # openai-agents.
    (
        ("to_input_list", "final_output"),
        lambda run: {"messages": run.to_input_list(), "answer": run.final_output},
    ),
    # pydantic-ai.
    (("all_messages", "output"), lambda run: {"messages": run.all_messages(), "answer": run.output}),
    # dspy and others that keep what they store apart.
    (("toDict", "keys"), lambda held: held.toDict()),
)


def as_builtin(value: object) -> object:
    """An SDK's or a user's object as the dict that it would be in JSON; one that nobody knows stays as it is."""
    return _Plain().plain(value, 0)


class _Plain:
    """Makes objects plain: each visit counts, so that a web of objects that hold each other ends."""

    def __init__(self) -> None:
        self._visits = 0
        # The objects that the one under way is inside of.
        self._within: set[int] = set()

    def plain(self, value: object, depth: int) -> object:
        if value is None or isinstance(value, (str, bytes, int, float, Reply)):
            return value.value if isinstance(value, Enum) else value
        self._visits += 1
        identity = id(value)
        if depth > DEEPEST or self._visits > _MOST_VISITS or identity in self._within:
            return "…"
        self._within.add(identity)
        made = self._opened(value, depth + 1)
        self._within.discard(identity)
        return made

    def _opened(self, value: object, depth: int) -> object:
        if isinstance(value, Mapping):
            return {
                key if type(key) is str else str(key): self.plain(part, depth) for key, part in value.items()
            }
        if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
            return [self.plain(part, depth) for part in value]
        fields = None if isinstance(value, type) else _fields(value)
        if fields is None:
            return value.value if isinstance(value, Enum) else value
        named = {str(name): self.plain(part, depth) for name, part in fields.items()}
        # What it was says how it is read where its fields do not.
        return named if "type" in named else {**named, "$type": type(value).__name__}


def _fields(value: Any) -> Mapping[str, object] | None:
    """An object's fields; None if it is not one that has them for others to see."""
    for names, made_of in _RESULTS:
        if all(hasattr(value, name) for name in names):
            return made_of(value)
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if isinstance(getattr(type(value), "model_fields", None), Mapping):
        # A pydantic model by its fields: its own dump leaves out what a field's declared type does not have.
        return {**value.__dict__, **(value.__pydantic_extra__ or {})}
    for method in ("model_dump", "to_dict", "_asdict", "dict"):
        dump = getattr(value, method, None)
        if callable(dump):
            dumped = dump()
            if isinstance(dumped, Mapping):
                return dumped
    own = getattr(value, "__dict__", None)
    return own if isinstance(own, dict) and has_reply_names(own) else None


def as_json(value: object, within: tuple[int, ...] = ()) -> Json:
    """`value` in types that JSON has; what is unknown, nested too deep or inside itself becomes text."""
    if isinstance(value, str):
        return safe_text(str(value))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if id(value) in within or len(within) > DEEPEST:
        return "…"
    inside = (*within, id(value))
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        return {safe_text(str(key)): as_json(part, inside) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(part, inside) for part in value]
    plain = as_builtin(value)
    return as_json(plain, inside) if plain is not value else safe_text(str(value))


def decode_json(text: str) -> Json:
    """JSON as chatbots write it: msgspec first, Python's laxer reader (NaN, lone surrogates) when that refuses."""
    try:
        decoded: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return as_json(json.loads(text))
    return decoded
