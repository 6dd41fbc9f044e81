"""Whether a reply says what a golden set expects, in the three modes of the scoring standard.

`literal` is a case-insensitive substring and nothing else. `standard` also finds a keyword that is a number wherever the
reply has a number of equal value, and any keyword in the text as a reader sees it: without the marks of Markdown, soft
hyphens and line breaks, and with ß as ss. `smart` decides as a careful reader would. Numbers with a tolerance, ranges, dates and
patterns are found in the same way in every mode. Typographic quotes, dashes and spaces are the same as plain ones. A keyword
that is empty or only white space is never found. Lower-casing is Python's `str.lower`, as in the methodology; spans
always index the original reply.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import chain, repeat

import msgspec

from answerkey.match.values import StatedValues, ValueExpectation
from answerkey.model.question import (
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    PatternExpectation,
    RangeExpectation,
    TextExpectation,
    expected_options,
    expected_text,
)
from answerkey.text import numbers
from answerkey.text.normalise import (
    PLAIN_TYPOGRAPHY,
    MatchMode,
    Threshold,
    check_pattern,
    compile_pattern,
    plain_typography,
)
from answerkey.text.patterns import lazy

__all__ = ["Match", "MatchMode", "Probability", "check_pattern", "find_keywords", "is_number"]

# Decides in place of the model of `smart`: the probability that (question, keyword, answer) says the keyword. The features
# then only show where.
Probability = Callable[[str, str, str], float]


class Match(msgspec.Struct, frozen=True, gc=False):
    """Whether and how one keyword was found in a reply."""

    found: bool
    # Which rule decided: "substring", "number", "range", "date", "pattern", "smart:…" or "none".
    rule: str
    # Span of the matched text in the original reply; None where there is none.
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
# What a value that is not stated gives, and the rule and the reason of one that is.
_VALUES: dict[type, tuple[Match, str, str]] = {
    NumberExpectation: (
        Match(False, "none", why="no number within the tolerance occurs in the reply"),
        "number",
        "the reply has a number within the tolerance",
    ),
    RangeExpectation: (
        Match(False, "none", why="no number in the range occurs in the reply"),
        "range",
        "the reply has a number in the range",
    ),
    DateExpectation: (
        Match(False, "none", why="the date does not occur in the reply"),
        "date",
        "the reply has this date",
    ),
}
_NOT_COMPUTED = Match(False, "none", why="the expected value has not been computed")
_EQUAL = "the reply has a number of equal value"
# A text that was found, where its place is not needed.
_OCCURS = Match(True, "substring", why="occurs in the reply, ignoring case")
_DISPLAYED = "occurs in the reply as it is displayed, ignoring case"
_HAS_DIGIT = lazy("[0-9]")


@lru_cache(maxsize=16_384)
def _number_forms(keyword: str) -> tuple[str, str, str] | None:
    """A number's canonical value, its digits, and its usual spelling; None if the keyword is not a number."""
    # Nothing longer is a number that a person typed.
    value = numbers.parse_number(keyword) if len(keyword) <= 400 else None
    return None if value is None else (value, numbers.significant_digits(value), numbers.with_commas(value))


@lru_cache(maxsize=4096)
def _decimal_comma(value: str) -> re.Pattern[str] | None:
    """A value with a decimal comma: 4,9 or 4,90; None for one whose comma would part thousands."""
    whole, _, fraction = value.partition(".")
    if not 0 < len(fraction) < 3:
        return None
    zero = "0?" if len(fraction) == 1 else ""
    sign = "[-\u2212]" if whole.startswith("-") else ""
    return re.compile(rf"(?<![\d.,]){sign}{whole.removeprefix('-')},{fraction}{zero}(?![\d,]|\.\d)")


def _is_numeric(keyword: str) -> bool:
    """Whether a keyword is digits and signs only: 310, 5%, 5:45, $1,310, 83-4567890."""
    return not any(map(str.isalpha, keyword)) and any(map(str.isdigit, keyword))


@lru_cache(maxsize=16_384)
def _is_amount(text: str) -> bool:
    """Whether a text is one number, amount of money or percentage and nothing else: 310, USD 5k, 5 percent."""
    if _number_forms(text) is not None:
        return True
    amounts = numbers.find_quantities(text) if any(map(str.isdigit, text)) else []
    return any(
        (amount.start, amount.end) == (0, len(text)) and amount.dimension != "clock" for amount in amounts
    )


