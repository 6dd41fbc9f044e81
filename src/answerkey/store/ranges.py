"""Ranged: what every table takes besides its own conditions, ranges of measures and an order."""

import msgspec

from answerkey.errors import UsageError
from answerkey.store.database import EPSILON
from answerkey.store.feedback_book import ShortText

__all__ = ["Range", "Ranged"]


class Range(msgspec.Struct, frozen=True):
    """Between which values something must be; None: any."""

    name: str
    low: float | None
    high: float | None

    @classmethod
    def read(cls, text: str) -> "Range":
        """From `score:0.5..0.8`, `score:..0.8` or `score:0.5..`."""
        name, _, limits = text.rpartition(":")
        low, dots, high = limits.partition("..")
        try:
            if not name or not dots:
                raise ValueError
            return cls(name, float(low) if low else None, float(high) if high else None)
        except ValueError:
            raise UsageError(
                f"range {text[:80]!r}: write a name and two numbers, as score:0.5..0.8"
            ) from None

    def __str__(self) -> str:
        low, high = ("" if limit is None else f"{limit:g}" for limit in (self.low, self.high))
        return f"{self.name}:{low}..{high}"

    def holds(self, value: float | None) -> bool:
        """Whether a value is in it; one that is missing is in none."""
        if value is None:
            return False
        above = self.low is None or value >= self.low - EPSILON
        return above and (self.high is None or value <= self.high + EPSILON)


class Ranged(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a table are wanted by what is measured of them, and in what order."""

    # As `Range.read` takes them.
    range: tuple[ShortText, ...] = ()
    # The same of one more, as a form sends it.
    measure: ShortText | None = None
    low: float | None = None
    high: float | None = None
    # The name of a column; with a minus the largest come first.
    sort: ShortText = ""

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Every range that is set."""
        given = [Range.read(text) for text in self.range]
        if self.measure and (self.low is not None or self.high is not None):
            given.append(Range(self.measure, self.low, self.high))
        return tuple(dict.fromkeys(given))

    @property
    def order(self) -> tuple[str, bool]:
        """By what rows are sorted, and whether the largest come first."""
        return self.sort.removeprefix("-"), self.sort.startswith("-")
