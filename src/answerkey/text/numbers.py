"""Numbers in text: their spans and values, however they are written.

A number's value is kept as a canonical decimal string ("442300", "-0.5"), so equality is exact at any length and
costs time linear in the digits. Read as numbers: US thousands ("442,300.00"), groups parted by a space, a no-break or
thin space, an apostrophe or an underscore ("442 300", "442'300"), Indian groups ("12,34,567"), and European forms where
they cannot be anything else ("442.300,00", "1.442.300"). "442.300" alone is the US 442.3.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from unicodedata import numeric

import msgspec

from answerkey.text.numerals import OTHER_NUMERALS, western_digits
from answerkey.text.patterns import lazy

# Signs before (or after) an amount that do not change its value.
CURRENCY_SIGNS = "$€£¥₹₽₩₺₴₦₫฿₿¢"

_SPACES = "\u0020\u00a0\u2009\u202f"
# The first digit is outside the alternatives, so that the regular expression engine can skip to it.
NUMBER_PATTERN = (
    r"[0-9](?:"
    # 442.300,00 and 1.442.300: European, because a US number has one point at most.
    r"[0-9]{0,2}(?:\.[0-9]{3}){1,8},[0-9]{1,2}(?![0-9])|[0-9]{0,2}(?:\.[0-9]{3}){2,8}(?![0-9.])"
    # 442,300 · 442 300 · 442'300 · 442_300, the same separator throughout; then 12,34,567; then plain digits.
    r"|(?:[0-9]{0,2}([," + _SPACES + r"'’_])[0-9]{3}(?:\1[0-9]{3})*+(?![0-9])"
    r"|[0-9]?(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])"
    r"|[0-9]*+)(?:\.[0-9]++)?)"
)
_NUMBER = lazy(NUMBER_PATTERN)
# A text that is nothing but a number: the same body, its sign and currency before, a currency or percent sign after.
_ONLY = lazy(
    rf"\s*(?P<sign>[-+\u2212\u2013]?)\s*[{CURRENCY_SIGNS}]?\s*(?P<sign2>[-+\u2212\u2013]?)(?P<body>"
    + NUMBER_PATTERN.replace(r"\1", r"\4")
    + rf"|\.[0-9]++)\s*[{CURRENCY_SIGNS}%]?\s*"
)
_EUROPEAN = lazy(r"[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]{1,2}|[0-9]{1,3}(?:\.[0-9]{3}){2,}")
# Characters between a number's digits, in UTF-8.
_ASCII_DROPPED = b",. '_"
_WIDE_DROPPED = [separator.encode() for separator in _SPACES + "’" if not separator.isascii()]
_DROP_SEPARATORS = str.maketrans("", "", "," + _SPACES + "'’_")
# A hyphen, a minus, and the dash that many keyboards give for it.
_MINUS = "-\u2212\u2013"
_SIGN_CONTEXT = frozenset(" \t\n\r([{=:;,/\u00a0\u202f\"'“‘*|>" + CURRENCY_SIGNS)


class Number(msgspec.Struct, frozen=True, gc=False):
    """One number in a text."""

    # Exact value as a plain decimal: no separators, no needless zeros, "-" if negative.
    canonical: str
    # Its span: digits with their sign, without currency or unit.
    start: int
    end: int

    @property
    def value(self) -> float:
        """The value as a float (infinite where it exceeds one)."""
        return float(self.canonical)


def canonical_number(digits: str, negative: bool = False) -> str:
    """The exact value of a number's digits as a plain decimal string: "0442,300.50" gives "442300.5"."""
    if digits.isdigit():
        whole = digits.lstrip("0") or "0"
        return "-" + whole if negative and whole != "0" else whole
    if "." in digits and _EUROPEAN.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.translate(_DROP_SEPARATORS)
    whole, point, fraction = digits.partition(".")
    whole = whole.lstrip("0") or "0"
    if point:
        fraction = fraction.rstrip("0")
        if fraction:
            whole = f"{whole}.{fraction}"
    return "-" + whole if negative and whole != "0" else whole


def find_numbers(text: str) -> Iterator[Number]:
    """Every number in a text, from left to right; the time is linear in the text's length."""
    text = western_digits(text)
    for found in _NUMBER.finditer(text):
        start, end = found.span()
        digits = found.group()
        # ".5" is a half, but the second point of "1.2.5" and the stop of "Nr.5" are not decimal points.
        if (
            start
            and text[start - 1] == "."
            and "." not in digits
            and not text[start - 2 : start - 1].isalnum()
        ):
            start -= 1
            digits = "." + digits
        sign = _sign_start(text, start)
        yield Number(canonical_number(digits, sign is not None), start if sign is None else sign, end)


