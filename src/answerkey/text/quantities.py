"""Amounts in text: a number in digits or words with its scale and unit, in one form in which "48 hours" equals "two days".

A number may have several readings ("24.300" is 24.3 or 24,300; "5 m" metres or millions); two amounts are the same where
any two readings are. The time is linear in the text.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from answerkey.text.number_words import NUMBER_NAMES, SCALES, one_of, spelled_numbers
from answerkey.text.numbers import NUMBER_PATTERN, canonical_number
from answerkey.text.units import DIMENSIONS, UNIT_SPELLINGS

_CURRENCIES = {
    "$": "$", "US$": "$", "USD": "$", "€": "€", "EUR": "€", "£": "£", "GBP": "£", "¥": "¥", "₹": "₹", "CHF": "chf", "R$": "r$",
}  # fmt: skip
# A number that no word character but a currency stands before: as others are written here, or with a decimal comma. Its first
# digit comes first, so that the engine can skip to it.
_AMOUNT = re.compile(
    NUMBER_PATTERN.replace("[0-9]", r"[0-9](?:(?<![^\W_].)|(?<=(?:USD|EUR|GBP|CHF).))", 1)
    + r"(?:,[0-9]{1,2}(?![0-9]))?"
)
_BEFORE = re.compile(r"(?<![^\W_])([-\u2212])?(US\$|R\$|[$€£¥₹]|USD|EUR|GBP|CHF)?\s?$")
# How a sign or currency ends.
_LEADS = frozenset("-\u2212$€£¥₹DRPF")
# Minutes after midnight: 17:30, 5:30 pm, 5 p.m., 13h20, 18 Uhr.
_CLOCK = re.compile(
    r"(?<![0-9.,:/-])(?P<h>[01]?[0-9]|2[0-4])(?:(?:[:.]|\s?h\s?)(?P<m>[0-5][0-9]))?(?![0-9:])"
    r"(?:\s?(?P<half>[ap])\.?\s?m\b\.?|\s?(?P<mark>uhr|h|o['’]clock)\b)?",
    re.IGNORECASE,
)
# What may follow a number: a space or hyphen and a word or sign.
_TAIL = re.compile(
    r"(?:[ \u00a0\u202f]|-)?((?:square|sq\.?|cubic) [^\W\d_]+|%|°\s?[CF]?|[$€£¥₹]|[^\W\d_]+[²³]?(?:/[^\W\d_]+)?)"
)
_ONE_OF_THEM = re.compile(
    r"\b(?:an?|une?|eine?n?|una)[ -](hour|day|week|month|quarter|year|half|third|heure|an|année)\b",
    re.IGNORECASE,
)
_OF_A = re.compile(r" (?:of )?an? ([a-z]+)")
_AND_PART = re.compile(r" and (?:(a|one|two|three) )(half|third|quarter)s?\b", re.IGNORECASE)
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "eighth": 8, "tenth": 10}
_COUNTS = {"one": 1, "two": 2, "three": 3, "a": 1}
_FRACTION = re.compile(rf"({one_of(_PARTS)})(?i:s?\b(?! past| of \d{{4}}))")
_COUNT = re.compile(r"\b(one|two|three|a) $", re.IGNORECASE)
# Every word that tells something behind a number.
_TAILS = SCALES.keys() | UNIT_SPELLINGS.keys() | {name.lower() for name in _CURRENCIES}
_AMBIGUOUS = re.compile(r"[0-9]{1,3}\.[0-9]{3}")
_DECIMAL_COMMA = re.compile(r"([0-9.]*[0-9]),([0-9]{1,2})")
_TOO_LONG = 24


class Quantity(msgspec.Struct, frozen=True, gc=False):
    """One amount as it stands in a text."""

    # Every worth that its number may have.
    numbers: tuple[float, ...]
    # The same in the base unit of its dimension.
    values: tuple[float, ...]
    # "" for a bare number, else what it measures: "%", "$", "time", "mass", "clock", …
    dimension: str
    start: int
    end: int

    def equals(self, other: "Quantity") -> bool:
        """Whether both may be worth the same, units aside; "71%" is also 0.71."""
        both = self.dimension and other.dimension
        others = other.values if both else other._readings()
        for one in self.values if both else self._readings():
            for two in others:
                if abs(one - two) <= 1e-9 * max(abs(one), abs(two)):
                    return True
        return False

    def _readings(self) -> tuple[float, ...]:
        hundredths = self.dimension in ("%", "cent")
        return (*self.numbers, *(value / 100 for value in self.numbers)) if hundredths else self.numbers

    def rounds(self, other: "Quantity") -> bool:
        """Whether this is a whole number of some size and the other the same with a fraction: 341,672 and 341,672.08."""
        return any(
            one >= 100 and one.is_integer() and 0 < two - one < 1
            for one in self.values
            for two in other.values
        )

    def fits(self, other: "Quantity") -> int:
        """1 if both measure the same thing, 0 if one does not say what it measures, -1 if they differ."""
        if self.dimension == other.dimension:
            return 1
        if not self.dimension or not other.dimension:
            return 0
        # Pounds are money or weight.
        return 1 if {self.dimension, other.dimension} in ({"pounds", "£"}, {"pounds", "pound"}) else -1


def find_quantities(text: str) -> list[Quantity]:
    """Every amount of a text in the order of its start: digits, times of day, and numbers in words."""
    words = text.lower().encode("utf-8", "surrogatepass").translate(_LETTERS_ONLY).split()
    said = _TELLING.intersection(words)
    if not said and ":" not in text:
        return [_in_digits(text, match) for match in _AMOUNT.finditer(text)]
    timed = ":" in text or not _TIMES.isdisjoint(said)
    found = list(_clocks(text)) if timed and _CLOCK_SIGN.search(text) else []
    taken = {place for clock in found for place in range(clock.start, clock.end)}
    found += [_in_digits(text, match) for match in _AMOUNT.finditer(text) if match.start() not in taken]
    if not _NUMBER_WORDS.isdisjoint(said):
        ends = {quantity.end for quantity in found}
        for worth, start, end in spelled_numbers(text):
            # What ends a number in digits is its scale.
            if end not in ends:
                found.append(_with_tail(text, start, end, (float(worth),), None))
    if not _SINGLES.isdisjoint(said) and not _ARTICLES.isdisjoint(words):
        for single in _ONE_OF_THEM.finditer(text):
            found.append(_with_tail(text, single.start(), single.start(1) - 1, (1.0,), None))
    for part in _FRACTION.finditer(text) if not _PART_WORDS.isdisjoint(said) else ():
        start, end = part.span()
        count = _COUNT.search(text, max(0, start - 6), start)
        if count is not None:
            start = count.start()
        share = _COUNTS["a" if count is None else count[1].lower()] / _PARTS[part[1].lower()]
        unit = _OF_A.match(text, end)
        if unit and unit[1].lower() in UNIT_SPELLINGS:
            found.append(_with_tail(text, start, unit.start(1), (share,), None))
        else:
            found.append(Quantity((100 * share,), (100 * share,), "%", start, end))
    found.sort(key=lambda quantity: quantity.start)
    return found


def _in_digits(text: str, match: re.Match[str]) -> Quantity:
    start, end = match.span()
    sign = money = None
    if text[start - 1 : start] in _LEADS or text[start - 2 : start - 1] in _LEADS:
        before = _BEFORE.search(text, max(0, start - 5), start)
        sign, money = (before[1], before[2]) if before is not None else (None, None)
        start = start if before is None or not (sign or money) else before.start()
    return _with_tail(text, start, end, _readings(match[0], bool(sign)), money)


# Words are looked up as bytes, which are ten times as fast to part as a regular expression finds them.
_LETTERS_ONLY = bytes(byte if byte > 127 or chr(byte).isalpha() else 32 for byte in range(256))
_NUMBER_WORDS = frozenset(name.encode() for name in NUMBER_NAMES)
_ARTICLES = frozenset(b"a an un une ein eine einen una".split())
_SINGLES = frozenset("hour day week month quarter year half third heure an année".encode().split())
_PART_WORDS = frozenset(f"{part}{end}".encode() for part in _PARTS for end in ("", "s"))
# Where none of these is said and no colon stands, there are only numbers in digits; the last ones tell the time.
_TIMES = frozenset("am pm m uhr h clock o’clock".encode().split())
_TELLING = _NUMBER_WORDS | _SINGLES | _PART_WORDS | _TIMES
_CLOCK_SIGN = re.compile(
    r"[0-9](?::|\s?h\s?)[0-9]{2}|[0-9]\s?(?:[ap]\.?\s?m\b|uhr|h\b|o['’]clock)", re.IGNORECASE
)


def _clocks(text: str) -> Iterator[Quantity]:
    for match in _CLOCK.finditer(text):
        half, minute = match["half"], match["m"]
        if not (half or match["mark"] or (minute and text[match.start("m") - 1] != ".")):
            continue
        hour = int(match["h"])
        if half:
            hour = hour % 12 + (12 if half in "pP" else 0)
        minutes = (float(60 * hour + int(minute or 0)),)
        yield Quantity(minutes, minutes, "clock", *match.span())


@lru_cache(maxsize=8192)
def _readings(digits: str, negative: bool) -> tuple[float, ...]:
    """What digits with their separators may be worth, in the US way and in the European one."""
    comma = _DECIMAL_COMMA.fullmatch(digits)
    if comma:
        readings = [canonical_number(f"{comma[1].replace('.', '')}.{comma[2]}")]
    else:
        readings = [canonical_number(digits)]
        if _AMBIGUOUS.fullmatch(digits):
            readings.append(digits.replace(".", "").lstrip("0") or "0")
    return tuple((-1 if negative else 1) * float(reading) for reading in readings)


def _with_tail(text: str, start: int, end: int, values: tuple[float, ...], money: str | None) -> Quantity:
    """The amount with the scale and the unit that follow it."""
    dimension = _CURRENCIES[money] if money else ""
    if text[start - 2 : start] == "s " and text[max(0, start - 6) : start].lower() == "minus ":
        values = tuple(-value for value in values)
    values, end = _and_part(text, end, values)
    tail = _TAIL.match(text, end, end + _TOO_LONG)
    if tail is None or (tail[1].isalpha() and tail[1].lower() not in _TAILS):
        return Quantity(values, values, dimension, start, end)
    scale = SCALES.get(tail[1].lower())
    if scale is not None and (money or tail[1].lower() not in UNIT_SPELLINGS or tail[1] == "m"):
        # A lone "m" may be metres: both readings stay.
        scaled = tuple(value * 10.0**scale for value in values)
        values = (*values, *scaled) if tail[1] == "m" and not money else scaled
        if tail[1] != "m" or money:
            end = tail.end()
            tail = _TAIL.match(text, end, end + _TOO_LONG)
    if tail is None:
        return Quantity(values, values, dimension, start, end)
    word = tail[1] if tail[1] in _CURRENCIES else tail[1].lower().replace("° ", "°")
    if word in _CURRENCIES:
        return Quantity(values, values, _CURRENCIES[word], start, tail.end())
    words = word.replace("²", " 2").split()
    unit = UNIT_SPELLINGS.get(words[0] if words[-1] == "2" else words[-1])
    if unit is None or dimension or word == "in":
        return Quantity(values, values, dimension, start, end)
    if words[1:]:
        return Quantity(values, values, f"square {unit}", start, tail.end())
    dimension, factor = DIMENSIONS.get(unit, (unit, 1.0))
    values, end = _and_part(text, tail.end(), values)
    return Quantity(values, tuple(value * factor for value in values), dimension, start, end)


def _and_part(text: str, end: int, values: tuple[float, ...]) -> tuple[tuple[float, ...], int]:
    """ "six and a half": the part that follows a number or its unit is added to it."""
    part = _AND_PART.match(text, end) if text.startswith(" and ", end) else None
    if part is None:
        return values, end
    share = _COUNTS[part[1].lower()] / _PARTS[part[2].lower()]
    return tuple(value + share for value in values), part.end()
