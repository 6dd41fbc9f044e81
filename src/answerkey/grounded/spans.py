"""Spans of time: between two dates or times of the evidence, and dates that lie a span of it before or after another."""

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date as calendar_date
from datetime import timedelta
from itertools import combinations

import msgspec

from answerkey.grounded.claims.quantity import Quantity
from answerkey.grounded.evidence import DateFact, Evidence, NumberFact
from answerkey.grounded.flatten import key_words
from answerkey.grounded.wording import Found
from answerkey.text.dates import Date

__all__ = ["find_date_after", "find_span_of_time"]

_UNITS = {"day": 1.0, "night": 1.0, "week": 7.0}
_MOST_DATES = 60
# Among so few days any two may be meant; of more, only two of one record or text.
_FEW = 4
_MOST_TIMES = 60
# Days that are a number of something, not a time to wait.
_COUNTED = frozenset(
    ["total", "used", "taken", "sick", "vacation", "left", "remaining", "count", "worked", "booked"]
)
_MOST_BASES = 12
_MOST_SPANS = 8
_MOST_WORKED = 400


def find_span_of_time(quantity: Quantity, next_word: str, evidence: Evidence) -> Found | None:
    """ "90 days" or "two years" as the time between two dates of the evidence."""
    unit = next_word.lower().rstrip("s")
    if quantity.kind != "number":
        return None
    if unit in ("h", "hour", "hr", "minute", "min"):
        return _between_times(quantity.value * (60 if unit[0] == "h" else 1), evidence)
    if unit in ("working", "business"):
        return _working_days(quantity.value, evidence)
    if unit not in ("day", "night", "week", "month", "year", "age"):
        return None
    facts = (evidence.days or evidence.yearless_days)[:_MOST_DATES]
    for one, other in _pairs(facts):
        if _spans(one, other, unit, quantity.value, inclusive=_record(one) == _record(other)) or (
            quantity.bound and _nearly(one, other, unit, quantity)
        ):
            return Found(one.where, f"{one.text} to {other.text}")
    if unit in _UNITS:
        for where, total in _totals(facts):
            if quantity.value == total / _UNITS[unit]:
                return Found(where, "sum of the times between the dates")
    return _years_between(quantity.value, evidence) if unit in ("year", "age") else None


def _working_days(stated: float, evidence: Evidence) -> Found | None:
    """ "Ten working days" from Monday, July 7 to Friday, July 18."""
    for one, other in _pairs(evidence.days[:_MOST_DATES]):
        first, last = sorted(day for day in (one.day, other.day) if day is not None)
        length = (last - first).days
        if length > _MOST_WORKED:
            continue
        worked = sum((first + timedelta(days=number)).weekday() < 5 for number in range(length + 1))
        if stated in (worked, worked - 1) and stated > 0:
            return Found(one.where, f"{one.text} to {other.text} without weekends")
    return None


def _pairs(facts: list[DateFact]) -> Iterator[tuple[DateFact, DateFact]]:
    """Two days that it makes sense to compare."""
    distinct = list({fact.day: fact for fact in facts}.values())
    if len(distinct) <= _FEW:
        yield from combinations(distinct, 2)
        return
    asked = [fact for fact in facts if fact.where in ("question", "context")]
    for one, other in combinations(facts, 2):
        if _record(one) == _record(other) or one in asked or other in asked:
            yield one, other
    ordered = sorted(distinct, key=lambda fact: fact.day or calendar_date.min)
    yield ordered[0], ordered[-1]


def _record(fact: DateFact) -> str:
    return fact.where.rpartition(".")[0] or fact.where


def _totals(facts: list[DateFact]) -> Iterator[tuple[str, int]]:
    """The days between the two dates of each record, added up over a list of records."""
    records: dict[str, list[DateFact]] = {}
    for fact in facts:
        records.setdefault(_record(fact), []).append(fact)
    lists: dict[str, list[int]] = {}
    for record, found in records.items():
        days = [fact.day for fact in found if fact.day is not None]
        if record.endswith("]") and len(days) == 2:
            lists.setdefault(record.rpartition("[")[0], []).append(abs((days[1] - days[0]).days))
    for where, spans in lists.items():
        if len(spans) > 1:
            yield where, sum(spans)


def _nearly(one: DateFact, other: DateFact, unit: str, quantity: Quantity) -> bool:
    """ "Just over five years", "about three months"."""
    if one.day is None or other.day is None or unit not in _LENGTHS:
        return False
    off = abs((one.day - other.day).days) / _LENGTHS[unit] - quantity.value
    low, high = {"above": (0.0, 0.5), "below": (-0.5, 0.0)}.get(quantity.bound, (-0.4, 0.4))
    return low <= off <= high


_LENGTHS = {"week": 7.0, "month": 30.44, "year": 365.25}


def _spans(one: DateFact, other: DateFact, unit: str, stated: float, *, inclusive: bool) -> bool:
    first, second = sorted(day for day in (one.day, other.day) if day is not None)
    days = (second - first).days
    if days == 0:
        return False
    if unit in _UNITS:
        # Whether the last day counts is a matter of speaking.
        return stated in (days / _UNITS[unit], (days + 1) / _UNITS[unit] if inclusive else None)
    months = (second.year - first.year) * 12 + second.month - first.month
    # 1 January to 31 December is twelve months; 1 January to 1 January is too.
    full = months if second.day >= first.day else months - 1
    readings = {full, months if abs(second.day - first.day) <= 1 else full}
    if first.day == 1 and second.day >= 28:
        readings.add(months + 1)
    if unit == "age":
        return stated == full // 12
    return stated in (readings if unit == "month" else {reading / 12 for reading in readings})


