"""One keyword in one reply by the modes that only look: `literal` and `standard`.

Lower-casing is Python's `str.lower`, as in the methodology; spans always index the original reply.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import chain, repeat

import msgspec

from answerkey.text.keyword import Keyword, NumberKeyword, PatternKeyword
from answerkey.text.numbers import (
    Number,
    bare_digits,
    find_numbers,
    parse_number,
    significant_digits,
    whole_number_end,
    with_commas,
)
from answerkey.text.patterns import compile_pattern

# The place of a model of language: the chance that (question, keyword, answer) says the keyword. Where one is given it decides,
# and the features only show where.
Probability = Callable[[str, str, str], float]


class Match(msgspec.Struct, frozen=True, gc=False):
    """Whether and how one keyword was found in a reply."""

    found: bool
    # Which rule decided: "substring", "number", "pattern", "smart:…" or "none".
    rule: str
    # Span of the matched text in the reply as it was given; None where there is none.
    start: int | None = None
    end: int | None = None
    # The matched text itself.
    text: str = ""
    # The decision in words.
    why: str = ""


EMPTY = Match(False, "none", why="empty keyword")
_ABSENT = Match(False, "none", why="does not occur in the reply")
_NO_NUMBER = Match(False, "none", why="neither the text nor a number of equal value occurs in the reply")
_OUT_OF_TOLERANCE = Match(False, "none", why="no number within the tolerance occurs in the reply")
_SUBSTRING = "occurs in the reply, ignoring case"
_EQUAL = "the reply has a number of equal value"
# Nothing longer is a number that a person typed.
_LONGEST_NUMBER = 400


@lru_cache(maxsize=65536)
def _worth(keyword: str) -> tuple[str, str, str] | None:
    """A number's canonical worth, its digits, and how it is mostly written. Cached: a log repeats its keywords."""
    worth = parse_number(keyword) if len(keyword) <= _LONGEST_NUMBER else None
    return None if worth is None else (worth, significant_digits(worth), with_commas(worth))


class ReplyText:
    """One reply with what several keywords need of it, computed at most once and only if asked for."""

    def __init__(self, text: str) -> None:
        self.text, self.lowered = text, text.lower()

    @cached_property
    def _numbers(self) -> tuple[Number, ...]:
        return tuple(find_numbers(self.text))

    @cached_property
    def _bare(self) -> str:
        return bare_digits(self.text)

    @cached_property
    def _offsets(self) -> list[int]:
        """Where each lower-cased character stands in the text: İ grows to two."""
        return list(chain.from_iterable(repeat(at, len(one.lower())) for at, one in enumerate(self.text)))

    def look(self, keyword: Keyword, numeric: bool) -> Match:
        """A keyword of any kind; `numeric`: a number wherever one of equal value stands."""
        if isinstance(keyword, str):
            lower = keyword.lower()
            at = self.lowered.find(lower)
            end = at + len(lower)
            if not lower or lower.isspace():
                return EMPTY
            if at < 0:
                return self.number(keyword) if numeric else _ABSENT
            if len(self.lowered) != len(self.text):
                at, end = self._offsets[at], self._offsets[end - 1] + 1
            return Match(True, "substring", at, end, self.text[at:end], _SUBSTRING)
        if isinstance(keyword, NumberKeyword):
            return self._near(keyword)
        if isinstance(keyword, PatternKeyword):
            if not keyword.regex.strip():
                return EMPTY
            span = compile_pattern(keyword.regex).search(self.text)
            if isinstance(span, str):
                return Match(False, "none", why=span)
            return self._span("pattern", *span, "the pattern matches")
        # The first alternative that is found; otherwise the reason of the last.
        match = EMPTY
        for option in keyword.options:
            match = self.look(option, numeric)
            if match.found:
                break
        return match

    def number(self, keyword: str) -> Match:
        """A keyword that is a number, wherever the reply has a number of equal value."""
        known = None if keyword.isalpha() else _worth(keyword)
        if known is None:
            return _ABSENT
        worth, digits, usual = known
        at = self.text.find(usual)
        if at >= 0:
            # Mostly it stands there as numbers are written, and not all numbers of the reply need to be read.
            end = whole_number_end(self.text, at, at + len(usual))
            if end:
                return self._span("number", at, end, _EQUAL)
        for number in self._numbers if digits in self._bare else ():
            if number.canonical == worth:
                return self._span("number", number.start, number.end, _EQUAL)
        return _NO_NUMBER

    def _near(self, keyword: NumberKeyword) -> Match:
        """The number nearest to the wanted one, if it is within the tolerance."""
        # Decimal fractions are inexact as floats: 1.1 is within 0.1 of 1.0 although 1.1 - 1.0 > 0.1.
        slack = keyword.tolerance + 1e-9 * max(1.0, abs(keyword.number))
        best = min(self._numbers, key=lambda number: abs(number.value - keyword.number), default=None)
        if best is None or not abs(best.value - keyword.number) <= slack:
            return _OUT_OF_TOLERANCE
        return self._span("number", best.start, best.end, "the reply has a number within the tolerance")

    def _span(self, rule: str, start: int, end: int, why: str) -> Match:
        return Match(True, rule, start, end, self.text[start:end], why)
