"""What figures of one period are in another: a year's use by the day, what comes every two weeks by the year."""

import re
from collections.abc import Iterator, Sequence

from answerkey.grounded.arithmetic.tries import Try

__all__ = ["EVERY", "PERIODS", "by_period", "per_year"]

# What a figure of a longer or shorter period is multiplied by to be one of this: "6 kWh a day" of 2,190 in a year.
PERIODS = tuple(
    (re.compile(rf"\b(?:(?:an?|per|each|every|pro|par|por) (?:{words})|{adverb})\b", re.IGNORECASE), factors)
    for words, adverb, factors in (
        ("day|night|tag|jour|día", "daily|nightly|täglich", (1 / 365, 1 / 30, 1 / 7, 24.0)),
        ("week|woche|semaine|semana", "weekly", (1 / 52, 7.0, 12 / 52)),
        ("month|monat|mois|mes", "monthly|monatlich", (1 / 12, 52 / 12, 30.0, 1 / 3)),
        ("quarter|quartal|trimestre", "quarterly", (1 / 4, 3.0)),
        ("year|jahr|an|año", "yearly|annually|annual|jährlich", (12.0, 52.0, 365.0, 4.0, 2.0)),
        ("hour|stunde|heure|hora", "hourly", (1 / 24, 1 / 8, 1 / 40, 60.0)),
    )
)
# "Every two weeks".
EVERY = re.compile(
    r"\bevery (other|\d{1,2}|two|three|four|six)?\s?(days?|weeks?|months?)\b|\b(bi-?weekly|fortnightly|bi-?monthly)\b",
    re.IGNORECASE,
)
_IN_A_YEAR = {"day": 365.0, "week": 52.0, "month": 12.0}
_NUMBERS = {"": 1, "other": 2, "two": 2, "three": 3, "four": 4, "six": 6}


def per_year(text: str) -> list[Try]:
    """How often in a year something happens that a text says happens "every two weeks"."""
    found = EVERY.search(text)
    if found is None:
        return []
    if found[3]:
        times = 6.0 if found[3].lower().endswith("monthly") else 26.0
        return [(times, f"{times:g} times a year")]
    word = (found[1] or "").lower()
    number = int(word) if word.isdigit() else _NUMBERS[word]
    unit = _IN_A_YEAR[found[2].lower().rstrip("s")]
    return [(unit / number, f"{unit:g} ÷ {number}")] if number else []


def by_period(factors: Sequence[float], amounts: Sequence[float]) -> Iterator[Try]:
    for one in amounts:
        for factor in factors:
            yield one * factor, f"{one:g} × {factor:g}" if factor >= 1 else f"{one:g} ÷ {1 / factor:g}"
