"""Whether a reply says what a golden set expects, in the three modes of the scoring standard.

`literal` is a case-insensitive substring and nothing else. `standard` also finds a keyword that is a number wherever the
reply has a number of equal value. `smart` decides what a careful reader would. A keyword that is empty or only white
space is never found. Lower-casing is Python's `str.lower`, as in the methodology; spans always index the original reply.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import chain, repeat

import msgspec

from answerkey.model.expectation import (
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    PatternExpectation,
    RangeExpectation,
    TextExpectation,
)
from answerkey.text import numbers
from answerkey.text.dates import parse_date
from answerkey.text.normalise import MatchMode, Threshold, check_pattern, compile_pattern

__all__ = ["Match", "MatchMode", "Probability", "check_pattern", "find_keywords", "said_keywords"]

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
_NO_REPLY = Match(False, "none", why="there is no reply")
_ABSENT = Match(False, "none", why="does not occur in the reply")
_NO_NUMBER = Match(False, "none", why="neither the text nor a number of equal value occurs in the reply")
_OUT_OF_TOLERANCE = Match(False, "none", why="no number within the tolerance occurs in the reply")
_OUT_OF_RANGE = Match(False, "none", why="no number in the range occurs in the reply")
_NO_DATE = Match(False, "none", why="the date does not occur in the reply")
_NOT_COMPUTED = Match(False, "none", why="the expected value has not been computed")
_EQUAL = "the reply has a number of equal value"


# How a reply says that there are 0 of something; "no information" says nothing of the kind.
_NONE = re.compile(
    r"\bnone\b|\bno (?!access|answer|data|idea|information|longer|more|need|problem|records?\b|way)[a-z]+",
    re.IGNORECASE,
)


@lru_cache(maxsize=65536)
def _worth(keyword: str) -> tuple[str, str, str] | None:
    """A number's canonical worth, its digits, and how it is mostly written; nothing longer is one that a person typed."""
    worth = numbers.parse_number(keyword) if len(keyword) <= 400 else None
    return None if worth is None else (worth, numbers.significant_digits(worth), numbers.with_commas(worth))


