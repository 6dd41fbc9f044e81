"""Fractions in words — "two thirds", "more than half of", "a fifth of", "one in four" — as the percentages that they are."""

import re
from collections.abc import Iterator
from typing import Literal

from answerkey.text.number_words import SMALL_NUMBERS

__all__ = ["Fraction", "find_fractions"]

# Start, end, the percentage, how far off it may be, and what "about" and "more than" say of it.
Fraction = tuple[int, int, float, float, Literal["", "about", "above", "below"]]

_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10,
}  # fmt: skip
_FRACTION = re.compile(
    r"\b(?:(an?|one|two|three|four|five|six|seven|eight|nine)[- ])?"
    r"(half|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s?)\b",
    re.IGNORECASE,
)
_SIGN = re.compile(r"half|third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:(about|around|roughly|approximately|nearly|almost|just (?:under|over|shy of)|close to|some|not quite)"
    r"|(?:well |slightly |a little )?(?:(over|more than|above)|(under|less than|below|fewer than)))\s+$",
    re.IGNORECASE,
)
# Half a year of the calendar, halves of hours, and quarters of the year are no shares.
_TIME_BEFORE = re.compile(
    r"\b(?:first|second|latter|other|and an?|and one|in|for|every|each|per|last|past|next|this|previous|prior|of the|the)\s+$|-$",
    re.IGNORECASE,
)
_OF_SOMETHING = re.compile(
    r"\s+(?:of\s+(?!an?\s|(?:19|20)\d\d)|(?:more|less|fewer|higher|lower|larger|smaller|cheaper|longer|shorter)\b"
    r"|as (?:much|many)\b)"
)
_THE_WHOLE = re.compile(r"\s+(?:the|our|your|its|their|all)\b")
_CLAUSE_ENDS = re.compile(r"\s*(?:[.,;)!]|$)")
_OF_ONE = re.compile(r"\s+of\s+an?\s|\s+(?:part(?:y|ies)|person|time|one|option|hour|mile)\b|-")
_ONE_IN = re.compile(
    r"(?<![\d.,])\b(one|two|three|four|five|six|seven|eight|nine|1) (?:in|out of)(?: every)? "
    r"(\d{1,2}|two|three|four|five|six|seven|eight|nine|ten)\b",
    re.IGNORECASE,
)


def find_fractions(text: str) -> Iterator[Fraction]:
    """Every fraction of a whole; ordinals ("a third party"), halves of hours and quarters of a year are none."""
    for found in _FRACTION.finditer(text) if _SIGN.search(text) else ():
        before = text[max(0, found.start() - 24) : found.start()]
        bounded = _BOUND.search(before)
        count, part = (found[1] or "").lower(), found[2].lower()
        if _OF_ONE.match(text, found.end()) or not _is_share(text, found, before, bounded is not None):
            continue
        bound: Literal["", "about", "above", "below"] = ""
        if bounded:
            bound = "about" if bounded[1] else ("above" if bounded[2] else "below")
        parts = _PARTS[part if part == "half" else part.removesuffix("s")]
        value = 100 * (SMALL_NUMBERS.index(count) if count in SMALL_NUMBERS else 1) / parts
        if value < 100:
            # What is called a half may be 48% or 52% of the whole, a third 32% or 34%.
            yield found.start(), found.end(), value, 4.0 if parts == 2 else 2.0, bound
    for found in _ONE_IN.finditer(text) if " in " in text or " out of " in text else ():
        one = 1 if found[1] == "1" else SMALL_NUMBERS.index(found[1].lower())
        whole = int(found[2]) if found[2].isdigit() else SMALL_NUMBERS.index(found[2].lower())
        if 0 < one < whole and (one == 1 or " in " in found[0]):
            yield *found.span(), 100 * one / whole, 2.0, "about"


def _is_share(text: str, found: re.Match[str], before: str, bounded: bool) -> bool:
    count, part = (found[1] or "").lower(), found[2].lower()
    of_something = _OF_SOMETHING.match(text, found.end()) is not None
    ends = _CLAUSE_ENDS.match(text, found.end()) is not None
    if part == "half":
        if count in ("a", "an") or (not bounded and _TIME_BEFORE.search(before)):
            return False
        return of_something or _THE_WHOLE.match(text, found.end()) is not None or (bounded and ends)
    if not count or (count not in ("a", "an", "one")) != part.endswith("s"):
        return False
    if count in ("a", "an"):
        return of_something or (bounded and ends)
    return of_something or not _TIME_BEFORE.search(before)
