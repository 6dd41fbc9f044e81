"""Dates in text, in any usual order, with their span: "August 15, 2024", "15 Aug 2024", "2024-08-15", "8/15/24"."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec

from answerkey.errors import UsageError

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari stycznia",
            "february feb februar fevrier février febrero febbraio fevereiro lutego",
            "march mar märz marz mars marzo março maart marca", "april apr avril abril aprile kwietnia",
            "may mai mayo maggio maio mei maja", "june jun juni juin junio giugno junho czerwca",
            "july jul juli juillet julio luglio julho lipca", "august aug août aout agosto augustus sierpnia",
            "september sept sep septembre septiembre settembre setembro września",
            "october oct oktober octobre octubre ottobre outubro października",
            "november nov novembre noviembre novembro listopada",
            "december dec dezember décembre decembre diciembre dicembre dezembro grudnia",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = r"(?P<{0}>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(?P<{0}>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th|er)?\b\.?"
_YEAR = r"(?P<{0}>(?:1[0-9]|20)[0-9][0-9]|['’][0-9][0-9])(?![0-9])"
_NAMED = re.compile(
    r"(?<![^\W_])(?:"
    # 15 August 2024, 15th of August, 2024
    + _DAY.format("d1") + r"[\s-]*(?:day\s+of\s+|of\s+|de\s+)?" + _MONTH.format("m1")
    + r"(?:,?\s*(?:de\s+)?" + _YEAR.format("y1") + r")?"
    # August 15, 2024
    + r"|" + _MONTH.format("m2") + r"\s*(?:the\s+)?" + _DAY.format("d2") + r"(?:,?\s*" + _YEAR.format("y2") + r")?"
    # August 2024, August of 2024
    + r"|" + _MONTH.format("m3") + r",?\s*(?:of\s+)?" + _YEAR.format("y3")
    + r")",
    re.IGNORECASE,
)  # fmt: skip
# How the names of months begin: most texts have none.
_MONTH_SIGN = re.compile(
    r"(?:[jg][aeiu][nl]|j[uú]|f[eéè][bv]|m[aäe][rijyg]|a[pbv][r]|kwie|a[ouû][ugûtú]|ago|ene|stycz|lut|czer|lip|sier|wrze|se[pt]|o[ckut]t|pa[zź]|lis|nov|d[eéi][cz]|giu|lug|grud)",
    re.IGNORECASE,
)
_NUMERIC = re.compile(
    # 2024-08-15, 2024/08; not 2240.10, which is a number.
    r"(?<![0-9./-])(?:(?P<y>[12][0-9]{3})"
    r"(?:(?P<s1>[-/.])(?P<m>[01]?[0-9])(?P=s1)(?P<d>[0-3]?[0-9])|[-/](?P<m2>[01]?[0-9]))"
    # 08/2024
    r"|(?P<m3>0?[1-9]|1[0-2])/(?P<y3>(?:19|20)[0-9]{2})"
    r"|(?P<a>[0-3]?[0-9])(?P<s2>[-/.])(?P<b>[0-3]?[0-9])(?P=s2)(?P<y2>[12][0-9]{3}|[0-9]{2}))(?![0-9/])"
)


class Date(msgspec.Struct, frozen=True):
    """A date or part of one, with its span in a text."""

    year: int | None
    month: int | None
    day: int | None
    start: int
    end: int
    # For 03/04/2024, which is March or April by country: the other reading is (day, month) swapped.
    ambiguous: bool = False

    def agrees(self, other: "Date") -> bool:
        """Whether every part that both have is equal, and the other has every part that this one has."""
        if self._parts_agree(self.year, self.month, self.day, other):
            return True
        return other.ambiguous and self._parts_agree(self.year, self.day, self.month, other)

    @staticmethod
    def _parts_agree(year: int | None, month: int | None, day: int | None, other: "Date") -> bool:
        return (
            (year is None or year == other.year)
            and (month is None or month == other.month)
            and (day is None or day == other.day)
        )


def month_number(word: str) -> int | None:
    """1 to 12 for the name of a month in English (also German, French, Spanish), else None."""
    return _MONTHS.get(word.lower())


_DIGIT = re.compile("[0-9]")


def _full_year(text: str | None) -> int | None:
    if text is None:
        return None
    digits = int(text.strip("'’"))
    return digits if digits >= 100 else digits + (2000 if digits < 70 else 1900)


def find_dates(text: str) -> Iterator[Date]:
    """Every date with at least two of its parts, named months first, then numeric forms."""
    if _DIGIT.search(text) is None:
        return iter(())
    # Values of records are looked at again and again; long texts are not worth keeping.
    return iter(_known_dates(text) if len(text) <= _LONGEST_KEPT else tuple(_read_dates(text)))


_LONGEST_KEPT = 120


@lru_cache(maxsize=4096)
def _known_dates(text: str) -> tuple[Date, ...]:
    return tuple(_read_dates(text))


def _read_dates(text: str) -> Iterator[Date]:
    for found in _NAMED.finditer(text) if _MONTH_SIGN.search(text) else ():
        month = found["m1"] or found["m2"] or found["m3"]
        day = found["d1"] or found["d2"]
        year = found["y1"] or found["y2"] or found["y3"]
        # Ignoring case, ı, İ and ſ are taken for i and s.
        name = month.upper().replace("İ", "I").lower()
        yield Date(_full_year(year), _MONTHS[name], int(day) if day else None, *found.span())
    for found in _NUMERIC.finditer(text):
        if found["y"] or found["y3"]:
            month_value = int(found["m"] or found["m2"] or found["m3"])
            if 1 <= month_value <= 12:
                yield Date(
                    int(found["y"] or found["y3"]),
                    month_value,
                    int(found["d"]) if found["d"] else None,
                    *found.span(),
                )
            continue
        first, second = int(found["a"]), int(found["b"])
        year_value = _full_year(found["y2"])
        if 1 <= first <= 12 and 1 <= second <= 31:
            yield Date(year_value, first, second, *found.span(), ambiguous=second <= 12 and first != second)
        elif 1 <= second <= 12 and 1 <= first <= 31:
            yield Date(year_value, second, first, *found.span())


# Moments: times from outside as stored (UTC), and stored times as shown (local zone).


def read_moment(text: str) -> str:
    """A time in ISO 8601 as the store writes it; one that names no zone is in UTC."""
    try:
        parsed = datetime.fromisoformat(text.strip())
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        return parsed.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        raise UsageError(f"created_at {text[:60]!r}: not a time; write it as 2026-11-16T08:30:00Z") from None


def day_begins(day: str) -> str:
    """The moment at which a day begins here, as the store writes it."""
    return _midnight(day, timedelta())


def day_ends(day: str) -> str:
    """The moment at which a day ends here."""
    return _midnight(day, timedelta(days=1))


def _midnight(day: str, later: timedelta) -> str:
    try:
        # Without a zone it is in that of this machine.
        moment = (datetime.strptime(day, "%Y-%m-%d") + later).astimezone()
        return moment.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{day[:40]!r} is not a date; write it as 2026-11-16") from None


def local_time(moment: str, *, zone: bool = True) -> str:
    """A stored time as people read it, in the zone of this machine, which is named: 2026-11-16 09:30 CET."""
    try:
        here = datetime.fromisoformat(moment).astimezone()
    except (ValueError, OverflowError, OSError):
        # A value that is not a time is shown unchanged.
        return moment[:16].replace("T", " ")
    return f"{here:%Y-%m-%d %H:%M}" + (f" {here.tzname()}" if zone else "")


def zone_name() -> str:
    """The name of the local time zone."""
    return datetime.now().astimezone().tzname() or "UTC"