class ReplyText:
    """One reply with what several keywords need of it, computed at most once and only if asked for."""

    def __init__(self, text: str) -> None:
        self.text, self.lowered = text, text.lower()

    @cached_property
    def _numbers(self) -> list[numbers.Number]:
        return list(numbers.find_numbers(self.text))

    @cached_property
    def _digits(self) -> str:
        return numbers.bare_digits(self.text)

    @cached_property
    def _offsets(self) -> list[int]:
        """Where each lower-cased character stands in the text: İ grows to two."""
        return list(chain.from_iterable(repeat(at, len(one.lower())) for at, one in enumerate(self.text)))

    def look(self, keyword: Expectation, numeric: bool) -> Match:
        """A keyword of any kind; `numeric`: a number wherever one of equal value stands."""
        if isinstance(keyword, str):
            lower = keyword.lower()
            at = self.lowered.find(lower)
            end = at + len(lower)
            if not lower or lower.isspace():
                return EMPTY
            if at < 0:
                return self.equal(keyword) if numeric and not keyword.isalpha() else _ABSENT
            if len(self.lowered) != len(self.text):
                at, end = self._offsets[at], self._offsets[end - 1] + 1
            return Match(True, "substring", at, end, self.text[at:end], "occurs in the reply, ignoring case")
        if isinstance(keyword, TextExpectation):
            return self.look(keyword.text, numeric)
        if isinstance(keyword, NumberExpectation):
            return self._near(keyword)
        if isinstance(keyword, RangeExpectation):
            return self._between(keyword)
        if isinstance(keyword, DateExpectation):
            return self._dated(keyword)
        if isinstance(keyword, PatternExpectation):
            return self._matching(keyword)
        if isinstance(keyword, ComputedExpectation):
            return _NOT_COMPUTED
        # The first alternative that is found; otherwise the reason of the last.
        match = EMPTY
        for option in keyword.options:
            match = self.look(option, numeric)
            if match.found:
                break
        return match

    def equal(self, keyword: str) -> Match:
        """A keyword that is a number, wherever the reply has a number of equal value."""
        known = _worth(keyword)
        if known is None:
            return _ABSENT
        worth, digits, usual = known
        at = self.text.find(usual)
        # Mostly it stands there as numbers are written, and not all numbers of the reply need to be read.
        end = numbers.whole_number_end(self.text, at, at + len(usual)) if at >= 0 else 0
        if end:
            return Match(True, "number", at, end, self.text[at:end], _EQUAL)
        for number in self._numbers if digits in self._digits else ():
            if number.canonical == worth:
                return self._match("number", (number.start, number.end), _EQUAL)
        return _NO_NUMBER

    @cached_property
    def _amounts(self) -> list[numbers.Quantity]:
        return [amount for amount in numbers.find_quantities(self.text) if amount.dimension != "clock"]

    def _near(self, keyword: NumberExpectation) -> Match:
        """The number nearest to the wanted one, if it is within the tolerance."""
        # Decimal fractions are inexact as floats: 1.1 is within 0.1 of 1.0 although 1.1 - 1.0 > 0.1.
        slack = keyword.slack + 1e-9 * max(1.0, abs(keyword.number))
        low, high = keyword.number - slack, keyword.number + slack
        amount = self._nearest(low, high, keyword.number, keyword.percent)
        if amount is None:
            none = _NONE.search(self.text) if keyword.number == 0 else None
            return self._match("number", none.span(), "the reply says none") if none else _OUT_OF_TOLERANCE
        return self._match(
            "number", (amount.start, amount.end), "the reply has a number within the tolerance"
        )

    def _between(self, keyword: RangeExpectation) -> Match:
        amount = self._nearest(keyword.low, keyword.high, keyword.low, keyword.percent)
        if amount is None:
            return _OUT_OF_RANGE
        return self._match("range", (amount.start, amount.end), "the reply has a number in the range")

    def _nearest(self, low: float, high: float, target: float, percent: bool) -> numbers.Quantity | None:
        """The amount between two values that is nearest to a third."""
        fitting = [
            (abs(value - target), amount)
            for amount in self._amounts
            for value in (amount.percentages() if percent else amount.readings())
            if low <= value <= high
        ]
        return min(fitting, key=lambda pair: pair[0])[1] if fitting else None

    def _dated(self, keyword: DateExpectation) -> Match:
        wanted = parse_date(keyword.date)
        span = wanted.find(self.text) if wanted is not None else None
        return _NO_DATE if span is None else self._match("date", span, "the reply has this date")

    def _matching(self, keyword: PatternExpectation) -> Match:
        if not keyword.regex.strip():
            return EMPTY
        span = compile_pattern(keyword.regex).search(self.text)
        if isinstance(span, str):
            return Match(False, "none", why=span)
        return self._match("pattern", span, "the pattern matches")

    def _match(self, rule: str, span: tuple[int, int], why: str) -> Match:
        return Match(True, rule, *span, self.text[slice(*span)], why)


# A text that many questions are matched against, as `audit` does, is read once.
_read_reply = lru_cache(maxsize=4)(ReplyText)


_lowered = lru_cache(maxsize=4)(str.lower)


def said_keywords(keywords: Sequence[Expectation], text: str | None, mode: MatchMode) -> list[bool]:
    """Which of the keywords `find_keywords` finds in the modes that only look, `literal` and `standard`, without saying where."""
    if text is None:
        return [False] * len(keywords)
    lowered, numeric = _lowered(text), mode == "standard"
    said = []
    for keyword in keywords:
        if type(keyword) is not str:
            said.append(_read_reply(text).look(keyword, numeric).found)
        elif keyword.lower() in lowered:
            said.append(keyword != "" and not keyword.isspace())
        else:
            said.append(numeric and not keyword.isalpha() and _read_reply(text).equal(keyword).found)
    return said


def find_keywords(
    keywords: Sequence[Expectation],
    text: str | None,
    mode: MatchMode = "standard",
    *,
    question: str = "",
    threshold: Threshold = "even",
    probability: Probability | None = None,
) -> tuple[Match, ...]:
    """One Match for each keyword, in order. `smart` uses the question to know what a keyword adds to it.

    `threshold` says how sure `smart` must be: `even`, `strict` or `lenient`; `probability` decides in its place.
    """
    if text is None:
        return (_NO_REPLY,) * len(keywords)
    reply = _read_reply(text)
    if mode != "smart":
        return tuple([reply.look(keyword, mode == "standard") for keyword in keywords])
    # The other modes do without the libraries and the weights that this one needs.
    from answerkey.match.smart import find_smart

    return find_smart(keywords, reply, question, threshold, probability)