def _years_between(stated: float, evidence: Evidence) -> Found | None:
    """ "Three years" from a day in 2021 and the year 2024 alone, which the question may name."""
    years = {
        int(fact.value): fact.where
        for fact in evidence.numbers[:200]
        if fact.kind == "number" and fact.unit == 1 and 1900 <= fact.value <= 2100
    }
    dated = {
        fact.date.year: fact.where for fact in evidence.dates[:_MOST_DATES] if fact.date.year is not None
    }
    months = [fact.date for fact in evidence.dates[:_MOST_DATES] if fact.date.month and fact.date.year]
    for one, other_date in combinations(months, 2):
        # "Ten years on November 4" from a day in November 2015 and the month that was asked for.
        same = one.month == other_date.month and None in (one.day, other_date.day)
        if same and one.year and other_date.year and stated == abs(one.year - other_date.year) > 0:
            return Found("dates", f"{one.year}-{one.month:02} to {other_date.year}-{one.month:02}")
    for year, where in years.items():
        for other in (*years, *dated):
            if stated == abs(year - other) and stated > 0:
                return Found(where, f"{min(year, other)} to {max(year, other)}")
    return None


def _between_times(minutes: float, evidence: Evidence) -> Found | None:
    """Any two times if there are few, else two of one record: departs 07:15, arrives 08:10."""
    few = len(evidence.times) <= _FEW
    for one, other in combinations(evidence.times, 2) if len(evidence.times) <= _MOST_TIMES else ():
        if not few and _record_of(evidence.times[one]) != _record_of(evidence.times[other]):
            continue
        if minutes in (abs(one - other), 1440 - abs(one - other)):
            first, second = sorted((one, other))
            text = f"{first // 60:02}:{first % 60:02} to {second // 60:02}:{second % 60:02}"
            return Found(evidence.times[one], text)
    return None


def _record_of(where: str) -> str:
    return where.rpartition(".")[0] or where


def find_date_after(
    date: Date,
    evidence: Evidence,
    stated: Sequence[Date] = (),
    told: Sequence[NumberFact] = (),
    beside: Sequence[Date] = (),
) -> Found | None:
    """A date that lies a span of time before or after one of the evidence's dates, or of those given.

    Spans are those that the evidence names, and those told in the reply. Dates beside it in its sentence are what it is
    reckoned from, if there are any.
    """
    spans = [
        fact
        for fact in (*told, *evidence.numbers)
        if (fact.measure in ("day", "week", "month", "year") or _is_age(fact))
        and fact.value == int(fact.value)
        and 0 < fact.value < 5000
        and _COUNTED.isdisjoint(key_words(fact.key))
        # A month of a year is too easily met by days and weeks.
        and (date.day is not None or date.year is None or fact.measure in ("month", "year"))
    ][:_MOST_SPANS]
    if not spans:
        return None
    # A month alone stands for its first day.
    months = [
        msgspec.structs.replace(fact, date=msgspec.structs.replace(fact.date, day=1))
        for fact in evidence.dates
        if fact.date.day is None and fact.date.month is not None and fact.date.year is not None
    ]
    bases = [*evidence.days, *months, *(DateFact(date=one, where="arithmetic", text="") for one in stated)]
    meant = [base for base in bases if any(_same_day(one, base.date) for one in beside)]
    for base in (meant or bases)[:_MOST_BASES]:
        for span in spans:
            for sign in (-1,) if _NOTICE.search(span.text) else (1, -1):
                day = _moved(base.day, span.measure or "year", sign * int(span.value))
                if day is None:
                    continue
                # A term of five years from 1 September ends on 31 August.
                last = day - timedelta(days=sign) if span.measure in ("month", "year") else day
                ends = [day, last]
                if meant and sign > 0 and span.measure == "day":
                    # Four days from the 6th are over on the 9th.
                    ends.append(day - timedelta(days=1))
                for end in ends:
                    if date.agrees(Date(end.year, end.month, end.day, 0, 0)):
                        word = "after" if sign > 0 else "before"
                        return Found(base.where, f"{span.value:g} {span.measure}s {word} {base.day}")
    return None


def _same_day(said: Date, own: Date) -> bool:
    return said.day is not None and said.month is not None and said.agrees(own)


# Notice is given before an end, not after a beginning.
_NOTICE = re.compile(r"\bnotice\b|\bin advance\b|\bbeforehand\b|\bprior to\b", re.IGNORECASE)


def _is_age(fact: NumberFact) -> bool:
    """ "At age 62": as many years after a birth."""
    return fact.label == "age" or key_words(fact.key)[-1:] == ("age",)


def _moved(day: calendar_date | None, unit: str, count: int) -> calendar_date | None:
    if day is None:
        return None
    try:
        if unit in ("day", "week"):
            return day + timedelta(days=count * (7 if unit == "week" else 1))
        months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
        year, month = months // 12, months % 12 + 1
        return calendar_date(year, month, min(day.day, monthrange(year, month)[1]))
    except (ValueError, OverflowError):
        return None
