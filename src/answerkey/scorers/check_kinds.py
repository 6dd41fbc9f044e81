"""The kinds of checks that answerkey can decide by itself: each a function of what is expected and the reply."""

from collections.abc import Callable
from typing import Any

import msgspec

from answerkey.model.reply import Reply
from answerkey.text.json_schema import misfit
from answerkey.text.language import detect_language
from answerkey.text.patterns import compile_pattern
from answerkey.text.sanitise import one_line

__all__ = ["DECIDED", "Outcome"]

# A value from 0 to 1 (None: it cannot be told) and the reason in words.
Outcome = tuple[float | None, str]

_SHOWN = 80


def _verdict(passed: bool, reason: str) -> Outcome:
    return (1.0 if passed else 0.0), reason


def _contains(expected: Any, reply: Reply) -> Outcome:
    wanted = expected if isinstance(expected, list) else [expected]
    text = (reply.text or "").casefold()
    missing = [one_line(part, _SHOWN) for part in wanted if part.casefold() not in text]
    return _verdict(not missing, f"does not say {', '.join(missing)}" if missing else "says it")


def _equals(expected: Any, reply: Reply) -> Outcome:
    text = (reply.text or "").strip()
    if isinstance(expected, str):
        return _verdict(text == expected.strip(), f"the reply is {one_line(text, _SHOWN)!r}")
    value, problem = _json(text)
    if problem:
        return 0.0, problem
    # True == 1 in Python, but not in JSON.
    same = msgspec.json.encode(value, order="sorted") == msgspec.json.encode(expected, order="sorted")
    return _verdict(same, f"the reply is {one_line(text, _SHOWN)}")


def _regex(expected: Any, reply: Reply) -> Outcome:
    pattern = compile_pattern(expected)
    if pattern.problem:
        return None, f"the pattern does not compile: {pattern.problem}"
    found = pattern.search(reply.text or "")
    return (0.0, found) if isinstance(found, str) else (1.0, f"found at {found[0]}")


def _is_json(expected: Any, reply: Reply) -> Outcome:
    _, problem = _json((reply.text or "").strip())
    return _verdict((problem is None) is expected, problem or "it is JSON")


def _json_schema(expected: Any, reply: Reply) -> Outcome:
    value, problem = _json((reply.text or "").strip())
    problem = problem or misfit(value, expected)
    return _verdict(problem is None, one_line(problem, 200) if problem else "it fits the schema")


def _json(text: str) -> tuple[Any, str | None]:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace")), None
    except msgspec.DecodeError as error:
        fenced = " (it stands in a code fence)" if text.startswith("```") else ""
        return None, f"the reply is not JSON{fenced}: {error}"


def _max_latency_ms(expected: Any, reply: Reply) -> Outcome:
    taken = reply.timings.latency_ms
    if taken is None:
        return None, "the latency was not measured"
    return _verdict(taken <= expected, f"took {taken:,.0f} ms, at most {expected:g}")


def _max_cost(expected: Any, reply: Reply) -> Outcome:
    cost = None if reply.usage is None else reply.usage.cost
    if cost is None:
        return None, "the cost was not reported"
    return _verdict(cost <= expected, f"cost {cost:g}, at most {expected:g}")


def _max_words(expected: Any, reply: Reply) -> Outcome:
    words = len((reply.text or "").split())
    return _verdict(words <= expected, f"{words} words, at most {expected:g}")


def _language(expected: Any, reply: Reply) -> Outcome:
    language, reason = detect_language(reply.text or "")
    return (None, reason) if language is None else _verdict(language == expected, f"{language}: {reason}")


# Kind → how it is decided. A null reply is an empty text here; what fails about it shows under error handling.
DECIDED: dict[str, Callable[[Any, Reply], Outcome]] = {
    "contains": _contains,
    "equals": _equals,
    "regex": _regex,
    "is_json": _is_json,
    "json_schema": _json_schema,
    "max_latency_ms": _max_latency_ms,
    "max_cost": _max_cost,
    "max_words": _max_words,
    "language": _language,
}
