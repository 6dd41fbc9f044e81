"""Numbers written as words ("nine hundred", "twenty-first", "3.5 million"), through the text2num library."""

import re
from collections.abc import Iterator
from functools import lru_cache

from text_to_num import alpha2digit

from answerkey.text.numbers import find_numbers

__all__ = ["NUMBER_NAMES", "SCALES", "SMALL_NUMBERS", "spelled_numbers"]

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
# A word or letter of scale to its power of ten.
SCALES = {
    "k": 3, "thousand": 3, "m": 6, "mm": 6, "mn": 6, "mio": 6, "million": 6, "millions": 6, "b": 9, "bn": 9,
    "tsd": 3, "mil": 3, "millón": 6, "millones": 6, "millionen": 6, "milioni": 6, "milhões": 6,
    "billion": 9, "billions": 9, "t": 12, "tn": 12, "trillion": 12, "trillions": 12, "lakh": 5, "crore": 7, "hundred": 2,
}  # fmt: skip


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
