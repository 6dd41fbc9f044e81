"""Checks of a golden case: read strictly, so that a slip is refused before anything is asked."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any

from answerkey.model.check import CHECK_KINDS, Check
from answerkey.plugins import scorers
from answerkey.text.json_schema import schema_problem
from answerkey.text.language import LANGUAGES
from answerkey.text.patterns import check_pattern

__all__ = ["parse_checks"]

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
    if kind in _PROBLEMS:
        problem = _PROBLEMS[kind](expected)
        if problem:
            raise ValueError(f"{where}: {kind!r} {problem}")
    else:
        expected = _arguments(kind, expected, where)
    return Check(kind, expected, _name(part, kind, where), _weight(part, where))


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


def _name(part: Mapping[str, Any], kind: str, where: str) -> str:
    name = part.get("name", kind)
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{where}: 'name' must be non-empty text")
    return name


def _weight(part: Mapping[str, Any], where: str) -> float:
    weight = part.get("weight", 1.0)
    if not _is_number(weight) or not weight > 0 or not isfinite(weight):
        raise ValueError(f"{where}: 'weight' must be a number above 0")
    return float(weight)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _contains(value: Any) -> str | None:
    listed = value if isinstance(value, list) else [value]
    return None if listed and all(map(_is_text, listed)) else "must be text or a list of texts"


def _equals(value: Any) -> str | None:
    return "must be what the reply should be, not null" if value is None else None


def _regex(value: Any) -> str | None:
    if not _is_text(value):
        return "must be a regular expression as text"
    problem = check_pattern(value)
    return f"{value!r} is not a valid regular expression: {problem}" if problem else None


def _is_json(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _limit(value: Any) -> str | None:
    return None if _is_number(value) and value >= 0 and isfinite(value) else "must be a number from 0 up"


def _language(value: Any) -> str | None:
    if value in LANGUAGES:
        return None
    return f"{value!r} is none of the languages that can be told apart: {', '.join(sorted(LANGUAGES))}"


def _python(value: Any) -> str | None:
    place, _, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    return None if place and name else "must name a function, as in file.py:function"


def _rubric(value: Any) -> str | None:
    return None if _is_text(value) else "must be text: what a judge should look for"


# Kind → what is wrong with what a check of it expects; None: nothing.
_PROBLEMS: dict[str, Callable[[Any], str | None]] = {
    "contains": _contains,
    "equals": _equals,
    "regex": _regex,
    "is_json": _is_json,
    "json_schema": schema_problem,
    "max_latency_ms": _limit,
    "max_cost": _limit,
    "max_words": _limit,
    "language": _language,
    "python": _python,
    "rubric": _rubric,
}
