"""Periods of time in a question: "August 2024", "last quarter of 2023", "March to June", "since 2024"."""

import calendar
import re
from datetime import date, timedelta

import msgspec

__all__ = ["Period", "find_periods", "month_label"]

_MONTHS = {name.lower(): i for i, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): i for i, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_MONTH = r"(?P<{0}>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_YEAR = r"(?P<{0}>(?:19|20)\d\d|'\d\d)"
_ORDINAL = {
    "first": 1,
    "1st": 1,
    "second": 2,
    "2nd": 2,
    "third": 3,
    "3rd": 3,
    "fourth": 4,
    "4th": 4,
    "last": 4,
    "final": 4,
}
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "fall": (9, 11), "autumn": (9, 11)}
_DAY = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"


class Period(msgspec.Struct, frozen=True):
    """A span of days, both ends included."""

    start: date
    end: date
    # how a person would name it
    label: str
    # the characters of the normalised question that said so
    span: tuple[int, int] = (0, 0)
    # a month was named without a year: the year is a guess that a conversation may correct
    year_guessed: bool = False

    @property
    def months(self) -> int:
        """How many calendar months it touches."""
        return (self.end.year - self.start.year) * 12 + self.end.month - self.start.month + 1

    def in_year(self, year: int) -> "Period":
        """The same period of another year."""
        shift = year - self.start.year
        end_year = self.end.year + shift
        start = self.start.replace(
            year=year, day=min(self.start.day, calendar.monthrange(year, self.start.month)[1])
        )
        end = self.end.replace(year=end_year, day=1)
        end = end.replace(
            day=calendar.monthrange(end_year, end.month)[1] if self.start.day == 1 else self.end.day
        )
        return msgspec.structs.replace(
            self,
            start=start,
            end=end,
            label=self.label.replace(str(self.start.year), str(year)),
            year_guessed=False,
        )


def month_label(year: int, month: int) -> str:
    """For instance "August 2024"."""
    return f"{calendar.month_name[month]} {year}"


def find_periods(text: str, as_of: date, default_year: int | None = None) -> list[Period]:
    """Every period that a normalised question names, in the order of the text."""
    found: list[Period] = []
    taken = [False] * len(text)
    for pattern, build in _RULES:
        for match in pattern.finditer(text):
            if any(taken[match.start() : match.end()]):
                continue
            period = build(match, as_of, default_year)
            if period is not None:
                found.append(msgspec.structs.replace(period, span=match.span()))
                taken[match.start() : match.end()] = [True] * (match.end() - match.start())
    found.sort(key=lambda p: p.span)
    return _share_year(found)


def _share_year(periods: list[Period]) -> list[Period]:
    """In "July and August 2024" the year belongs to both months."""
    years = [p.start.year for p in periods if not p.year_guessed]
    if not years:
        return periods
    return [p.in_year(years[0]) if p.year_guessed else p for p in periods]


def _year(text: str) -> int:
    return 2000 + int(text[1:]) if text.startswith("'") else int(text)


def _month_end(year: int, month: int) -> date:
    return date(year, month, calendar.monthrange(year, month)[1])


def _months(year: int, first: int, last: int, label: str) -> Period:
    return Period(date(year, first, 1), _month_end(year, last), label)


def _guess(month: int, as_of: date, default_year: int | None) -> int:
    if default_year is not None:
        return default_year
    return as_of.year if month <= as_of.month else as_of.year - 1


