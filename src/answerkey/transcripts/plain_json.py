"""Plain JSON out of anything: SDKs' and users' objects, JSON text as chatbots write it, and replies before they are kept.

Every reply passes `admit_reply` before it is scored or kept. What has passed it can be written as JSON and stored anywhere: no
lone surrogate or NUL in any text, no value that JSON lacks, no nesting that readers would choke on, and not more than the limit.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from enum import Enum
from math import isfinite
from typing import Any

import msgspec

from answerkey.model.json_value import Json
from answerkey.model.reply import Failure, Reply
from answerkey.transcripts.fields.content_text import has_reply_names, safe_text

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


# The size limit of a reply, for all kinds of targets that do not say otherwise.
MOST_MEGABYTES = 16.0
_MEGABYTE = 1024 * 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Reply).decode


def admit_reply(reply: Reply, most_megabytes: float | None = None) -> Reply:
    """The reply as it may be kept, mostly as it is; one that is larger than the limit is a failure instead."""
    try:
        encoded = _encode(reply)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _rebuilt(reply, most_megabytes)
    if most_megabytes is not None and len(encoded) > most_megabytes * _MEGABYTE:
        return msgspec.structs.replace(too_large(most_megabytes), timings=reply.timings)
    if b"\\u0000" in encoded:
        return _rebuilt(reply, most_megabytes)
    if not (reply.tool_calls or reply.sources):
        # Nothing in it can be nested or be a number that JSON lacks: a million recorded replies go this way.
        return reply
    if encoded.count(b"[") + encoded.count(b"{") > DEEPEST and _is_deep(reply):
        return _rebuilt(reply, most_megabytes)
    # A number that JSON lacks is written as null; what is scored is what will be read again.
    return plain_reply(reply) if b"null" in encoded else reply


def plain_reply(reply: Reply) -> Reply:
    """The reply as it is read again: with lists for tuples, texts for other keys, and nothing for NaN."""
    try:
        return _decode(_encode(reply))
    except msgspec.ValidationError:
        return _rebuilt(reply, None)


def too_large(most_megabytes: float) -> Reply:
    """What stands in the place of a reply that is larger than the limit."""
    message = f"the reply is larger than {most_megabytes:g} MB; raise max_reply_mb if that is right"
    return Reply(failure=Failure("malformed", message))


def _rebuilt(reply: Reply, most_megabytes: float | None) -> Reply:
    plain = as_json(msgspec.structs.asdict(reply))
    try:
        rebuilt = msgspec.convert(plain, Reply, strict=False)
        encoded = _encode(rebuilt)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        return Reply(failure=Failure("malformed", f"the reply cannot be kept: {type(error).__name__}"))
    if most_megabytes is not None and len(encoded) > most_megabytes * _MEGABYTE:
        return msgspec.structs.replace(too_large(most_megabytes), timings=rebuilt.timings)
    return rebuilt


def _is_deep(reply: Reply) -> bool:
    """Whether what tools took or gave, or a source's metadata, is nested deeper than anybody reads."""
    values = [part for call in reply.tool_calls for part in (call.arguments, call.result)]
    level: list[Any] = [[*values, *(source.metadata for source in reply.sources)]]
    # The reply and its list of calls are levels too.
    for _ in range(DEEPEST - 2):
        parts = [part for held in level for part in (held.values() if isinstance(held, dict) else held)]
        level = [part for part in parts if isinstance(part, (dict, list, tuple))]
        if not level:
            return False
    return True
