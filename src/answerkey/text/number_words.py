"""Numbers written as words ("nine hundred", "twenty-first", "3.5 million"), through the text2num library."""

import re
from collections.abc import Iterator
from functools import lru_cache

from text_to_num import alpha2digit

from answerkey.text.numbers import CURRENCY_SIGNS, canonical_number, find_numbers

__all__ = [
    "NUMBER_NAMES",
    "SCALE_WORDS",
    "SMALL_NUMBERS",
    "has_number_words",
    "may_be_spelled",
    "scaled_worth",
    "spell_out_digits",
    "spelled_numbers",
    "worths_in_words",
    "worths_with_scale",
    "write_out_scales",
]

_NAMES = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|trillion|"
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|"
    "sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth|fortieth|fiftieth|sixtieth|seventieth|eightieth|"
    "ninetieth|hundredth|thousandth|dozen|half"
)
# From zero to twelve, in their order.
SMALL_NUMBERS = tuple(_NAMES.split("|")[:13])
# No number has more words; text2num takes quadratic time on a longer run.
_MOST_WORDS = 24
_RUN = re.compile(
    rf"\b(?:{_NAMES})\b(?:(?:\s+|\s*-\s*)(?:and\s+)?(?:{_NAMES})\b){{0,{_MOST_WORDS - 1}}}", re.IGNORECASE
)
# Every word that a number may begin with.
NUMBER_NAMES = frozenset(_NAMES.split("|"))
_LETTERS = re.compile(r"[a-z]+")
# "a hundred" and "a dozen" are one of them.
_INDEFINITE = re.compile(r"\ba(?=\s+(?:hundred|thousand|million|billion)\b)", re.IGNORECASE)
_SCALES = {
    "k": 3, "thousand": 3, "m": 6, "mm": 6, "mn": 6, "mio": 6, "million": 6, "millions": 6, "b": 9, "bn": 9,
    "tsd": 3, "mil": 3, "millón": 6, "millones": 6, "millionen": 6, "milioni": 6, "milhões": 6,
    "billion": 9, "billions": 9, "t": 12, "tn": 12, "trillion": 12, "trillions": 12, "lakh": 5, "crore": 7, "hundred": 2,
}  # fmt: skip
# The folded words that may follow a number as its scale.
SCALE_WORDS = frozenset(_SCALES) | {"1000", "100"}
_SCALED = re.compile(
    r"([0-9][0-9,]*(?:\.[0-9]+)?)[\s-]?(k|thousand|mm?|mn|mio|millions?|b|bn|billions?|t|tn|trillions?|lakh|crore|hundred)\b",
    re.IGNORECASE,
)


def has_number_words(text: str) -> bool:
    """A cheap look: whether a text may hold a number in words."""
    lowered = text.lower()
    return any(sign in lowered for sign in _SIGNS)


def may_be_spelled(worth: str, lowered: str) -> bool:
    """A cheap look: whether a text in small letters may hold a number of this worth in words."""
    if len(worth) > 4 and worth.isdigit():
        return "thousand" in lowered or "illion" in lowered or "hundred" in lowered
    return any(sign in lowered for sign in _SIGNS)


# Every number in words has one of these in it, but for the small ones that folding already makes digits.
_SIGNS = (
    "hundred",
    "thousand",
    "illion",
    "teen",
    "twent",
    "thirt",
    "fort",
    "fift",
    "sixt",
    "sevent",
    "eight",
    "ninet",
    "dozen",
)


@lru_cache(maxsize=4096)
def _run_worths(run: str) -> tuple[str, ...]:
    """The worths that a run of number words can have: "nineteen eighty-four" is 1984 and also 19 and 84."""
    digits = alpha2digit(_INDEFINITE.sub("one", run), "en", 0.0)
    parts = [number.canonical for number in find_numbers(digits)]
    worths = list(parts)
    if len(parts) == 2 and len(parts[0]) == 2 and len(parts[1]) == 2:
        worths.append(parts[0] + parts[1])
    low = run.lower()
    if low == "dozen":
        worths.append("12")
    return tuple(worths)


def worths_in_words(text: str) -> dict[str, tuple[int, int]]:
    """Every number written in words with its span: worth (canonical) to the span of the first place."""
    found: dict[str, tuple[int, int]] = {}
    for run in _RUN.finditer(text):
        for worth in _run_worths(run.group()):
            found.setdefault(worth, run.span())
    return found


def spelled_numbers(text: str) -> Iterator[tuple[str, int, int]]:
    """Every number written in words, as (worth, start, end); ordinals are left to the reader of "9th" and "ninth"."""
    if NUMBER_NAMES.isdisjoint(_LETTERS.findall(text.lower())):
        return
    for run in _RUN.finditer(text):
        worths = _run_worths(run.group())
        if len(worths) == 1:
            yield worths[0], *run.span()
        elif len(worths) == 3:
            # "nineteen eighty-four": the whole, not its halves.
            yield worths[2], *run.span()


def scaled_worth(digits: str, scale: str) -> str | None:
    """The worth of a number with a scale: ("442.3", "K") gives "442300"."""
    power = _SCALES.get(scale.lower())
    if power is None:
        return None
    whole, _, fraction = canonical_number(digits).partition(".")
    shifted = whole + fraction[:power].ljust(power, "0")
    rest = fraction[power:]
    return canonical_number(f"{shifted}.{rest}" if rest else shifted)


def worths_with_scale(text: str) -> dict[str, tuple[int, int]]:
    """Every number with a scale ("$442.3K", "1.2 million") with its span."""
    found: dict[str, tuple[int, int]] = {}
    for match in _SCALED.finditer(text):
        worth = scaled_worth(match[1], match[2])
        if worth is not None:
            found.setdefault(worth, match.span())
    return found


def write_out_scales(text: str) -> str:
    """A short text with its scaled numbers as plain ones: "£186k" gives "£186000"; a lone "5 m" may be metres and stays."""

    def plain(match: re.Match[str]) -> str:
        if len(match[2]) == 1 and match[2] not in "kK" and not _CURRENCY.search(text):
            return match.group()
        return scaled_worth(match[1], match[2]) or match.group()

    return _SCALED.sub(plain, text)


_CURRENCY = re.compile(f"[{CURRENCY_SIGNS}]")


@lru_cache(maxsize=8192)
def spell_out_digits(text: str) -> str:
    """A short text with its number words as digits: "Nine hundred South Ninth Street" gives "900 South 9th Street"."""
    if not _RUN.search(text):
        return text
    try:
        return str(alpha2digit(_INDEFINITE.sub("one", text), "en", 0.0))
    except UnicodeEncodeError:
        # Lone surrogates cannot reach the library; such a text is not a number.
        return text