def with_commas(value: str) -> str:
    """A value as numbers are mostly written in English: "442300" gives "442,300"."""
    return f"{int(value):,}" if value.isdecimal() and 3 < len(value) < 20 else value


def whole_number_end(text: str, at: int, end: int) -> int:
    """Where a number ends that is written from `at` to `end`, cents of zero included; 0 if what is around it may change it.

    A quick test for how amounts are mostly written ("$442,300.00", "in 2024,").
    """
    before = text[at - 1 : at] if at else " "
    if before == "$":
        before = text[at - 2 : at - 1] if at > 1 else " "
    if before not in _OPENING or (at > 1 and text[at - 2].isdigit()):
        return 0
    if text.startswith(".00", end):
        end += 3
    after = text[end : end + 1]
    if after.isdigit() or (after and after in _INSIDE and text[end + 1 : end + 2].isdigit()):
        return 0
    return end


_OPENING = frozenset(' (\n\t:"“')
_INSIDE = frozenset(",." + _SPACES + "'’_")


def bare_digits(text: str) -> str:
    """The text without anything that may be between a number's digits: a quick test before `find_numbers`.

    A text can only hold a number of some value if its bare form holds `significant_digits(value)`.
    """
    # Bytes are gone through ten times as fast as characters.
    data = western_digits(text).encode("utf-8", "replace")
    if len(data) > len(text):
        for separator in _WIDE_DROPPED:
            data = data.replace(separator, b"")
    return data.translate(None, _ASCII_DROPPED).decode()


def significant_digits(canonical: str) -> str:
    """The digits that every way to write a number of this value has in a row."""
    return canonical.replace(".", "").lstrip("-0") or "0"


def _sign_start(text: str, start: int) -> int | None:
    """The index of a minus sign before the digits ("-5", "-$5", "$-5"), not a hyphen or range ("10-5")."""
    at = start - 1
    if at >= 0 and text[at] in CURRENCY_SIGNS:
        at -= 1
    if at < 0 or text[at] not in _MINUS:
        return None
    # "10 –15" is a range.
    if text[at] == "\u2013" and text[max(0, at - 2) : at].rstrip()[-1:].isdigit():
        return None
    return at if at == 0 or text[at - 1] in _SIGN_CONTEXT else None


# 1200,50 and 12,5%: after a comma that separates thousands there would be three digits. "1,2" alone may be two numbers.
_ONLY_WITH_COMMA = lazy(
    rf"(?P<before>[^0-9]*)(?P<whole>[0-9]+|[0-9]{{1,3}}(?:[.{_SPACES}'’][0-9]{{3}})+),(?P<part>[0-9]{{2}}|[0-9](?=[^0-9]))(?P<after>[^0-9]*)"
)


def parse_number(text: str) -> str | None:
    """The canonical value of a text that is one number and nothing else (currency sign and % aside), or None."""
    if text.isdecimal() and text.isascii():
        return canonical_number(text)
    comma = _ONLY_WITH_COMMA.fullmatch(text)
    if comma is not None:
        text = f"{comma['before']}{re.sub('[^0-9]', '', comma['whole'])}.{comma['part']}{comma['after']}"
    found = _ONLY.fullmatch(text)
    if found is None:
        return None
    sign = found["sign"] or found["sign2"]
    return canonical_number(found["body"], bool(sign) and sign in _MINUS)


# Numbers written as words: "nine hundred", "twenty-first", "nineteen eighty-four"; and words of scale.


