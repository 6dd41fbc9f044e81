"""Readings of texts in the evidence: their numbers, dates, times and words, read once however often a text comes up.

Logs show the same documents and the same values again and again, so that readings are kept.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

import msgspec

from answerkey.grounded.claims.day_ranges import find_day_ranges
from answerkey.grounded.claims.identifiers import find_identifiers
from answerkey.grounded.claims.quantity import Quantity, find_quantities
from answerkey.grounded.claims.times import find_times, may_hold_time
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import folded_text
from answerkey.text.number_words import NUMBER_NAMES
from answerkey.text.units import UNIT_SPELLINGS

__all__ = [
    "PHYSICAL",
    "UNIT_NAMES",
    "ReadNumber",
    "Reading",
    "label_before",
    "measure_after",
    "measure_named",
    "read_text",
]

# Longer texts than the first are kept in smaller number, and those longer than the second not at all.
_LONG = 200
_LONGEST = 20_000


class ReadNumber(msgspec.Struct, frozen=True):
    """A number in a text."""

    quantity: Quantity
    # Digits of a code: "INV-2024-001", "B2".
    in_code: bool
    # The unit that follows, under its one name.
    measure: str
    # A little of the text on either side.
    around: str
    # The word that the number is the value of: "deposit" of "Security deposit: $2,500".
    label: str = ""
    # The word that follows and is no unit: "doses" of "two doses".
    noun: str = ""


class Reading:
    """What a text holds, found when it is first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def folded(self) -> str:
        """ " word word ": a phrase is in it if it is in it with a blank on either side."""
        return f" {folded_text(self._text).strip()} "

    @cached_property
    def words(self) -> frozenset[str]:
        """Every folded word."""
        return frozenset(self.folded.split())

    @cached_property
    def plain_words(self) -> frozenset[str]:
        """Every word that begins with a small letter."""
        return frozenset(_PLAIN_WORD.findall(self._text))

    @cached_property
    def dates(self) -> tuple[tuple[Date, str], ...]:
        """Every date, with its words."""
        if (day := _MONTH_AND_DAY.fullmatch(self._text)) is not None:
            return ((Date(None, int(day[1]), int(day[2]), *day.span()), self._text),)
        text = _without_t(self._text)
        if len(text) <= _LONG and " " not in text:
            # The date in "minutes-2024-12-12.pdf".
            text = _FILE_DATE.sub(" ", text)
        found = self._dates if text == self._text else _find_dates(text)
        return tuple((date, text[date.start : date.end]) for date in found)

    @cached_property
    def _dates(self) -> tuple[Date, ...]:
        return _find_dates(self._text)

    @cached_property
    def times(self) -> tuple[int, ...]:
        """Every time of day, as minutes since midnight."""
        if not may_hold_time(self._text):
            return ()
        return tuple(minutes for _, _, readings in find_times(_without_t(self._text)) for minutes in readings)

    @cached_property
    def numbers(self) -> tuple[ReadNumber, ...]:
        """Every number; digits of dates and times are not numbers."""
        value = self._text
        if _DIGIT.search(value) is None and NUMBER_NAMES.isdisjoint(_LETTERS.findall(value.lower())):
            return ()
        text = _without_dates(value, self._dates)
        codes = _blanked(text, (span for span in find_identifiers(text) if not _RANGE.fullmatch(text, *span)))
        found = []
        for quantity in find_quantities(text):
            if quantity.spelled and (quantity.value < 1 or (quantity.value == 1 and quantity.ordinal)):
                continue
            in_code = quantity.kind == "number" and (
                codes[quantity.start] == _BLANK
                or _LETTER_BEFORE.search(text[max(0, quantity.start - 3) : quantity.start]) is not None
                or _LETTER_AFTER.match(text, quantity.end) is not None
            )
            around = value[max(0, quantity.start - 30) : quantity.end + 30]
            found.append(
                ReadNumber(
                    quantity,
                    in_code,
                    measure_after(value, quantity.end),
                    " ".join(around.split()),
                    label_before(value, quantity.start),
                    noun_after(value, quantity.end),
                )
            )
        return tuple(found)


