"""Where a text states an expected number, range or date.

A number that is part of something else is not that value: of a day ("10 October"), a time, a phone number, an address on the
web, a code ("INV-10"), a rank ("10th") or the marker of a list. Only forms that are certain are left out, since a right reply
must not be lost: "May 10 join?" and "In September 10 seats were booked" have the number 10.
"""

import re
from collections.abc import Iterator
from functools import cached_property

from answerkey.model.question import DateExpectation, NumberExpectation, RangeExpectation
from answerkey.text.dates import Date, find_dates, parse_date
from answerkey.text.normalise import FUNCTION_WORDS
from answerkey.text.numbers import CURRENCY_SIGNS, Quantity, find_quantities, spoken_prices
from answerkey.text.numerals import find_numerals, western_digits
from answerkey.text.patterns import lazy

ValueExpectation = NumberExpectation | RangeExpectation | DateExpectation
Span = tuple[int, int]

# How a reply says that there are 0 of something; "no information" says nothing of the kind.
_NONE = lazy(
    r"\bnone\b|\bno (?!access|answer|data|idea|information|longer|more|need|problem|records?\b|way)[a-z]+",
    re.IGNORECASE,
)
_ORDINAL = lazy(r"(?:\d(?:st|nd|rd|th)|[a-z]*(?:first|second|third|[a-z]th))\b", re.IGNORECASE)

