"""Whether dates, times and spans of time of a reply stand in the evidence or follow from its dates."""

import re
from itertools import combinations

from answerkey.scorers.groundedness.evidence import DateFact, Evidence
from answerkey.scorers.groundedness.flatten import key_words
from answerkey.scorers.groundedness.wording import Found
from answerkey.text.claims.claim import Claim
from answerkey.text.claims.quantity import Quantity

__all__ = ["find_date", "find_span_of_time", "find_time"]

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {"day": 1.0, "night": 1.0, "week": 7.0}
_MOST_DATES = 60


def find_date(claim: Claim, evidence: Evidence) -> Found | None:
    """A date that the evidence has with at least the same parts; a weekday or quarter that one of its dates falls in."""
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
    if date.day is None and date.month is None:
        return _year(date.year, evidence)
    if date.year is None and date.month is None:
        return _day(date.day, evidence)
    if date.year is None and date.day is None:
        return _word(claim.text, evidence)
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


def _year(year: int | None, evidence: Evidence) -> Found | None:
    for fact in evidence.numbers:
        if fact.value == year and fact.kind == "number":
            return Found(fact.where, fact.text)
    return None


def _word(text: str, evidence: Evidence) -> Found | None:
    pattern = re.compile(rf"\b(?:{re.escape(text)}|{re.escape(text[:3])})\b", re.IGNORECASE)
    for passage in evidence.passages:
        if pattern.search(passage.text):
            return Found(passage.where, text)
    return None


def _named(claim: Claim, evidence: Evidence) -> Found | None:
    if found := _word(claim.text, evidence):
        return found
    day = claim.text.lower().rstrip("s")
    if day in _WEEKDAYS:
        for fact in evidence.dates:
            if fact.day is not None and fact.day.weekday() == _WEEKDAYS.index(day):
                return Found(fact.where, fact.text)
    if quarter := re.match(r"Q([1-4])", claim.text):
        year = re.search(r"(?:19|20)\d\d", claim.text)
        for fact in evidence.dates:
            in_quarter = fact.date.month is not None and (fact.date.month - 1) // 3 + 1 == int(quarter[1])
            if in_quarter and (year is None or fact.date.year == int(year[0])):
                return Found(fact.where, fact.text)
        if year and (found := _word(f"Q{quarter[1]}", evidence)) and _year(int(year[0]), evidence):
            return found
    if year := re.search(r"\d{4}", claim.text):
        return _year(int(year[0]), evidence)
    return None


def find_time(claim: Claim, evidence: Evidence) -> Found | None:
    """A time of day, on a clock of 12 or 24 hours."""
    for minutes in claim.minutes:
        half_day = (minutes, (minutes + 720) % 1440) if "m" not in claim.text.lower() else (minutes,)
        for reading in half_day:
            if reading in evidence.times:
                return Found(evidence.times[reading], f"{reading // 60:02}:{reading % 60:02}")
    return None


def find_span_of_time(quantity: Quantity, next_word: str, evidence: Evidence) -> Found | None:
    """ "90 days" or "two years" as the time between two dates of the evidence."""
    unit = next_word.lower().rstrip("s")
    if unit not in ("day", "night", "week", "month", "year") or quantity.kind != "number":
        return None
    facts = evidence.days[:_MOST_DATES]
    for one, other in combinations(facts, 2):
        if _spans(one, other, unit, quantity.value):
            return Found(one.where, f"{one.text} to {other.text}")
    return _years_between(quantity.value, evidence) if unit == "year" else None


def _years_between(stated: float, evidence: Evidence) -> Found | None:
    """ "Three years" from a day in 2021 and the year 2024 alone, which the question may name."""
    years = {
        int(fact.value): fact.where
        for fact in evidence.numbers[:200]
        if fact.kind == "number" and fact.unit == 1 and 1900 <= fact.value <= 2100
    }
    dated = {fact.date.year: fact.where for fact in evidence.dates[:_MOST_DATES] if fact.date.year is not None}
    for year, where in years.items():
        for other in (*years, *dated):
            if stated == abs(year - other) and stated > 0:
                return Found(where, f"{min(year, other)} to {max(year, other)}")
    return None


def _spans(one: DateFact, other: DateFact, unit: str, stated: float) -> bool:
    first, second = sorted(day for day in (one.day, other.day) if day is not None)
    days = (second - first).days
    if days == 0:
        return False
    if unit in _UNITS:
        # Whether the last day counts is a matter of speaking.
        return stated in (days / _UNITS[unit], (days + 1) / _UNITS[unit])
    months = (second.year - first.year) * 12 + second.month - first.month
    # 1 January to 31 December is twelve months; 1 January to 1 January is too.
    full = months if second.day >= first.day else months - 1
    readings = {full, months if abs(second.day - first.day) <= 1 else full}
    if first.day == 1 and second.day >= 28:
        readings.add(months + 1)
    return stated in (readings if unit == "month" else {reading / 12 for reading in readings})
