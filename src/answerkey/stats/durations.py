"""Durations in milliseconds: mean and percentiles that merge in any order to the same figures.

Percentiles of up to 50,000 values are exact. Of more, values are counted in buckets whose bounds are 0.2% apart, so that a
percentile is off by at most 0.1% (as in DDSketch, Masson 2019); mean and maximum stay exact.
"""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import exp, log

MAX_EXACT = 50_000
# Smaller collections are merged value by value.
_MIN_FOLDED = 1000
# Half the relative width of a bucket.
_ERROR = 0.001
_WIDTH = log((1 + _ERROR) / (1 - _ERROR))
# One nanosecond; shorter values count as this.
_SHORTEST = 1e-6
_NANOSECONDS = 1e6


class Durations:
    """A collection of durations."""

    __slots__ = ("_buckets", "_counted", "_folded", "_longest", "_nanoseconds", "_values")

    def __init__(self) -> None:
        # Values not in buckets yet.
        self._values = array("d")
        # Values in buckets: their count, longest and sum.
        self._buckets: Counter[int] = Counter()
        self._counted = 0
        self._longest = 0.0
        self._nanoseconds = 0
        # A copy with all values in buckets, made for a merge.
        self._folded: Durations | None = None

    def add(self, value: float) -> None:
        """Add one value."""
        self._values.append(value)
        if len(self._values) > MAX_EXACT:
            self._fold()

    def extend(self, values: Iterable[float]) -> None:
        """Add several values."""
        self._values.extend(values)
        if len(self._values) > MAX_EXACT:
            self._fold()

    def merge(self, other: "Durations") -> None:
        """Add the values of another collection."""
        if len(other._values) > _MIN_FOLDED and self.count + other.count > MAX_EXACT:
            other = other._in_buckets()
        self._take(other)

    def _take(self, other: "Durations") -> None:
        """Add another collection's values and buckets."""
        self._buckets.update(other._buckets)
        self._counted += other._counted
        self._longest = max(self._longest, other._longest)
        self._nanoseconds += other._nanoseconds
        self._values.extend(other._values)
        if len(self._values) > MAX_EXACT:
            self._fold()

    def _in_buckets(self) -> "Durations":
        """Return a copy in buckets, computed once for all slices that merge it."""
        if self._folded is None or self._folded.count != self.count:
            self._folded = Durations()
            self._folded._take(self)
            self._folded._fold()
        return self._folded

    def _fold(self) -> None:
        self._longest = self.longest
        self._counted += len(self._values)
        # Times in logs have few decimals, so that many are equal.
        for value, times in Counter(self._values).items():
            self._nanoseconds += round(value * _NANOSECONDS) * times
            self._buckets[_bucket(value)] += times
        del self._values[:]

    @property
    def count(self) -> int:
        """Number of values."""
        return self._counted + len(self._values)

    @property
    def longest(self) -> float:
        """The longest value."""
        return max(self._longest, max(self._values, default=0.0))

    @property
    def mean(self) -> float:
        """The mean."""
        return (self._nanoseconds + _sum(self._values)) / self.count / _NANOSECONDS

    def percentiles(self, percents: Sequence[float]) -> list[float]:
        """Return percentiles (0 to 100)."""
        if not self._counted:
            return percentiles(self._values, percents)
        self._fold()
        ordered = sorted(self._buckets.items())
        ends = list(accumulate(times for _, times in ordered))
        values = []
        for percent in percents:
            index = bisect_right(ends, (self.count - 1) * percent / 100.0)
            values.append(min(_middle(ordered[min(index, len(ordered) - 1)][0]), self._longest))
        return values


def _sum(values: Sequence[float]) -> int:
    return sum([round(value * _NANOSECONDS) for value in values])


# Cached: a reply is counted in several slices.
@lru_cache(maxsize=MAX_EXACT)
def _bucket(value: float) -> int:
    return round(log(max(value, _SHORTEST)) / _WIDTH)


def _middle(bucket: int) -> float:
    return exp(bucket * _WIDTH)


def percentiles(values: Sequence[float], percents: Sequence[float] = (50, 90, 95, 99)) -> list[float]:
    """Return percentiles (0 to 100) by numpy's default definition; empty without values."""
    ordered = sorted(values)
    found = []
    for percent in percents if ordered else ():
        position = (len(ordered) - 1) * percent / 100.0
        below = min(max(int(position), 0), len(ordered) - 1)
        low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
        share = position - below
        # numpy interpolates from the nearer end, which keeps equal neighbours exactly equal.
        found.append(high - (high - low) * (1.0 - share) if share >= 0.5 else low + (high - low) * share)
    return found
