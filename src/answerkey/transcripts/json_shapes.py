"""Untrusted JSON by the shape it should have: a part of another shape, or a number that makes no sense, reads as absent."""

from functools import cache
from math import isfinite

from answerkey.model.json_value import Json, JsonObject

# Some thirty thousand years.
LONGEST_MS = 1e15


def as_dict(value: object) -> JsonObject:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Json]:
    """`value` if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def as_dicts(value: object) -> list[JsonObject]:
    """The objects in an array."""
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
    """What stands at the end of a path of names and places; None if it leads nowhere."""
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
