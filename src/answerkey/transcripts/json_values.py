"""Untrusted JSON by the shape it should have: a part of another shape, or a number that makes no sense, reads as absent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any, TypeVar

import msgspec

from answerkey.model.reply import Failure, Json, JsonObject, Reply
from answerkey.text.normalise import clean_text
from answerkey.text.patterns import lazy

_Meaning = TypeVar("_Meaning")

# Some thirty thousand years.
LONGEST_MS = 1e15


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in which long tables are easier to read."""
    return tuple(text.split())


def spellings(text: str) -> tuple[str, ...]:
    """The words of a text, each in snake_case as it is written and in camelCase."""
    return tuple(dict.fromkeys(name for word in text.split() for name in (word, _camel(word))))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return "".join([first, *(part.capitalize() for part in rest)]) if first else name


def by_word(table: Mapping[_Meaning, Iterable[str]]) -> dict[str, _Meaning]:
    """Word → meaning, from meaning → words."""
    return {word: meaning for meaning, listed in table.items() for word in listed}


def as_dict(value: object) -> JsonObject:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Json]:
    """`value` if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def as_dicts(value: object) -> list[JsonObject]:
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_str(value: object) -> str | None:
    """`value` if it is text with something in it."""
    return value if isinstance(value, str) and value else None


def pick(item: JsonObject, *names: str) -> Json:
    """The first of several spellings that is there."""
    for name in names:
        value = item.get(name)
        if value is not None:
            return value
    return None


def either(item: JsonObject, name: str) -> Json:
    """A field in camelCase, as it is sent, or in snake_case, as Python SDKs have it."""
    value = item.get(name)
    return item.get(_snake(name)) if value is None else value


@cache
def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def at(value: object, *path: str | int) -> Json:
    """The value at a path of names and indices; None if there is none."""
    found = value
    for step in path:
        if isinstance(step, int):
            found = found[step] if isinstance(found, list) and len(found) > step else None
        else:
            found = found.get(step) if isinstance(found, dict) else None
    return found  # type: ignore[return-value]  # a part of JSON is JSON


def read_number(value: object) -> float | None:
    """A finite number, also written as text (as CSV files do)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int):
        try:
            value = float(value)
        except OverflowError:
            return None
    return value if isinstance(value, float) and isfinite(value) else None


def read_count(value: object) -> int | None:
    """A number of tokens: whole and not negative."""
    number = read_number(value)
    return int(number) if number is not None and 0 <= number < 2**62 else None


def read_duration(value: object) -> float | None:
    """A time span in milliseconds: not negative, and no longer than any can be."""
    number = read_number(value)
    return number if number is not None and 0 <= number < LONGEST_MS else None


# The text of a reply: its usual names, and the text of content parts. An object is never written out as text.


TEXT_NAMES = (
    *("answer", "response", "text", "output", "message", "content", "reply"),
    *("output_text", "final_answer", "generated_text"),
)
_PART_TEXTS = ("text", "output_text", "generated_text")
# Parts of these types are not shown to the user.
_UNSPOKEN = frozenset(
    {
        *("thinking", "reasoning", "redacted_thinking"),
        *("tool_use", "tool_result", "tool_call", "image", "image_url"),
    }
)
_WORDS = {
    dict: "an object",
    list: "a list",
    str: "text",
    bytes: "bytes",
    type(None): "null",
    bool: "true/false",
    int: "a number",
    float: "a number",
}


def safe_text(text: str) -> str:
    """`text` as files and databases take it."""
    return clean_text(text)


def json_text(value: object) -> str:
    """A value as JSON, whatever it is."""
    import json  # slow to load

    try:
        return safe_text(json.dumps(value, ensure_ascii=False, default=str))
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def type_in_words(value: object) -> str:
    """What a value is: its class where that is known, else what JSON calls it."""
    named = value.get("$type") if isinstance(value, dict) else None
    if isinstance(named, str):
        return f"a {named} object"
    return _WORDS.get(type(value), f"a {type(value).__name__} object")


def spoken_text(value: object) -> str | None:
    """The text of a content field: a string, a list of parts ({"type": "text", "text": …}) or a number; else None."""
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, (list, dict)):
        parts = _parts([value] if isinstance(value, dict) else value) if value else None
        return None if parts is None else "".join(parts)
    return json_text(value) if isinstance(value, (int, float)) else None


def read_text(value: object) -> str | None:
    """The text of a tool result or passage; a value without text as JSON."""
    if value is None:
        return None
    said = spoken_text(value)
    return json_text(value) if said is None else said


