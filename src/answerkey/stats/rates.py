"""Two pass rates over the same questions: McNemar's test and Newcombe's interval for their difference."""

import math

from answerkey.stats.distributions import binomial_cdf, binomial_pmf
from answerkey.stats.intervals import Interval, wilson_interval


def mcnemar_p_value(fixed: int, broken: int, *, mid: bool = True) -> float | None:
    """Is a question as likely to be fixed as to be broken? Exact, two-sided; None if no question flipped.

    The mid-p value counts half of what is as likely as the outcome seen: its error rate is near 5% where the plain
    exact test's is near 2%.
    """
    flips = fixed + broken
    if flips == 0:
        return None
    fewer = min(fixed, broken)
    tail = 2.0 * binomial_cdf(fewer, flips, 0.5)
    if fixed == broken:
        tail = 1.0 + binomial_pmf(fewer, flips, 0.5)
    return min(1.0, tail - binomial_pmf(fewer, flips, 0.5) if mid else tail)


def newcombe_interval(
    *, both: int, fixed: int, broken: int, neither: int, level: float = 0.95
) -> Interval | None:
    """The difference of two pass rates over the same questions (Newcombe 1998, method 10, by squares and adds)."""
    n = both + fixed + broken + neither
    base = wilson_interval(both + broken, n, level=level)
    candidate = wilson_interval(both + fixed, n, level=level)
    if base is None or candidate is None:
        return None
    rate_base, rate_candidate = (both + broken) / n, (both + fixed) / n
    product = (both + broken) * (fixed + neither) * (both + fixed) * (broken + neither)
    phi = 0.0
    if product:
        excess = float(both * neither - fixed * broken)
        # Newcombe's continuity correction of a positive correlation.
        phi = (max(excess - n / 2.0, 0.0) if excess > 0 else excess) / math.sqrt(product)
    mean = rate_candidate - rate_base
    down_candidate, up_candidate = rate_candidate - candidate.low, candidate.high - rate_candidate
    down_base, up_base = rate_base - base.low, base.high - rate_base
    low = mean - math.sqrt(max(down_candidate**2 - 2 * phi * down_candidate * up_base + up_base**2, 0.0))
    high = mean + math.sqrt(max(up_candidate**2 - 2 * phi * up_candidate * down_base + down_base**2, 0.0))
    return Interval(low=max(low, -1.0), high=min(high, 1.0), level=level)