# How a text calls an amount negative, before it and behind it.
_LOSS_OF = lazy(
    r"\b(?:(?:loss|deficit|shortfall|overdraft|verlust|fehlbetrag|perte|déficit|pérdida|perdita|verlies|prejuízo)"
    r"(?: (?:of|was|is|amounted to|came to|von|de|di|van))?|negative|overdrawn by)(?: (?:about|around|rund|circa))?\W{0,3}$",
    re.IGNORECASE,
)
_LOSS = lazy(r" (?:net )?(?:loss|deficit|shortfall)\b|-Verlust\b| (?:Verlust|Minus)\b", re.IGNORECASE)
# Addresses, and numbers with two points: 7.1.2, but not 1.442.300.
_NO_NUMBER = lazy(
    r"https?://\S+|www\.\S+|\S+@\S+\.\w+|(?<![\d.,])(?!\d{1,3}(?:\.\d{3})+(?!\.?\d))\d+(?:\.\d+){2,}"
)
# Codes: they count as numbers only where the question asks for one.
_CODE = lazy(
    # Phone numbers: +49 30 123456, (555) 123-4567, 020 5550 121, and what is behind "call".
    r"\+\d[\d ()./-]{5,}\d|\(\d{3,5}\)\s?\d[\d -]{4,}\d"
    r"|(?<![\d.,])0(?=(?:[ /-]?\d){6})\d{1,5}(?:[ /-]\d{2,})+"
    r"|(?i:\b(?:call|dial|ring|tel|telephone|fax|hotline|whatsapp)\b[.:]?\s(?:us\s)?(?:on\s|at\s)?)[+(]?\d[\d ()/-]{4,}\d"
    # 83-45-67, INV-10, #10, Nr. 10; "No. 10 seats." may say no and then 10.
    r"|(?<![\d.,-])\d+(?:-\d+){2,}|\b(?!(?:EUR|USD|GBP|CHF)-)[A-Z]{1,4}-\d[\w-]*"
    r"|(?:#|№ ?|\bNr\. ?|(?<=[a-z,;:] )No\. ?)\d+"
)
_ASKS_FOR_CODE = lazy(
    r"\b(?:which|who|numbers?|phones?|telephone|call|reach|contact|codes?|accounts?|routing|id|ids|ref|references?|tickets?|box|orders?"
    r"|invoices?|address|zip|postcode|suite|unit|apartment|room|version|cases?|issues?|model|iban|serial|licen[cs]e)\b|nummer|#",
    re.IGNORECASE,
)
# What a time, a day or a rank answers.
_ASKS_FOR_PLACE_IN_ORDER = lazy(
    r"\b(?:when|time|dates?|days?|months?|year|birthday|clock|hours?|open|close|start|end|place|rank|position|grade|quarter|floor|stage"
    r"|wann|uhr|uhrzeit|datum|tage?|monat|jahr|platz|rang|stock|quand|heures?|jours?|mois|année|étage|cuándo|horas?|fecha|días?"
    r"|mes|año|piso|quando|ora|giorno|mese|anno|data|dia|ano|wanneer|laat|dag|maand|jaar|när|kiedy)\b",
    re.IGNORECASE,
)
# What is numbered, where the question asks for a count or an amount.
_LABELS = """
aisle apartment appendix article bay block box building bus channel chapter figure flight floor gate lane level line page
paragraph platform port question room row seat section shelf step suite table terminal track unit version zone
abbildung abschnitt absatz bahnsteig buslinie ebene etage frage gebäude gleis halle kapitel linie raum regal reihe schritt
seite tabelle wohnung zimmer
appartement bâtiment chambre chapitre étage étape ligne niveau porte quai rangée salle siège tableau voie
andén apartamento autobús capítulo edificio fila figura habitación línea nivel página paso piso planta pregunta puerta sala
sección tabla versión vía
"""
_LABEL_ENDS = [[label] for label in _LABELS.split()]
_LABEL = lazy(
    r"(?:(?P<before>[^\W\d_]+) )?\b(?P<label>"
    + "|".join(sorted(set(_LABELS.split()), key=len, reverse=True))
    + r") \d+\b(?P<counted> [^\W\d_])?|^\W*No\. \d+ (?=of\b)",
    re.IGNORECASE,
)
# "In every box 12", "in the building 12 shops", "the vans seat 12": a count, although the word before it may be a label.
_BEFORE_ALL, _BEFORE_COUNTED, _BEFORE_VERB, _VERBS = map(
    str.split,
    (
        "a an any each every one per our your this that their its my pro je jede jeder jedem jeden unsere unserer unserem"
        " chaque par notre cada por nuestro nuestra",
        "the der die das dem den le la les el los las",
        "i we you they who that which can could will would may might must should to also currently now are is was were",
        "block box building bus line page row seat section step table track",
    ),
)
# "Opening hours are 9 to 12": hours that say neither am nor o'clock.
_OPENING_HOURS = lazy(
    r"\b(?:hours|open(?:ing times?)?|öffnungszeiten|geöffnet|heures d['’]ouverture|ouverte?s?|horario|abiert[oa])\b"
    r"(?: daily| every day)?(?:,|:| are| is| from| between| von| sind| ist| de| es| sont)*"
    r"\s\d{1,2} ?(?:to|-|\u2013|and|till?|until|bis|à|a) ?\d{1,2}\b(?!\s?[^\W_])",
    re.IGNORECASE,
)
_ASKS_FOR_HOURS = lazy(r"\b(?:hours?|open|stunden?|geöffnet|heures?|horas?|times?)\b", re.IGNORECASE)
_ASKS_HOW_MANY = lazy(r"\b(?:how (?:many|much)|wie ?viele?|combien|cuánt[oa]s|quant[ei])\b", re.IGNORECASE)
_ASKS_FOR_SHARE = lazy(r"%|percent|per cent|\bshare\b|\brate\b|proportion|fraction", re.IGNORECASE)
# The marker of a line, or of an item in a line: "1) wheel … 10) glaze".
_MARKER = lazy(r"(?:^[ \t>*_-]*|(?<=\s))(\d{1,3})(\)|(?<=\d)\.)[*_]*(?=\s+\S)", re.MULTILINE)
_LINE_START = lazy(r"[ \t>*_-]*")

_WEEKDAYS = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?s?"
_BEFORE_DAY = lazy(rf"\b(?:on|am|le|dated?|{_WEEKDAYS})[,.]?\s+(?:the\s+)?$", re.IGNORECASE)
_BEFORE_MONTH = lazy(r"\b(?:in|im|en|during|for|per|of)\s+$", re.IGNORECASE)
# Names of months that are also words.
_MONTHS_AND_WORDS = lazy(r"\b(?:may|march|mars|mar)\b")
_MORE_OF_NUMBER = lazy(rf"[.,:]\d|\s?[\d%{CURRENCY_SIGNS}]")
_NEXT_WORD = lazy(r"[ \t]*([^\W\d_]+)")
_HOURS_ALONE = lazy(r"(\d{1,2})\s?h")
_AT = lazy(r"\b(?:at|um|ab|bis|à|from|until|till|to|by)\s+$", re.IGNORECASE)


