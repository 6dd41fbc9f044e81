"""Checks of a golden case: read strictly, so that a slip is refused before anything is asked."""

from collections.abc import Callable
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeGuard

from answerkey.model.graded_rubric import read_check_rubric
from answerkey.model.question import CHECK_KINDS, Check
from answerkey.plugins import scorers
from answerkey.text.json_schema import schema_problem
from answerkey.text.language import LANGUAGES
from answerkey.text.patterns import check_pattern

# Of every check, whatever its kind.
_COMMON = frozenset({"weight", "name"})


def parse_checks(value: Any) -> tuple[Check, ...]:
    """The `checks` of a golden case; raises ValueError with what is wrong and what to do."""
    if not isinstance(value, list):
        raise ValueError('\'checks\' must be a list of checks such as {"contains": "please"}')
    return tuple(_check(part, f"'checks' item {number}") for number, part in enumerate(value, start=1))


def _check(part: Any, where: str) -> Check:
    if isinstance(part, str):
        part = {part: {}}
    if not isinstance(part, dict):
        raise ValueError(f'{where} must be an object such as {{"contains": "please"}}')
    kinds = [key for key in part if key not in _COMMON]
    if len(kinds) != 1:
        found = f"has {' and '.join(map(repr, kinds))}" if kinds else "says not what to check"
        raise ValueError(f"{where} {found}; give it exactly one kind, such as 'contains'")
    kind = kinds[0]
    expected = part[kind]
    if kind in _EXPECTED:
        fits, wanted = _EXPECTED[kind]
        problem = fits(expected)
        if problem is not True:
            raise ValueError(f"{where}: {kind!r} {problem or wanted}")
    else:
        expected = _arguments(kind, expected, where)
    name, weight = part.get("name", kind), part.get("weight", 1.0)
    if not _is_text(name):
        raise ValueError(f"{where}: 'name' must be non-empty text")
    if not is_limit(weight) or not weight:
        raise ValueError(f"{where}: 'weight' must be a number above 0")
    return Check(kind, expected, name, float(weight))


def _arguments(kind: str, expected: Any, where: str) -> dict[str, Any]:
    """The arguments of a registered scorer; `true` stands for none."""
    known = [name for name in scorers.names() if name != "checks"]
    if kind not in known:
        close = get_close_matches(kind, [*CHECK_KINDS, *known], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(CHECK_KINDS)}"
        raise ValueError(f"{where}: unknown kind of check {kind!r}; {hint} (or a scorer's name)")
    if expected is True or expected is None:
        return {}
    if not isinstance(expected, dict):
        raise ValueError(f"{where}: the arguments of the scorer {kind!r} must be an object, such as {{}}")
    return expected


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def is_limit(value: Any) -> TypeGuard[float]:
    """Whether a value is a number from 0 up."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and isfinite(value)


def _are_texts(value: Any) -> bool:
    listed = value if isinstance(value, list) else [value]
    return bool(listed) and all(map(_is_text, listed))


def _is_regex(value: Any) -> bool | str:
    problem = check_pattern(value) if _is_text(value) else None
    return f"{value!r} is not a valid regular expression: {problem}" if problem else _is_text(value)


def _is_language(value: Any) -> bool | str:
    known = ", ".join(sorted(LANGUAGES))
    return value in LANGUAGES or f"{value!r} is none of the languages that can be told apart: {known}"


def _is_reference(value: Any) -> bool:
    place, _, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    return bool(place and name)


def _is_rubric(value: Any) -> bool | str:
    if not isinstance(value, str | dict):
        return "must be text, what a judge should look for, or an object with 'question'"
    try:
        return bool(read_check_rubric(value))
    except ValueError as error:
        return str(error)


_A_LIMIT = (is_limit, "must be a number from 0 up")
# Kind → whether what a check of it expects is right (or what is wrong with it), and what it must be.
_EXPECTED: dict[str, tuple[Callable[[Any], bool | str], str]] = {
    "contains": (_are_texts, "must be text or a list of texts"),
    "equals": (lambda value: value is not None, "must be what the reply should be, not null"),
    "regex": (_is_regex, "must be a regular expression as text"),
    "is_json": (lambda value: isinstance(value, bool), "must be true or false"),
    "json_schema": (lambda value: schema_problem(value) or True, ""),
    "max_latency_ms": _A_LIMIT,
    "max_cost": _A_LIMIT,
    "max_words": _A_LIMIT,
    "language": (_is_language, ""),
    "python": (_is_reference, "must name a function, as in file.py:function"),
    "rubric": (_is_rubric, ""),
}