_CARDINALS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
"""
_ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth
hundredth thousandth
"""
# Number word → value.
NUMBER_VALUES = {
    name: value
    for names in (_CARDINALS, _ORDINALS)
    for name, value in zip(names.split(), (*range(20), *range(20, 101, 10), 1000), strict=True)
}
# A word or letter of scale to its power of ten.
SCALES = {
    "k": 3, "thousand": 3, "m": 6, "mm": 6, "mn": 6, "mio": 6, "million": 6, "millions": 6, "b": 9, "bn": 9,
    "tsd": 3, "mil": 3, "millón": 6, "millones": 6, "millionen": 6, "milioni": 6, "milhões": 6,
    "billion": 9, "billions": 9, "t": 12, "tn": 12, "trillion": 12, "trillions": 12, "lakh": 5, "crore": 7, "hundred": 2,
}  # fmt: skip
_WORD_VALUES = NUMBER_VALUES | {"dozen": 12, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# Every word that a number may begin with.
NUMBER_NAMES = frozenset(_WORD_VALUES)
# What the number before it is taken times.
_TIMES = frozenset(name for name, value in _WORD_VALUES.items() if value >= 100 or name == "dozen")


def one_of(names: Iterable[str]) -> str:
    """A pattern for any of some ASCII words in any case; its first letters come first, so that the engine can skip to them."""
    ends: dict[str, list[str]] = {}
    for name in sorted(names, key=len, reverse=True):
        ends.setdefault(name[0], []).append(name[1:])
    letters = "".join(ends)
    branches = "|".join(f"(?<={first})(?:{'|'.join(rest)})" for first, rest in ends.items())
    return rf"[{letters}{letters.upper()}](?<!\w.)(?ai:{branches})"


_NAME = one_of(_WORD_VALUES)
# No number has more words.
_RUN = lazy(rf"{_NAME}\b(?:(?:\s+|\s*-\s*)(?:[aA][nN][dD]\s+)?{_NAME}\b){{0,23}}")
_LETTERS = lazy(r"[a-z]+")


@lru_cache(maxsize=4096)
def _spelled_parts(run: str) -> tuple[int, ...]:
    """The numbers that a run of number words says one after the other."""
    numbers = [0]
    part, room = 0, 10**15
    for word in filter(NUMBER_NAMES.__contains__, _LETTERS.findall(run)):
        value = _WORD_VALUES[word]
        if word in _TIMES:
            part, room = (part or 1) * value, value
            if value >= 1000:
                numbers[-1], part = numbers[-1] + part, 0
        elif value < room:
            # After "twenty" there is room for "one", after that for nothing.
            part, room = part + value, 10 if value >= 20 else 1
        else:
            numbers[-1] += part
            numbers.append(0)
            part, room = value, 10 if value >= 20 else 1
    numbers[-1] += part
    return tuple(numbers)


def _spelled_value(run: str) -> int | None:
    """The value of a run of number words; None if it is several numbers."""
    numbers = _spelled_parts(run)
    if len(numbers) == 2 and all(10 <= number < 100 for number in numbers):
        # "nineteen eighty-four".
        return 100 * numbers[0] + numbers[1]
    return numbers[0] if len(numbers) == 1 else None


def spelled_numbers(text: str) -> Iterator[tuple[int, int, int]]:
    """Every number written in words, as (value, start, end)."""
    for run in _RUN.finditer(text):
        start, words = run.start(), run[0].lower()
        if words.startswith("first "):
            # "The first ninety days" are 90.
            start, words = start + 6, words[6:]
        value = _spelled_value(words)
        if value is not None:
            yield value, start, run.end()


def spoken_prices(text: str) -> Iterator[tuple[float, int, int]]:
    """Every "thirty-two fifty", which is also 32.50, as (value, start, end): looked for only where such an amount is expected."""
    for run in _RUN.finditer(text):
        numbers = _spelled_parts(run[0].lower())
        if len(numbers) == 2 and 10 <= numbers[1] < 100:
            yield numbers[0] + numbers[1] / 100, *run.span()


# Units and their spellings: one canonical name for "m", "metres" and "meters", and what each measures.


# The first of each line is the canonical name. Single letters that are more often something else are left out.
_LINES = """
metre metres meter meters m metro metros mètre mètres metri
kilometre kilometres kilometer kilometers km kms
centimetre centimetres centimeter centimeters cm cms
millimetre millimetres millimeter millimeters mm
foot feet ft
inch inches in
yard yards yd yds
mile miles mi
gram grams gramme grammes g gr
kilogram kilograms kilogramme kilogrammes kg kgs kilo kilos chilo chili chilogrammi
milligram milligrams mg
tonne tonnes ton tons tonnen tonelada toneladas tonnellata tonnellate t
kilotonne kilotonnes kt
pound lb lbs
ounce ounces oz
litre litres liter liters l litro litros litri
cubicmetre m³ cbm
millilitre millilitres milliliter milliliters ml
gallon gallons gal
second seconds sec secs sekunde sekunden seconde secondes segundo segundos secondi
minute minutes min mins minuten minuto minutos minuti
hour hours hr hrs h stunde stunden std heure heures hora horas ore ora uur uren timme timmar godzin godziny
day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen dagar dni
week weeks wk wks woche wochen semaine semaines semana semanas settimana settimane weken veckor tygodni tygodnie
fortnight fortnights
month months mo mos monat monate monaten mois mes meses mese mesi mês maand maanden månad månader miesiąc miesiące miesięcy
quarter quarters quartal quartale trimestre
year years yr yrs annum jahr jahre jahren an ans année années año años anno anni ano anos jaar år
percent percentage pct per-cent % ٪ prozent pourcent procent
dollar dollars usd buck bucks dólares
euro euros eur
sterling gbp quid
pounds
pence p penny
cent cents ¢
degree degrees deg °
celsius centigrade °c
fahrenheit farenheit °f
mph miles-per-hour
kmh km/h kph
watt watts w
kilowatt kilowatts kw
megawatt megawatts mw
kilowatthour kwh
megawatthour mwh
volt volts
amp amps ampere amperes
hertz hz
acre acres ac
hectare hectares ha
squarefoot sqft sf
byte bytes
kilobyte kilobytes kb
megabyte megabytes mb
gigabyte gigabytes gb
terabyte terabytes tb
"""
# Spelling to canonical name.
UNIT_SPELLINGS: dict[str, str] = {
    spelling: line.split()[0] for line in _LINES.strip().splitlines() for spelling in line.split()
}
# What a unit measures and how many base units it is; a unit that is not named here measures itself.
DIMENSIONS: dict[str, tuple[str, float]] = {
    unit: (dimension, factor)
    for dimension, units in {
        "time": {
            "second": 1.0,
            "minute": 60.0,
            "hour": 3600.0,
            "day": 86400.0,
            "week": 604800.0,
            "fortnight": 1209600.0,
        },
        "months": {"month": 1.0, "quarter": 3.0, "year": 12.0},
        "length": {"millimetre": 0.001, "centimetre": 0.01, "metre": 1.0, "kilometre": 1000.0},
        "feet": {"inch": 1 / 12, "foot": 1.0, "yard": 3.0},
        "mass": {"milligram": 0.001, "gram": 1.0, "kilogram": 1000.0, "tonne": 1e6, "kilotonne": 1e9},
        "volume": {"millilitre": 0.001, "litre": 1.0, "cubicmetre": 1000.0},
        "power": {"watt": 1.0, "kilowatt": 1e3, "megawatt": 1e6},
        "energy": {"kilowatthour": 1.0, "megawatthour": 1e3},
        "data": {"byte": 1.0, "kilobyte": 1e3, "megabyte": 1e6, "gigabyte": 1e9, "terabyte": 1e12},
        "%": {"percent": 1.0},
        "°": {"degree": 1.0, "celsius": 1.0},
        "cent": {"cent": 1.0, "pence": 1.0},
        "$": {"dollar": 1.0},
        "€": {"euro": 1.0},
        "£": {"sterling": 1.0},
    }.items()
    for unit, factor in units.items()
}


# Amounts in text: a number in digits or words with its scale and unit, in one form in which "48 hours" equals "two days".
#
# A number may have several readings ("24.300" is 24.3 or 24,300; "5 m" metres or millions); two amounts are the same where
# any two readings are. The time is linear in the text.


_CURRENCIES = {
    "$": "$", "US$": "$", "USD": "$", "€": "€", "EUR": "€", "£": "£", "GBP": "£", "¥": "¥", "₹": "₹", "CHF": "chf", "R$": "r$",
}  # fmt: skip
_MONEY = frozenset(_CURRENCIES.values())
# A number without a word character before it, except a currency: as others are written here, or with a decimal comma. Its first
# digit comes first, so that the engine can skip to it.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_AMOUNT = lazy(
    # Scripts without spaces write a number right behind a word.
    NUMBER_PATTERN.replace("[0-9]", rf"[0-9](?:(?<![^\W_{_UNSPACED}].)|(?<=(?:USD|EUR|GBP|CHF).))", 1)
    + r"(?:,[0-9]{1,2}(?![0-9]))?"
)
_BEFORE = lazy(r"(?<![^\W_])(?<!\d )([-\u2212\u2013])?(US\$|R\$|[$€£¥₹]|USD|EUR|GBP|CHF)?\s?$")
# How a sign or currency ends.
_LEADS = frozenset("-\u2212\u2013$€£¥₹DRPF")
# Minutes after midnight: 17:30, 5:30 pm, 5 p.m., 13h20, 18 Uhr.
_CLOCK = lazy(
    r"(?<![0-9.,:/])(?P<h>[01]?[0-9]|2[0-4])(?:(?:[:.]|\s?h\s?|\s?uhr\s)(?P<m>[0-5][0-9]))?(?![0-9:])"
    r"(?:\s?(?P<half>[ap])\.?\s?m\b\.?|\s?(?P<mark>uhr|h|o['’]clock)\b)?"
    r"(?: (?:in the|at) (?P<day>morning|afternoon|evening|night)\b)?",
    re.IGNORECASE,
)
# What may follow a number: a space or hyphen and a word or sign.
_TAIL = lazy(
    r"(?:[ \u00a0\u202f]|-)?((?:square|sq\.?|cubic) [^\W\d_]+|[%¢]|°\s?[CF]?|[$€£¥₹]|[^\W\d_]+[²³]?(?:/[^\W\d_]+)?)"
)
_ONE_OF_THEM = lazy(
    r"\b(?:an?|une?|eine?n?|una)[ -](hour|day|week|fortnight|month|quarter|year|half|third|heure|an|année)\b",
    re.IGNORECASE,
)
_OF_A = lazy(r" (?:of )?an? ([a-z]+)")
_AND_PART = lazy(r" and (?:(a|one|two|three) )(half|third|quarter)s?\b", re.IGNORECASE)
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "eighth": 8, "tenth": 10}
_FRACTION_SIGN = lazy("(?<=[0-9]) ?([¼-¾⅐-⅞])")
_COUNTS = {"one": 1, "two": 2, "three": 3, "a": 1}
_FRACTION = lazy(rf"({one_of(_PARTS)})(?i:s?\b(?! past| of \d{{4}}))")
_COUNT = lazy(r"\b(one|two|three|a) $", re.IGNORECASE)
# Every word that has a meaning after a number.
_TAILS = SCALES.keys() | UNIT_SPELLINGS.keys() | {name.lower() for name in _CURRENCIES}
_AMBIGUOUS = lazy(r"[0-9]{1,3}\.[0-9]{3}")
_DECIMAL_COMMA = lazy(rf"([0-9.{_SPACES}'’]*[0-9]),([0-9]{{1,2}})")
_TOO_LONG = 24
# Cents at the end of a clause.
_AT_CLAUSE_END = lazy(r"[.!?,;:)*]*(?:\s*$|\s*\n|[.!?,;:)*] |\s(?:per|each|for|a|an|pro|par|por)\b)")


