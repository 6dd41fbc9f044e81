"""Quantities in text: numbers with what stands around them — currency, percent, scale, and how exact they claim to be."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from answerkey.grounded.claims.fractions import find_fractions
from answerkey.grounded.claims.language import comma_decimals
from answerkey.text.number_words import SMALL_NUMBERS, scaled_worth, spelled_numbers
from answerkey.text.numbers import CURRENCY_SIGNS, find_numbers

__all__ = ["Bound", "Quantity", "currency_named", "find_quantities"]

# What "over", "up to" and "about" say of a number.
Bound = Literal["", "about", "above", "below"]

# Letters are a scale where they cannot be metres and millimetres: after an amount of money, or as a capital.
_SCALE = re.compile(
    r"\s?(k|K|bn|tn)(?![\w'’])|(M|B)(?![\w'’])|[\s-]((?i:thousand|million|billion|trillion|lakh|crore))s?\b"
)
# "1,24 Mio. €", "2 Millionen Euro", "3 millones".
_OTHER_SCALE = re.compile(
    r"\s?((?i:mio|mrd|tsd))(?:\.|\b)|\s((?i:millionen|milliarden|tausend|millones|millions|milliards|milioni))\b"
)
_OTHER_SCALES = {
    "mio": "million", "mrd": "billion", "tsd": "thousand", "millionen": "million", "milliarden": "billion",
    "tausend": "thousand", "millones": "million", "millions": "million", "milliards": "billion", "milioni": "million",
}  # fmt: skip
_MONEY_SCALE = re.compile(r"\s?(k|mm|mn|m|bn|b|tn)(?![\w'’])", re.IGNORECASE)
_PERCENT = re.compile(
    r"\s?(?:%|percent\b|per\s?cent\b|pct\b|percentage points?\b|Prozent\b|pour\s?cent\b|por\s?ciento\b|per\s?cento\b)",
    re.IGNORECASE,
)
_CODES = "USD|EUR|GBP|CAD|AUD|CHF|JPY|INR|NOK|SEK|DKK|PLN|CZK|MXN|BRL|CNY|ZAR|SGD|HKD|NZD"
_CURRENCY_BEFORE = re.compile(rf"(?:[A-Z]{{0,3}}[{CURRENCY_SIGNS}]|\b(?:{_CODES}|US\$))\s?$")
_CURRENCY_AFTER = re.compile(
    rf"\s?(?:[{CURRENCY_SIGNS.replace('¢', '')}]|(?:{_CODES})\b"
    r"|(?:US )?(?:dollars?|euros?|pounds sterling|bucks)\b)",
    re.IGNORECASE,
)
_CENTS = re.compile(r"\s?(?:¢|cents?\b)", re.IGNORECASE)
_CENTS_OF_A_DOLLAR = re.compile(
    r"\s?(?:¢|cents?)(?= (?:of|on|in|out of|from|for) (?:every|each|the) (?:dollar|euro)\b)", re.IGNORECASE
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|some|nearly|almost|circa|close to|just (?:under|over|shy of)|"
    r"in the region of|an estimated|estimated at|to the order of|give or take|ca\.)|[~≈])\s*"
    r"(?:every |each |an? |one (?:in|for) every )?(?:[A-Z]{0,3}[$€£¥₹]\s?)?$",
    re.IGNORECASE,
)
_ABOVE = re.compile(
    r"\b(?:over|more than|above|exceed(?:s|ed|ing)?|upwards of|greater than|in excess of)"
    r"\s+(?:[$€£¥₹]\s?)?$",
    re.IGNORECASE,
)
_BELOW = re.compile(r"\b(?:under|less than|below|fewer than)\s+(?:[$€£¥₹]\s?)?$", re.IGNORECASE)
_BOUND_WORDS = frozenset(
    ["about", "around", "roughly", "approximately", "approx", "approx.", "some", "nearly", "almost", "circa", "close", "just",
     "region", "estimated", "order", "give", "ca.", "over", "more", "above", "exceed", "exceeds", "exceeded", "exceeding",
     "upwards", "greater", "excess", "under", "less", "below", "fewer", "(about", "(roughly", "(approximately", "(over",
     "(nearly", "(almost", "(around", "(under", "(approx.", "(some", "(just"]
)  # fmt: skip
_ORDINAL_ENDINGS = ("first", "second", "third", "th")
_NO_DIGITS = re.compile(r"[^\d.]")
_OR_SO = re.compile(r"\s*(?:\+|or so\b|-ish\b)")


_CURRENCY_NAMES = {
    "$": "dollar", "usd": "dollar", "cad": "dollar", "aud": "dollar", "sgd": "dollar", "hkd": "dollar", "nzd": "dollar",
    "dollar": "dollar", "dollars": "dollar", "bucks": "dollar", "us$": "dollar", "mxn": "peso", "€": "euro", "eur": "euro",
    "euro": "euro", "euros": "euro", "£": "pound", "gbp": "pound", "sterling": "pound", "¥": "yen", "jpy": "yen",
    "cny": "yuan", "₹": "rupee", "inr": "rupee", "chf": "chf", "nok": "nok", "sek": "sek", "dkk": "dkk", "pln": "pln",
    "czk": "czk", "brl": "brl", "zar": "zar",
}  # fmt: skip


def currency_named(words: Iterable[str]) -> str:
    """The currency that words or a sign name, "" if none."""
    return next((_CURRENCY_NAMES[word] for word in words if word in _CURRENCY_NAMES), "")


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A number with its unit and precision."""

    value: float
    start: int
    end: int
    kind: Literal["number", "money", "percentage"]
    # One unit of the last digit that is written: 0.01 for 3.14, 1000 for 16k.
    unit: float
    bound: Bound = ""
    # Written with st, nd, rd, th, or as "first".
    ordinal: bool = False
    # Written in words; a percentage in words is a fraction ("two thirds").
    spelled: bool = False
    # The currency's code in small letters, "" if none is written; all dollars are one.
    currency: str = ""
    # Digits as they stand, without sign and separators: for numbers that are really names of things.
    digits: str = ""


