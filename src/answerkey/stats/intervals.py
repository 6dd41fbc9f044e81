"""Confidence intervals for a mean of scores and for a rate, that stay honest for few questions.

A mean of scores gets a Wilson interval with an effective sample size. Bounded scores can vary at most as much as
pass/fail would with the same mean; the ratio of the variance that was seen to that bound says how many pass/fail
questions one of these questions is worth, and Student's t takes the place of the normal quantile so far as the variance
is estimated: that of pass/fail follows from the mean, so that its interval is Wilson's own.
Where many scores sit on a bound (a good chatbot: mostly 1.0), a rare failure may simply not have been
drawn yet, so a small share of pass/fail variance is mixed in; fifteen of fifteen at 1.0 is the Wilson interval of
fifteen passes, not [1, 1]. docs/statistics.md has the simulated coverage beside that of the plain t interval.
"""

import math
from collections.abc import Sequence

import msgspec

from answerkey.stats.distributions import normal_quantile, t_quantile

__all__ = ["Interval", "mean_interval", "wilson_interval"]

# Pseudo-observations of pass/fail that are mixed into the variance when every score sits on a bound. Chosen by
# simulation: less lets coverage fall to 92% for good chatbots at 15 questions, more makes it exceed 98%.
_PSEUDO = 0.1


class Interval(msgspec.Struct, frozen=True):
    """A range that holds the true value at the stated rate."""

    # The lower end.
    low: float
    # The upper end.
    high: float
    # The rate at which such intervals hold the true value.
    level: float = 0.95


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> Interval | None:
    """The interval of a rate of `successes` among `n` (Wilson's score interval); None without observations."""
    if n <= 0:
        return None
    return _wilson(successes / n, float(n), normal_quantile(0.5 + level / 2.0), level)


def mean_interval(
    values: Sequence[float], *, level: float = 0.95, bounds: tuple[float, float] | None = (0.0, 1.0)
) -> Interval | None:
    """The interval of the mean of `values`, which lie within `bounds`; None without values.

    Without bounds (latencies, costs) it is Student's t interval, and None for a single value.
    """
    n = len(values)
    if n == 0 or (n == 1 and bounds is None):
        return None
    mean = math.fsum(values) / n
    squares = math.fsum([(value - mean) ** 2 for value in values])
    if bounds is None:
        half = t_quantile(0.5 + level / 2.0, n - 1) * math.sqrt(squares / (n - 1) / n)
        return Interval(low=mean - half, high=mean + half, level=level)
    floor, ceiling = bounds
    width = ceiling - floor
    # Rounding may carry a mean of many equal values past its bound by an ulp.
    mean = min(max((mean - floor) / width, 0.0), 1.0)
    ratio = 1.0
    if min(values) != max(values):
        at_bound = sum([value <= floor or value >= ceiling for value in values])
        ratio = _variance_ratio(n, mean, squares / (width * width), at_bound)
    freedom = (n - 1) / max(1.0 - ratio * ratio, 1e-12) if n > 1 else 1.0
    unit = _wilson(mean, n / ratio, t_quantile(0.5 + level / 2.0, freedom), level)
    return Interval(low=floor + unit.low * width, high=floor + unit.high * width, level=level)


def _variance_ratio(n: int, mean: float, squares: float, at_bound: int) -> float:
    """The variance seen as a share of the largest that values within [0, 1] with this mean can have."""
    pseudo = _PSEUDO * at_bound / n
    centre = (mean * n + pseudo / 2.0) / (n + pseudo)
    squares += n * (mean - centre) ** 2 + pseudo / 2.0 * (centre**2 + (1.0 - centre) ** 2)
    ratio = squares / (n + pseudo) / (centre * (1.0 - centre))
    return min(max(ratio, 1e-12), 1.0)


def _wilson(rate: float, n: float, z: float, level: float) -> Interval:
    """Wilson's interval with any (effective) sample size and quantile."""
    z2 = z * z
    centre = (rate + z2 / (2.0 * n)) / (1.0 + z2 / n)
    half = z / (1.0 + z2 / n) * math.sqrt(rate * (1.0 - rate) / n + z2 / (4.0 * n * n))
    low = 0.0 if rate == 0.0 else max(centre - half, 0.0)
    high = 1.0 if rate == 1.0 else min(centre + half, 1.0)
    return Interval(low=low, high=high, level=level)