def is_number(expectation: Expectation) -> bool:
    """Whether it expects a number: in itself, or as each of its alternatives."""
    return all(
        isinstance(option, NumberExpectation | RangeExpectation)
        or ((text := expected_text(option)) is not None and _is_amount(text.strip()))
        for option in expected_options(expectation)
    )


# A text as it is displayed: the marks of Markdown that a keyword may be split by, and what they leave. Marks beside digits
# stay, since 2*3*4 is not emphasis.
_LINK = lazy(r"\[([^\[\]\n]+)\]\([^()\s]+\)")
_EMPHASIS = (
    lazy(r"(?<!\d)(\*\*|__)(?=\S)([^\n]{1,200}?)(?<=\S)\1(?!\d)"),
    lazy(r"(?<![\w*\\])(\*)(?=[^\s*])([^\n*]+?)(?<=[^\s*])\*(?![\w*])"),
    lazy(r"(?<![\w\\])(_)(?=[^\s_])([^\n]{1,200}?)(?<=[^\s_])_(?!\w)"),
    lazy(r"(`{1,2})(?=\S)([^`\n]+)\1"),
)
_INVISIBLE = lazy(r"</?(?:b|i|em|strong|u|span|mark|code)>|\\(?=[*_`#$~|\[\]()])|[\u00ad\u200b\u2060\ufeff]")
# A blank line ends a sentence, and what is in it.
_ONE_BREAK = lazy(r"[^\S\n]*(?:<br ?/?>|\n(?![^\S\n]*\n))[^\S\n]*|[^\S\n]+")
# Without these, and in ASCII, a text is displayed as it is written: those of Markdown and HTML, and more than a space.
_MARKS = ("*", "_", "`", "\\", "<", "](", "\n", "  ", "\t")
_ODD_MARKS = lazy("[ß\u00a0\u00ad\u200b\u2060\ufeff]")
# What may be between two characters that are displayed side by side.
_UNSEEN = r"(?:[*_`\[\\\u00ad\u200b\u2060\ufeff]|</?\w+>|\]\([^()\s]+\)){0,60}"


def _displayed(text: str) -> str:
    """A lower-case text as a reader sees it, on one line."""
    text = _LINK.sub(r"\1", text)
    for emphasis in _EMPHASIS:
        text = emphasis.sub(r"\2", text)
    return _ONE_BREAK.sub(" ", _INVISIBLE.sub("", text)).replace("ß", "ss")


def _squeezed(text: str) -> str:
    """A lower-case text without marks and spaces: what it does not hold is not displayed either, at a tenth of the cost."""
    for mark in ("*", "_", "`", "\\"):
        text = text.replace(mark, "")
    if not text.isascii():
        text = _INVISIBLE.sub("", text).replace("ß", "ss")
    return "".join(text.split())


def _span_pattern(form: str) -> re.Pattern[str]:
    """Finds a displayed text in the text as it is written."""
    parts = [
        r"(?:\s|<br ?/?>)+" if part.isspace() else "(?:ss|ß)" if part == "ss" else re.escape(part)
        for part in re.findall(r"\s+|ss|.", form)
    ]
    return re.compile(_UNSEEN.join(parts))


# What may be between the digits of one number.
_SEPARATORS = frozenset(",.:'’_\u00a0\u2009\u202f")


