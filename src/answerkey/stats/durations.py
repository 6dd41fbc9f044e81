"""Durations: times in milliseconds whose mean and percentiles merge in any order to the same figures.

Up to 50,000 of them percentiles are exact. Beyond, times are counted in buckets whose bounds are 0.2% apart, so that a
percentile is off by at most 0.1% (the way of DDSketch, Masson 2019); mean and maximum stay exact.
"""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import exp, log

MOST_EXACT = 50_000
# Fewer are folded together with others.
_WORTH_FOLDING = 1000
# Half the relative width of a bucket.
_ERROR = 0.001
_WIDTH = log((1 + _ERROR) / (1 - _ERROR))
# Shorter times than a nanosecond are none.
_SHORTEST = 1e-6
_NANOSECONDS = 1e6


class Durations:
    """Times taken, added up."""

    __slots__ = ("_buckets", "_counted", "_folded", "_longest", "_nanoseconds", "_values")

    def __init__(self) -> None:
        # While they are few, one by one.
        self._values = array("d")
        # Beyond: how many were counted in buckets, the longest and the sum of these.
        self._buckets: Counter[int] = Counter()
        self._counted = 0
        self._longest = 0.0
        self._nanoseconds = 0
        # All of these in buckets, as they were when somebody asked.
        self._folded: Durations | None = None

    def add(self, value: float) -> None:
        """Add one."""
        self.extend((value,))

    def extend(self, values: Iterable[float]) -> None:
        """Add several."""
        self._values.extend(values)
        if len(self._values) > MOST_EXACT:
            self._fold()

    def merge(self, other: "Durations") -> None:
        """Add those of another."""
        if len(other._values) > _WORTH_FOLDING and self.count + other.count > MOST_EXACT:
            other = other._in_buckets()
        self._take(other)

    def _take(self, other: "Durations") -> None:
        """Add those of another as it keeps them."""
        self._buckets.update(other._buckets)
        self._counted += other._counted
        self._longest = max(self._longest, other._longest)
        self._nanoseconds += other._nanoseconds
        self._values.extend(other._values)
        if len(self._values) > MOST_EXACT:
            self._fold()

    def _in_buckets(self) -> "Durations":
        """The same in buckets, worked out once for all slices that these are in."""
        if self._folded is None or self._folded.count != self.count:
            self._folded = Durations()
            self._folded._take(self)
            self._folded._fold()
        return self._folded

    def _fold(self) -> None:
        self._longest = self.longest
        self._counted += len(self._values)
        # A log's times have few decimals, so that many are equal.
        for value, times in Counter(self._values).items():
            self._nanoseconds += round(value * _NANOSECONDS) * times
            self._buckets[_bucket(value)] += times
        del self._values[:]

    @property
    def count(self) -> int:
        """How many there are."""
        return self._counted + len(self._values)

    @property
    def longest(self) -> float:
        """The longest."""
        return max(self._longest, max(self._values, default=0.0))

    @property
    def mean(self) -> float:
        """The mean."""
        return (self._nanoseconds + _sum(self._values)) / self.count / _NANOSECONDS

    def percentiles(self, percents: Sequence[float]) -> list[float]:
        """Percentiles (0 to 100)."""
        if not self._counted:
            return percentiles(self._values, percents)
        self._fold()
        ordered = sorted(self._buckets.items())
        ends = list(accumulate(times for _, times in ordered))
        found = []
        for percent in percents:
            place = bisect_right(ends, (self.count - 1) * percent / 100.0)
            found.append(min(_middle(ordered[min(place, len(ordered) - 1)][0]), self._longest))
        return found


def _sum(values: Sequence[float]) -> int:
    return sum([round(value * _NANOSECONDS) for value in values])


# The same times are counted in each slice that a reply is in.
@lru_cache(maxsize=MOST_EXACT)
def _bucket(value: float) -> int:
    return round(log(max(value, _SHORTEST)) / _WIDTH)


def _middle(bucket: int) -> float:
    return exp(bucket * _WIDTH)


def percentiles(values: Sequence[float], percents: Sequence[float] = (50, 90, 95, 99)) -> list[float]:
    """Several percentiles (0 to 100) of values in any order by numpy's default definition; empty without values."""
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
