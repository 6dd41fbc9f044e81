"""Distributions, confidence intervals of means over units and of rates, and moments and percentiles that merge in any order.

A unit is drawn independently: a question, or a conversation, template or group of several questions. The standard error is
clustered (Liang and Zeger 1986; recommended for evaluations by Miller 2024), with G / (G - 1) for few units. As scores are
bounded, it is converted into the number of pass/fail units with the same uncertainty, and the interval is Wilson's for that
number, with Student's t of G - 1 degrees of freedom (Korn and Graubard 1998). A failure that was drawn once might have been
drawn twice, so the unit farthest from the mean counts once more in the standard error, up to the maximum for scores of this
mean. docs/measurements/statistics.md has the simulated coverage.

The distribution functions are plain Python: SciPy would cost 110 MB and one to two seconds of import; the tests compare every
function with SciPy's.

Durations are in milliseconds. Percentiles of up to 50,000 values are exact. Of more, values are counted in buckets whose bounds
are 0.2% apart, so that a percentile is off by at most 0.1% (as in DDSketch, Masson 2019); mean and maximum stay exact.
"""

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import exp, log
from operator import mul

import msgspec

_SQRT2 = math.sqrt(2.0)


def normal_cdf(x: float) -> float:
    """P(Z <= x) of the standard normal distribution."""
    return 0.5 * math.erfc(-x / _SQRT2)


def normal_quantile(p: float) -> float:
    """The x with P(Z <= x) = p."""
    if not 0.0 < p < 1.0:
        return -math.inf if p == 0.0 else math.inf if p == 1.0 else math.nan
    from statistics import NormalDist  # slow to load

    return NormalDist().inv_cdf(p)