def _parts(items: list[Json]) -> list[str] | None:
    """The texts of content parts; None if the list is not one of content parts."""
    texts: list[str] = []
    for item in items:
        if isinstance(item, str):
            texts.append(safe_text(item))
            continue
        if not isinstance(item, dict):
            return None
        kind = item.get("type")
        said = next((item[name] for name in _PART_TEXTS if name in item), None)
        if isinstance(said, str) and kind not in _UNSPOKEN and item.get("thought") is not True:
            texts.append(safe_text(said))
        elif isinstance(said, dict) and isinstance(value := said.get("value"), str):
            # The Assistants API wraps a text once more, beside its annotations.
            texts.append(safe_text(value))
        elif not isinstance(kind, str) and "thought" not in item:
            return None
    # Images and the like say nothing.
    return texts or None


# Plain JSON from SDK and user objects and from JSON text, and replies before they are stored.
#
# Every reply passes `admit_reply` before it is scored or stored. It can then be written as JSON: no lone surrogate or NUL
# in any text, no value that JSON lacks, no nesting beyond the limit, and no text beyond the size limit.


# No real reply is nested deeper; an object that contains itself would be.
DEEPEST = 50
_MOST_VISITS = 100_000


# What frameworks' results are made of, by the attributes that only they have: no framework is imported for it.
_RESULTS: tuple[tuple[tuple[str, ...], Callable[[Any], Mapping[str, object]]], ...] = (
    # openai-agents.
    (
        ("to_input_list", "final_output"),
        lambda run: {
            "messages": run.to_input_list(),
            "answer": run.final_output,
            "usage": getattr(getattr(run, "context_wrapper", None), "usage", None),
        },
    ),
    # pydantic-ai.
    (("all_messages", "output"), lambda run: {"messages": run.all_messages(), "answer": run.output}),
    # dspy and others that keep what they store apart.
    (("toDict", "keys"), lambda held: held.toDict()),
)


def as_builtin(value: object) -> object:
    """An SDK's or a user's object as the dict that it would be in JSON; an unknown object unchanged."""
    return _Plain().plain(value, 0)


class _Plain:
    """Makes objects plain; the number of visits is limited, since objects may contain each other."""

    def __init__(self) -> None:
        self._visits = 0
        # The objects that contain the current one.
        self._within: set[int] = set()

    def plain(self, value: object, depth: int) -> object:
        if value is None or isinstance(value, (str, bytes, int, float, Reply)):
            # A subclass of str may write itself in another way than it is.
            plain = str.__str__(value) if isinstance(value, str) else value
            return value.value if isinstance(value, Enum) else plain
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
        if all(_has(value, name) for name in names):
            return made_of(value)
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses  # slow to load

        # Haystack's fields are private, and its properties are called like them.
        return {
            field.name.lstrip("_"): getattr(value, field.name, None) for field in dataclasses.fields(value)
        }
    if isinstance(getattr(type(value), "model_fields", None), Mapping):
        # A pydantic model by its fields: its own dump leaves out what a field's declared type does not have.
        return {**value.__dict__, **(value.__pydantic_extra__ or {})}
    for method in ("model_dump", "to_dict", "_asdict", "dict"):
        dump = getattr(type(value), method, None)
        if callable(dump):
            dumped = dump(value)
            if isinstance(dumped, Mapping):
                return dumped
    from answerkey.transcripts.formats import has_reply_names  # formats are read with the functions here

    own = getattr(value, "__dict__", None)
    return own if isinstance(own, dict) and has_reply_names(own) else None


def _has(value: object, name: str) -> bool:
    """Whether an object has a field or its class a method; objects that make up attributes when asked do not count."""
    return hasattr(type(value), name) or name in getattr(value, "__dict__", ())


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


# Decoded JSON is nested at most this deep, so that no code behind these decoders can exceed the recursion limit.
MAX_JSON_DEPTH = 200


class NestingError(ValueError):
    """A value is nested deeper than MAX_JSON_DEPTH."""

    def __init__(self) -> None:
        super().__init__("nested too deeply")


def decode_json(text: str | bytes) -> Json:
    """Decode JSON as chatbots write it (NaN and lone surrogates are accepted). Raises ValueError."""
    try:
        return decode_strict_json(text)
    except NestingError:
        raise
    except ValueError:
        return as_json(decode_python_json(text))


def decode_python_json(text: str | bytes) -> Json:
    """Decode with the standard library: accepts NaN and lone surrogates, and names line and column of an error."""
    import json  # only for what is not JSON by the standard

    try:
        value: Json = json.loads(text)
    except RecursionError:
        raise NestingError from None
    return limit_depth(value)