class Quantity(msgspec.Struct, frozen=True, gc=False):
    """One amount in a text."""

    # Every value that its number may have.
    numbers: tuple[float, ...]
    # The same in the base unit of its dimension.
    values: tuple[float, ...]
    # "" for a bare number, else what it measures: "%", "$", "time", "mass", "clock", …
    dimension: str
    start: int
    end: int

    def equals(self, other: "Quantity") -> bool:
        """Whether both may have the same value, units aside; "71%" is also 0.71."""
        both = self.dimension and other.dimension
        others = other._in_money(self) if both else other.readings()
        for one in self._in_money(other) if both else self.readings():
            for two in others:
                if abs(one - two) <= 1e-9 * max(abs(one), abs(two)):
                    return True
        return False

    def _in_money(self, other: "Quantity") -> tuple[float, ...]:
        """Its values; those of cents beside an amount of money in the unit of that."""
        if self.dimension == "cent" and other.dimension in _MONEY:
            return tuple(value / 100 for value in self.values)
        return self.values

    @property
    def is_money(self) -> bool:
        """Whether it is an amount of a currency."""
        return self.dimension in _MONEY

    def readings(self) -> tuple[float, ...]:
        """Every number that it may be, its unit aside: "71%" is 71 and 0.71, "40 cents" 40 and 0.40."""
        hundredths = self.dimension in ("%", "cent")
        return (*self.numbers, *(value / 100 for value in self.numbers)) if hundredths else self.numbers

    def percentages(self) -> tuple[float, ...]:
        """Every number of percent that it may be: 71 for "71%" and for 0.71, none for a bare 71."""
        if self.dimension == "%":
            return self.numbers
        bare = self.dimension == ""
        return tuple(round(100 * value, 9) for value in self.numbers if -1 <= value <= 1) if bare else ()

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
        if "cent" in (self.dimension, other.dimension):
            return 1 if _MONEY.intersection((self.dimension, other.dimension)) else -1
        # Pounds are money or weight.
        return 1 if {self.dimension, other.dimension} in ({"pounds", "£"}, {"pounds", "pound"}) else -1


