"""Periods of time in a question: "August 2024", "June to August 2024", "last quarter of 2023", "since 2024".

Months, quarters, halves and years are read first and joined into ranges by the words between them.
"""

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

import msgspec

_NEVER, _EVER = date(1900, 1, 1), date(9999, 12, 31)
_MONTHS = {name.lower(): i for i, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): i for i, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_ORDINALS |= {"last": 4, "final": 4}
_OPENING = re.compile(
    r"\b(from|between|since|after|before|prior to|until|till|up to|through|starting)(?: [io]n)? $"
)
# other words for since, before and up to
_OPENS = {"starting": "since", "prior to": "before", "until": "up to", "till": "up to", "through": "up to"}
_JOINING = re.compile(r",? ?(?:to|through|thru|until|till|-|up to) ?(?:the end of )?")


class Period(msgspec.Struct, frozen=True):
    """A span of days, both ends included."""

    start: date
    end: date
    # how a person would name it
    label: str
    # the characters of the normalised question that said so
    span: tuple[int, int] = (0, 0)
    # no year was named: it is a guess that the rest of the question or the conversation may correct
    year_guessed: bool = False

    @property
    def phrase(self) -> str:
        """The period after a noun: "in 2024", "since 2024", "from May to July 2024"."""
        if self.label.startswith(("since", "after", "before", "up to")):
            return self.label
        preposition = "from" if " to " in _short(self) else "in"
        return f"{preposition} {self.label}"

    def in_year(self, year: int) -> "Period":
        """The same period of another year."""
        last_day = calendar.monthrange(self.end.year, self.end.month)[1]
        end_day = 31 if self.end.day == last_day and self.start.day == 1 else self.end.day
        start = _day_of(year, self.start.month, self.start.day)
        end = _day_of(year + self.end.year - self.start.year, self.end.month, end_day)
        label = self.label.replace(str(self.start.year), str(year))
        return msgspec.structs.replace(self, start=start, end=end, label=label, year_guessed=False)


def find_periods(text: str, as_of: date, base: Period | None = None) -> list[Period]:
    """Every period that a normalised question names, in the order of the text.

    `base` is the period that the conversation is about: its year is meant where none is said, and "the year after" is
    the one after it.
    """
    points: list[Period] = []
    masked = text
    for pattern, build in _POINTS:
        for match in re.finditer(pattern, masked):
            point = build(match, as_of, base)
            if point is not None:
                points.append(msgspec.structs.replace(point, span=match.span()))
                # a rule never reads characters that an earlier rule has read
                masked = masked[: match.start()] + "#" * len(match.group()) + masked[match.end() :]
    points.sort(key=lambda p: p.span)
    return list(_joined(text, points))


def _joined(text: str, points: list[Period]) -> Iterator[Period]:
    """Two points with "to" between them are one range; in "July and August 2024" the year belongs to both months."""
    years = [p.start.year for p in points if not p.year_guessed]
    dated = [p.in_year(years[0]) if years and p.year_guessed else p for p in points]
    number = 0
    while number < len(points):
        point, after = dated[number], dated[number + 1] if number + 1 < len(points) else None
        opening = _OPENING.search(text[: point.span[0]])
        word = opening.group(1) if opening else ""
        begin = opening.start() if opening else point.span[0]
        between = text[point.span[1] : after.span[0]] if after else ""
        if after and (_JOINING.fullmatch(between) or (word == "between" and between == " and ")):
            if point.start > after.start and points[number].year_guessed:
                # "November to February 2024" began the year before
                point = point.in_year(after.start.year - 1)
            if point.start <= after.end:
                label = f"{_short(point)} to {_short(after)}"
                yield Period(point.start, after.end, label, (begin, after.span[1]))
                number += 2
                continue
        yield _opened(point, word, (begin, point.span[1]))
        number += 1


def _opened(point: Period, word: str, span: tuple[int, int]) -> Period:
    """A point with a word before it that opens one end: "since March 2024"."""
    day, name = timedelta(days=1), _OPENS.get(word, word)
    ends = {
        "since": (point.start, _EVER),
        "after": (point.end + day, _EVER),
        "before": (_NEVER, point.start - day),
        "up to": (_NEVER, point.end),
    }
    return Period(*ends[name], f"{name} {_short(point)}", span) if name in ends else point


def _short(period: Period) -> str:
    return re.sub(r" \(.*\)", "", period.label)


