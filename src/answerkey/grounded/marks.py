"""Marks: the figures, dates, times and ids of a text, none inside another, each with what it says and its span."""

import re
from bisect import bisect_left
from collections.abc import Iterator

import msgspec

from answerkey.grounded.words import Words, word_key
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import fold_accents
from answerkey.text.number_words import SCALES, SMALL_NUMBERS
from answerkey.text.units import DIMENSIONS, UNIT_SPELLINGS

__all__ = ["Figure", "Mark", "Unit", "as_stated", "find_marks", "readings", "unit_of"]

_SPACES = "\u0020\u00a0\u2009\u202f"
# 442,300 · 442.300 · 442 300 · 442'300, the same separator throughout; 12,34,567; plain digits; each with decimals.
_NUMBER = re.compile(
    r"(?<![0-9])(?<![0-9][.,])[0-9](?:[0-9]{0,2}([,." + _SPACES + r"'’_])[0-9]{3}(?:\1[0-9]{3})*+(?![0-9])"
    r"|[0-9]?(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])|[0-9]*+)(?:[.,][0-9]++)?"
)
# A percent sign, or the word that follows a figure: its scale or unit.
_TAIL = re.compile(r"[-" + _SPACES + r"]?(?:[%٪]|per cent|([^\W\d_]{1,14})\b)")
_MINUTES = re.compile(r"\.?[,\s]{0,2}(?:and |und |et |y )?([0-5]?[0-9])\s?min")
_TIME = re.compile(
    r"(?P<h>[01]?[0-9]|2[0-4])(?:[:.](?P<m>[0-5][0-9])(?::[0-5][0-9])?)?(?![0-9%:])"
    r"(?:\s?(?P<half>[ap])\.?m\b|\s?(?P<uhr>Uhr|h)\b\s?(?P<m2>[0-5][0-9])?+(?!\s?min))?",
    re.IGNORECASE,
)
_CLOCK = frozenset({"am", "pm", "a", "p", "uhr", "h"})
# What an id is made of; of scripts without spaces no letter is, for it would glue figures to words.
_ID = re.compile(r"[A-Za-z0-9À-ɏ#&+./:@_-]++")
_IN_ID = frozenset(filter(_ID.match, map(chr, range(0x250))))
_GLUE = _IN_ID - frozenset(".+&")
_MONTHS = frozenset(f"#{month}" for month in range(1, 13))
# An address has an @.
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w.-]{1,253}\w")
_EDGES = ".:!?-/#+&"
# A figure with its sign and unit, a range, an ordinal.
_FIGURE = re.compile(
    r"[+-]*[0-9][0-9.,’]*(?:[-–/][0-9.,]+)?(?:st|nd|rd|th|er|º|ª|[-–/]?[a-zµ°]{1,12}(?:-[a-z]{2,9})?|[kKMm])?[-–]?"
)
_DATE_FORM = re.compile(r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{2,4}|[12][0-9]{3}[-/][01][0-9](?![0-9])")
_MONTH_DAY = re.compile(r"(?:([0-9]{4})[年년]\s?)?([0-9]{1,2})[月월]\s?([0-9]{1,2})[日일]")
_DAY_BEFORE = re.compile(
    r"(?<![\w.])([0-9]{1,2})(?:st|nd|rd|th|\.)?\s?(?:to|and|or|until|bis|und|oder|à|au|et|al?|y|e|–|-)\s?$"
)
# Words before a figure that make it stand for anything that rounds to it; and what may stand between.
_HEDGE_LIST = (
    "about around roughly nearly almost approximately approx approx. over under below above than ca ca. circa some just "
    "etwa rund knapp gut fast über environ près presque plus unos casi cerca quasi ongeveer bijna ~ ≈ < >"
)
_HEDGES = frozenset(_HEDGE_LIST.split())
_BETWEEN = frozenset({"de", "eur", "usd", "gbp", "chf"})
_ZEROS = "0,.'’_" + _SPACES
_CURRENCY = frozenset("$€£¥₹")
# By key; one is mostly an article or pronoun.
_NUMBER_WORDS = {
    word_key(word): float(value)
    for names in (
        " ".join(SMALL_NUMBERS),
        "- - zwei drei vier fünf sechs sieben acht neun zehn - zwölf",
        "- - deux trois quatre cinq six - huit - dix onze douze",
        "- - dos tres cuatro cinco seis siete ocho nueve diez - doce",
        "- - both",
    )
    for value, word in enumerate(names.split())
    if word != "-" and value > 1
}
Unit = tuple[str, float]
# Hangul has spaces, but its units are as short as those of kana and Chinese signs.
_LAST_SPACED = "\u2e80"


class Figure(msgspec.Struct, frozen=True, gc=False):
    """One figure as it stands in a text."""

    start: int
    end: int
    # Its worth without sign, and its other reading where there is one ("1.350" in German); 0 otherwise.
    value: float
    other: float = 0.0
    # One in the last place that is stated.
    step: float = 1.0
    percent: bool = False
    # The word after it, folded.
    unit: str = ""
    # What it was multiplied by ("k", "million"); 1 otherwise.
    scale: float = 1.0
    # "about", "over": stands for anything that rounds to it.
    hedged: bool = False


# What is said, and where: a Figure, a Date, minutes of the day, or an id's letters and digits.
Mark = tuple[Figure | Date | int | str, int, int]


def unit_of(word: str) -> Unit | None:
    """What a word measures, and how much of it: ("time", 60.0) for "min"."""
    name = UNIT_SPELLINGS.get(word)
    return None if name is None else DIMENSIONS.get(name, (name, 1.0))


def readings(figure: Figure) -> Iterator[tuple[float, float, str]]:
    """(worth, one in its last place, how it was read) of everything that a figure may stand for, plainest first."""
    yield figure.value, figure.step, ""
    if figure.percent:
        yield figure.value / 100, figure.step / 100, "as a share"
    if figure.other:
        yield figure.other, figure.step * (1 if figure.other > figure.value else 1e-3), ""
    for scale, how in ((1e3, "in thousands"), (1e6, "in millions")):
        if figure.scale >= scale:
            yield figure.value / scale, figure.step / scale, how


def find_marks(text: str, words: Words) -> list[Mark]:
    """Every mark, by its start but for addresses and numbers in words, which come last."""
    months: list[int] = []
    if not _MONTHS.isdisjoint(words.keys):
        months = [start for start, key in zip(words.starts, words.keys, strict=True) if key in _MONTHS]
    found: list[Mark] = []
    at = judged = 0
    for number in _NUMBER.finditer(text):
        start, end = number.span()
        if start < at:
            continue
        if text[end : end + 1] in _EAST and (day := _MONTH_DAY.match(text, start)):
            date = Date(int(day[1]) if day[1] else None, int(day[2]), int(day[3]), *day.span())
            found.append((date, *day.span()))
        elif months and bisect_left(months, start - 14) < bisect_left(months, end + 8):
            _named_date(text, at, start, found)
        at = max(at, found[-1][2] if found else 0)
        if (
            start >= at
            and start >= judged
            and (text[end : end + 1] in _GLUE or text[start - 1 : start] in _GLUE)
        ):
            mark, judged = _glued_mark(text, at, start)
            found += mark
        at = max(at, found[-1][2] if found else 0)
        if start >= at:
            found.append(_figure(text, number[0], start, end))
            at = found[-1][2]
    if "@" in text:
        found += [(id_key(one[0]), *one.span()) for one in _ADDRESS.finditer(text)]
    if not _NUMBER_WORDS.keys().isdisjoint(words.keys):
        found += _spelled(text, words)
    return found


_EAST = frozenset("年년月월")


def _named_date(text: str, at: int, start: int, found: list[Mark]) -> None:
    """Add the date with the name of a month around a figure; the figure in "21 and 22 May" becomes one too."""
    first = max(at, text.rfind(" ", max(at, start - 30), max(at, start - 14)) + 1)
    for date in find_dates(text[first : start + 32]):
        begin, end = date.start + first, date.end + first
        # "Under 18 may" is no date.
        if begin <= start < end and " may" not in text[begin : end + 1]:
            day = _DAY_BEFORE.search(text, max(0, begin - 12), begin) if date.day and found else None
            if day and found[-1][1] == day.start(1) and 0 < int(day[1]) <= 31:
                found[-1] = (Date(date.year, date.month, int(day[1]), 0, 0), *day.span(1))
            found.append((date, begin, end))
            return


def _glued_mark(text: str, at: int, start: int) -> tuple[list[Mark], int]:
    """A date, time or id that digits with something at their side belong to, and how far they were looked at."""
    for date in find_dates(text[start : start + 12]) if _DATE_FORM.match(text, start) else ():
        if date.start == 0:
            return [(date, start, start + date.end)], 0
    if time := _time(text, start):
        return [time], 0
    first = start
    while first > at and text[first - 1] in _IN_ID:
        first -= 1
    end = _ID.match(text, first).end()  # type: ignore[union-attr]  # the digit is there
    core = text[first:end].strip(_EDGES)
    first = text.find(core, first)
    return ([(id_key(core), first, first + len(core))] if _is_id(core) else []), end


def _time(text: str, start: int) -> Mark | None:
    """ "17:30", "5 pm", "18 Uhr", "13h20"."""
    found = _TIME.match(text, start)
    if found is None or not (
        found["half"] or ":" in found[0] or found["m2"] or (found["uhr"] or "h") not in "hH"
    ):
        return None
    half, hour = found["half"], int(found["h"])
    if half:
        hour = hour % 12 + (12 if half in "pP" else 0)
    return 60 * hour + int(found["m"] or found["m2"] or 0), *found.span()


def _is_id(core: str) -> bool:
    """Letters and digits in one (X40, DN-448120), parted digits (00340-7781), an address."""
    if len(core) < 2:
        return False
    if _FIGURE.fullmatch(core):
        long = (core[0] == "0" and len(core) > 4) or ("-" in core and len(core) > 8)
        return long and core.replace("-", "").isdigit()
    return core.upper() != core.lower() or core.count("-") > 1


def id_key(text: str) -> str:
    """An id in the form in which equal ones are equal: letters and digits only."""
    return "".join(filter(str.isalnum, text)).casefold()


def _figure(text: str, digits: str, start: int, end: int) -> Mark:
    """A figure with its scale and unit; a time where "pm" follows."""
    value, other, decimals = (float(digits), 0.0, 0) if digits.isdigit() else _worths(digits)
    tail = None if text[end : end + 1] in _LOOSE_END else _TAIL.match(text, end)
    if tail is None:
        return Figure(start, end, value, other, 10.0**-decimals), start, end
    word = fold_accents(tail[1] or "")
    if word > _LAST_SPACED:
        # Scripts without spaces: the first sign is the unit.
        word = word[0]
    if word in _CLOCK and value <= 24 and (time := _time(text, start)):
        return time
    unit, power = unit_of(word), None
    if unit is None or (len(word) < 3 and word not in ("kg", "km", "min")):
        power = SCALES.get(word.lower()) if len(word) > 1 or _is_scale(text, start, end, tail.end()) else None
    if power is not None:
        worth = 10.0**power
        end = tail.end()
        return (
            Figure(start, end, value * worth, other * worth, 10.0**-decimals * worth, scale=worth),
            start,
            end,
        )
    if unit == ("time", 3600.0) and (minutes := _MINUTES.match(text, tail.end())):
        return Figure(start, minutes.end(), 60 * value + int(minutes[1]), unit="min"), start, minutes.end()
    percent = tail[1] is None or unit == ("%", 1.0)
    return Figure(start, end, value, other, 10.0**-decimals, percent, word), start, end


_LOOSE_END = frozenset("\n.,;:)(/\"'*|")


def _is_scale(text: str, start: int, end: int, after: int) -> bool:
    """Whether a single letter is a scale ("£186k", "1,24 M€", "12k"), not a metre."""
    money = text[max(0, start - 1) : start] in _CURRENCY or text[after : after + 1] in _CURRENCY
    return money or text[end : end + 1] in ("k", "K")


def _worths(digits: str) -> tuple[float, float, int]:
    """The worth, the other reading or 0, and how many decimals are stated."""
    marks = [mark for mark in digits if not mark.isdigit()]
    decimals = len(digits) - digits.rindex(marks[-1]) - 1
    whole = float("".join(filter(str.isdigit, digits)))
    parted = whole / 10.0 ** min(decimals, 300)
    if marks[-1] not in ".," or (len(marks) > 1 and len(set(marks)) == 1):
        return whole, 0.0, 0
    if len(marks) > 1 or decimals != 3:
        return parted, 0.0, decimals
    if marks[0] == ".":
        return parted, whole, 3
    return whole, 0.0 if digits.endswith("000") else parted, 0


def _spelled(text: str, words: Words) -> Iterator[Mark]:
    """Numbers in words."""
    for index, key in enumerate(words.keys):
        if key in _NUMBER_WORDS:
            start = words.starts[index]
            unit = words.keys[index + 1] if index + 1 < len(words.keys) else ""
            end = next((at for at in range(start, len(text)) if not text[at].isalpha()), len(text))
            yield (
                Figure(start, end, _NUMBER_WORDS[key], percent=unit in ("percent", "prozent"), unit=unit),
                start,
                end,
            )


def as_stated(text: str, figure: Figure) -> Figure:
    """A reply's figure with its hedge: "about 16,000" is precise to a thousand."""
    before = text[max(0, figure.start - 24) : figure.start].lower().rstrip("$€£¥₹ ").split()[-2:]
    if not before or not (
        before[-1] in _HEDGES or before[-1][-1] in "~≈<>" or (before[-1] in _BETWEEN and before[0] in _HEDGES)
    ):
        return figure
    digits = text[figure.start : figure.end] if figure.scale == 1 else ""
    zeros = digits[len(digits.rstrip(_ZEROS)) :].count("0") if figure.step == figure.scale else 0
    return msgspec.structs.replace(figure, hedged=True, step=figure.step * 10.0**zeros)