def find_quantities(text: str) -> list[Quantity]:
    """Every amount of a text in the order of its start: digits, times of day, and numbers in words."""
    text = western_digits(text)
    words = text.lower().encode("utf-8", "surrogatepass").translate(_LETTERS_ONLY).split()
    said = _TELLING.intersection(words)
    if not said and ":" not in text:
        return _with_cents(text, [_in_digits(text, match) for match in _AMOUNT.finditer(text)])
    timed = ":" in text or not _TIMES_QUANTITIES.isdisjoint(said) or b"to" in words
    found = list(find_times(text)) if timed else []
    taken = {place for clock in found for place in range(clock.start, clock.end)}
    found += [_in_digits(text, match) for match in _AMOUNT.finditer(text) if match.start() not in taken]
    if not _NUMBER_WORDS.isdisjoint(said):
        ends = {quantity.end for quantity in found}
        for value, start, end in spelled_numbers(text):
            # What ends a number in digits is its scale.
            if end not in ends and start not in taken:
                found.append(_with_tail(text, start, end, (float(value),), None))
    if not _OTHER_NAMES.isdisjoint(said) and not _OTHER_UNITS.isdisjoint(words):
        found += _before_units(text)
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
    return _with_cents(text, found)


def _with_cents(text: str, found: list[Quantity]) -> list[Quantity]:
    """The amounts with "32 euros 50 cents" and "18 euros 90" as one."""
    joined: list[Quantity] = []
    for cents in found:
        money = joined[-1] if joined else None
        if money is not None and money.is_money and _continues_price(text, money, cents):
            value = money.numbers[0] + cents.numbers[0] / 100
            joined[-1] = Quantity((value,), (value,), money.dimension, money.start, cents.end)
        else:
            joined.append(cents)
    return joined