class ReplyText:
    """One reply with what several keywords need of it, computed at most once and only when needed."""

    def __init__(self, text: str, spans: bool = True) -> None:
        self.text, self.lowered = text, text.lower()
        # Whether matches of texts say where they are.
        self._spans = spans

    @cached_property
    def _plain(self) -> str:
        """In lower case with plain quotes, dashes and spaces."""
        return plain_typography(self.lowered)

    @cached_property
    def _is_displayed_as_written(self) -> bool:
        text = self.lowered
        for mark in _MARKS:
            if mark in text:
                return False
        return text.isascii() or _ODD_MARKS.search(text) is None

    @cached_property
    def _squeezed(self) -> str:
        return _squeezed(self._plain)

    @cached_property
    def _displayed(self) -> str:
        """In lower case as a reader sees it."""
        return _displayed(self._plain)

    @cached_property
    def _numbers(self) -> list[numbers.Number]:
        return list(numbers.find_numbers(self.text))

    @cached_property
    def _digits(self) -> str:
        return numbers.bare_digits(self.text)

    @cached_property
    def _offsets(self) -> list[int]:
        """The index in the text of each lower-cased character: İ becomes two."""
        return list(chain.from_iterable(repeat(at, len(one.lower())) for at, one in enumerate(self.text)))

    def look(self, keyword: Expectation, numeric: bool, whole: bool = False, question: str = "") -> Match:
        """Find an expectation of any kind.

        Args:
            keyword: What to find.
            numeric: A text that is a number is also found by its value.
            whole: A text that is a number is not found inside another number.
            question: What was asked: where it asks how many, "10%" is not 10.
        """
        if isinstance(keyword, str):
            return self.find_text(keyword, numeric, whole)
        if isinstance(keyword, TextExpectation):
            return self.find_text(keyword.text, numeric, whole)
        if isinstance(keyword, ValueExpectation):
            return self._stated(keyword, question)
        if isinstance(keyword, PatternExpectation):
            return self._matching(keyword)
        if isinstance(keyword, ComputedExpectation):
            return _NOT_COMPUTED
        # The first alternative that is found; otherwise the reason of the last.
        match = EMPTY
        for option in keyword.options:
            match = self.look(option, numeric, whole, question)
            if match.found:
                break
        return match

    def find_text(self, keyword: str, numeric: bool, whole: bool) -> Match:
        """Find a text."""
        return self.find_all((keyword,), numeric, whole)[0]

    def find_all(
        self, keywords: Sequence[Expectation], numeric: bool, whole: bool, question: str = ""
    ) -> list[Match]:
        """Find expectations of any kind, most of which are texts that occur as they are."""
        lowered, only_whether = self.lowered, not (self._spans or whole)
        found: list[Match] = []
        for keyword in keywords:
            if type(keyword) is not str:
                found.append(self.look(keyword, numeric, whole, question))
                continue
            form = keyword.lower()
            if not form.isascii():
                form = plain_typography(form)
            if not form or form.isspace():
                found.append(EMPTY)
                continue
            at = lowered.find(form)
            found.append(
                _OCCURS if at >= 0 and only_whether else self._find(keyword, form, at, numeric, whole)
            )
        return found

    def _find(self, keyword: str, form: str, at: int, numeric: bool, whole: bool) -> Match:
        """Find a text in lower case that is at `at` in the text as it is written; -1: it is not."""
        text = self.lowered
        if at < 0 and not text.isascii() and not PLAIN_TYPOGRAPHY.isdisjoint(form):
            # The reply may write it with other quotes, dashes or spaces.
            text = self._plain
            at = text.find(form)
        if whole and at >= 0 and _is_numeric(keyword):
            while at >= 0 and _continues(text, at, at + len(form)):
                at = text.find(form, at + 1)
        if at < 0:
            return self._find_otherwise(keyword, form) if numeric else _ABSENT
        if not self._spans:
            return _OCCURS
        end = at + len(form)
        if len(self.lowered) != len(self.text):
            at, end = self._offsets[at], self._offsets[end - 1] + 1
        return Match(True, "substring", at, end, self.text[at:end], _OCCURS.why)

    def _find_otherwise(self, keyword: str, form: str) -> Match:
        """Find a text that does not occur as it is: by its value, or as it is displayed."""
        if form.islower():
            # A number has no letters.
            return self._find_displayed(form, _ABSENT)
        match = self._equal(keyword) if _HAS_DIGIT.search(keyword) else _ABSENT
        return match if match.found or _is_numeric(keyword) else self._find_displayed(form, match)

    def _find_displayed(self, form: str, absent: Match) -> Match:
        """A text as a reader sees it; `absent` if it is not there either."""
        plain = " ".join(form.split()).replace("ß", "ss")
        if plain == form and self._is_displayed_as_written:
            return absent
        form = plain
        # The addresses of links, and tags, are not displayed at all.
        hides_parts = "](" in self.lowered or "<" in self.lowered
        if not (hides_parts or _squeezed(form) in self._squeezed) or form not in self._displayed:
            return absent
        written = _span_pattern(form).search(self._plain) if self._spans else None
        if written is None or len(self.lowered) != len(self.text):
            return Match(True, "substring", why=_DISPLAYED)
        return self._match("substring", written.span(), _DISPLAYED)

    def _equal(self, keyword: str) -> Match:
        """A keyword that is a number, wherever the reply has a number of equal value."""
        forms = _number_forms(keyword)
        if forms is None:
            return _ABSENT
        value, digits, usual = forms
        at = self.text.find(usual)
        # The usual spelling needs no reading of all numbers of the reply.
        end = numbers.whole_number_end(self.text, at, at + len(usual)) if at >= 0 else 0
        if end:
            return Match(True, "number", at, end, self.text[at:end], _EQUAL)
        if digits not in self._digits:
            return _NO_NUMBER
        for number in self._numbers:
            if number.canonical == value:
                return self._match("number", (number.start, number.end), _EQUAL)
        comma = _decimal_comma(value)
        found = comma.search(self.text) if comma is not None and "," in self.text else None
        return _NO_NUMBER if found is None else self._match("number", found.span(), _EQUAL)

    @cached_property
    def values(self) -> StatedValues:
        """Where it states numbers and dates."""
        return StatedValues(self.text)

    def _stated(self, expected: ValueExpectation, question: str) -> Match:
        """A number, range or date, by the first of its places."""
        spans = self.values.find(expected, question)
        absent, rule, why = _VALUES[type(expected)]
        return self._match(rule, spans[0], why) if spans else absent

    def _matching(self, keyword: PatternExpectation) -> Match:
        if not keyword.regex.strip():
            return EMPTY
        span = compile_pattern(keyword.regex).search(self.text)
        if isinstance(span, str):
            return Match(False, "none", why=span)
        return self._match("pattern", span, "the pattern matches")

    def _match(self, rule: str, span: tuple[int, int], why: str) -> Match:
        return Match(True, rule, *span, self.text[slice(*span)], why)


