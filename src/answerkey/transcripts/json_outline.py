"""Lines in a JSON document, which parsers do not report: those of its rows, and those of keys that an object has twice."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]|\n')


class RepeatedKey(NamedTuple):
    """A key that an object has twice; parsers keep the last value without a word."""

    key: str
    first_line: int
    line: int


class JsonOutline(NamedTuple):
    """The lines of a document's rows, and its repeated keys."""

    item_lines: list[int]
    repeated: list[RepeatedKey]


class _Container(NamedTuple):
    """An object or a list that is open."""

    # The keys that lead to it; "" for a list inside a list.
    path: tuple[str, ...]
    # Key → its line; None for a list.
    keys: dict[str, int] | None


def outline_json(text: str, keys: Sequence[str] = ()) -> JsonOutline:
    """Find the objects in the list that `keys` lead to, and repeated keys anywhere, in a valid document."""
    outline = JsonOutline([], [])
    opened: list[_Container] = []
    line, last_text, key = 1, "", ""
    for mark in _MARK.findall(text):
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
            if outer is not None:
                path = (*outer.path, "" if outer.keys is None else key)
                if mark == "{" and outer.keys is None and outer.path == tuple(keys):
                    outline.item_lines.append(line)
            opened.append(_Container(path, {} if mark == "{" else None))
        elif mark in ("}", "]"):
            opened.pop()
        else:
            last_text = mark
    return outline