def find_quantities(text: str) -> Iterator[Quantity]:
    """Every number in a text with what stands around it, in order of kind: digits first, then words."""
    text = comma_decimals(text)
    for start, end, value, unit, bound in find_fractions(text):
        yield Quantity(
            value=value, start=start, end=end, kind="percentage", unit=unit, bound=bound, spelled=True
        )
    for number in find_numbers(text):
        start, end = number.start, number.end
        digits = text[start:end]
        value = number.value
        decimals = len(number.canonical.partition(".")[2])
        point = digits.rfind(".")
        if point >= 0 and digits[point + 1 :].isdigit():
            decimals = max(decimals, len(digits) - point - 1)
        unit = 10.0**-decimals
        scale = _SCALE.match(text, end) or _OTHER_SCALE.match(text, end)
        if scale is None and _CURRENCY_BEFORE.search(text[max(0, start - 6) : start]):
            scale = _MONEY_SCALE.match(text, end)
        ordinal = False
        if scale is not None:
            name = next(group for group in scale.groups() if group)
            name = _OTHER_SCALES.get(name.lower(), name)
            worth = scaled_worth(number.canonical.lstrip("-"), name)
            if worth is not None:
                factor = float(scaled_worth("1", name) or 1)
                value = -float(worth) if value < 0 else float(worth)
                unit *= factor
                end = scale.end()
        elif found := _ORDINAL.match(text, end):
            ordinal, end = True, found.end()
        elif (more := _AND_A_PART.match(text, end)) is not None:
            value, unit, end = value + _part(more), 0.01, more.end()
        yield _placed(text, start, end, value, unit, ordinal=ordinal, digits=_NO_DIGITS.sub("", digits))
    if " and " in text or "-and-" in text:
        yield from _mixed(text)
        text = _MIXED.sub(lambda found: "\0" * len(found[0]), text)
    yield from _spelled(text)