def _continues(text: str, start: int, end: int) -> bool:
    """Whether a number is part of a longer one."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if text[start].isdigit() and (before[-1:].isdigit() or _joins(before)):
        return True
    return text[end - 1].isdigit() and (after[:1].isdigit() or _joins(after[::-1]))


def _joins(two: str) -> bool:
    """Whether a digit and a separator precede a number, or follow it in reverse."""
    return len(two) == 2 and two[0].isdigit() and two[1] in _SEPARATORS


# A text that many questions are matched against, as in `audit`, is read once.
_read_reply = lru_cache(maxsize=4)(ReplyText)


def find_keywords(
    keywords: Sequence[Expectation],
    text: str | None,
    mode: MatchMode = "standard",
    *,
    question: str = "",
    threshold: Threshold = "even",
    probability: Probability | None = None,
    whole_numbers: bool = False,
    abbreviations: tuple[tuple[str, str], ...] = (),
    spans: bool = True,
) -> tuple[Match, ...]:
    """One Match for each expectation, in order.

    Args:
        keywords: What to find.
        text: The reply; in None nothing is found.
        mode: `literal`, `standard` or `smart`.
        question: What was asked, by which `smart` knows what a keyword adds.
        threshold: How sure `smart` must be.
        probability: Decides in place of the model of `smart`.
        whole_numbers: A number is not found inside another: 310 is not in "$1,310"; `smart` always does so.
        abbreviations: Pairs of an abbreviation and its meaning that `smart` knows beside its own.
        spans: Matches of texts say where they are; without, `literal` and `standard` are faster.

    >>> [match.text for match in find_keywords(["442300", "land"], "The basis is $442,300.")]
    ['442,300', '']
    """
    if text is None:
        return (_NO_REPLY,) * len(keywords)
    if mode != "smart":
        reply = _read_reply(text, spans)
        return tuple(reply.find_all(keywords, mode == "standard", whole_numbers, question))
    # The other modes do without the libraries and the weights that this one needs.
    from answerkey.match.smart import find_smart

    return find_smart(keywords, _read_reply(text), question, threshold, probability, abbreviations)
