"""Untrusted JSON by the shape it should have: a part of another shape reads as absent."""

from answerkey.model.json_value import Json, JsonObject

__all__ = ["as_dict", "as_dicts", "as_list", "as_str", "pick"]


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