def encode_json(body: object) -> bytes:
    """A value as JSON."""
    try:
        return msgspec.json.encode(body)
    except ValueError:
        import json

        # A lone surrogate in a question is sent as an escape, as in the golden set.
        return json.dumps(body).encode()


def decode_strict_json(text: str | bytes) -> Json:
    """Decode JSON by the standard. Raises ValueError."""
    try:
        value: Json = msgspec.json.decode(text)
    except RecursionError:
        raise NestingError from None
    # Most texts have too few brackets to be nested deeply.
    brackets = (
        text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    )
    return limit_depth(value) if brackets > MAX_JSON_DEPTH else value


# Two quoted texts without a comma between them, as NumPy prints arrays; Python would join them.
_JOINED_TEXTS = lazy(r"""['"]\s+['"]""")


def decode_cell(text: str) -> Json:
    """Decode JSON, or a list or object as Python and pandas write it: ['a', 'b']. Raises ValueError of the JSON."""
    try:
        return decode_strict_json(text)
    except ValueError as error:
        if isinstance(error, NestingError) or "'" not in text or _JOINED_TEXTS.search(text):
            raise
        import ast  # few cells are written by Python

        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise error from None
        return limit_depth(as_json(value))


_Value = TypeVar("_Value")


def limit_depth(value: _Value) -> _Value:
    """Return a value decoded from outside data. Raises NestingError if it is nested too deeply."""
    if is_deeper(value, MAX_JSON_DEPTH):
        raise NestingError
    return value


def is_deeper(value: object, limit: int) -> bool:
    """Whether lists and objects are nested more than `limit` levels deep; does not recurse."""
    level: list[Any] = [value] if isinstance(value, (dict, list, tuple)) else []
    for _ in range(limit):
        if not level:
            return False
        parts = [part for held in level for part in (held.values() if isinstance(held, dict) else held)]
        # By identity: YAML aliases can put the same list into many places.
        level = list({id(part): part for part in parts if isinstance(part, (dict, list, tuple))}.values())
    return bool(level)


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
    """The failure that replaces a reply larger than the limit."""
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
    """Whether arguments, results or metadata are nested too deeply to be stored."""
    values = [part for call in reply.tool_calls for part in (call.arguments, call.result)]
    # The reply and its list of calls are levels too.
    return is_deeper([*values, *(source.metadata for source in reply.sources)], DEEPEST - 2)


# Lines in a JSON document, which parsers do not report: those of its rows, and those of keys that an object has twice.


_MARK = lazy(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]|\n')


class RepeatedKey(msgspec.Struct, frozen=True):
    """A key that an object has twice; parsers keep the last value without a word."""

    key: str
    first_line: int
    line: int


class ItemPlace(msgspec.Struct, frozen=True):
    """Where an object is in its text."""

    line: int
    start: int
    end: int


class JsonOutline(msgspec.Struct, frozen=True):
    """Where a document's rows are, and its repeated keys."""

    items: list[ItemPlace]
    repeated: list[RepeatedKey]


class _Container(msgspec.Struct, frozen=True):
    """An object or a list that is open."""

    # The keys that lead to it; "" for a list inside a list.
    path: tuple[str, ...]
    # Key → its line; None for a list.
    keys: dict[str, int] | None
    # Of a row: where it begins.
    item: ItemPlace | None = None


def outline_json(text: str, keys: Sequence[str] = ()) -> JsonOutline:
    """Find the objects in the list that `keys` lead to, and repeated keys anywhere, in a valid document."""
    outline = JsonOutline([], [])
    opened: list[_Container] = []
    line, last_text, key = 1, "", ""
    for found in _MARK.finditer(text):
        mark = found[0]
        outer = opened[-1] if opened else None
        if mark == "\n":
            line += 1
        elif mark == ":":
            key = last_text[1:-1]
            if outer is not None and outer.keys is not None:
                if key in outer.keys:
                    outline.repeated.append(RepeatedKey(key, outer.keys[key], line))
                outer.keys[key] = line
        elif mark in ("{", "["):
            path: tuple[str, ...] = ()
            item = None
            if outer is not None:
                path = (*outer.path, "" if outer.keys is None else key)
                if mark == "{" and outer.keys is None and outer.path == tuple(keys):
                    item = ItemPlace(line, found.start(), 0)
            opened.append(_Container(path, {} if mark == "{" else None, item))
        elif mark in ("}", "]"):
            item = opened.pop().item
            if item is not None:
                outline.items.append(msgspec.structs.replace(item, end=found.end()))
        else:
            last_text = mark
    return outline
