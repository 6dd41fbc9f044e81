"""Dates in text, in any usual order, with their span: "August 15, 2024", "15 Aug 2024", "2024-08-15", "8/15/24"."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import TypeVar

import msgspec

from answerkey.errors import UsageError
from answerkey.text.numbers import NUMBER_VALUES, Quantity, find_times
from answerkey.text.numerals import find_hour_words
from answerkey.text.patterns import lazy

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari stycznia",
            "february feb februar fevrier février febrero febbraio fevereiro lutego",
            "march mar märz marz mars marzo março maart marca", "april apr avril abril aprile kwietnia",
            "may mai mayo maggio maio mei maja", "june jun juni juin junio giugno junho czerwca",
            "july jul juli juillet julio luglio julho lipca", "august aug août aout agosto augustus sierpnia",
            "september sept sep septembre septiembre settembre setembro września",
            "october oct oktober octobre octubre ottobre outubro października",
            "november nov novembre noviembre novembro listopada",
            "december dec dezember décembre decembre diciembre dicembre dezembro grudnia",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = r"(?P<{0}>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<{0}>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th|er)?\b\.?"
_YEAR = r"(?P<{0}>(?:1[0-9]|20)[0-9][0-9]|['’][0-9][0-9])(?![0-9])"
_NAMED = lazy(
    r"(?<![^\W_])(?:"
    # 15 August 2024, 15th of August, 2024
    + _DAY.format("d1") + r"[\s-]*(?:day\s+of\s+|of\s+|de\s+)?" + _MONTH.format("m1")
    + r"(?:,?\s*(?:de\s+)?" + _YEAR.format("y1") + r")?"
    # August 15, 2024
    + r"|" + _MONTH.format("m2") + r"\s*(?:the\s+)?" + _DAY.format("d2") + r"(?:,?\s*" + _YEAR.format("y2") + r")?"
    # August 2024, August of 2024
    + r"|" + _MONTH.format("m3") + r",?\s*(?:of\s+)?" + _YEAR.format("y3")
    + r")",
    re.IGNORECASE,
)  # fmt: skip
# How the names of months begin: most texts have none.
_MONTH_SIGN = lazy(
    r"(?:[jg][aeiu][nl]|j[uú]|f[eéè][bv]|m[aäe][rijyg]|a[pbv][r]|kwie|a[ouû][ugûtú]|ago|ene|stycz|lut|czer|lip|sier|wrze|se[pt]|o[ckut]t|pa[zź]|lis|nov|d[eéi][cz]|giu|lug|grud)",
    re.IGNORECASE,
)
_NUMERIC = lazy(
    # 2024-08-15, 2024/08; not 2240.10, which is a number.
    r"(?<![0-9./-])(?:(?P<y>[12][0-9]{3})"
    r"(?:(?P<s1>[-/.])(?P<m>[01]?[0-9])(?P=s1)(?P<d>[0-3]?[0-9])|[-/](?P<m2>[01]?[0-9]))"
    # 2026年11月23日
    r"|(?P<y4>[12][0-9]{3})年(?P<m4>[01]?[0-9])月(?:(?P<d4>[0-3]?[0-9])日)?"
    # 08/2024
    r"|(?P<m3>0?[1-9]|1[0-2])/(?P<y3>(?:19|20)[0-9]{2})"
    r"|(?P<a>[0-3]?[0-9])(?P<s2>[-/.])(?P<b>[0-3]?[0-9])(?P=s2)(?P<y2>[12][0-9]{3}|[0-9]{2}))(?![0-9/])"
)


class Date(msgspec.Struct, frozen=True):
    """A date or part of one, with its span in a text."""

    year: int | None
    month: int | None
    day: int | None
    start: int
    end: int
    # For 03/04/2024, which is March or April by country: the other reading is (day, month) swapped.
    ambiguous: bool = False

    def agrees(self, other: "Date") -> bool:
        """Whether the other has every part that this one has, and all of them are equal in some reading."""
        return any(
            all(mine is None or mine == theirs for mine, theirs in zip(own, parts, strict=True))
            for own in self._readings()
            for parts in other._readings()
        )

    def _readings(self) -> list[tuple[int | None, int | None, int | None]]:
        readings = [(self.year, self.month, self.day)]
        return [*readings, (self.year, self.day, self.month)] if self.ambiguous else readings


def month_number(word: str) -> int | None:
    """1 to 12 for the name of a month in English (also German, French, Spanish), else None."""
    return _MONTHS.get(word.lower())


_DIGIT = lazy("[0-9]")


def _full_year(text: str | None) -> int | None:
    if text is None:
        return None
    digits = int(text.strip("'’"))
    return digits if digits >= 100 else digits + (2000 if digits < 70 else 1900)


def find_dates(text: str) -> Iterator[Date]:
    """Every date with at least two of its parts, named months first, then numeric forms."""
    if _DIGIT.search(text) is None:
        return iter(())
    # Values of records are looked at again and again; long texts are not worth keeping.
    return iter(_known_dates(text) if len(text) <= _LONGEST_KEPT else tuple(_read_dates(text)))


_LONGEST_KEPT = 120


@lru_cache(maxsize=4096)
def _known_dates(text: str) -> tuple[Date, ...]:
    return tuple(_read_dates(text))


def _read_dates(text: str) -> Iterator[Date]:
    for found in _NAMED.finditer(text) if _MONTH_SIGN.search(text) else ():
        month = found["m1"] or found["m2"] or found["m3"]
        day = found["d1"] or found["d2"]
        year = found["y1"] or found["y2"] or found["y3"]
        # Ignoring case, ı, İ and ſ are taken for i and s.
        name = month.upper().replace("İ", "I").lower()
        yield Date(_full_year(year), _MONTHS[name], int(day) if day else None, *found.span())
    for found in _NUMERIC.finditer(text):
        if year := found["y"] or found["y3"] or found["y4"]:
            month_value = int(found["m"] or found["m2"] or found["m3"] or found["m4"])
            day = found["d"] or found["d4"]
            if 1 <= month_value <= 12:
                yield Date(int(year), month_value, int(day) if day else None, *found.span())
            continue
        date = _day_and_month(int(found["a"]), int(found["b"]), _full_year(found["y2"]), found.span())
        if date is not None:
            yield date


def _day_and_month(first: int, second: int, year: int | None, span: tuple[int, int]) -> Date | None:
    """A date from its two small numbers in either order; 03/04 can be read both ways."""
    if 1 <= first <= 12 and 1 <= second <= 31:
        return Date(year, first, second, *span, ambiguous=second <= 12 and first != second)
    if 1 <= second <= 12 and 1 <= first <= 31:
        return Date(year, second, first, *span)
    return None


# Dates and times of day that a golden set expects.


class WantedDate(msgspec.Struct, frozen=True):
    """A date, a part of one, or a time of day, as a golden set expects it; with both, both are expected."""

    date: Date | None
    time: Quantity | None = None

    def find_all(self, text: str) -> list[tuple[int, int]]:
        """The spans of the dates or times of a text that are this one; a year may be left unsaid."""
        found: list[tuple[int, int]] = []
        if self.date is not None:
            found = [(one.start, one.end) for one in stated_dates(text) if is_same_date(self.date, one)]
            if not found:
                return []
        if self.time is not None:
            finders = (
                find_times,
                find_dotted_times,
                find_bare_hours,
                find_worded_hours,
                find_time_ranges,
            )
            times = chain.from_iterable(find(text) for find in finders)
            found = [(one.start, one.end) for one in times if self.time.equals(one)]
        return found


def is_same_date(expected: Date, stated: Date) -> bool:
    """Whether a stated date is the expected one; its year may be left unsaid where it names the day."""
    return expected.agrees(stated) or (stated.day is not None and stated.agrees(expected))


# 30/09 and 30.09., which may also be fractions and versions: looked for only where a date is expected.
_DAY_AND_MONTH = lazy(
    r"(?<![0-9./-])(?P<a>[0-3]?[0-9])(?:/(?P<b>[0-3]?[0-9])|\.(?P<c>[0-3]?[0-9])\.)(?![0-9/])"
)
_WEEKDAY = lazy(r"^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b[,.]?\s*", re.IGNORECASE)
_HOUR_IN_TWO_DIGITS = lazy("[0-9]{2}:[0-9]{2}")
# The time of an ISO moment, without seconds and zone.
_ISO_TIME = lazy(r"(?<=[0-9])[T ]([0-2][0-9]:[0-5][0-9])(?::[0-9.]+)?(?:Z|[+-]00:?00)?$")


# The days of a month in words: first to thirty-first.
_DAY_NAMES = {
    name: value
    for name, value in NUMBER_VALUES.items()
    if name.endswith(("st", "nd", "rd", "th")) and value < 31
} | {
    f"{tens} {unit}": 10 * number + NUMBER_VALUES[unit]
    for tens, number in (("twenty", 2), ("thirty", 3))
    for unit in ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
    if number == 2 or unit == "first"
}
_DAY_NAME = "|".join(sorted(_DAY_NAMES, key=len, reverse=True)).replace(" ", "[ -]")
# The sixth of October, sixth October 2026, October the sixth.
_SPELLED = lazy(
    rf"\b(?:(?P<d1>{_DAY_NAME})\s+(?:day\s+)?(?:of\s+)?" + _MONTH.format("m1")
    + rf"|{_MONTH.format('m2')}\s+(?:the\s+)?(?P<d2>{_DAY_NAME})\b)(?:,?\s*" + _YEAR.format("y") + ")?",
    re.IGNORECASE,
)  # fmt: skip


def find_spelled_dates(text: str) -> Iterator[Date]:
    """Every day in words with its month."""
    for found in _SPELLED.finditer(text) if _MONTH_SIGN.search(text) else ():
        day = _DAY_NAMES[(found["d1"] or found["d2"]).lower().replace("-", " ")]
        month = month_number(found["m1"] or found["m2"])
        yield Date(_full_year(found["y"]), month, day, *found.span())


def stated_dates(text: str) -> Iterator[Date]:
    """Every date of a text in which one is expected."""
    return chain(
        find_dates(text), find_short_dates(text), find_spelled_dates(text), find_days_sharing_a_month(text)
    )


_TO = r"to|and|until|till?|through|bis(?: zum)?|und|à|au|et|al?|y|e|en|tot"
_DASH = r"\s?[-\u2010-\u2015]\s?"
# "3–7 May", "From 3 to 7 May", "3. bis 7. Mai": the day before one that has its month.
_DAY_BEFORE = lazy(
    rf"(?<![\w.,:/-])(?P<d>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th|\.)?(?:{_DASH}|\s(?:{_TO})\s(?:the\s)?)$",
    re.IGNORECASE,
)
# "May 3–7, 2026", "May 3 and 4": the day behind it; a word behind that is what is counted, as in "May 3 and 4 seats".
_DAY_BEHIND = lazy(
    rf"(?:{_DASH}|\s(?:{_TO})\s(?:the\s)?)(?P<d>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?(?![\w:%]|[.,][0-9])"
    rf"(?!\s?(?:[ap]\.?m\b|[%$€£]))(?:,?\s*{_YEAR.format('y')})?"
    r"(?=\s*(?:$|[,;.!?)]|(?:and|we|from|in|at|on|for|is|are|the|each|every)\b))",
    re.IGNORECASE,
)
_LONGEST_BETWEEN_DAYS = 24


def find_days_sharing_a_month(text: str) -> Iterator[Date]:
    """The days of ranges and pairs that leave the month to the other day."""
    for found in _NAMED.finditer(text) if _MONTH_SIGN.search(text) else ():
        month = month_number((found["m1"] or found["m2"] or found["m3"]).upper().replace("İ", "I"))
        if found["d1"]:
            other = _DAY_BEFORE.search(text[max(0, found.start() - _LONGEST_BETWEEN_DAYS) : found.start()])
            if other is not None and int(other["d"]) < int(found["d1"]):
                start = found.start() - len(other[0])
                yield Date(_full_year(found["y1"]), month, int(other["d"]), start, start + len(other["d"]))
        elif found["d2"] and not found["y2"]:
            other = _DAY_BEHIND.match(text, found.end())
            if other is not None and int(found["d2"]) < int(other["d"]):
                yield Date(_full_year(other["y"]), month, int(other["d"]), *other.span("d"))


# 18.30 after a word such as "at", which may also be a number: looked for only where a time is expected.
_DOTTED_TIME = lazy(
    r"\b(?:at|by|from|until|till|to|before|after|around|um|ab|bis|von|gegen|à|vers|dès|alle|dalle|a las|às|om|vanaf|kl)"
    r"\.? (?P<time>(?P<h>[01]?[0-9]|2[0-3])\.(?P<m>[0-5][0-9]))"
    r"(?![0-9]|[.,][0-9]|\s?(?:[%°$€£¥₹]|(?:eur|usd|gbp|chf|[kcm]?m|[km]?g|[mh]?l|[gmt]b)\b"
    r"|(?:percent|per cent|euros?|dollars?|pounds?)\b))",
    re.IGNORECASE,
)


def find_dotted_times(text: str) -> Iterator[Quantity]:
    """Times of day with a point between hour and minute, as in "at 18.30"; one from 1.00 to 12.59 may be in the evening."""
    for match in _DOTTED_TIME.finditer(text):
        hour = int(match["h"])
        hours = (hour, (hour + 12) % 24) if 1 <= hour <= 12 and match["h"][0] != "0" else (hour,)
        minutes = tuple(float(60 * one + int(match["m"])) for one in hours)
        yield Quantity(minutes, minutes, "clock", *match.span("time"))


# What follows a price or a measure; "9-18" and "11.00–16.00" may be those.
_NO_MEASURE = (
    r"(?![0-9]|[.,][0-9]|\s?(?:[%°$€£¥₹]"
    r"|(?:eur|usd|gbp|chf|[kcm]?m|[km]?g|[mh]?l|percent|per cent|euros?|dollars?|pounds?)\b))"
)
_TIME_RANGES = (
    lazy(
        rf"(?<![\w.,:$€£-])(?<![$€£] )(?P<h1>[01]?[0-9]|2[0-3])\.(?P<m1>[0-5][0-9])(?:{_DASH}|\s(?:{_TO})\s)"
        rf"(?P<h2>[01]?[0-9]|2[0-4])\.(?P<m2>[0-5][0-9])" + _NO_MEASURE,
        re.IGNORECASE,
    ),
    # Hours alone on a line, or behind what hours are said of: "ages 9-18" are none.
    lazy(
        r"(?:^[^\w$€£]*|\b(?:open|opening|hours|daily|weekdays|geöffnet|ouvert|abierto"
        r"|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}|(?:mo|di|mi|do|fr|sa|so)|[a-z]+tags?)[:.,]?\s)"
        rf"(?P<h1>[01]?[0-9])(?P<m1>){_DASH}(?P<h2>[01]?[0-9]|2[0-4])(?P<m2>)(?=\W*$|[,;.!?)]+\s(?![0-9]))"
        + _NO_MEASURE,
        re.IGNORECASE | re.MULTILINE,
    ),
)


def find_time_ranges(text: str) -> Iterator[Quantity]:
    """Both ends of hours without a word: "9.30 – 17.00", "9-18"; one from 1.00 to 12.59 may be in the evening."""
    for match in chain.from_iterable(pattern.finditer(text) for pattern in _TIME_RANGES):
        for number in ("1", "2"):
            name = match["h" + number]
            hour, minute = int(name), int(match["m" + number] or 0)
            is_open = 1 <= hour <= 12 and name[0] != "0"
            hours = (hour, (hour + 12) % 24) if is_open else (hour % 24,)
            minutes = tuple(float(60 * each + minute) for each in hours)
            yield Quantity(minutes, minutes, "clock", match.start("h" + number), match.end("m" + number))


_HOUR_NAMES = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
# An hour alone, where a time is expected: "at eleven.", "from 11 to 5", or as the whole reply.
_BARE_HOUR = lazy(
    rf"(?:(?:\b(?:at|from|until|till|to|before|after|around|by|between|um|ab|bis|von|gegen|à|alle|a las|às|om|vanaf|kl)\.? )"
    rf"|^\W*)(?P<h>2[0-4]|1[0-9]|0?[0-9]|{'|'.join(_HOUR_NAMES)})\b(?! in the (?:morning|afternoon|evening))"
    r"(?=\W*$|[,;.!?)]*\s*\n|[,;.!?)*]+ (?![0-9])|\s?[-\u2013] ?[0-9]"
    r"|,? (?:on|in|every|each|daily|sharp|and|or|but|to|till?|until|for|we|bis|et|y|e)\b)",
    re.IGNORECASE,
)


def find_bare_hours(text: str) -> Iterator[Quantity]:
    """Hours of the day without minutes or am and pm; one from 1 to 12 may be in the evening."""
    for match in _BARE_HOUR.finditer(text):
        name = match["h"].lower()
        hour = int(name) if name.isdigit() else NUMBER_VALUES[name]
        hours = (hour, (hour + 12) % 24) if 1 <= hour <= 12 else (hour % 24,)
        minutes = tuple(60.0 * one for one in hours)
        yield Quantity(minutes, minutes, "clock", *match.span("h"))


# "six in the evening".
_HOUR_OF_DAY = lazy(
    rf"\b(?P<h>{'|'.join(_HOUR_NAMES)})(?: o['’]clock)? (?P<day>in the (?:morning|afternoon|evening)|at night)\b",
    re.IGNORECASE,
)
# "18.00" as the whole reply, and "1800 hours".
_TIME_ALONE = lazy(
    r"^\W*(?P<h>[01]?[0-9]|2[0-3])\.(?P<m>[0-5][0-9])\W*$"
    r"|(?<![0-9.,])(?P<h2>[01][0-9]|2[0-3])\.?(?P<m2>[0-5][0-9]) ?(?:hours|hrs|hours?|h|uhr|uur)\b",
    re.IGNORECASE,
)


def find_worded_hours(text: str) -> Iterator[Quantity]:
    """Times of day in other forms: "six in the evening", "bis sechs Uhr abends", "1800 hours", "18.00" alone."""
    found: list[tuple[tuple[int, ...], int, int]] = [
        (tuple(60 * hour for hour in hours), start, end) for hours, start, end in find_hour_words(text)
    ]
    for match in _HOUR_OF_DAY.finditer(text):
        hour = NUMBER_VALUES[match["h"].lower()] % 12
        day = match["day"].lower()
        is_later = hour >= 6 and hour < 12 if day == "at night" else "morning" not in day
        found.append(((60 * (hour + 12 * is_later),), *match.span()))
    for match in _TIME_ALONE.finditer(text):
        hour, minute = int(match["h"] or match["h2"]), int(match["m"] or match["m2"])
        is_open = match["h"] is not None and 1 <= hour <= 12 and match["h"][0] != "0"
        minutes = (60 * hour + minute,)
        found.append((minutes + ((60 * ((hour + 12) % 24) + minute),) * is_open, *match.span()))
    for times, start, end in found:
        values = tuple(map(float, times))
        yield Quantity(values, values, "clock", start, end)


def find_short_dates(text: str) -> Iterator[Date]:
    """Every day with its month in digits and without a year."""
    for found in _DAY_AND_MONTH.finditer(text):
        date = _day_and_month(int(found["a"]), int(found["b"] or found["c"]), None, found.span())
        if date is not None:
            yield date


@lru_cache(maxsize=4096)
def parse_date(text: str) -> WantedDate | None:
    """The date or time that a text is, and nothing else; None if it is neither.

    >>> parse_date("2025-03-31").date.month, parse_date("6:15 pm").time.values, parse_date("the 31st")
    (3, (1095.0,), None)
    """
    text = _WEEKDAY.sub("", text.strip())
    moment = _ISO_TIME.search(text)
    if moment:
        day = parse_date(text[: moment.start()])
        # Databases write midnight where a column of dates has no time.
        time = None if moment[1] == "00:00" else _wanted_time(moment[1])
        return None if day is None else WantedDate(day.date, time)
    date = _whole(find_dates(text), text) or _whole(find_short_dates(text), text)
    time = None if date else _wanted_time(text)
    return WantedDate(date, time) if date or time else None


def _wanted_time(text: str) -> Quantity | None:
    time = _whole(find_times(text), text)
    if time is not None and _HOUR_IN_TWO_DIGITS.fullmatch(text):
        # 11:00 is in the morning; only 9:00 may also be meant for the evening.
        return msgspec.structs.replace(time, numbers=time.numbers[:1], values=time.values[:1])
    return time


_Spanned = TypeVar("_Spanned", Date, Quantity)


def _whole(spans: Iterable[_Spanned], text: str) -> _Spanned | None:
    """The one that is the whole text."""
    return next((one for one in spans if one.start == 0 and one.end == len(text)), None)


# Moments: times from outside as stored (UTC), and stored times as shown (local zone).


def read_moment(text: str) -> str:
    """A time in ISO 8601 as the store writes it; one that names no zone is in UTC."""
    try:
        parsed = datetime.fromisoformat(text.strip())
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        return parsed.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        raise UsageError(f"created_at {text[:60]!r}: not a time; write it as 2026-11-16T08:30:00Z") from None


def day_begins(day: str) -> str:
    """The moment at which a day begins here, as the store writes it."""
    return _midnight(day, timedelta())


def day_ends(day: str) -> str:
    """The moment at which a day ends here."""
    return _midnight(day, timedelta(days=1))


def _midnight(day: str, later: timedelta) -> str:
    try:
        # Without a zone it is in that of this machine.
        moment = (datetime.strptime(day, "%Y-%m-%d") + later).astimezone()
        return moment.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{day[:40]!r} is not a date; write it as 2026-11-16") from None


def local_time(moment: str, *, zone: bool = True) -> str:
    """A stored time as people read it, in the zone of this machine, which is named: 2026-11-16 09:30 CET."""
    try:
        here = datetime.fromisoformat(moment).astimezone()
    except (ValueError, OverflowError, OSError):
        # A value that is not a time is shown unchanged.
        return moment[:16].replace("T", " ")
    return f"{here:%Y-%m-%d %H:%M}" + (f" {here.tzname()}" if zone else "")


def zone_name() -> str:
    """The name of the local time zone."""
    return datetime.now().astimezone().tzname() or "UTC"
