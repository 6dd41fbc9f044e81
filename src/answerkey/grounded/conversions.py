"""Units of the same kind and how many of one make another: 1,380 kg are 1.38 tonnes, 754 seconds 12 minutes and 34 seconds."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.evidence import NumberFact
from answerkey.grounded.precision import fits
from answerkey.grounded.reading import UNIT_NAMES
from answerkey.text.number_words import SMALL_NUMBERS

__all__ = ["converts", "in_other_units", "in_unit", "is_larger_part", "whole_of_parts"]

# Each line is a kind of measure: units with how many of the first one each is. Where two figures stand, both are in use.
_KINDS_TEXT = """
millisecond 1, second 1000, minute 60000, hour 3600000, day 86400000, week 604800000
month 1, year 12, decade 120
millimetre 1, centimetre 10, metre 1000, kilometre 1000000, inch 25.4, foot 304.8, yard 914.4, mile 1609344
milligram 1, gram 1000, kilogram 1000000, tonne 1000000000, ounce 28349.5, pound 453592.37
millilitre 1, centilitre 10, litre 1000, hectolitre 100000, gallon 3785.41, pint 473.176, quart 946.353
byte 1, kilobyte 1000 1024, megabyte 1e6 1048576, gigabyte 1e9 1073741824, terabyte 1e12 1099511627776
watt-hour 1, kilowatt-hour 1e3, megawatt-hour 1e6, gigawatt-hour 1e9
watt 1, kilowatt 1e3, megawatt 1e6
square|foot 1, square|metre 10.7639, acre 43560, hectare 107639, square|yard 9
"""


def _read() -> dict[str, tuple[int, tuple[float, ...]]]:
    units: dict[str, tuple[int, tuple[float, ...]]] = {}
    for kind, line in enumerate(_KINDS_TEXT.strip().splitlines()):
        for entry in line.split(","):
            name, *factors = entry.split()
            units[name.replace("|", " ")] = (kind, tuple(map(float, factors)))
    return units


_UNITS = _read()


def _factors(one: str, other: str) -> Iterator[float]:
    """How many of the other unit make one of the first."""
    first, second = _UNITS.get(one), _UNITS.get(other)
    if first is not None and second is not None and first[0] == second[0] and one != other:
        for mine, its in zip(_as_many(first[1], second[1]), _as_many(second[1], first[1]), strict=True):
            yield mine / its


def _as_many(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    return one if len(one) >= len(other) else one * len(other)


def converts(quantity: Quantity, measure: str, fact: NumberFact) -> bool:
    """Whether a figure is one of the evidence in a larger or smaller unit."""
    if measure == "fahrenheit" and fact.measure == "celsius":
        return fits(quantity, fact.value * 9 / 5 + 32)
    if measure == "celsius" and fact.measure == "fahrenheit":
        return fits(quantity, (fact.value - 32) * 5 / 9)
    return any(fits(quantity, fact.value * factor) for factor in _factors(fact.measure, measure))


def in_other_units(quantity: Quantity, measure: str, measures: Iterable[str]) -> Iterator[Quantity]:
    """A figure in each of the other units that the evidence has, at the precision at which it is stated."""
    for other in measures:
        for factor in _factors(measure, other):
            yield msgspec.structs.replace(
                quantity, value=quantity.value * factor, unit=quantity.unit * factor
            )


def in_unit(facts: Iterable[NumberFact], measure: str) -> list[float]:
    """Figures in one unit, those of other units of its kind converted."""
    found: dict[float, None] = {}
    for fact in facts:
        if fact.measure == measure:
            found[fact.value] = None
        elif fact.measure:
            found.update((fact.value * factor, None) for factor in islice(_factors(fact.measure, measure), 1))
    return list(found)


_JOINED = r"\s?(?:and |, )?"
_PART = rf"(\d+|an|{'|'.join(SMALL_NUMBERS[1:])})"
_LARGER = re.compile(
    rf"{_PART}[ -]?(days?|hours?|hrs?|h|minutes?|mins?|min|m|years?|yrs?|weeks?|feet|foot|ft|pounds?|lbs?){_JOINED}$",
    re.IGNORECASE,
)
_SMALLER = re.compile(
    rf"[ -]?(?:days?|hours?|hrs?|h|minutes?|mins?|min|m|years?|yrs?|weeks?|feet|foot|ft|pounds?|lbs?)\b{_JOINED}{_PART}"
    r"[ -]?(hours?|hrs?|h|minutes?|mins?|min|m|seconds?|secs?|s|months?|days?|inches|inch|in|ounces?|oz)\b",
    re.IGNORECASE,
)
_SHORT = {"h": "hour", "m": "minute", "s": "second", "min": "minute"}


def whole_of_parts(text: str, claim: Claim, quantity: Quantity) -> tuple[Quantity, str] | None:
    """ "12 minutes and 34 seconds" as a whole in its smaller unit, from either part; None if it has one part only."""
    if quantity.kind != "number":
        return None
    if (smaller := _SMALLER.match(text, claim.end)) is not None:
        larger_unit = _unit(text[claim.end : smaller.start(1)])
        return _whole(quantity, quantity.value, larger_unit, _number(smaller[1]), _unit(smaller[2]))
    larger = _LARGER.search(text[max(0, claim.start - 24) : claim.start])
    unit = re.match(r"[ -]?([A-Za-z]+)", text[claim.end : claim.end + 12])
    if larger is None or unit is None:
        return None
    return _whole(quantity, _number(larger[1]), _unit(larger[2]), quantity.value, _unit(unit[1]))


def is_larger_part(text: str, claim: Claim, facts: Iterable[NumberFact]) -> bool:
    """Whether the hours of "1 hour 48 minutes" are those of some figure of the evidence, whatever the minutes are."""
    smaller = _SMALLER.match(text, claim.end)
    if smaller is None or claim.quantity is None:
        return False
    unit = _unit(text[claim.end : smaller.start(1)])
    return bool(unit) and any(int(value) == claim.quantity.value for value in in_unit(facts, unit))


def _whole(
    quantity: Quantity, large: float, large_unit: str, small: float, small_unit: str
) -> tuple[Quantity, str] | None:
    factor = next(_factors(large_unit, small_unit), None)
    if factor is None or factor < 1:
        return None
    value = large * factor + small
    return msgspec.structs.replace(quantity, value=value, unit=1.0, digits=f"{value:g}"), small_unit


def _unit(word: str) -> str:
    name = re.sub(r"[^a-z]|and", "", word.lower())
    return _SHORT.get(name) or UNIT_NAMES.get(name, "")


def _number(word: str) -> float:
    if word.isdigit():
        return float(word)
    return 1.0 if word.lower() == "an" else float(SMALL_NUMBERS.index(word.lower()))
