"""Whether a reply is a failure instead of an answer, seen from its text alone."""

import re

import msgspec

__all__ = ["DetectedFailure", "detect_failure"]


class DetectedFailure(msgspec.Struct, frozen=True):
    """Why a reply counts as an error."""

    # A kind of the scoring standard: empty, null, error_text, trace, malformed, timeout, rate_limit, …
    kind: str
    # The telling part of the reply, or what is wrong with it.
    message: str
    # Span of the telling part in the reply.
    start: int = 0
    end: int = 0


_NULLS = frozenset({"null", "none", "undefined", "nan", "nil"})
_FAILED = re.compile(
    r"(?:i(?:'m| am) sorry,? (?:but )?)?(?:i (?:encountered|ran into|hit)|there was|an?) (?:an? )?(?:\w+ )?error\b"
    r"|(?:[A-Za-z_.]*(?:Error|Exception)|error): ",
    re.IGNORECASE,
)


def detect_failure(text: str | None) -> DetectedFailure | None:
    """The failure that a reply's text shows, or None for an answer."""
    if text is None:
        return DetectedFailure("null", "there is no reply")
    stripped = text.strip()
    if not stripped:
        return DetectedFailure("empty", "the reply is empty", 0, len(text))
    if stripped.lower() in _NULLS and stripped != "none":
        return DetectedFailure("null", stripped, 0, len(text))
    if "Traceback (most recent call last)" in text:
        return DetectedFailure("trace", "Traceback (most recent call last)", 0, len(text))
    found = _FAILED.match(stripped)
    if found:
        start = text.find(stripped)
        return DetectedFailure("error_text", found.group(), start, start + found.end())
    return None