def log_beta(a: float, b: float) -> float:
    """log B(a, b); of arguments in the millions, right to eight digits."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    # It converges in about sqrt(max(a, b)) steps; the bound only stops a NaN.
    for m in range(1, 200_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            c = 1.0 + numerator / c
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            step = c * d
            value *= step
        if abs(step - 1.0) < 1e-16:
            break
    return value


def beta_cdf(x: float, a: float, b: float) -> float:
    """P(X <= x) of the beta distribution: the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta(a, b))
    if x <= (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def t_two_sided(t: float, df: float) -> float:
    """P(|T| >= |t|) of Student's distribution."""
    if math.isinf(t):
        return 0.0
    if df > 1e6:
        # Wallace's normal approximation: its error is of the order of 1 / df squared.
        return math.erfc(abs(t) * (1.0 - 0.25 / df) / math.sqrt(1.0 + t * t / (2.0 * df)) / _SQRT2)
    square = t * t
    if square < df:
        # The complement keeps its precision where t is small and df / (df + t*t) is nearly 1.
        return 1.0 - beta_cdf(square / (df + square), 0.5, df / 2.0)
    return beta_cdf(df / (df + square), df / 2.0, 0.5)


def t_cdf(t: float, df: float) -> float:
    """P(T <= t) of Student's distribution with df degrees of freedom."""
    tail = t_two_sided(t, df) / 2.0
    return tail if t < 0.0 else 1.0 - tail


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """The t with P(T <= t) = p."""
    if not 0.0 < p < 1.0 or df <= 0.0:
        return -math.inf if p == 0.0 else math.inf if p == 1.0 else math.nan
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -t_quantile(1.0 - p, df)
    if df > 1e12:
        return normal_quantile(p)
    # Bracket the root from the normal quantile outwards, then Newton with bisection as the safety net.
    high = normal_quantile(p)
    low = 2.0 * high - 1.0
    while t_cdf(low, df) > p:
        low *= 2.0
    x = high
    scale = math.exp(-log_beta(df / 2.0, 0.5)) / math.sqrt(df)
    for _ in range(100):
        gap = t_cdf(x, df) - p
        if gap > 0.0:
            high = x
        else:
            low = x
        density = scale * math.exp(-(df + 1.0) / 2.0 * math.log1p(x * x / df))
        following = x - gap / density if density > 0.0 else math.nan
        if not low < following < high:
            following = (low + high) / 2.0
        if abs(following - x) <= 1e-10 * abs(x):
            return following
        x = following
    return x


# Intervals are of 95%: the quantile that bounds them, and of the normal distribution.
_UPPER = 0.975
Z95 = 1.959963984540054


class Interval(msgspec.Struct, frozen=True):
    """A confidence interval."""

    # Lower end.
    low: float
    # Upper end.
    high: float
    # Share of such intervals that contain the true value.
    level: float = 0.95


def wilson_interval(successes: int, n: int) -> Interval | None:
    """Return Wilson's score interval of a rate; None without observations."""
    if n <= 0:
        return None
    return _wilson(successes / n, float(n), Z95)


def mean_interval(
    values: Sequence[float],
    units: Sequence[Hashable] | None = None,
    *,
    bounded: bool = True,
) -> Interval | None:
    """The interval of the mean of `values` between 0 and 1; `units` says which belong together (None: none do).

    Unbounded (latencies, costs) it is the clustered t interval. None without values, and for a single unbounded unit.
    """
    totals: list[tuple[int, int]] = [(to_fixed_point(value), 1) for value in values]
    if units is not None:
        by_unit: dict[Hashable, tuple[int, int]] = {}
        for (value, _), unit in zip(totals, units, strict=True):
            total, size = by_unit.get(unit, (0, 0))
            by_unit[unit] = total + value, size + 1
        totals = list(by_unit.values())
    moments = UnitMoments()
    for (total, size), times in Counter(totals).items():
        moments.add(total, size, times, bounded=bounded)
    return moments.interval() if totals else None


def interval_of_moments(
    mean: float,
    n: int,
    *,
    units: int,
    squares: float,
    size_squares: float,
    farthest: float,
    bounded: bool = True,
) -> Interval | None:
    """Return the interval from moments of the units' residuals (sum of a unit's values minus its size times the mean).

    `squares` is the sum of the residuals' squares, `farthest` the largest absolute residual, `size_squares` the sum of the
    squares of the units' sizes.
    """
    if not bounded:
        if units == 1:
            return None
        half = t_quantile(_UPPER, units - 1) * math.sqrt(squares * units / (units - 1)) / n
        return Interval(low=mean - half, high=mean + half)
    # Rounding may move the mean of equal values past its bound by an ulp.
    mean = min(max(mean, 0.0), 1.0)
    # The maximum: every unit has only zeros or only ones.
    most = mean * (1.0 - mean) * size_squares
    effective = float(units)
    if squares > 1e-12 and units > 1:
        squares = max(squares, min(squares + farthest * farthest, most))
        effective = mean * (1.0 - mean) * n * n * (units - 1) / units / squares
    quantile = t_quantile(_UPPER, max(units - 1, 1))
    return _wilson(mean, effective, quantile)


def _wilson(rate: float, n: float, z: float) -> Interval:
    """Return Wilson's interval for an effective sample size and a quantile."""
    z2 = z * z
    centre = (rate + z2 / (2.0 * n)) / (1.0 + z2 / n)
    half = z / (1.0 + z2 / n) * math.sqrt(rate * (1.0 - rate) / n + z2 / (4.0 * n * n))
    low = 0.0 if rate == 0.0 else max(centre - half, 0.0)
    high = 1.0 if rate == 1.0 else min(centre + half, 1.0)
    return Interval(low=low, high=high)


_SHIFT = 60
_SCALE = float(1 << _SHIFT)


def to_fixed_point(value: float) -> int:
    """Convert a value to fixed point: a multiple of 2⁻⁶⁰. Sums of these do not depend on their order."""
    return int(value * _SCALE)


def fixed_point_mean(total: int, count: int) -> float:
    """Return the mean of `count` values from their fixed-point sum."""
    return total / (count << _SHIFT)


class UnitMoments:
    """Moments of values in units, from which the mean and its interval are computed; sums are fixed point."""

    __slots__ = ("bounded", "count", "cross", "extremes", "size_squares", "squares", "total", "units")

    def __init__(self) -> None:
        # Number of values, and of units.
        self.count = 0
        self.units = 0
        # Over units, of their sums and sizes: Σ sum, Σ sum², Σ sum·size, Σ size².
        self.total = 0
        self.squares = 0
        self.cross = 0
        self.size_squares = 0
        # Size of a unit → smallest and largest sum of units of that size.
        self.extremes: dict[int, tuple[int, int]] = {}
        # Whether all values are between 0 and 1.
        self.bounded = True

    def add(self, total: int, size: int, times: int = 1, *, bounded: bool) -> None:
        """Add `times` units of `size` values with this sum each."""
        self.count += size * times
        self.units += times
        self.total += total * times
        self.squares += total * total * times
        self.cross += total * size * times
        self.size_squares += size * size * times
        low, high = self.extremes.get(size, (total, total))
        self.extremes[size] = (min(low, total), max(high, total))
        self.bounded = self.bounded and bounded

    def extend(self, totals: Sequence[int], size: int) -> None:
        """Add units of `size` unbounded values each, by their sums."""
        self.count += size * len(totals)
        self.units += len(totals)
        total, low, high = sum(totals), min(totals), max(totals)
        self.total += total
        self.squares += sum(map(mul, totals, totals))
        self.cross += total * size
        self.size_squares += size * size * len(totals)
        known = self.extremes.get(size, (low, high))
        self.extremes[size] = (min(low, known[0]), max(high, known[1]))
        self.bounded = False

    def merge(self, other: "UnitMoments") -> None:
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
    def largest(self) -> int:
        """The number of values in the largest unit; 0 without any."""
        return max(self.extremes, default=0)

    @property
    def mean(self) -> float:
        return self.total / (self.count << _SHIFT)

    def interval(self) -> Interval | None:
        """Return the interval of the mean over units."""
        n, total = self.count, self.total
        # Σ (sum - size·mean)², exact up to the last step.
        squares = n * n * self.squares - 2 * n * total * self.cross + total * total * self.size_squares
        farthest = 0
        for size, (low, high) in self.extremes.items():
            farthest = max(farthest, abs(n * low - total * size), abs(n * high - total * size))
        return interval_of_moments(
            total / (n << _SHIFT),
            n,
            units=self.units,
            squares=squares / ((n * n) << (2 * _SHIFT)),
            size_squares=float(self.size_squares),
            farthest=farthest / (n << _SHIFT),
            bounded=self.bounded,
        )


def dominant_unit(largest: int, questions: int) -> str:
    """Say that one unit has too many of the questions for the intervals to hold; empty if it has not."""
    if not 1 < largest < questions or largest <= questions / 3:
        return ""
    return (
        f"one group has {largest:,} of {questions:,} questions: intervals are too narrow (they hold the truth in 80 to 90% of "
        "cases, not 95%); add questions of other groups"
    )


# Repeats of questions whose outcome changed.

# Populations of pass rates: beta distributions with these means and concentrations (small: questions differ widely in
# difficulty; large: all are alike). All are equally likely before the repeats are seen.
_RATE_MEANS = tuple(step / 20 for step in range(1, 20))
_CONCENTRATIONS = tuple(2.0**power for power in range(-3, 10))
# Rates of faults may be much smaller.
_FAULT_MEANS = (0.002, 0.005, 0.01, 0.02, *_RATE_MEANS)


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """Questions that were asked again in the same way, with the outcomes that they had before."""

    # Of each question: how often it succeeded when asked again.
    successes: Sequence[int]
    times: int
    # Earlier successes and failures of each.
    passed: int = 1
    failed: int = 1
    # The number of successes that may not be chance: such questions do not count for the fit.
    left_out: int = 0

    @property
    def varied(self) -> list[int]:
        """The successes of the questions whose outcome is not always the same."""
        return [count for count in self.successes if count != self.left_out]


def chance_of_no_success(repeats: Sequence[Repeats], times: int) -> float:
    """Return the probability that an unstable question that went from pass to fail never succeeds in `times` repeats.

    A beta-binomial distribution is fitted to the questions that varied when they were asked again. Earlier outcomes are part
    of the evidence on their pass rates.
    """
    counted = [(group, Counter(group.varied)) for group in repeats]
    weights, chances = [], []
    for mean in _RATE_MEANS:
        for concentration in _CONCENTRATIONS:
            a, b = mean * concentration, (1.0 - mean) * concentration
            weight = 0.0
            for group, counts in counted:
                own = a + group.passed, b + group.failed
                if counts:
                    at_end = math.exp(_log_beta_binomial(group.left_out, group.times, *own))
                    weight -= counts.total() * math.log1p(-min(at_end, 1.0 - 1e-12))
                weight += math.fsum(
                    number * _log_beta_binomial(count, group.times, *own) for count, number in counts.items()
                )
            weights.append(weight)
            chances.append(math.exp(_log_beta_binomial(0, times, a + 1.0, b + 1.0)))
    top = max(weights)
    likely = [math.exp(weight - top) for weight in weights]
    return math.fsum(w * chance for w, chance in zip(likely, chances, strict=True)) / math.fsum(likely)


class FaultRates:
    """How often the replies of one version have a fault, as a population over its questions."""

    def __init__(self, observed: Iterable[tuple[int, int]]) -> None:
        """`observed` are each question's replies with a fault, and all of its replies."""
        counts = Counter(observed)
        self._populations = [
            (mean * concentration, (1.0 - mean) * concentration)
            for mean in _FAULT_MEANS
            for concentration in _CONCENTRATIONS
        ]
        weights = [
            math.fsum(
                number * _log_beta_binomial(faults, of, a, b) for (faults, of), number in counts.items()
            )
            for a, b in self._populations
        ]
        top = max(weights)
        self._likely = [math.exp(weight - top) for weight in weights]
        self._chances: dict[tuple[int, int, int, int], float] = {}

    def chance(self, faults: int, trials: int, before: int, trials_before: int) -> float:
        """Return how probable at least `faults` of `trials` are for a question that had `before` of `trials_before`."""
        asked = faults, trials, before, trials_before
        if asked not in self._chances:
            tails = (
                math.fsum(
                    math.exp(_log_beta_binomial(count, trials, a + before, b + trials_before - before))
                    for count in range(faults, trials + 1)
                )
                for a, b in self._populations
            )
            weighted = math.fsum(weight * tail for weight, tail in zip(self._likely, tails, strict=True))
            self._chances[asked] = min(1.0, weighted / math.fsum(self._likely))
        return self._chances[asked]


def _log_beta_binomial(count: int, times: int, a: float, b: float) -> float:
    """log P(count successes of `times`) if the rate has a beta distribution."""
    choose = math.lgamma(times + 1) - math.lgamma(count + 1) - math.lgamma(times - count + 1)
    return choose + log_beta(a + count, b + times - count) - log_beta(a, b)


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
        self._values.append(value)
        if len(self._values) > MAX_EXACT:
            self._fold()

    def extend(self, values: Iterable[float]) -> None:
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
        return self._counted + len(self._values)

    @property
    def longest(self) -> float:
        return max(self._longest, max(self._values, default=0.0))

    @property
    def mean(self) -> float:
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
