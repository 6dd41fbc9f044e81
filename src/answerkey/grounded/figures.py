"""Figures in a text: what each is worth, how precisely it is stated, and in what unit."""

import re
from collections.abc import Iterator

import msgspec

from answerkey.text.normalise import fold_accents

__all__ = ["FACTORS", "Figure", "find_figures", "readings", "unit_of"]

_SPACES = "\u0020\u00a0\u2009\u202f"
# 442,300 · 442.300 · 442 300 · 442'300, the same separator throughout; 12,34,567; plain digits; each with decimals.
_NUMBER = re.compile(
    r"(?<![A-Za-zÀ-ɏ0-9])(?<![0-9][.,])(?P<sign>[-\u2212+]?)(?P<digits>[0-9](?:"
    r"[0-9]{0,2}([,." + _SPACES + r"'’_])[0-9]{3}(?:\3[0-9]{3})*+(?![0-9])"
    r"|[0-9]?(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])"
    r"|[0-9]*+)(?:[.,][0-9]++)?)"
    # A percent sign, or the word that follows: its scale or unit, one more for "Mio. Euro".
    r"(?P<percent>[" + _SPACES + r"]?[%٪])?(?:[-" + _SPACES + r"]?(?P<word>[^\W\d_]{1,14})\b)?"
)
_DURATION = re.compile(r"(?<![\w.,])([0-9]{1,4})\s?(?:h|hrs?|hours?|Std\.?|Stunden|heures?|horas?)[,\s]{0,2}(?:and |und |et |y )?([0-5]?[0-9])\s?min")
_SCALES = {
    "k": 1e3, "thousand": 1e3, "tsd": 1e3, "tausend": 1e3, "mil": 1e3, "keur": 1e3, "kusd": 1e3,
    "m": 1e6, "mm": 1e6, "mn": 1e6, "mio": 1e6, "million": 1e6, "millionen": 1e6, "millions": 1e6, "millones": 1e6,
    "milioni": 1e6, "miljoen": 1e6, "milhoes": 1e6, "b": 1e9, "bn": 1e9, "mrd": 1e9, "billion": 1e9, "billions": 1e9,
    "milliarden": 1e9, "milliards": 1e9, "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_PERCENT = frozenset("percent percentage pct prozent procent cent percento".split())
# Unit → (family, worth in the family's smallest).
_FAMILIES = {
    "time": "ms millisecond milliseconds=0.001 s sec secs second seconds sekunden secondes segundos=1 "
    "min mins minute minutes minuten minutos minuti=60 h hr hrs hour hours stunden heures horas ore uur=3600 "
    "d day days tage tagen jours dias giorni dagen=86400 week weeks wochen semaines semanas settimane weken=604800",
    "calendar": "month months monate monaten mois meses mesi maanden=1 year years yr yrs jahre jahren ans años anos anni jaar=12",
    "mass": "mg=0.001 g gram grams=1 kg kilo kilos kilogram kilograms=1000 t tonne tonnes tons=1000000",
    "length": "mm=0.001 cm=0.01 m metre metres meter meters=1 km kilometre kilometres kilometer kilometers=1000",
    "volume": "ml=0.001 cl=0.01 l litre litres liter liters=1 m3=1000",
    "data": "b byte bytes=1 kb=1000 mb=1000000 gb=1000000000 tb=1000000000000",
    "energy": "wh=0.001 kwh=1 mwh=1000 gwh=1000000",
    "money": "cent cents pence minor=0.01 eur euro euros usd dollar dollars gbp chf=1",
}
FACTORS: dict[str, tuple[str, float]] = {
    fold_accents(word): (family, float(worth))
    for family, units in _FAMILIES.items()
    for words, worth in (part.rsplit("=", 1) for part in re.findall(r"[^=]+=[0-9.]+", units))
    for word in words.split()
}
_WORDS = {
    word: value
    for names in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "zéro une deux trois quatre cinq six sept huit neuf dix onze douze",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici",
        "zero um dois três quatro cinco seis sete oito nove dez onze doze",
        "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf",
    )
    for value, word in enumerate(names.split())
    # One is mostly an article or pronoun; the others are words of another of these languages.
    if value > 1 and word not in {"once", "due", "sei", "neuf", "sept", "elf"}
} | {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "dozen": 12, "duas": 2, "both": 2}
_WORD = re.compile(r"(?<![\w'’])(?:" + "|".join(sorted(_WORDS, key=len, reverse=True)) + r")(?![\w'’])", re.IGNORECASE)
_HEDGE = re.compile(
    r"(?:about|around|roughly|nearly|almost|approximately|approx\.?|over|under|below|above|than|circa|ca\.?|some|just|"
    r"etwa|rund|knapp|gut|fast|über|environ|près de|presque|plus de|unos|casi|cerca de|circa|quasi|ongeveer|bijna|~|≈|>|<)"
    r"\s*(?:[A-Z]{3}\s?|[$€£¥₹]\s?)?$",
    re.IGNORECASE,
)


