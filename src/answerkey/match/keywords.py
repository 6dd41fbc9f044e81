"""Whether a reply says what a golden set expects, in the three modes of the scoring standard.

`literal` is a case-insensitive substring and nothing else. `standard` also finds a keyword that is a number wherever the
reply has a number of equal value. `smart` decides what a careful reader would. A keyword that is empty or only white
space is never found. Lower-casing is Python's `str.lower`, as in the methodology; spans always index the original reply.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from answerkey.match.found import Match, Probability
from answerkey.text.keyword import (
    Alternatives,
    Keyword,
    MatchMode,
    NumberKeyword,
    PatternKeyword,
    Threshold,
)
from answerkey.text.numbers import (
    Number,
    bare_digits,
    find_numbers,
    parse_number,
    significant_digits,
    whole_number_end,
    with_commas,
)
from answerkey.text.patterns import check_pattern, compile_pattern

if TYPE_CHECKING:
    from answerkey.match.smart import SmartKeywords

__all__ = [
    "KeywordMatcher",
    "Match",
    "MatchMode",
    "Probability",
    "check_pattern",
    "count_keywords",
    "find_keywords",
]


_NO_REPLY = Match(False, "none", why="there is no reply")
_EMPTY = Match(False, "none", why="empty keyword")
_ABSENT = Match(False, "none", why="does not occur in the reply")
_NO_NUMBER = Match(False, "none", why="neither the text nor a number of equal value occurs in the reply")
_OUT_OF_TOLERANCE = Match(False, "none", why="no number within the tolerance occurs in the reply")
_SUBSTRING = "occurs in the reply, ignoring case"
_EQUAL = "the reply has a number of equal value"
_WITHIN = "the reply has a number within the tolerance"
_MATCHED = "the pattern matches"


class _ReplyText:
    """One reply with what several keywords need of it, computed at most once and only if asked for."""

    __slots__ = ("_bare", "_numbers", "_offsets", "lowered", "original")

    def __init__(self, text: str) -> None:
        self.original = text
        self.lowered = text.lower()
        self._bare: str | None = None
        self._numbers: tuple[Number, ...] | None = None
        self._offsets: list[int] | None = None

    def numbers(self) -> tuple[Number, ...]:
        if self._numbers is None:
            self._numbers = tuple(find_numbers(self.original))
        return self._numbers

    def may_hold(self, digits: str) -> bool:
        """Whether a number with these digits in a row can be in the reply; cheap, so asked before `numbers`."""
        if self._bare is None:
            self._bare = bare_digits(self.original)
        return digits in self._bare

    def substring(self, at: int, length: int, why: str = _SUBSTRING) -> Match:
        """The match of `length` lower-cased characters at `at`, with its span in the original text."""
        end = at + length
        if len(self.lowered) != len(self.original):
            # Only İ grows when lower-cased (to two characters): map back character by character, once.
            if self._offsets is None:
                offsets: list[int] = []
                for index, character in enumerate(self.original):
                    offsets.extend([index] * len(character.lower()))
                self._offsets = offsets
            end = self._offsets[end - 1] + 1
            at = self._offsets[at]
        return Match(True, "substring", at, end, self.original[at:end], why)

    def span(self, rule: str, start: int, end: int, why: str) -> Match:
        return Match(True, rule, start, end, self.original[start:end], why)


# A long text that many questions are matched against, as `audit` does, is read once.
_LONG_TEXT = 4000
_long_reply = lru_cache(maxsize=4)(_ReplyText)


class KeywordMatcher:
    """The keywords of one question, prepared once and matched against many replies."""

    __slots__ = ("_keywords", "_mode", "_prepared", "_smart")

    def __init__(
        self,
        keywords: Sequence[Keyword],
        mode: MatchMode = "standard",
        question: str = "",
        threshold: Threshold = "even",
        probability: Probability | None = None,
    ) -> None:
        self._keywords = tuple(keywords)
        self._mode = mode
        self._smart: SmartKeywords | None = None
        if mode == "smart":
            # The other modes do without the libraries and the weights that this one needs.
            from answerkey.match import smart

            self._smart = smart.SmartKeywords(self._keywords, question, threshold, probability)
        # Lower-cased form of the plain keywords; None for those that are more than a string.
        self._prepared = tuple(
            (keyword, keyword.lower() if isinstance(keyword, str) and keyword.strip() else None)
            for keyword in (() if mode == "smart" else self._keywords)
        )

    def match(self, text: str | None) -> tuple[Match, ...]:
        """One Match for each keyword, in order."""
        if text is None:
            return (_NO_REPLY,) * len(self._keywords)
        reply = _ReplyText(text) if len(text) < _LONG_TEXT else _long_reply(text)
        if self._smart is not None:
            return self._smart.match(text, lambda option: _match(option, reply, True))
        lowered = reply.lowered
        aligned = len(lowered) == len(text)
        numeric = self._mode != "literal"
        matches = []
        for keyword, lower in self._prepared:
            if lower is not None:
                at = lowered.find(lower)
                if at >= 0:
                    if aligned:
                        end = at + len(lower)
                        matches.append(Match(True, "substring", at, end, text[at:end], _SUBSTRING))
                    else:
                        matches.append(reply.substring(at, len(lower)))
                elif numeric:
                    matches.append(_match_number(keyword, reply))  # type: ignore[arg-type]
                else:
                    matches.append(_ABSENT)
            else:
                matches.append(_match(keyword, reply, numeric))
        return tuple(matches)


def _match(keyword: Keyword, reply: _ReplyText, numeric: bool) -> Match:
    """One keyword of any kind against one reply."""
    if isinstance(keyword, str):
        if not keyword.strip():
            return _EMPTY
        lower = keyword.lower()
        at = reply.lowered.find(lower)
        if at >= 0:
            return reply.substring(at, len(lower))
        return _match_number(keyword, reply) if numeric else _ABSENT
    if isinstance(keyword, NumberKeyword):
        return _match_tolerance(keyword, reply)
    if isinstance(keyword, PatternKeyword):
        if not keyword.regex.strip():
            return _EMPTY
        span = compile_pattern(keyword.regex).search(reply.original)
        if isinstance(span, str):
            return Match(False, "none", why=span)
        return reply.span("pattern", *span, _MATCHED)
    return _match_any(keyword, reply, numeric)


def _match_any(keyword: Alternatives, reply: _ReplyText, numeric: bool) -> Match:
    """The first alternative that is found; otherwise the reason of the last."""
    match = _EMPTY
    for option in keyword.options:
        match = _match(option, reply, numeric)
        if match.found:
            return match
    return match


@lru_cache(maxsize=65536)
def _worth(keyword: str) -> tuple[str, str, str] | None:
    """A number's canonical worth, its digits, and how it is mostly written. Cached: a log repeats its keywords."""
    worth = parse_number(keyword) if len(keyword) <= _LONGEST_NUMBER else None
    return None if worth is None else (worth, significant_digits(worth), with_commas(worth))