def _day(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    try:
        if match.groupdict().get("iso"):
            day = date.fromisoformat(match["iso"])
        else:
            day = date(_year(match["y"]), _MONTHS[match["m"]], int(match["d"]))
    except ValueError:
        return None
    return Period(day, day, f"{calendar.month_name[day.month]} {day.day}, {day.year}")


def _month_range(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    m1, m2 = _MONTHS[match["m1"]], _MONTHS[match["m2"]]
    y2 = _year(match["y2"]) if match["y2"] else _guess(m2, as_of, default)
    y1 = _year(match["y1"]) if match["y1"] else y2 if m1 <= m2 else y2 - 1
    if (y1, m1) > (y2, m2):
        return None
    return Period(date(y1, m1, 1), _month_end(y2, m2), f"{month_label(y1, m1)} to {month_label(y2, m2)}")


def _year_range(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    y1, y2 = _year(match["y1"]), _year(match["y2"])
    return Period(date(y1, 1, 1), date(y2, 12, 31), f"{y1} to {y2}") if y1 <= y2 else None


def _open(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    year = _year(match["y"])
    month = _MONTHS[match["m"]] if match["m"] else None
    first = date(year, month or 1, 1)
    last = _month_end(year, month or 12)
    name = month_label(year, month) if month else str(year)
    word = match["word"]
    if word in ("since", "from", "starting"):
        return Period(first, date(9999, 12, 31), f"since {name}")
    if word == "after":
        return Period(last + timedelta(days=1), date(9999, 12, 31), f"after {name}")
    if word in ("before", "prior to"):
        return Period(date(1900, 1, 1), first - timedelta(days=1), f"before {name}")
    return Period(date(1900, 1, 1), last, f"up to {name}")


def _quarter(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    groups = match.groupdict()
    quarter = int(groups["q"]) if groups.get("q") else _ORDINAL[match["ord"]]
    year = _year(groups["y"]) if groups.get("y") else default or as_of.year
    first = quarter * 3 - 2
    span = f"{calendar.month_name[first]} to {calendar.month_name[first + 2]}"
    return msgspec.structs.replace(
        _months(year, first, first + 2, f"Q{quarter} {year} ({span})"), year_guessed=not groups.get("y")
    )


def _half(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    groups = match.groupdict()
    half = int(groups["h"]) if groups.get("h") else min(_ORDINAL[match["ord"]], 2)
    year = _year(groups["y"]) if groups.get("y") else default or as_of.year
    return (
        _months(year, 1, 6, f"the first half of {year}")
        if half == 1
        else _months(year, 7, 12, f"the second half of {year}")
    )


def _season(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    first, last = _SEASONS[match["season"]]
    year = _year(match["y"])
    return _months(year, first, last, f"{match['season']} {year}")


def _month(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    groups = match.groupdict()
    month = 5 if groups.get("may") else int(groups["mm"]) if groups.get("mm") else _MONTHS[match["m"]]
    if not 1 <= month <= 12:
        return None
    year = _year(groups["y"]) if groups.get("y") else _guess(month, as_of, default)
    return msgspec.structs.replace(
        _months(year, month, month, month_label(year, month)), year_guessed=not groups.get("y")
    )


def _one_year(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    year = _year(match["y"])
    return _months(year, 1, 12, str(year))


def _relative(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    text = match.group()
    if "quarter" in text:
        quarter = (as_of.month + 2) // 3
        year = as_of.year
        if not text.startswith("this"):
            year, quarter = (year, quarter - 1) if quarter > 1 else (year - 1, 4)
        return _months(year, quarter * 3 - 2, quarter * 3, f"Q{quarter} {year}")
    if "month" in text:
        year, month = as_of.year, as_of.month
        if not text.startswith("this"):
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
        return _months(year, month, month, month_label(year, month))
    step = 1 if text.startswith("next") else 0 if text.startswith(("this", "y", "current")) else -1
    return _months(as_of.year + step, 1, 12, str(as_of.year + step))


def _trailing(match: re.Match[str], as_of: date, default: int | None) -> Period | None:
    count = int(match["n"]) if match["n"].isdigit() else _NUMBERS[match["n"]]
    if not 1 <= count <= 600:
        return None
    forward = match["dir"] in ("next", "coming")
    months = count * (12 if match["unit"].startswith("year") else 1)
    if match["unit"].startswith("day"):
        return (
            Period(as_of, as_of + timedelta(days=count), f"the next {count} days")
            if forward
            else Period(as_of - timedelta(days=count - 1), as_of, f"the last {count} days")
        )
    if forward:
        index = as_of.year * 12 + as_of.month - 1 + months
        return Period(as_of, _month_end(index // 12, index % 12 + 1), f"the next {count} {match['unit']}")
    index = as_of.year * 12 + as_of.month - months
    return Period(date(index // 12, index % 12 + 1, 1), as_of, f"the last {count} {match['unit']}")


_NUMBERS = {
    w: i
    for i, w in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
}
_M, _Y, _D = _MONTH.format("m"), _YEAR.format("y"), _DAY.format("d")
_ORD = r"(?P<ord>" + "|".join(_ORDINAL) + ")"
# The longer form first: a rule never reads characters that an earlier rule has taken.
_RULES = [
    (re.compile(r"\b(?P<iso>\d{4}-\d\d-\d\d)\b"), _day),
    (re.compile(rf"\b{_M} {_D},? (?:of )?{_Y}(?!\w)"), _day),
    (re.compile(rf"\b{_D} (?:of )?{_M},? {_Y}(?!\w)"), _day),
    (
        re.compile(
            rf"\b(?:from |between )?{_MONTH.format('m1')}(?: (?:of )?{_YEAR.format('y1')})? ?(?:to|"
            rf"through|thru|until|till|-) ?"
            rf"{_MONTH.format('m2')}(?: (?:of )?{_YEAR.format('y2')})?(?!\w)"
        ),
        _month_range,
    ),
    (
        re.compile(
            rf"\bbetween {_MONTH.format('m1')}(?: {_YEAR.format('y1')})? and "
            rf"{_MONTH.format('m2')}(?: {_YEAR.format('y2')})?(?!\w)"
        ),
        _month_range,
    ),
    (
        re.compile(
            rf"\b(?:from|between) {_YEAR.format('y1')} (?:to|and|through|until) {_YEAR.format('y2')}\b"
        ),
        _year_range,
    ),
    (re.compile(rf"\b{_YEAR.format('y1')} ?(?:-|through) ?{_YEAR.format('y2')}\b"), _year_range),
    (re.compile(rf"\bq(?P<q>[1-4])(?: of)?(?:[ /-]?{_Y})?(?!\w)"), _quarter),
    (re.compile(rf"\b{_ORD} quarter(?: of| in)? (?:the year )?{_Y}(?!\w)"), _quarter),
    (re.compile(r"\b(?P<ord>first|1st|second|2nd|third|3rd|fourth|4th|final) quarter\b"), _quarter),
    (re.compile(rf"\bh(?P<h>[12])(?: of)? ?{_Y}(?!\w)"), _half),
    (re.compile(rf"\b(?P<ord>first|second|last) half(?: of)? {_Y}(?!\w)"), _half),
    (re.compile(rf"\b(?P<season>spring|summer|fall|autumn)(?: of)? {_Y}(?!\w)"), _season),
    (
        re.compile(
            rf"\b(?P<word>since|after|before|prior to|up to|until|through|starting)(?: in)? "
            rf"(?:{_M} )?{_Y}(?!\w)"
        ),
        _open,
    ),
    (re.compile(rf"\b{_M},? (?:of |in )?{_Y}(?!\w)"), _month),
    (re.compile(r"\b(?P<y>(?:19|20)\d\d)[-/](?P<mm>0[1-9]|1[0-2])\b(?![-/])"), _month),
    (re.compile(r"\b(?P<mm>0?[1-9]|1[0-2])/(?P<y>(?:19|20)\d\d)\b"), _month),
    (
        re.compile(
            r"\b(?:this|last|previous|past|current|next) (?:calendar |fiscal |tax )?(?:year|quarter|month)\b"
        ),
        _relative,
    ),
    (re.compile(r"\byear[- ]to[- ]date\b|\bytd\b"), _relative),
    (
        re.compile(
            r"\b(?P<dir>last|past|previous|trailing|next|coming) (?P<n>\d{1,3}|"
            + "|".join(_NUMBERS)
            + r") (?P<unit>months?|years?|days?)\b"
        ),
        _trailing,
    ),
    (re.compile(rf"(?<![\w/-])(?:in )?{_YEAR.format('y')}(?!\w|-\d)"), _one_year),
    # "may" alone is nearly always the verb
    (
        re.compile(
            rf"\b(?!may\b)(?!mar\b){_MONTH.format('m')}(?!\w)|\b(?:in|for|during|of|and) (?P<may>may)\b"
        ),
        _month,
    ),
]
