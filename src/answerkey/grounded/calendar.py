"""Whether dates and times of a reply stand in the evidence or follow from its dates."""

import re
from collections.abc import Sequence

from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.evidence import Evidence
from answerkey.grounded.flatten import key_words
from answerkey.grounded.spans import find_date_after
from answerkey.grounded.wording import Found
from answerkey.text.dates import Date

__all__ = ["find_date", "find_time", "find_year", "may_be_reckoned"]

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_QUARTERS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "last": 4,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
}


_MONTHS_TEXT = """
january february march april may june july august september october november december
"""
_MONTHS = _MONTHS_TEXT.split()


# What a date is said with that lies some time before or after another.
_RECKONED = re.compile(
    r"\b(?:by|before|after|ahead|later|latest|deadline|due|expir\w+|ends?|ended|ending|reach\w*|until|till|within|notice|renew\w*|starts?|"
    r"returned?|matur\w+|follow\w*|anniversary|again|next|prior|lapses?|runs? out|falls?|through|around|"
    r"termine|finit|avant|sous|payable|innerhalb|spätestens|antes|dentro|plazo|entro|bis|endet|läuft|fällig|ab|jusqu\w*|expire\w*|échéance|vence|hasta|dura|scade|fino|"
    r"in \w+ (?:days|weeks|months|years))\b",
    re.IGNORECASE,
)


_SO_LONG = re.compile(
    r"\b(?:days?|weeks?|months?|years?)[’']?\s+(?:\w+\s+)?"
    r"(?:ahead|before|after|prior|later|earlier|notice|in advance|out|from)\b",
    re.IGNORECASE,
)


# A sentence that states how long something takes reckons with it.
_A_SPAN = re.compile(
    r"\b(?:\d{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|fifteen|eighteen|twenty|thirty|sixty|ninety)"
    r"[ -](?:(?:business|working|calendar|more|full|additional|further)[ -])?(?:days?|weeks?|months?|years?)\b",
    re.IGNORECASE,
)


def find_date(
    claim: Claim, evidence: Evidence, sentence: str = "", beside: Sequence[Date] = ()
) -> Found | None:
    """A date that the evidence has with at least the same parts; a weekday or quarter that one of its dates falls in.

    Or one that lies a span of time before or after another, where the sentence speaks of such.
    """
    found = _stands(claim, evidence)
    date = claim.date
    if found is None and date is not None and may_be_reckoned(date, sentence):
        return find_date_after(date, evidence, beside=beside)
    return found


def may_be_reckoned(date: Date, sentence: str) -> bool:
    """Whether a sentence has words for a time before or after another; for a month alone it must say how long."""
    if date.day is None and date.month is None and date.year is None:
        return False
    if date.day is None and date.year is None:
        return _SO_LONG.search(sentence) is not None
    return _RECKONED.search(sentence) is not None or _A_SPAN.search(sentence) is not None


def _stands(claim: Claim, evidence: Evidence) -> Found | None:
    date = claim.date
    if date is None:
        return _named(claim, evidence)
    for fact in evidence.dates:
        if date.agrees(fact.date):
            return Found(fact.where, fact.text)
        if date.ambiguous and (date.year, date.day, date.month) == (
            fact.date.year,
            fact.date.month,
            fact.date.day,
        ):
            return Found(fact.where, fact.text)
    if "/" in claim.text and date.year is None:
        return _written(claim.text, evidence)
    if date.day is None and date.month is None:
        return find_year(date.year, evidence)
    if date.year is None and date.month is None:
        return _day(date.day, evidence)
    if date.year is None and date.day is None:
        if not evidence.words_of_names.isdisjoint((claim.text.lower(), claim.text.lower()[:3])):
            return Found("names of values", claim.text)
        return _word(claim.text, evidence) or _of_quarter(date.month, evidence)
    if date.year is not None and date.month is not None:
        return _day_and_year(claim, evidence)
    return None


def _day_and_year(claim: Claim, evidence: Evidence) -> Found | None:
    """ "March 15, 2025" from "every March 15" and "2025": each part stands in the evidence, in the same text."""
    date = claim.date
    if date is None:
        return None
    for fact in evidence.dates:
        same = fact.date.month == date.month and fact.date.day == date.day and fact.date.year is None
        if same and date.day is None and find_year(date.year, evidence):
            # "April 2024" from {"month": 4} where the year stands elsewhere.
            return Found(fact.where, fact.text)
        if same and any(
            p.where == fact.where and re.search(rf"\b{date.year}\b", p.text) for p in evidence.passages
        ):
            return Found(fact.where, fact.text)
    return None