def _day_of(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


def _months(year: int, first: int, count: int, label: str, *, guessed: bool = False) -> Period:
    """Whole months; a number of the first month outside 1 to 12 is in another year."""
    year, first = year + (first - 1) // 12, (first - 1) % 12 + 1
    last = year * 12 + first + count - 2
    label = label.format(year=year, month=calendar.month_name[first], q=(first + 2) // 3)
    return Period(date(year, first, 1), _day_of(last // 12, last % 12 + 1, 31), label, year_guessed=guessed)


def _year(match: re.Match[str], default: int) -> tuple[int, bool]:
    """The year that is said, or the default and that it is a guess."""
    said = match.groupdict().get("y")
    return (int(said.replace("'", "20")), False) if said else (default, True)


def _month(match: re.Match[str], as_of: date, base: Period | None) -> Period:
    month = _MONTHS[match["m"]] if match["m"].isalpha() else int(match["m"])
    likely = base.start.year if base else as_of.year - (month > as_of.month)
    year, guessed = _year(match, likely)
    return _months(year, month, 1, "{month} {year}", guessed=guessed)


def _part(match: re.Match[str], as_of: date, base: Period | None) -> Period | None:
    """A quarter or a half of a year."""
    year, guessed = _year(match, base.start.year if base else as_of.year)
    if match["n"] in ("last", "final") and guessed:
        return None
    number = _ORDINALS.get(match["n"]) or int(match["n"])
    if match["part"].startswith("q"):
        months = f"{calendar.month_name[number * 3 - 2]} to {calendar.month_name[number * 3]}"
        return _months(year, number * 3 - 2, 3, f"Q{{q}} {{year}} ({months})", guessed=guessed)
    first, name = (1, "first") if number == 1 else (7, "second")
    return _months(year, first, 6, f"the {name} half of {{year}}", guessed=guessed)


def _relative(match: re.Match[str], as_of: date, base: Period | None) -> Period:
    """This, last and next year, quarter or month, or the one before and after that of the conversation."""
    text = match.group()
    day = base.start if base and re.search(r"\b(?:after|following|before|prior)\b", text) else as_of
    step = 1 if re.search(r"next|after|following", text) else -1
    step = 0 if re.search(r"this|current", text) else step
    if "month" in text:
        return _months(day.year, day.month + step, 1, "{month} {year}")
    if "quarter" in text:
        return _months(day.year, (day.month - 1) // 3 * 3 + 1 + 3 * step, 3, "Q{q} {year}")
    return _months(day.year + step, 1, 12, "{year}")


_MONTH = r"(?P<m>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_YEAR = r"(?P<y>(?:19|20)\d\d|'\d\d)(?!\w|-\d)"
_ORDINAL = r"(?P<n>" + "|".join(_ORDINALS) + ")"
_STEP = r"(?:this|last|previous|past|current|next|following|prior)"
# "may" alone is nearly always the verb
_TIME_WORDS = "in for during of and or from to since through until before after".split()
_BEFORE_MAY = "|".join(rf"(?<=\b{word} )" for word in _TIME_WORDS)
# The longer form first.
_POINTS: list[tuple[str, Callable[[re.Match[str], date, Period | None], Period | None]]] = [
    (rf"\b{_MONTH},? (?:of |in )?{_YEAR}", _month),
    (rf"\b(?P<part>q)(?P<n>[1-4])(?: of)?(?:[ /-]?{_YEAR})?(?!\w)", _part),
    (rf"\b{_ORDINAL} (?P<part>quarter|half)(?:(?: of| in)?(?: the year)? {_YEAR})?(?!\w)", _part),
    (rf"\b(?P<part>h)(?P<n>[12])(?: of)? ?{_YEAR}", _part),
    (r"\b(?P<y>(?:19|20)\d\d)[-/](?P<m>0[1-9]|1[0-2])\b(?![-/])", _month),
    (r"\b(?:the )?(?:year|quarter|month) (?:after|before)(?: that)?(?= ?[?.!]*$)", _relative),
    (rf"\b{_STEP} (?:calendar |fiscal |tax )?(?:year|quarter|month)\b", _relative),
    (rf"(?<![\w/$-]){_YEAR}", lambda match, as_of, _: _months(_year(match, as_of.year)[0], 1, 12, "{year}")),
    (rf"\b(?!may\b|mar\b){_MONTH}(?!\w)", _month),
    (rf"(?:{_BEFORE_MAY})(?P<m>may)\b", _month),
]