class StatedValues:
    """The amounts and dates of one text, read at most once."""

    def __init__(self, text: str) -> None:
        self._text = western_digits(text)

    def find(self, expected: ValueExpectation, question: str = "") -> list[Span]:
        """Where the text states it; of several numbers within a tolerance, the nearest first."""
        if isinstance(expected, DateExpectation):
            date = parse_date(expected.date)
            return [] if date is None else date.find_all(self._text)
        if isinstance(expected, RangeExpectation):
            return self._between(expected.low, expected.high, expected.low, expected.percent, question)
        # Decimal fractions are inexact as floats: 1.1 is within 0.1 of 1.0 although 1.1 - 1.0 > 0.1.
        number, slack = expected.number, expected.slack + 1e-9 * max(1.0, abs(expected.number))
        found = self._between(number - slack, number + slack, number, expected.percent, question)
        if not found and not expected.tolerance and number in self._years:
            return self._years[number]
        if not found and number % 1 and not expected.percent:
            prices = spoken_prices(self._text)
            return [(start, end) for value, start, end in prices if abs(value - number) <= slack]
        if not found and not expected.percent and 0 <= number < 100 and number % 1 == 0:
            found = self._in_other_languages(int(number), question)
        if not found and number < 0 and not expected.percent:
            return self._losses(-number, slack, question)
        if not found and number == 0:
            return [none.span() for none in _NONE.finditer(self._text)]
        return found

    def _between(self, low: float, high: float, target: float, percent: bool, question: str) -> list[Span]:
        """The amounts between two values, the one that is nearest to a third first."""
        is_count = not percent and _ASKS_HOW_MANY.search(question) is not None
        others = self._others_than(question, is_count)
        fitting = [
            (min(distances), amount.start, amount.end)
            for amount in map(self._as_hours, self._quantities)
            if not _overlaps((amount.start, amount.end), others)
            and (
                distances := [
                    abs(value - target)
                    for value in (amount.percentages() if percent else amount.readings())
                    if low <= value <= high
                ]
            )
        ]
        return [(start, end) for _, start, end in sorted(fitting)]

    def _losses(self, number: float, slack: float, question: str) -> list[Span]:
        """A negative number where the text calls the amount a loss."""
        return [
            (start, end)
            for start, end in self._between(number - slack, number + slack, number, False, question)
            if _LOSS_OF.search(self._text[:start]) or _LOSS.match(self._text, end)
        ]

    def _in_other_languages(self, number: int, question: str) -> list[Span]:
        """A whole number in words of another language than English."""
        is_count = _ASKS_HOW_MANY.search(question) is not None
        return [
            (start, end)
            for value, start, end in find_numerals(self._text)
            if value == number
            and not (is_count and self._text[:start].lower().split()[-1:] in _LABEL_ENDS)
            and not any(start < one.end and one.start < end for one in self._quantities)
        ]

    def is_other(self, span: Span, question: str) -> bool:
        """Whether all numbers at a place are part of something else, which cannot answer a question for an amount."""
        others = self._others_than(question, _ASKS_HOW_MANY.search(question) is not None)
        if not _overlaps(span, others):
            return False
        there = [(amount.start, amount.end) for amount in self._quantities]
        return all(_overlaps(one, others) for one in there if _overlaps(one, [span]))

    def _others_than(self, question: str, is_count: bool) -> list[Span]:
        if not self._quantities:
            return []
        if not is_count:
            return self._other + ([] if _ASKS_FOR_CODE.search(question) else self._codes)
        others = self._other + self._codes
        others += [label.span() for label in _LABEL.finditer(self._text) if _is_label(label, question)]
        if not _ASKS_FOR_HOURS.search(question):
            others += [hours.span() for hours in _OPENING_HOURS.finditer(self._text)]
        if not _ASKS_FOR_SHARE.search(question):
            others += [(amount.start, amount.end) for amount in self._quantities if amount.dimension == "%"]
        return others

    @cached_property
    def _quantities(self) -> list[Quantity]:
        return find_quantities(self._text)

    @cached_property
    def _days(self) -> list[Date]:
        """The dates that are certain."""
        return [date for date in find_dates(self._text) if _is_certain(self._text, date)]

    @cached_property
    def _years(self) -> dict[float, list[Span]]:
        """The years of dates, which are found only where exactly that number is expected."""
        years: dict[float, list[Span]] = {}
        for date in self._days:
            for amount in self._quantities:
                if date.start <= amount.start < date.end and date.year in amount.numbers:
                    years.setdefault(amount.numbers[0], []).append((amount.start, amount.end))
        return years

    @cached_property
    def _other(self) -> list[Span]:
        """What does not count, whatever is asked. 4th is not 4: write an expected rank or day as a text or date."""
        others = [(date.start, date.end) for date in self._days]
        others += [other.span() for other in _NO_NUMBER.finditer(self._text)]
        others += _list_markers(self._text)
        others += [
            (amount.start, amount.end)
            for amount in map(self._as_hours, self._quantities)
            if amount.dimension == "clock" or _is_ordinal(self._text, amount)
        ]
        return others

    @cached_property
    def _codes(self) -> list[Span]:
        return [code.span() for code in _CODE.finditer(self._text)]

    def _as_hours(self, amount: Quantity) -> Quantity:
        """ "24 h" as a duration; "at 24 h" is a time of day."""
        hours = _HOURS_ALONE.fullmatch(self._text, amount.start, amount.end)
        if amount.dimension != "clock" or hours is None or _AT.search(self._text[: amount.start]):
            return amount
        number = float(hours[1])
        return Quantity((number,), (3600 * number,), "time", amount.start, amount.end)