def read_text(text: str) -> Reading:
    """The reading of a text."""
    if len(text) <= _LONG:
        return _read_short(text)
    return _read_long(text) if len(text) <= _LONGEST else Reading(text)


_read_short = lru_cache(maxsize=8192)(Reading)
_read_long = lru_cache(maxsize=512)(Reading)

# A value that is a day of every year: "03-01", ISO's "--03-01".
_MONTH_AND_DAY = re.compile(r"(?:--)?(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_FILE_DATE = re.compile(
    r"(?<=[A-Za-z])[-_](?=(?:19|20)\d\d[-_])|(?<=[A-Za-z])[-_](?=\d{1,2}[-_.]\d{1,2}[-_.](?:19|20)\d\d)"
)
# Stands where something was that is not to be read again.
_BLANK = "\x00"
_DIGIT = re.compile(r"[0-9]")
_LETTERS = re.compile(r"[a-z]+")
_PLAIN_WORD = re.compile(r"\b[a-z]\w+")
_LETTER_BEFORE = re.compile(r"[A-Za-z][-_/]?$")
_LETTER_AFTER = re.compile(r"_[A-Za-z]|[A-Z](?![a-z])")
_ISO_TIME = re.compile(r"(?<=\d)T(\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")


_LABEL = re.compile(
    r"\b([A-Za-z]{3,})[*_]*\s*(?::|\bis\b|\bwas\b|\bare\b|\bof\b|=)?[*_\s]*(?:currently|now|about|around)?\s*$"
)


def label_before(text: str, start: int) -> str:
    """The word before a value, small, with a colon or "is" between them or nothing; "" if there is none."""
    found = _LABEL.search(text[max(0, start - 40) : start])
    return found[1].lower() if found else ""


_NOUN = re.compile(r"[ -]([a-z]{3,})\b")


def noun_after(text: str, end: int) -> str:
    """The word after a number that is not its unit, "" if there is none."""
    found = _NOUN.match(text, end)
    return found[1] if found and found[1] not in UNIT_NAMES and found[1] not in _NO_NOUNS else ""


_NO_NOUNS = frozenset(
    ["and", "per", "for", "from", "the", "with", "each", "plus", "percent", "after", "through", "until"]
)


def _without_t(text: str) -> str:
    """ISO's "2024-08-15T09:30:00Z" with blanks for its T and its zone."""
    return _ISO_TIME.sub(r" \1 ", text) if "T" in text else text


def _find_dates(text: str) -> tuple[Date, ...]:
    return (*find_dates(text), *find_day_ranges(text))


