"""Moments of values over units that merge in any order to the same mean and the same interval.

Sums are whole numbers of 2⁻⁶⁰, so they are exact for all that matters and do not depend on the order of adding.
"""

from answerkey.stats.intervals import Interval, interval_of_moments

__all__ = ["UnitMoments", "mean_of_wholes", "whole"]

_SHIFT = 60
_SCALE = float(1 << _SHIFT)


def whole(value: float) -> int:
    """A value as a whole number of 2⁻⁶⁰."""
    return int(value * _SCALE)


def mean_of_wholes(total: int, count: int) -> float:
    """The mean of so many values with this sum."""
    return total / (count << _SHIFT)


class UnitMoments:
    """What the mean and its interval take, of values that belong to units."""

    __slots__ = ("bounded", "count", "cross", "extremes", "size_squares", "squares", "total", "units")

    def __init__(self) -> None:
        # Values, and the units that have any.
        self.count = 0
        self.units = 0
        # Over units, of their sums and sizes: Σ sum, Σ sum², Σ sum·size, Σ size².
        self.total = 0
        self.squares = 0
        self.cross = 0
        self.size_squares = 0
        # Size of a unit → the least and the largest sum of units of that size.
        self.extremes: dict[int, tuple[int, int]] = {}
        # Whether all values are between 0 and 1; a count or a duration is not.
        self.bounded = True

    def add(self, total: int, size: int, times: int = 1, *, bounded: bool) -> None:
        """Count a unit of so many values with this sum, so many times."""
        self.count += size * times
        self.units += times
        self.total += total * times
        self.squares += total * total * times
        self.cross += total * size * times
        self.size_squares += size * size * times
        low, high = self.extremes.get(size, (total, total))
        self.extremes[size] = (min(low, total), max(high, total))
        self.bounded = self.bounded and bounded

    def merge(self, other: "UnitMoments") -> None:
        """Add those of other units."""
        self.count += other.count
        self.units += other.units
        self.total += other.total
        self.squares += other.squares
        self.cross += other.cross
        self.size_squares += other.size_squares
        for size, (low, high) in other.extremes.items():
            known = self.extremes.get(size, (low, high))
            self.extremes[size] = (min(known[0], low), max(known[1], high))
        self.bounded = self.bounded and other.bounded

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return mean_of_wholes(self.total, self.count)

    def interval(self) -> Interval | None:
        """The interval of the mean over units."""
        n, total = self.count, self.total
        # Σ (sum - size·mean)², exact up to the last step.
        squares = n * n * self.squares - 2 * n * total * self.cross + total * total * self.size_squares
        farthest = max(
            abs(n * extreme - total * size) for size, pair in self.extremes.items() for extreme in pair
        )
        return interval_of_moments(
            self.mean,
            n,
            units=self.units,
            squares=squares / ((n * n) << (2 * _SHIFT)),
            size_squares=float(self.size_squares),
            farthest=farthest / (n << _SHIFT),
            bounded=self.bounded,
        )
