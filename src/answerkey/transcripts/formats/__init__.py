"""The table of formats that are recognised without configuration: the marks by which a payload is known, and how it is read."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Reply
from answerkey.transcripts.conversation import Asked

__all__ = ["Format", "Mark", "is_marked"]

# A type that the field has, a text that it equals, or a test that it passes.
Mark: TypeAlias = type | str | Callable[[Json], bool]


class Format(NamedTuple):
    """One shape that a payload may have."""

    name: str
    # Field → its mark; all must be there. The first is the one that others have least.
    marks: dict[str, Mark]
    read: Callable[[JsonObject, Asked], Reply]


def is_marked(payload: JsonObject, marks: dict[str, Mark]) -> bool:
    """Whether a payload has all the marks."""
    for name, mark in marks.items():
        if name not in payload:
            return False
        value = payload[name]
        if isinstance(mark, type):
            if not isinstance(value, mark):
                return False
        elif value != mark if isinstance(mark, str) else not mark(value):
            return False
    return True
