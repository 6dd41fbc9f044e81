"""Numbers written as words: "nine hundred", "twenty-first", "nineteen eighty-four"; and words of scale."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

_CARDINALS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
"""
_ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth
hundredth thousandth
"""
# Cardinals and ordinals to what they are worth.
NUMBER_VALUES = {
    name: value
    for names in (_CARDINALS, _ORDINALS)
    for name, value in zip(names.split(), (*range(20), *range(20, 101, 10), 1000), strict=True)
}
# From zero to twelve, in their order.
SMALL_NUMBERS = tuple(_CARDINALS.split()[:13])
# A word or letter of scale to its power of ten.
SCALES = {
    "k": 3, "thousand": 3, "m": 6, "mm": 6, "mn": 6, "mio": 6, "million": 6, "millions": 6, "b": 9, "bn": 9,
    "tsd": 3, "mil": 3, "millón": 6, "millones": 6, "millionen": 6, "milioni": 6, "milhões": 6,
    "billion": 9, "billions": 9, "t": 12, "tn": 12, "trillion": 12, "trillions": 12, "lakh": 5, "crore": 7, "hundred": 2,
}  # fmt: skip
_WORTHS = NUMBER_VALUES | {"dozen": 12, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# Every word that a number may begin with.
NUMBER_NAMES = frozenset(_WORTHS)
# What the number before it is taken times.
_TIMES = frozenset(name for name, worth in _WORTHS.items() if worth >= 100 or name == "dozen")


def one_of(names: Iterable[str]) -> str:
    """A pattern for any of some ASCII words in any case; its first letters come first, so that the engine can skip to them."""
    ends: dict[str, list[str]] = {}
    for name in sorted(names, key=len, reverse=True):
        ends.setdefault(name[0], []).append(name[1:])
    letters = "".join(ends)
    branches = "|".join(f"(?<={first})(?:{'|'.join(rest)})" for first, rest in ends.items())
    return rf"[{letters}{letters.upper()}](?<!\w.)(?ai:{branches})"


_NAME = one_of(_WORTHS)
# No number has more words.
_RUN = re.compile(rf"{_NAME}\b(?:(?:\s+|\s*-\s*)(?:[aA][nN][dD]\s+)?{_NAME}\b){{0,23}}")
_LETTERS = re.compile(r"[a-z]+")


@lru_cache(maxsize=4096)
def _worth(run: str) -> int | None:
    """What a run of number words is worth; None where it is several numbers."""
    numbers = [0]
    part, room = 0, 10**15
    for word in filter(NUMBER_NAMES.__contains__, _LETTERS.findall(run)):
        worth = _WORTHS[word]
        if word in _TIMES:
            part, room = (part or 1) * worth, worth
            if worth >= 1000:
                numbers[-1], part = numbers[-1] + part, 0
        elif worth < room:
            # After "twenty" there is room for "one", after that for nothing.
            part, room = part + worth, 10 if worth >= 20 else 1
        else:
            numbers[-1] += part
            numbers.append(0)
            part, room = worth, 10 if worth >= 20 else 1
    numbers[-1] += part
    if len(numbers) == 2 and all(10 <= number < 100 for number in numbers):
        # "nineteen eighty-four".
        return 100 * numbers[0] + numbers[1]
    return numbers[0] if len(numbers) == 1 else None


def spelled_numbers(text: str) -> Iterator[tuple[int, int, int]]:
    """Every number written in words, as (worth, start, end)."""
    for run in _RUN.finditer(text):
        worth = _worth(run[0].lower())
        if worth is not None:
            yield worth, *run.span()
