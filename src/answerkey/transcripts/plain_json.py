"""Plain JSON out of anything: SDKs' and users' objects, and JSON text as chatbots write it."""

import dataclasses
import json
from collections.abc import Mapping
from math import isfinite

import msgspec

from answerkey.model.json_value import Json
from answerkey.model.reply import Reply
from answerkey.transcripts.fields.content_text import safe_text
from answerkey.transcripts.fields.reply_names import has_reply_names

__all__ = ["DEEPEST", "as_builtin", "as_json", "decode_json"]

# Nobody's reply is nested deeper; an object that holds itself would be.
DEEPEST = 50


def as_builtin(value: object, within: tuple[int, ...] = ()) -> object:
    """An SDK's or a user's object as the dict that it would be in JSON."""
    if value is None or isinstance(value, (str, bytes, int, float, Reply)):
        return value
    if id(value) in within or len(within) > DEEPEST:
        return "…"
    inside = (*within, id(value))
    if type(value) is dict:
        return {key: as_builtin(part, inside) for key, part in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return [as_builtin(part, inside) for part in value]
    if isinstance(value, Mapping):
        return {str(key): part for key, part in value.items()}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    for method in ("model_dump", "to_dict", "_asdict", "dict"):
        dump = getattr(value, method, None)
        if callable(dump) and not isinstance(value, type):
            dumped = dump()
            if isinstance(dumped, Mapping):
                return dict(dumped)
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and has_reply_names(own):
        return dict(own)
    return value


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