# "2½", "1 1/2", "3 and a half".
_AND_A_PART = re.compile(
    r"[ -]and (?:a |one[- ])(half|third|quarter)\b|[ -]and (three)[- ]quarters\b|\s?([½¼¾⅓⅔])|(?<=\d)[ -]([13]/[234])(?![\d/])",
    re.IGNORECASE,
)
_PART_WORTHS = {
    "half": 0.5, "third": 1 / 3, "quarter": 0.25, "three": 0.75, "½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3,
    "1/2": 0.5, "1/3": 1 / 3, "1/4": 0.25, "3/4": 0.75, "3/2": 1.5,
}  # fmt: skip
_MIXED = re.compile(
    rf"\b({'|'.join(SMALL_NUMBERS[1:])})[ -]and[ -](?:(?:a|one)[ -](half|third|quarter)|(three)[ -]quarters)\b",
    re.IGNORECASE,
)


def _mixed(text: str) -> Iterator[Quantity]:
    """ "Seven and a half", "one and one-half"."""
    for found in _MIXED.finditer(text):
        value = SMALL_NUMBERS.index(found[1].lower()) + _PART_WORTHS[(found[2] or found[3]).lower()]
        yield _placed(text, *found.span(), value, 0.01, ordinal=False, spelled=True, digits=f"{value:g}")


def _part(found: re.Match[str]) -> float:
    return _PART_WORTHS[next(group for group in found.groups() if group).lower()]


def _spelled(text: str) -> Iterator[Quantity]:
    for worth, start, end in spelled_numbers(text):
        ordinal = text[start:end].lower().endswith(_ORDINAL_ENDINGS)
        yield _placed(text, start, end, float(worth), 1.0, ordinal=ordinal, spelled=True, digits=worth)


def _placed(
    text: str,
    start: int,
    end: int,
    value: float,
    unit: float,
    *,
    ordinal: bool,
    digits: str,
    spelled: bool = False,
) -> Quantity:
    kind: Literal["number", "money", "percentage"] = "number"
    before = text[max(0, start - 40) : start]
    money = ""
    # The span of an amount takes in its sign, so that "$5" is marked as a whole.
    if (percent := _PERCENT.match(text, end)) is not None:
        kind, end = "percentage", percent.end()
    elif (
        (last := before.rstrip()[-1:])
        and (last in CURRENCY_SIGNS or last.isupper())
        and (currency := _CURRENCY_BEFORE.search(before[-8:])) is not None
    ):
        kind, start = "money", start - len(currency[0])
        before = before[: -len(currency[0])]
        money = currency[0]
    elif text[start : start + 1] in "-\u2212" and text[start + 1 : start + 2] in CURRENCY_SIGNS:
        kind, money = "money", text[start + 1]
    elif (currency := _CURRENCY_AFTER.match(text, end)) is not None:
        kind, end, money = "money", currency.end(), currency[0]
    elif (share := _CENTS_OF_A_DOLLAR.match(text, end)) is not None:
        kind, end = "percentage", share.end()
    elif (cents := _CENTS.match(text, end)) is not None:
        kind, end, value, unit = "money", cents.end(), value / 100, unit / 100
    bound: Bound = ""
    if not spelled and _OR_SO.match(text, end):
        bound = "about"
    elif _BOUND_WORDS.isdisjoint(before.lower().split()[-5:]) and "~" not in before and "≈" not in before:
        # Most numbers have no such word before them, and looking for one at the end of a text is slow.
        bound = ""
    elif _ABOUT.search(before):
        bound = "about"
    elif _ABOVE.search(before):
        bound = "above"
    elif _BELOW.search(before):
        bound = "below"
    return Quantity(
        value=value,
        start=start,
        end=end,
        kind=kind,
        unit=unit,
        bound=bound,
        ordinal=ordinal,
        spelled=spelled,
        digits=digits,
        currency=currency_named((money.strip().lower(), money.strip()[-1:], *money.lower().split()))
        if money
        else "",
    )
