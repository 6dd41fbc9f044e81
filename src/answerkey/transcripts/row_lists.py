"""Where a document that is one object has its rows."""

from pathlib import Path
from typing import Any

from answerkey.errors import InputError

__all__ = ["find_list"]

# Keys under which people and tools put a file's rows, the likelier first.
_LISTS = (
    *("questions", "tests", "cases", "replies", "feedback", "scores", "annotations", "data"),
    *("results", "items", "rows", "examples", "records", "samples", "test_cases", "goldens", "eval_cases"),
)
# An object with one of these is a row itself, whatever lists it has.
_ROW_MARKS = ("question", "turns", "messages", "input", "inputs", "vars", "id", "ground_truth")


def find_list(value: object, path: Path) -> tuple[tuple[str, ...], list[Any]]:
    """The keys that lead to the rows, and the rows; an object that is a row itself is the only one."""
    if isinstance(value, list):
        return (), value
    if not isinstance(value, dict):
        raise InputError("expected a list of objects, or an object that holds one", path=path)
    for key in _LISTS:
        if _is_rows(value.get(key)):
            return (key,), value[key]
    if any(name in value for name in _ROW_MARKS):
        return (), [value]
    # One level further down: {"results": {"results": [...]}}.
    for key in (*_LISTS, *value):
        inner = value.get(key)
        if isinstance(inner, dict):
            deeper = next((name for name in _LISTS if _is_rows(inner.get(name))), None)
            if deeper is not None:
                return (key, deeper), inner[deeper]
    others = [key for key, held in value.items() if held and _is_rows(held)]
    if len(others) == 1:
        return (others[0],), value[others[0]]
    holds = (
        f"it holds lists under {', '.join(others)}"
        if others
        else f"it has {', '.join(map(str, list(value)[:20]))}"
    )
    raise InputError(
        f"expected a list of objects, or an object with a list under 'questions'; {holds}; "
        "say which with --map rows=KEY",
        path=path,
    )


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