class Figure(msgspec.Struct, frozen=True, gc=False):
    """One figure as it stands in a text."""

    start: int
    end: int
    # Its worth without sign, and its other reading where there is one ("1.350" in German); 0 otherwise.
    value: float
    other: float
    # One in the last place that is stated.
    step: float
    percent: bool
    # The word or sign after it, folded.
    unit: str
    # What it was multiplied by ("k", "million"); 1 otherwise.
    scale: float = 1.0
    # "about", "over": stands for anything that rounds to it.
    hedged: bool = False


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


def find_figures(text: str, taken: bytearray) -> Iterator[Figure]:
    """Every figure outside the stretches that are taken (dates, ids)."""
    for found in _DURATION.finditer(text):
        start, end = found.span()
        minutes = 60.0 * int(found[1]) + int(found[2])
        taken[start:end] = b"\x01" * (end - start)
        yield Figure(start, end, minutes, 0.0, 1.0, False, "min")
    for found in _NUMBER.finditer(text):
        start, end = found.span("digits")
        if not taken[start]:
            yield _figure(text, found, start, end)
    for found in _WORD.finditer(text):
        start, end = found.span()
        if not taken[start]:
            unit = _following(text, end)
            yield Figure(start, end, float(_WORDS[found[0].lower()]), 0.0, 1.0, unit in _PERCENT, unit)


_NEXT = re.compile(r"[-\s]{0,2}([^\W\d_]{1,14})")


def _following(text: str, end: int) -> str:
    found = _NEXT.match(text, end)
    return fold_accents(found[1]) if found else ""


def _figure(text: str, found: re.Match[str], start: int, end: int) -> Figure:
    value, other, decimals = _worths(found["digits"])
    word = fold_accents(found["word"] or "")
    percent = found["percent"] is not None or word in _PERCENT or (word in ("per", "por", "pour") and _PER_CENT(text, end))
    scale = 1.0
    if not percent and word in _SCALES and (len(word) > 1 or _is_money(text, start, end, found.end("word"))):
        scale = _SCALES[word]
        end = found.end("word")
        word = _following(text, end)
    step = 10.0**-decimals * scale
    hedged = _HEDGE.search(text, max(0, start - 24), start) is not None
    if hedged and decimals == 0:
        digits = found["digits"]
        step *= 10.0 ** (len(digits) - len(digits.rstrip("0,.' \u00a0\u202f’")) - _separators(digits))
    return Figure(start, end, value * scale, other * scale, step, percent, word, scale, hedged)


def _is_money(text: str, start: int, end: int, after: int) -> bool:
    """Whether a single letter is a scale ("£186k", "1,24 M€", "12k"), not a metre."""
    money = text[start - 1 : start] in _CURRENCY or text[after : after + 1] in _CURRENCY
    return (start > 0 and money and text[after : after + 1] != "") or text[end : end + 1] in "kK"


_CURRENCY = frozenset("$€£¥₹")
_PER_CENT = re.compile(r"\s?(?:per|por|pour)\s?cent").match


def _separators(digits: str) -> int:
    tail = digits[len(digits.rstrip("0,.' \u00a0\u202f’")) :]
    return sum(not mark.isdigit() for mark in tail)


def _worths(digits: str) -> tuple[float, float, int]:
    """The worth, the other reading or 0, and how many decimals are stated."""
    if digits.isdigit():
        return float(digits), 0.0, 0
    marks = [mark for mark in digits if not mark.isdigit()]
    last = digits.rindex(marks[-1])
    decimals = len(digits) - last - 1
    bare = "".join(filter(str.isdigit, digits))
    whole = float(bare)
    parted = whole / 10.0**decimals if decimals < 300 else 0.0
    if marks[-1] not in ".,":
        return whole, 0.0, 0
    if len(set(marks)) > 1 or decimals != 3:
        return (whole, 0.0, 0) if len(set(marks)) == 1 and len(marks) > 1 else (parted, 0.0, decimals)
    if len(marks) > 1:
        return whole, 0.0, 0
    return (whole, parted, 0) if marks[0] == "," else (parted, whole, 3)


def unit_of(words: str) -> tuple[str, float] | None:
    """The unit that a name or word says: "delay_min" is in minutes."""
    return next((FACTORS[word] for word in reversed(words.split()) if word in FACTORS), None)