def _continues_price(text: str, money: Quantity, cents: Quantity) -> bool:
    """Whether an amount is the cents of the one before it."""
    if not (0 < cents.numbers[0] < 100 and money.numbers[0].is_integer() and cents.numbers[0].is_integer()):
        return False
    between = text[money.end : cents.start]
    if cents.dimension == "cent":
        return between in (" ", " and ", ", ", " und ", " et ")
    # Two digits, or "ninety", behind the name of the currency; "18 euros 90 pieces" is two amounts.
    named = text[money.end - 1 : money.end].isalpha()
    written = text[cents.start : cents.end]
    is_two_digits = (
        cents.numbers[0] >= 10 if written[0].isalpha() else len(written) == 2 and written.isdecimal()
    )
    is_in_place = named and between == " " and not cents.dimension and is_two_digits
    return is_in_place and _AT_CLAUSE_END.match(text, cents.end) is not None


def _before_units(text: str) -> Iterator[Quantity]:
    """Numbers in words of other languages than English with the unit that follows."""
    for match in _OTHER_NUMERAL.finditer(text):
        if match["unit"].lower() in UNIT_SPELLINGS:
            value = float(OTHER_NUMERALS[match["number"].lower()])
            yield _with_tail(text, match.start(), match.end("number"), (value,), None)


def _in_digits(text: str, match: re.Match[str]) -> Quantity:
    start, end = match.span()
    sign = money = None
    if text[start - 1 : start] in _LEADS or text[start - 2 : start - 1] in _LEADS:
        before = _BEFORE.search(text, max(0, start - 5), start)
        sign, money = (before[1], before[2]) if before is not None else (None, None)
        if sign and not money and text[start - 1].isspace():
            # "- 5 apples" is an item of a list; "Total - 5" may have a dash.
            begins_line = not text[text.rfind("\n", 0, start) + 1 : start].strip(" \t" + _MINUS)
            values = _readings(match[0], False)
            both = values if begins_line or sign == "\u2013" else (*values, *_readings(match[0], True))
            return _with_tail(text, start, end, both, None)
        start = start if before is None or not (sign or money) else before.start()
    quantity = _with_tail(text, start, end, _readings(match[0], bool(sign)), money)
    if text[start - 1 : start] == "(" and text[quantity.end : quantity.end + 1] == ")":
        # An accountant's minus, or a remark: both readings stay.
        values = tuple(-value for value in quantity.values)
        numbers = tuple(-number for number in quantity.numbers)
        return msgspec.structs.replace(
            quantity, numbers=(*quantity.numbers, *numbers), values=(*quantity.values, *values)
        )
    return quantity