# Nothing longer is a number that a person typed.
_LONGEST_NUMBER = 400


def _match_number(keyword: str, reply: _ReplyText) -> Match:
    """A keyword that is a number, found wherever the reply has a number of equal value."""
    known = None if keyword.isalpha() else _worth(keyword)
    if known is None:
        return _ABSENT
    worth, digits, usual = known
    text = reply.original
    at = text.find(usual)
    if at >= 0:
        # Mostly it stands there as numbers are written, and not all numbers of the reply need to be read.
        end = whole_number_end(text, at, at + len(usual))
        if end:
            return Match(True, "number", at, end, text[at:end], _EQUAL)
    if reply.may_hold(digits):
        for number in reply.numbers():
            if number.canonical == worth:
                return reply.span("number", number.start, number.end, _EQUAL)
    return _NO_NUMBER


def _match_tolerance(keyword: NumberKeyword, reply: _ReplyText) -> Match:
    """The number nearest to the wanted one, if it is within the tolerance."""
    # Decimal fractions are inexact as floats: 1.1 is within 0.1 of 1.0 although 1.1 - 1.0 > 0.1.
    slack = keyword.tolerance + 1e-9 * max(1.0, abs(keyword.number))
    best: Number | None = None
    smallest = slack
    for number in reply.numbers():
        distance = abs(number.value - keyword.number)
        if distance <= smallest and (best is None or distance < smallest):
            best, smallest = number, distance
    if best is None:
        return _OUT_OF_TOLERANCE
    return reply.span("number", best.start, best.end, _WITHIN)


def count_keywords(keywords: Sequence[Keyword], text: str | None, mode: MatchMode) -> int:
    """How many of the keywords `find_keywords` finds in the modes that only look: `literal` and `standard`."""
    if text is None:
        return 0
    reply, numeric = _ReplyText(text), mode != "literal"
    lowered = reply.lowered
    count = 0
    for keyword in keywords:
        if type(keyword) is not str:
            count += _match(keyword, reply, numeric).found
        elif keyword.lower() in lowered:
            count += not keyword.isspace() and keyword != ""
        elif numeric:
            count += _match_number(keyword, reply).found
    return count


def find_keywords(
    keywords: Sequence[Keyword],
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
    if mode != "smart":
        return _matcher(tuple(keywords), mode).match(text)
    return _matcher(tuple(keywords), mode, question, threshold, probability).match(text)


# What is prepared for a question serves all of its replies; more would fill the memory with a large golden set.
_matcher = lru_cache(maxsize=4096)(KeywordMatcher)
