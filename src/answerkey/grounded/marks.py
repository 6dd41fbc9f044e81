"""Marks: the figures, dates, times, ids, names and quotes of a text, each with what it says and its span.

Reply and evidence are read by the same reader; names and quotes are looked for in the reply only.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, compress, count
from typing import Any

import msgspec

from answerkey.grounded.words import WORD, Words, word_key
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import FUNCTION_WORDS, fold_accents
from answerkey.text.number_words import SCALES, SMALL_NUMBERS
from answerkey.text.units import DIMENSIONS, UNIT_SPELLINGS

_SPACES = "\u0020\u00a0\u2009\u202f"
# 442,300 · 442.300 · 442 300 · 442'300, the same separator throughout; 12,34,567; plain digits; each with decimals. Its first
# digit comes first, so that the engine can skip to it.
_NUMBER = re.compile(
    r"[0-9](?<![0-9][0-9])(?<![0-9][.,][0-9])(?:[0-9]{0,2}([,."
    + _SPACES
    + r"'’_])[0-9]{3}(?:\1[0-9]{3})*+(?![0-9])"
    r"|[0-9]?(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])|[0-9]*+)(?:[.,][0-9]++)?"
)
# A percent sign, or the word that follows a figure: its scale or unit.
_TAIL = re.compile(r"[-" + _SPACES + r"]?(?:[%٪]|per cent|([^\W\d_]{1,14})\b)")
_NO_TAIL = frozenset("\n.,;:)(/\"'*|")
_MINUTES = re.compile(r"\.?[,\s]{0,2}(?:and |und |et |y )?([0-5]?[0-9])\s?min")
_TIME = re.compile(
    r"(?P<h>[01]?[0-9]|2[0-4])(?:[:.](?P<m>[0-5][0-9])(?::[0-5][0-9])?)?(?![0-9%:])"
    r"(?:\s?(?P<half>[ap])\.?m\b|\s?(?P<uhr>Uhr|h)\b\s?(?P<m2>[0-5][0-9])?+(?!\s?min))?",
    re.IGNORECASE,
)
_IN_TIME = frozenset(":hHaApPuU")
_CLOCK = frozenset({"am", "pm", "a", "p", "uhr", "h"})
# What an id is made of; of scripts without spaces no letter is, for it would glue figures to words.
_ID = re.compile(r"[A-Za-z0-9À-ɏ#&+./:@_-]++")
_IN_ID = frozenset(filter(_ID.match, map(chr, range(0x250))))
_GLUE = _IN_ID - frozenset(".+&")
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w.-]{1,253}\w")
_EDGES = ".:!?-/#+&"
# A figure with its sign and unit, a range, an ordinal: no id.
_NO_ID = re.compile(
    r"[+-]*[0-9][0-9.,’]*(?:[-–/][0-9.,]+)?(?:st|nd|rd|th|er|º|ª|[-–/]?[a-zµ°]{1,12}(?:-[a-z]{2,9})?|[kKMm])?[-–]?"
)
_ISO_DATE = re.compile(r"([12][0-9]{3})-(0[1-9]|1[0-2])(?:-([0-3][0-9]))?(?![0-9/-])")
_OTHER_DATE = re.compile(
    r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{2,4}|[12][0-9]{3}/[01][0-9](?![0-9])|[01]?[0-9]/[12][0-9]{3}"
)
_EASTERN_DATE = re.compile(r"(?:([0-9]{4})[年년]\s?)?([0-9]{1,2})[月월]\s?([0-9]{1,2})[日일]")
_IN_DATE = frozenset("-/.年년月월")
# What stands behind the digits of more than a figure.
_BESIDE = _GLUE | _IN_DATE
# Words before a figure that make it stand for anything that rounds to it.
_HEDGE_LIST = (
    "about around roughly nearly almost approximately approx approx. over under below above than ca ca. circa some just "
    "etwa rund knapp gut fast über environ près presque plus unos casi cerca quasi ongeveer bijna ~ ≈ < >"
)
_HEDGES = frozenset(_HEDGE_LIST.split())
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
_TELLING = _NUMBER_WORDS.keys() | {f"#{month}" for month in range(1, 13)}
_LIST_MARKS = frozenset(".)\ufe0f")
# From here on scripts have no spaces, or (Hangul) units as short as theirs.
_FIRST_UNSPACED = "\u2e80"
_QUOTE = re.compile(
    r"“([^“”\n]{4,400})”|„([^„“”\n]{4,400})[“”]|«\s?([^«»\n]{4,400})\s?»|\"([^\"\n]{4,400})\"|「([^」\n]{2,400})」"
)
_CAPITAL = re.compile(r"[^\W\d_a-z](?<!\w.)(?:\w?\.(?=\s?[A-Z])|[\w'’&-]*+)")
_JOIN = re.compile(
    r"[ \u00a0](?:(?:of|de|la|le|du|des|del|di|da|dos|van|von|der|den|and|y|und|et|the|for|&)[ ]){0,2}"
)
# After anything but these and letters a capital says nothing: a sentence, line, cell or emphasis begins.
_WITHIN = frozenset(",%'’”)&/+")
_LONGEST_NAME = 8
_NO_NAME_LIST = (
    "i eur usd gbp chf ok pdf monday tuesday wednesday thursday friday saturday sunday yes dear hi hello thanks note total q "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag ja nein sie ihr ihre ihnen ihren ihrem ihrer"
)
_NO_NAMES = FUNCTION_WORDS | frozenset(_NO_NAME_LIST.split())
_GERMAN_LIST = "der die das und ist nicht ein eine für mit auf den"
_GERMAN = frozenset(map(word_key, _GERMAN_LIST.split()))


class Mark(msgspec.Struct, frozen=True, gc=False):
    """One figure, date, time, id, name or quote as it stands in a text."""

    kind: str
    start: int
    end: int
    # (year, month, day); ("time", minutes of the day); ("id", letters and digits); the words of a name or quote.
    key: Any = None
    # A figure's worth without sign, and its other reading where there is one ("1.350" in German); 0 otherwise.
    value: float = 0.0
    other: float = 0.0
    # One in the last place that is stated.
    step: float = 1.0
    # What was said behind it: %, a word (folded), a scale that it was multiplied by ("k", "million").
    percent: bool = False
    unit: str = ""
    scale: float = 1.0
    # "about", "over": stands for anything that rounds to it.
    hedged: bool = False
    # A name whose capital may be owed to its place; a date whose day may be its month.
    doubtful: bool = False


@lru_cache(maxsize=4096)
def unit_of(word: str) -> tuple[str, float] | None:
    """What a word measures, and how much of it: ("time", 60.0) for "min"."""
    name = UNIT_SPELLINGS.get(word)
    return None if name is None else DIMENSIONS.get(name, (name, 1.0))


# A worth, one in its last place, and how a figure was read as that.
Reading = tuple[float, float, str]


def readings(figure: Mark) -> list[Reading]:
    """Everything that a figure may stand for, plainest first."""
    found = [(figure.value, figure.step, "")]
    if figure.percent:
        found.append((figure.value / 100, figure.step / 100, "as a share"))
    if figure.other:
        found.append((figure.other, figure.step * (1 if figure.other > figure.value else 1e-3), ""))
    if figure.scale >= 1e3:
        found.append((figure.value / 1e3, figure.step / 1e3, "in thousands"))
    if figure.scale >= 1e6:
        found.append((figure.value / 1e6, figure.step / 1e6, "in millions"))
    return found


def find_marks(text: str, words: Words) -> list[Mark]:
    """Every figure, date, time and id, none inside another; addresses and numbers in words come last."""
    telling = list(compress(count(), map(_TELLING.__contains__, words.keys)))
    months = [words.starts[index] for index in telling if words.keys[index][0] == "#"]
    found: list[Mark] = []
    at = judged = 0
    for number in _NUMBER.finditer(text):
        start, end = number.span()
        if start < at:
            continue
        mark = None
        after = text[end : end + 1]
        if after == "." and not text[end + 1 : end + 2].isdigit():
            after = ""
        if months and bisect_left(months, start - 14) < bisect_left(months, end + 8):
            mark = _named_date(text, at, start)
        if mark is None and (after in _BESIDE or text[start - 1 : start] in _GLUE) and start >= judged:
            mark, judged = _glued_mark(text, at, start, after)
        if mark is None:
            mark = _figure(text, number[0], start, end)
        found.append(mark)
        at = mark.end
    if "@" in text:
        found += [_id(one[0], one.start()) for one in _ADDRESS.finditer(text)]
    if len(telling) > len(months):
        found += [_spelled(text, words, index) for index in telling if words.keys[index] in _NUMBER_WORDS]
    return found


def _named_date(text: str, at: int, start: int) -> Mark | None:
    """The date with the name of a month around a figure."""
    first = max(at, text.rfind(" ", max(at, start - 30), max(at, start - 14)) + 1)
    for date in find_dates(text[first : start + 32]):
        begin, end = date.start + first, date.end + first
        # "Under 18 may" is no date.
        if begin <= start < end and " may" not in text[begin : end + 1]:
            return _date(date, first)
    return None


def _glued_mark(text: str, at: int, start: int, after: str) -> tuple[Mark | None, int]:
    """A date, time or id that digits with something at their side belong to, and how far they were looked at."""
    if after in _IN_DATE:
        if one := _ISO_DATE.match(text, start) or _EASTERN_DATE.match(text, start):
            return Mark("date", *one.span(), tuple(int(part) if part else None for part in one.groups())), 0
        for date in find_dates(text[start : start + 12]) if _OTHER_DATE.match(text, start) else ():
            if date.start == 0:
                return _date(date, start), 0
    if after in _IN_TIME and (time := _time(text, start)):
        return time, 0
    first = start
    while first > at and text[first - 1] in _IN_ID:
        first -= 1
    end = _ID.match(text, first).end()  # type: ignore[union-attr]  # the digit is there
    core = text[first:end].strip(_EDGES)
    return (_id(core, text.find(core, first)) if _is_id(core) else None), end


def _date(date: Date, offset: int) -> Mark:
    key = (date.year, date.month, date.day)
    return Mark("date", offset + date.start, offset + date.end, key, doubtful=date.ambiguous)


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
    return Mark("time", *found.span(), ("time", 60 * hour + int(found["m"] or found["m2"] or 0)))


def _is_id(core: str) -> bool:
    """Letters and digits in one (X40, DN-448120), parted digits (00340-7781), an address."""
    if _NO_ID.fullmatch(core):
        long = (core[0] == "0" and len(core) > 4) or ("-" in core and len(core) > 8)
        return long and core.replace("-", "").isdigit()
    return len(core) > 1 and (core.upper() != core.lower() or core.count("-") > 1)


def _id(text: str, start: int) -> Mark:
    """An id; equal ones have the same letters and digits."""
    return Mark("id", start, start + len(text), ("id", "".join(filter(str.isalnum, text)).casefold()))


def _figure(text: str, digits: str, start: int, end: int) -> Mark:
    """A figure with its scale and unit; a time where "pm" follows."""
    value, other, step = (float(digits), 0.0, 1.0) if digits.isdigit() else _worths(digits)
    tail = None if text[end : end + 1] in _NO_TAIL else _TAIL.match(text, end)
    if tail is None:
        return Mark("figure", start, end, None, value, other, step)
    word, unit = _measure(tail[1] or "")
    if word in _CLOCK and value <= 24 and (time := _time(text, start)):
        return time
    power = SCALES.get(word) if (unit is None if len(word) > 1 else _is_scale(text, start, tail)) else None
    if power is not None:
        scale = 10.0**power
        return Mark(
            "figure", start, tail.end(), None, value * scale, other * scale, step * scale, scale=scale
        )
    if unit == ("time", 3600.0) and (minutes := _MINUTES.match(text, tail.end())):
        return Mark("figure", start, minutes.end(), None, 60 * value + int(minutes[1]), unit="min")
    return Mark("figure", start, end, None, value, other, step, tail[1] is None or unit == ("%", 1.0), word)


@lru_cache(maxsize=4096)
def _measure(tail: str) -> tuple[str, tuple[str, float] | None]:
    """The word behind a figure, folded, and what it measures."""
    word = fold_accents(tail)
    if word > _FIRST_UNSPACED:
        word = word[0]
    return word, unit_of(word)


def _is_scale(text: str, start: int, tail: re.Match[str]) -> bool:
    """Whether a single letter is a scale ("£186k", "1,24 M€", "12k"), not a metre."""
    after = tail.end()
    money = text[max(0, start - 1) : start] in _CURRENCY or text[after : after + 1] in _CURRENCY
    return money or tail[0] in ("k", "K")


@lru_cache(maxsize=4096)
def _worths(digits: str) -> tuple[float, float, float]:
    """The worth, the other reading or 0, and one in the last place."""
    marks = [mark for mark in digits if not mark.isdigit()]
    decimals = min(300, len(digits) - digits.rindex(marks[-1]) - 1)
    whole = float("".join(filter(str.isdigit, digits)))
    parted = whole / 10.0**decimals
    if marks[-1] not in ".," or (len(marks) > 1 and len(set(marks)) == 1):
        return whole, 0.0, 1.0
    if len(marks) > 1 or decimals != 3:
        return parted, 0.0, 10.0**-decimals
    if marks[0] == ".":
        return parted, whole, 1e-3
    return whole, 0.0 if digits.endswith("000") else parted, 1.0


def _spelled(text: str, words: Words, index: int) -> Mark:
    """A number in words."""
    unit = words.keys[index + 1] if index + 1 < len(words.keys) else ""
    start, end = words.starts[index], words.end(text, index)
    percent = unit in ("percent", "prozent")
    return Mark("figure", start, end, None, _NUMBER_WORDS[words.keys[index]], percent=percent, unit=unit)


def stated_figure(text: str, figure: Mark) -> Mark | None:
    """A reply's figure with its hedge ("about 16,000" is precise to a thousand); None for the number of a list's entry."""
    lead, after = text[max(0, figure.start - 24) : figure.start], text[figure.end : figure.end + 1]
    if lead[-1:] == "[" and after == "]":
        return None
    line = lead.rpartition("\n")[2]
    if after in _LIST_MARKS and figure.value < 100 and len(line) < 4 and not line.strip(" #*"):
        return None
    before = lead.lower().rstrip("$€£¥₹ ").split()[-1:]
    if not before or not (before[0] in _HEDGES or before[0][-1] in "~≈<>"):
        return figure
    digits = text[figure.start : figure.end] if figure.scale == 1 else ""
    zeros = digits[len(digits.rstrip(_ZEROS)) :].count("0") if figure.step == figure.scale else 0
    return msgspec.structs.replace(figure, hedged=True, step=figure.step * 10.0**zeros)


def find_names(text: str, words: Words, marks: list[Mark]) -> Iterator[Mark]:
    """Quotes of two words or more, and words with a capital and what they join.

    In German, where every noun has a capital, one by itself is doubtful.
    """
    for one in _QUOTE.finditer(text):
        said = list(WORD.finditer(text, *one.span()))
        if len(said) > 1:
            yield Mark("quote", *one.span(), said)
    german = len(_GERMAN.intersection(words.keys)) > 3
    taken = set(chain.from_iterable([range(mark.start, mark.end) for mark in marks]))
    run: list[re.Match[str]] = []
    for found in _CAPITAL.finditer(text):
        if (start := found.start()) not in taken and text[start].isupper():
            if run and (len(run) >= _LONGEST_NAME or not _JOIN.fullmatch(text, run[-1].end(), start)):
                yield from _name(text, run, german)
                run = []
            run.append(found)
    yield from _name(text, run, german)


def _name(text: str, run: list[re.Match[str]], german: bool) -> Iterator[Mark]:
    while run and _is_plain(run[0][0]):
        run = run[1:]
    while run and _is_plain(run[-1][0]):
        run = run[:-1]
    if run:
        start, end = run[0].start(), run[-1].end()
        before = text[max(0, start - 4) : start].rstrip(" \u00a0")[-1:]
        # Behind a figure stands its unit (MWh, Uhr); one letter is no name.
        if len(run) > 1 or (end - start > 1 and not before.isdigit()):
            opens = not (before.isalnum() or before in _WITHIN)
            # What only joins its words is no part of it to be missed.
            said = [
                one
                for one in WORD.finditer(text, start, end)
                if not one[0].islower() or text[one.start() - 1] == "-"
            ]
            yield Mark("name", start, end, said, doubtful=opens or (german and len(run) == 1))


def _is_plain(word: str) -> bool:
    # "D." is an initial; "It's" and "I'll" are no names.
    return word[1:] != "." and word.replace("’", "'").lower().partition("'")[0].rstrip(".") in _NO_NAMES