def _without_dates(text: str, dates: Iterable[Date]) -> str:
    text = _blanked(
        text, ((date.start, date.end) for date in dates if date.day is not None or date.start == 0)
    )
    return _blanked(text, ((start, end) for start, end, _ in find_times(text)))


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with blanks in the place of spans, which may overlap."""
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if end > at:
            start = max(start, at)
            parts += (text[at:start], _BLANK * (end - start))
            at = end
    return "".join(parts) + text[at:] if parts else text


# "5-7 days", a vote of 3-0: not a code.
_RANGE = re.compile(r"\d{1,4}\s?[-–]\s?\d{1,4}")
_MEASURE = re.compile(
    r"\s?(?:°|º|\b(?i:deg(?:rees?|s)?)\b\.?)\s?([CF]\b|(?i:celsius|centigrade|fahrenheit))"
    r"|\)?[ \u00a0-]?(?:(?:[a-z]+ )?((?i:square|sq|cubic|cu)\b)\.?[ \u00a0]?([A-Za-z]+)|([^\W\d_]+[²³]?))"
)
# "$0.32 per kilometre", "$18/h".
_RATE = re.compile(r"[ \u00a0]?(?:per[ \u00a0]|/[ \u00a0]?)([A-Za-z]+)", re.IGNORECASE)
# Units whose spelling is more often another word.
_NO_UNITS = frozenset(
    ["in", "an", "ore", "m", "l", "ac", "ha", "second", "foot", "yard", "mo", "amp", "volt", "gr"]
)
_MORE_UNITS_TEXT = """
millisecond milliseconds msec ms
second sekunde sekunden secondes segundos secondi
minute minuten minutos minuti
hour stunde stunden heure heures hora horas ore
day tag tage tagen jour jours día días giorni dias dagen
week woche wochen semaine semaines semana semanas
month monat monate monaten mois mes meses mesi maanden
year jahr jahre jahren an ans année années año años anni anos jaar
decade decades
mile mpg
tonne tonnen tonelada toneladas tonnellate t
kilogram kilogramm kilo kilos kilogramos
litre litros litri
kilometre kilometern kilómetros kilomètres
metre metern metros mètres
centilitre centilitres centiliter centiliters cl
hectolitre hectolitres hectoliter hectoliters hl
pint pints
quart quarts
kilowatt kilowatts kw kwp
megawatt megawatts mw
watt-hour wh
kilowatt-hour kwh
megawatt-hour mwh
gigawatt-hour gwh
"""
# Spelling → name, with units that only figures have and those of other languages.
UNIT_NAMES = {
    **{
        spelling: line.split()[0]
        for line in _MORE_UNITS_TEXT.strip().splitlines()
        for spelling in line.split()
    },
    **UNIT_SPELLINGS,
}
# Units that are not left out beside a figure, unlike those of time.
_PHYSICAL_TEXT = """
gram kilogram milligram tonne pound ounce litre millilitre gallon metre kilometre centimetre millimetre mile inch celsius
fahrenheit kilowatt-hour megawatt-hour kilowatt megabyte gigabyte terabyte acre hectare
"""
PHYSICAL = frozenset(_PHYSICAL_TEXT.split())
_CURRENCIES = frozenset(["dollar", "cent", "euro", "percent", "sterling"])


def measure_after(text: str, end: int) -> str:
    """The unit that follows a number in a text, under its one name, or ""."""
    if (rate := _RATE.match(text, end)) is not None:
        unit = measure_named((rate[1].lower(),))
        return f"per {unit}" if unit else ""
    found = _MEASURE.match(text, end)
    if found is None:
        return ""
    if found[1]:
        return "celsius" if found[1][0] in "cC" else "fahrenheit"
    if found[2]:
        power = "square" if found[2][0] in "sS" else "cubic"
        return f"{power} {UNIT_NAMES.get(found[3].lower(), found[3].lower())}"
    unit = found[4].lower()
    if unit[-1] in "²³":
        power = "square" if unit[-1] == "²" else "cubic"
        return f"{power} {UNIT_NAMES.get(unit[:-1], unit[:-1])}"
    return measure_named((unit,))


def measure_named(words: Sequence[str]) -> str:
    """The unit that words name, the last one first: ("living", "area", "sqft"); of a rate that of what there is per thing."""
    if "per" in words[1:]:
        words = words[: words.index("per")]
    for number in range(len(words) - 1, -1, -1):
        word = words[number]
        before = words[number - 1] if number else ""
        if before in ("square", "sq") and word in UNIT_NAMES:
            return f"square {UNIT_NAMES[word]}"
        if word in _SQUARES:
            return _SQUARES[word]
        if number and word in _CALENDAR_WORDS:
            # `size_last_month` and `due_day` are not in months and days; `term_months` is.
            continue
        unit = UNIT_NAMES[word] if _is_unit(word) else (_KEY_UNITS.get(word, "") if before else "")
        if unit:
            if unit == "metre" and not _TIME_KEYS.isdisjoint(words):
                unit = "minute"
            return unit
    return ""


_CALENDAR_WORDS = frozenset(["day", "week", "month", "year"])
# At the end of a name of values: `runtime_s`, `fuel_l`.
_KEY_UNITS = {
    "s": "second",
    "h": "hour",
    "m": "metre",
    "g": "gram",
    "l": "litre",
    "t": "tonne",
    "c": "celsius",
    "f": "fahrenheit",
}
_TIME_KEYS = frozenset(["time", "duration", "wait", "runtime", "length_of_stay", "elapsed"])
_SQUARES = {
    "sqft": "square foot",
    "sf": "square foot",
    "sqm": "square metre",
    "m2": "square metre",
    "m²": "square metre",
}


def _is_unit(word: str) -> bool:
    return word in UNIT_NAMES and word not in _NO_UNITS and UNIT_NAMES[word] not in _CURRENCIES