_ORDINALS_TEXT = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth
seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth
twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first
"""
_ORDINALS = _ORDINALS_TEXT.split()


def _day(day: int | None, evidence: Evidence) -> Found | None:
    """ "The 5th" from "by the 5th of each month", "the fifth day" or {"due_day": 5}."""
    if day is None:
        return None
    pattern = re.compile(rf"\b(?:{day}(?:st|nd|rd|th)|{_ORDINALS[day - 1]}|day {day})\b", re.IGNORECASE)
    for passage in evidence.passages:
        if found := pattern.search(passage.text):
            return Found(passage.where, found[0])
    for fact in evidence.numbers:
        if fact.value == day and "day" in key_words(fact.key):
            return Found(fact.where, fact.text)
    return None


def _written(text: str, evidence: Evidence) -> Found | None:
    """ "3/4" as it stands, where it is no date."""
    return next((Found(passage.where, text) for passage in evidence.passages if text in passage.text), None)


def find_year(year: int | None, evidence: Evidence) -> Found | None:
    """A year, as a number or as part of a date."""
    for fact in evidence.numbers:
        if fact.value == year and fact.kind == "number":
            return Found(fact.where, fact.text)
    for dated in evidence.dates:
        if dated.date.year == year:
            return Found(dated.where, dated.text)
    for leaf in evidence.arguments:
        # What was asked for: "WHERE year = 2023", "FROM revenue_2024".
        if re.search(rf"(?<![0-9]){year}(?![0-9])", str(leaf.value)):
            return Found(leaf.where, str(year))
    return None


def _of_quarter(month: int | None, evidence: Evidence) -> Found | None:
    """ "April to June" and "the end of June" from Q2 or H1: the first and the last month of a quarter or half."""
    if month is None:
        return None
    quarter, half = (month - 1) // 3 + 1, (month - 1) // 6 + 1
    signs = [f"Q{quarter}"] if month % 3 in (0, 1) else []
    signs += [f"H{half}"] if month % 6 in (0, 1) else []
    if not signs:
        return None
    pattern = re.compile(
        rf"(?<![A-Za-z0-9])(?:{'|'.join(signs)})(?![A-Za-z0-9])|(?<=\d)(?:{'|'.join(signs)})(?!\w)"
    )
    for leaf in (*evidence.leaves, *evidence.arguments, *evidence.own):
        if isinstance(leaf.value, str) and (found := pattern.search(leaf.value)):
            return Found(leaf.where, found[0])
    return None


def _word(text: str, evidence: Evidence) -> Found | None:
    pattern = re.compile(
        rf"(?<![A-Za-z])(?:{re.escape(text)}|{re.escape(text[:3])})(?![A-Za-z0-9])", re.IGNORECASE
    )
    for passage in evidence.passages:
        if pattern.search(passage.text):
            return Found(passage.where, text)
    return None


_WEEKDAY_SPELLINGS = {
    "mon": "mon(?:days?)?",
    "tue": "tue(?:s|sdays?)?",
    "wed": "wed(?:s|nesdays?)?",
    "thu": "thu(?:r|rs|rsdays?)?",
    "fri": "fri(?:days?)?",
    "sat": "sat(?:urdays?)?",
    "sun": "sun(?:days?)?",
}


def _weekday(day: str, evidence: Evidence) -> Found | None:
    """ "Tuesdays" from "Tuesday", "Tues." or {"tuesday": …}."""
    pattern = re.compile(rf"(?<![a-z]){_WEEKDAY_SPELLINGS[day]}(?![a-z0-9])", re.IGNORECASE)
    for passage in evidence.passages:
        if found := pattern.search(passage.text):
            return Found(passage.where, found[0])
    if any(pattern.fullmatch(word) for word in evidence.words_of_names if word.startswith(day)):
        return Found("names of values", day)
    return None


def _quarter(number: int, evidence: Evidence) -> Found | None:
    """A quarter by its number in any form: "Q2", "2Q24", "Quarter 2", "second quarter", {"quarter": 2}."""
    if f"q{number}" in evidence.vocabulary:
        return Found("names of values", f"q{number}")
    spelled = "|".join(name for name, value in _QUARTERS.items() if value == number)
    pattern = re.compile(
        rf"(?<![a-z])Q{number}(?![a-z0-9])|(?<![a-z0-9]){number}Q(?![a-z])|\b(?:quarter|qtr\.?) ?{number}\b"
        rf"|\b(?:{spelled}) (?:\w+ )?(?:quarter|qtr)\b",
        re.IGNORECASE,
    )
    for leaf in (*evidence.leaves, *evidence.own, *evidence.arguments):
        if isinstance(leaf.value, str) and (found := pattern.search(leaf.value)):
            return Found(leaf.where, found[0])
        if leaf.value == number and not _QUARTER_KEYS.isdisjoint(key_words(leaf.key)):
            return Found(leaf.where, f"{leaf.key}: {leaf.value}")
    return None


_QUARTER_KEYS = frozenset(["quarter", "qtr", "q"])


def _named(claim: Claim, evidence: Evidence) -> Found | None:
    day = claim.text.lower()[:3]
    if found := _weekday(day, evidence) if day in _WEEKDAYS else _word(claim.text, evidence):
        return found
    if day in _WEEKDAYS:
        for fact in evidence.days:
            if fact.day is not None and fact.day.weekday() == _WEEKDAYS.index(day):
                return Found(fact.where, fact.text)
    if quarter := re.match(r"(?i)Q([1-4])|(first|second|third|fourth|last|1st|2nd|3rd|4th)", claim.text):
        year = re.search(r"(?:19|20)\d\d", claim.text)
        number = int(quarter[1]) if quarter[1] else _QUARTERS[quarter[2].lower()]
        for fact in evidence.dates:
            in_quarter = fact.date.month is not None and (fact.date.month - 1) // 3 + 1 == number
            if in_quarter and (year is None or fact.date.year == int(year[0])):
                return Found(fact.where, fact.text)
        months = _MONTHS[3 * number - 3 : 3 * number]
        if year is None and sum(not {name, name[:3]}.isdisjoint(evidence.vocabulary) for name in months) > 1:
            return Found("evidence", " ".join(months))
        found = _quarter(number, evidence)
        return found if found and (year is None or find_year(int(year[0]), evidence)) else None
    if year := re.search(r"\d{4}", claim.text):
        return find_year(int(year[0]), evidence)
    return None


def find_time(claim: Claim, evidence: Evidence) -> Found | None:
    """A time of day, on a clock of 12 or 24 hours."""
    for minutes in claim.minutes:
        half_day = (minutes, (minutes + 720) % 1440) if "m" not in claim.text.lower() else (minutes,)
        for reading in half_day:
            if reading in evidence.times:
                return Found(evidence.times[reading], f"{reading // 60:02}:{reading % 60:02}")
    return None