def asks_how_many(question: str) -> bool:
    """Whether a question asks how many or how much."""
    return _ASKS_HOW_MANY.search(question) is not None


def asks_for_amount(question: str) -> bool:
    """Whether a number answers a question as an amount does, and not as a time, a day, a rank or a code."""
    others = (_ASKS_FOR_CODE, _ASKS_FOR_PLACE_IN_ORDER)
    return _ASKS_HOW_MANY.search(question) is not None or (
        question != "" and not any(one.search(question) for one in others)
    )


def _is_ordinal(text: str, amount: Quantity) -> bool:
    """Whether an amount is a rank or a day: 4th, fourth."""
    at = amount.end - 1 if text[amount.end - 1].isdigit() else amount.start
    return _ORDINAL.match(text, at) is not None


def _is_label(found: re.Match[str], question: str) -> bool:
    """Whether a word before a number is what has this number."""
    if found["label"] is None:
        return True
    label, before = found["label"].lower(), (found["before"] or "").lower()
    if before in _BEFORE_ALL or (before in _BEFORE_COUNTED and found["counted"]):
        return False
    if label in _VERBS and (before in _BEFORE_VERB or (label == "seat" and before.endswith("s"))):
        return False
    # "How many rooms": "room 12" is none of them; but "How many do you seat?" is answered by "seat 12".
    asked = re.search(rf"\b{label}(?:e?s|e?n)?\b", question, re.IGNORECASE)
    return asked is None or _ASKS_HOW_MANY.fullmatch(question[: asked.start()].strip()) is not None


def _overlaps(span: Span, others: list[Span]) -> bool:
    """Whether a span has a character in common with another one."""
    return any(start < span[1] and span[0] < end for start, end in others)


def _is_certain(text: str, date: Date) -> bool:
    """Whether a date is one for sure: "10 October", not the month and the count of "In October 10 seats"."""
    written, before = text[date.start : date.end], text[max(0, date.start - 20) : date.start]
    if date.year is not None:
        return date.day is not None or 1900 <= date.year < 2100
    if _MORE_OF_NUMBER.match(text, date.end) and not written.endswith("."):
        return False
    if written[-1].isdigit() and _BEFORE_MONTH.search(before):
        return False
    if _MONTHS_AND_WORDS.search(written):
        return False
    if _ORDINAL.search(written) or _BEFORE_DAY.search(before):
        return True
    following = _NEXT_WORD.match(text, date.end)
    return following is None or following[1].lower() in FUNCTION_WORDS


def _list_markers(text: str) -> Iterator[Span]:
    """The markers of lists with at least two items, in their order."""
    by_style: dict[str, list[re.Match[str]]] = {".": [], ")": []}
    for marker in _MARKER.finditer(text):
        line = text.rfind("\n", 0, marker.start()) + 1
        before = text[line : marker.start(1)]
        starts_line = _LINE_START.fullmatch(before) is not None
        # The ")" of "(see item 10) …" closes a bracket.
        if starts_line or (marker[2] == ")" and before.rfind("(") <= before.rfind(")")):
            by_style[marker[2]].append(marker)
    for markers in by_style.values():
        numbers = [int(marker[1]) for marker in markers]
        if len(numbers) > 1 and numbers[0] <= 1 and numbers == sorted(set(numbers)):
            yield from (marker.span() for marker in markers)