# Words are looked up as bytes, which are ten times as fast to part as a regular expression finds them.
_LETTERS_ONLY = bytes(byte if byte > 127 or chr(byte).isalpha() else 32 for byte in range(256))
_NUMBER_WORDS = frozenset(name.encode() for name in NUMBER_NAMES)
_ARTICLES = frozenset(b"a an un une ein eine einen una".split())
_SINGLES = frozenset("hour day week fortnight month quarter year half third heure an année".encode().split())
_PART_WORDS = frozenset(f"{part}{end}".encode() for part in _PARTS for end in ("", "s"))
# Without any of these and without a colon, a text has only numbers in digits; the last ones are for times of day.
_TIMES_QUANTITIES = frozenset(
    b"am pm m uhr h clock past noon midday midnight morning afternoon evening half halb demie quart media cuarto".split()
) | {"o’clock".encode()}
_OTHER_NAMES = frozenset(name.partition("-")[0].encode() for name in OTHER_NUMERALS)
# "due" is mostly no number: without one of these units a text has no numeral of another language.
_OTHER_UNITS = frozenset(
    name.encode()
    for name, unit in UNIT_SPELLINGS.items()
    if unit
    in ("minute", "hour", "day", "week", "month", "year", "percent", "euro", "metre", "litre", "kilogram")
    and len(name) > 1
    and not name.startswith((unit, "min", "hr", "wk", "mo", "yr", "annum", "pct", "per", "met", "lit", "kg"))
) | frozenset(b"minuten minutos minuti mois monate monaten metros metri litros litri".split())
_OTHER_NUMERAL = lazy(
    rf"\b(?P<number>{'|'.join(sorted(OTHER_NUMERALS, key=len, reverse=True))})[ \u00a0](?P<unit>[^\W\d_]{{3,}})",
    re.IGNORECASE,
)
_TELLING = _OTHER_NAMES | _NUMBER_WORDS | _SINGLES | _PART_WORDS | _TIMES_QUANTITIES
_CLOCK_SIGN = lazy(
    r"[0-9](?::|\s?h\s?)[0-9]{2}|[0-9]\s?(?:[ap]\.?\s?m\b|uhr|h\b|o['’]clock|in the [mae]|at night)",
    re.IGNORECASE,
)


_HOURS = {name: hour for hour, name in enumerate(_CARDINALS.split()[1:13], 1)}
_HOUR = "|".join((*_HOURS, "1[0-2]", "[1-9]"))
# "quarter past six", "half past 6 pm", "ten to five in the morning", "six pm", "noon".
_SPOKEN_TIME = lazy(
    rf"\b(?:(?:(?P<part>half|(?:a )?quarter|five|ten|twenty(?:[ -]five)?) (?P<side>past|after|to|before) (?P<hour>{_HOUR})"
    rf"|(?P<alone>{'|'.join(_HOURS)})(?= ?[ap]\.?m\b| o['’]clock))\b(?: o['’]clock)?"
    r"(?: ?(?P<half>[ap])\.?m\b\.?| (?:in the|at) (?P<day>morning|afternoon|evening|night))?|(?P<named>noon|midday|midnight)\b)",
    re.IGNORECASE,
)
# Half past two in German and Dutch, which count towards the next hour, in French and Spanish, which count from the last one.
_NEXT_HOUR = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf een twee drie vijf zes zeven negen tien twaalf"
_LAST_HOUR = "une deux trois quatre cinq six sept huit neuf dix onze dos tres cuatro cinco seis siete ocho nueve diez once doce"
_OTHER_TIME = lazy(
    rf"\bhal[bf] (?P<next>{_NEXT_HOUR.replace(' ', '|')})\b"
    rf"|\b(?P<last>{_LAST_HOUR.replace(' ', '|')}|1?[0-9]) (?:heures? et (?P<fr>demie|quart)|y (?P<es>media|cuarto))\b",
    re.IGNORECASE,
)
_NAMED_TIMES = {"noon": 720.0, "midday": 720.0, "midnight": 0.0}
_MINUTES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty five": 25}
# A text without any of these has no time in words.
_SPOKEN_SIGN = lazy(
    r"past|after|o['’]clock|[a-z] ?[ap]\.?m\b|noon|mid|(?:half|quarter|ten|five|twenty) (?:to|before)",
    re.IGNORECASE,
)


_OTHER_SPOKEN_SIGN = lazy(r"hal[bf] |heures? et |y (?:media|cuarto)", re.IGNORECASE)


def _half_of(day: str | None, hour: int) -> str:
    """a for the hours before noon, p for later; empty: not said."""
    if day is None:
        return ""
    day = day.lower()
    return "a" if day == "morning" or (day == "night" and not 6 <= hour <= 11) else "p"


