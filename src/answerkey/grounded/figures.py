"""Figures in a text: what each is worth, how precisely it is stated, and in what unit."""

import re
from collections.abc import Iterator

import msgspec

from answerkey.grounded.words import Words, word_key
from answerkey.text.normalise import fold_accents

__all__ = ["UNITS", "Figure", "find_figures", "readings"]

_SPACES = "\u0020\u00a0\u2009\u202f"
# 442,300 · 442.300 · 442 300 · 442'300, the same separator throughout; 12,34,567; plain digits; each with decimals;
# then a percent sign, or the word that follows: its scale or unit.
_NUMBER = re.compile(
    r"(?<![A-Za-zÀ-ɏ0-9])(?<![0-9][.,])(?P<digits>[0-9](?:"
    r"[0-9]{0,2}([,." + _SPACES + r"'’_])[0-9]{3}(?:\2[0-9]{3})*+(?![0-9])"
    r"|[0-9]?(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])"
    r"|[0-9]*+)(?:[.,][0-9]++)?)"
    r"(?P<percent>[" + _SPACES + r"]?[%٪])?(?:[-" + _SPACES + r"]?(?P<word>[^\W\d_]{1,14})\b)?"
)
_DURATION = re.compile(
    r"(?<![\w.,])([0-9]{1,4})\s?(?:h|hrs?|hours?|Std\.?|Stunden|heures?|horas?)"
    r"[,\s]{0,2}(?:and |und |et |y )?([0-5]?[0-9])\s?min"
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
_SCALES = {
    word: float(worth)
    for line in (
        "1e3 k thousand tsd tausend keur kusd",
        "1e6 m mm mn mio million millions millionen millones milioni miljoen milhoes",
        "1e9 b bn mrd billion billions milliarden milliards",
        "1e5 lakh",
        "1e7 crore",
    )
    for worth, *words in (line.split(),)
    for word in words
}
_PERCENT = frozenset({"percent", "percentage", "pct", "prozent", "procent", "cent", "percento"})
# Unit → (family, worth in its smallest); a word that stands for several is left out.
UNITS: dict[str, tuple[str, float]] = {
    word: (family, float(worth))
    for family, line in (
        ("time", "0.001 ms milliseconds; 1 s sec secs second seconds sekunden secondes segundos"),
        ("time", "60 min mins minute minutes minuten minutos minuti; 3600 h hr hrs hour hours stunden heures horas ore uur"),
        ("time", "86400 d day days tage tagen jours dias giorni dagen; 604800 week weeks wochen semaines semanas weken"),
        ("calendar", "1 month months monate monaten mois meses mesi maanden; 12 year years yr yrs jahre jahren ans anos anni"),
        ("mass", "0.001 mg; 1 g gram grams; 1000 kg kilo kilos kilogram kilograms; 1000000 t tonne tonnes tons"),
        ("length", "0.001 mm; 0.01 cm; 1 m metre metres meter meters; 1000 km kilometre kilometres kilometers"),
        ("volume", "0.001 ml; 0.01 cl; 1 l litre litres liter liters"),
        ("data", "1 b byte bytes; 1e3 kb; 1e6 mb; 1e9 gb; 1e12 tb"),
        ("energy", "0.001 wh; 1 kwh; 1e3 mwh; 1e6 gwh"),
        ("money", "0.01 cent cents pence minor; 1 eur euro euros usd dollar dollars gbp chf"),
    )
    for worth, *words in (part.split() for part in line.split(";"))
    for word in words
}  # fmt: skip
# By key; one is mostly an article or pronoun, and some are words of another of these languages.
_NUMBER_WORDS = {
    word_key(word): float(value)
    for names in (
        "- - two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
        "- - zwei drei vier fünf sechs sieben acht neun zehn - zwölf",
        "- - deux trois quatre cinq six - huit - dix onze douze",
        "- - dos tres cuatro cinco seis siete ocho nueve diez - doce",
        "- - duas tre quattro cinque - sette otto nove dieci undici dodici",
        "- - dois três quatro cinco seis sete oito nove dez onze doze",
        "- - twee drie vier vijf zes zeven acht negen tien - twaalf",
        "- - both",
    )
    for value, word in enumerate(names.split())
    if word != "-"
} | {
    word_key(word): float(value)
    for word, value in (("twenty", 20), ("thirty", 30), ("fifty", 50), ("dozen", 12))
}


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
    # The word after it, folded.
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


def find_figures(text: str, words: Words, taken: bytearray) -> Iterator[Figure]:
    """Every figure outside the stretches that are taken (dates, ids), which they then take."""
    for found in _DURATION.finditer(text):
        minutes = 60.0 * int(found[1]) + int(found[2])
        yield _take(taken, Figure(*found.span(), minutes, 0.0, 1.0, percent=False, unit="min"))
    for found in _NUMBER.finditer(text):
        if not taken[found.start("digits")]:
            yield _take(taken, _figure(text, found))
    for index, key in enumerate(words.keys):
        if key in _NUMBER_WORDS and not taken[words.starts[index]]:
            unit = words.keys[index + 1] if index + 1 < len(words.keys) else ""
            start = words.starts[index]
            end = next((at for at in range(start, len(text)) if not text[at].isalpha()), len(text))
            yield _take(taken, Figure(start, end, _NUMBER_WORDS[key], 0.0, 1.0, unit in _PERCENT, unit))


def _take(taken: bytearray, figure: Figure) -> Figure:
    taken[figure.start : figure.end] = b"\x01" * (figure.end - figure.start)
    return figure


def _figure(text: str, found: re.Match[str]) -> Figure:
    digits, (start, end) = found["digits"], found.span("digits")
    value, other, decimals = _worths(digits)
    word = fold_accents(found["word"] or "")
    percent = found["percent"] is not None or word in _PERCENT or text[end : end + 9].strip() == "per cent"
    after, scale = found.end("word"), 1.0
    if not percent and word in _SCALES and (len(word) > 1 or _is_scale(text, start, end, after)):
        scale, end, word = _SCALES[word], after, ""
    step = 10.0**-decimals * scale
    before = text[max(0, start - 24) : start].lower().rstrip("$€£¥₹ ").split()[-2:]
    hedged = bool(before) and (before[-1] in _HEDGES or (before[-1] in _BETWEEN and before[0] in _HEDGES))
    hedged = hedged or (bool(before) and before[-1][-1] in "~≈<>")
    if hedged and decimals == 0:
        tail = digits[len(digits.rstrip(_ZEROS)) :]
        step *= 10.0 ** tail.count("0")
    return Figure(start, end, value * scale, other * scale, step, percent, word, scale, hedged)


def _is_scale(text: str, start: int, end: int, after: int) -> bool:
    """Whether a single letter is a scale ("£186k", "1,24 M€", "12k"), not a metre."""
    money = text[max(0, start - 1) : start] in _CURRENCY or text[after : after + 1] in _CURRENCY
    return money or text[end : end + 1] in ("k", "K")


def _worths(digits: str) -> tuple[float, float, int]:
    """The worth, the other reading or 0, and how many decimals are stated."""
    if digits.isdigit():
        return float(digits), 0.0, 0
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
