"""Ranges of days in one month: "July 3–7", "11 to 15 April 2025"."""

import re
from collections.abc import Iterator

from answerkey.text.dates import Date, month_number

__all__ = ["find_day_ranges"]

_MONTH = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<{0}>[0-3]?\d)(?:st|nd|rd|th)?"
_TO = r"\s?(?:[-–—]|to|through|until|and|&)\s?"
_RANGE = re.compile(
    rf"\b{_MONTH.format('m1')}\s{_DAY.format('a1')}{_TO}(?:the\s)?{_DAY.format('b1')}"
    # "On March 4 and 12 minutes later": a number of something is no day.
    rf"(?![\d%/:]|\s?[ap]\.?m|\s(?!is\b|was\b|as\b|has\b)(?:[a-z]+s|percent|kg|km)\b)(?:,?\s(?P<y1>(?:19|20)\d\d)\b)?"
    rf"|(?<![\d.,$€£/-]){_DAY.format('a2')}{_TO}{_DAY.format('b2')}\s(?:of\s)?{_MONTH.format('m2')}"
    rf"(?:,?\s(?P<y2>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
# What every range has: two numbers with a sign or word between them.
_SIGNS = re.compile(r"\d(?:st|nd|rd|th)?\s?(?:[-–—&]|to|through|until|and)\s?(?:the )?\d", re.IGNORECASE)


# "February 3, 10 and 17": at least three days, or two before the last.
_LIST = re.compile(
    rf"\b{_MONTH.format('m')}\s(?P<days>[0-3]?\d(?:st|nd|rd|th)?(?:,\s[0-3]?\d(?:st|nd|rd|th)?)+,?\s(?:and|&)\s[0-3]?\d(?:st|nd|rd|th)?)"
    r"(?![\d%/:]|\s(?!is\b|was\b|as\b|has\b)(?:[a-z]+s|percent|kg|km)\b)(?:,?\s(?P<y>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_ONE_DAY = re.compile(r"[0-3]?\d(?:st|nd|rd|th)?")


def find_day_ranges(text: str) -> Iterator[Date]:
    """The first and the last day of every range, and every day of a list."""
    for found in _LIST.finditer(text) if _SIGNS.search(text) else ():
        month = month_number(found["m"].rstrip("."))
        year = int(found["y"]) if found["y"] else None
        for number, one in enumerate(_ONE_DAY.finditer(text, *found.span("days"))):
            day = int(re.sub(r"\D", "", one[0]))
            if month is not None and 1 <= day <= 31:
                yield Date(year, month, day, one.start() if number else found.start(), one.end())
    for found in _RANGE.finditer(text) if _SIGNS.search(text) else ():
        form = "1" if found["m1"] else "2"
        month = month_number(found[f"m{form}"].rstrip("."))
        year = int(found[f"y{form}"]) if found[f"y{form}"] else None
        first, last = int(found[f"a{form}"]), int(found[f"b{form}"])
        if month is None or not (1 <= first <= 31 and 1 <= last <= 31):
            continue
        start, end = found.span()
        middle = found.start(f"b{form}")
        yield Date(year, month, first, start, found.end(f"a{form}"))
        yield Date(year, month, last, middle, end)