def _spoken_times(text: str) -> Iterator[Quantity]:
    for match in _SPOKEN_TIME.finditer(text) if _SPOKEN_SIGN.search(text) else ():
        if match["named"]:
            minutes: tuple[float, ...] = (_NAMED_TIMES[match["named"].lower()],)
            yield Quantity(minutes, minutes, "clock", *match.span())
            continue
        name = (match["hour"] or match["alone"]).lower()
        hour = _HOURS.get(name) or int(name)
        half = match["half"] or _half_of(match["day"], hour)
        hours = [hour % 12, hour % 12 + 12]
        if half:
            hours = [hour % 12 + (12 if half in "pP" else 0)]
        part = (match["part"] or "").lower().removeprefix("a ").replace("-", " ")
        shift = _MINUTES.get(part, 0) * (-1 if (match["side"] or "").lower() in ("to", "before") else 1)
        minutes = tuple(float((60 * one + shift) % 1440) for one in hours)
        yield Quantity(minutes, minutes, "clock", *match.span())


def _other_spoken_times(text: str) -> Iterator[Quantity]:
    for match in _OTHER_TIME.finditer(text) if _OTHER_SPOKEN_SIGN.search(text) else ():
        name = (match["next"] or match["last"]).lower()
        hour = int(name) if name.isdigit() else OTHER_NUMERALS.get(name, 1)
        part = (match["fr"] or match["es"] or "").lower()
        shift = -30 if match["next"] else 30 if part in ("demie", "media") else 15
        # Without a day part it may be in the morning or in the evening.
        hours = [hour] if hour > 12 else [hour % 12, hour % 12 + 12]
        minutes = tuple(float((60 * one + shift) % 1440) for one in hours)
        yield Quantity(minutes, minutes, "clock", *match.span())


def find_times(text: str) -> Iterator[Quantity]:
    """Every time of day, in digits or words, in minutes after midnight."""
    yield from _spoken_times(text)
    yield from _other_spoken_times(text)
    for match in _CLOCK.finditer(text) if _CLOCK_SIGN.search(text) else ():
        hour, minute = int(match["h"]), match["m"]
        half = match["half"] or _half_of(match["day"], hour)
        if not (half or match["mark"] or (minute and text[match.start("m") - 1] != ".")):
            continue
        hours = [hour]
        if half:
            hours = [hour % 12 + (12 if half in "pP" else 0)]
        elif 1 <= hour <= 12 and (
            (match["mark"] or "").startswith(("o", "O"))
            or (minute and not match["mark"] and match["h"][0] != "0")
        ):
            # "6:15" and "6 o'clock" alone may be in the evening.
            hours.append((hour + 12) % 24)
        minutes = tuple(float((60 * one + int(minute or 0)) % 1440) for one in hours)
        yield Quantity(minutes, minutes, "clock", *match.span())


@lru_cache(maxsize=8192)
def _readings(digits: str, negative: bool) -> tuple[float, ...]:
    """The possible values of digits with separators, by US and by European rules."""
    comma = _DECIMAL_COMMA.fullmatch(digits)
    if comma:
        whole = comma[1].replace(".", "").translate(_DROP_SEPARATORS)
        readings = [canonical_number(f"{whole}.{comma[2]}")]
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
    if scale is not None and (money or tail[1].lower() not in UNIT_SPELLINGS or tail[1] in "mM"):
        # A lone "m" or "M" may be metres: both readings stay.
        scaled = tuple(value * 10.0**scale for value in values)
        values = (*values, *scaled) if tail[1] in "mM" and not money else scaled
        if tail[1] not in "mM" or money:
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
    if words[0] == "cubic" and unit == "metre":
        unit = "cubicmetre"
    elif words[1:]:
        return Quantity(values, values, f"square {unit}", start, tail.end())
    dimension, factor = DIMENSIONS.get(unit, (unit, 1.0))
    values, end = _and_part(text, tail.end(), values)
    return Quantity(values, tuple(value * factor for value in values), dimension, start, end)


def _and_part(text: str, end: int, values: tuple[float, ...]) -> tuple[tuple[float, ...], int]:
    """ "six and a half", "6½": the part that follows a number or its unit is added to it."""
    sign = _FRACTION_SIGN.match(text, end)
    if sign is not None:
        return tuple(value + numeric(sign[1]) for value in values), sign.end()
    part = _AND_PART.match(text, end) if text.startswith(" and ", end) else None
    if part is None:
        return values, end
    share = _COUNTS[part[1].lower()] / _PARTS[part[2].lower()]
    return tuple(value + share for value in values), part.end()
