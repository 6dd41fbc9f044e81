"""The sign-flip (paired permutation) test of a mean difference, and the interval of all means that it does not reject.

If two versions are equal, a unit's difference is as likely to be +x as -x, so the observed total is compared with the totals
of all choices of signs (Fisher 1935). Flipping the signs of some units gives a total at least as large if and only if those
units' differences add up to at most zero. So the one-sided p-value is the share of all sets of units whose mean is at most
zero, and the interval extends from the 2.5% to the 97.5% quantile of the means of all sets (Hartigan 1969). Hence the verdict
is monotone: a larger difference makes no set's mean smaller. Sets whose mean equals the tested one count half (mid-p,
Lancaster 1961). For pass/fail scores the test is McNemar's.

A unit has a sum of differences and a size: the mean of a set is the sum of its units' sums over the sum of their sizes.
"""

import math

import numpy as np
import numpy.typing as npt

from answerkey.stats.distributions import binomial_cdf, binomial_pmf, normal_quantile

Floats = npt.NDArray[np.float64]

# All sets are enumerated up to this many units; above, Lugannani and Rice's (1980) approximation is used, with a relative
# error of a few percent.
_ENUMERATE_TO = 15
# Sums closer than this are equal: scores are rounded to nine decimals.
_SAME = 1e-8
# With more distinct units, the normal approximation is accurate to three decimals of the p-value.
_NORMAL_FROM = 5000
# Maximum Newton steps; five to ten are usual.
_STEPS = 100


def at_most_zero(sums: Floats) -> float:
    """Return the one-sided mid-p value: the share of sets of units with a sum below zero, plus half of those at zero."""
    sums = sums[sums != 0.0]
    if len(sums) <= _ENUMERATE_TO:
        totals = _set_totals(sums)
        return float(np.mean(totals < -_SAME) + np.mean(abs(totals) <= _SAME) / 2.0)
    if len(sums) < _NORMAL_FROM and np.ptp(abs(sums)) < _SAME:
        # One absolute value, e.g. pass/fail: the share is binomial.
        falls = int(np.count_nonzero(sums < 0.0))
        return binomial_cdf(falls, len(sums), 0.5) - binomial_pmf(falls, len(sums), 0.5) / 2.0
    values, counts = _counted(sums)
    return float(_shares(values[None, :], counts)[0])


def rows_at_most_zero(rows: Floats) -> Floats:
    """Return `at_most_zero` of each row, for simulations."""
    shares = np.empty(len(rows))
    few = np.count_nonzero(rows, axis=1) <= _ENUMERATE_TO
    shares[few] = [at_most_zero(row) for row in rows[few]]
    if not few.all():
        shares[~few] = _shares(rows[~few], np.ones(rows.shape[1]))
    return shares


def set_mean_quantile(sums: Floats, sizes: Floats, tail: float) -> float:
    """Return the `tail` quantile of the means of all sets; for the upper quantile, negate the sums and the result."""
    if len(sums) <= _ENUMERATE_TO:
        means = np.sort(_set_totals(sums)[1:] / _set_totals(sizes)[1:])
        # The empty set ties with every mean and counts half on either side.
        rank = tail * (len(means) + 1) - 0.5
        return float(means[math.ceil(rank) - 1]) if rank > 0.0 else -math.inf
    if np.ptp(sizes) < _SAME:
        # Equal units are counted: differences of scores repeat.
        sums, counts = _counted(sums)
        sizes = np.full(len(sums), sizes[0])
    else:
        counts = np.ones(len(sums))
    return _quantile(sums, sizes, counts, tail)


def _set_totals(values: Floats) -> Floats:
    """Return the sums of all sets, the empty set first."""
    totals = np.zeros(1)
    for value in values.tolist():
        totals = np.concatenate([totals, totals + value])
    return totals


def _counted(values: Floats) -> tuple[Floats, Floats]:
    """Return distinct values and their counts."""
    distinct, counts = np.unique(values, return_counts=True)
    return distinct, counts.astype(np.float64)


def _quantile(sums: Floats, sizes: Floats, counts: Floats, tail: float) -> float:
    """Return the `tail` quantile of the sets' means, by regula falsi on the normal score of the share."""
    total = float((counts * sizes).sum())
    high = float((counts * sums).sum()) / total
    spread = math.sqrt(float((counts * (sums - sizes * high) ** 2).sum())) / total
    if spread < _SAME:
        return high
    target, below, low, score = normal_quantile(tail), 0.0, high, 0.0
    while score > target:
        high, below, low = low, score, low - 2.5 * spread
        score = _score(sums - sizes * low, counts)
    for _ in range(60):
        middle = low + (high - low) * min(max((target - score) / (below - score), 0.05), 0.95)
        if high - low < _SAME:
            break
        at_middle = _score(sums - sizes * middle, counts)
        if at_middle > target:
            high, below = middle, at_middle
        else:
            low, score = middle, at_middle
    return low


def _score(values: Floats, counts: Floats) -> float:
    """Return the share of sets with a sum below zero as a normal quantile, which is nearly linear in a shift of the values."""
    share = float(_shares(values[None, :], counts)[0])
    return normal_quantile(min(max(share, 1e-300), 1.0 - 1e-16))


def _shares(rows: Floats, counts: Floats) -> Floats:
    """Return, for each row, the share of sets with a sum below zero, by Lugannani and Rice; `counts` repeats the values.

    Equivalently: the probability that the absolute values with random signs add up to at least the observed sum. The cumulant
    function of that total is the sum of log cosh(t · size), and t is where its slope is the observed sum.
    """
    sizes, seen = abs(rows), rows @ counts
    deviation = np.sqrt(np.maximum((sizes * sizes) @ counts, 1e-300))
    normal = _normal_tail(seen / deviation)
    if rows.shape[1] > _NORMAL_FROM:
        return normal
    side = np.sign(seen)
    seen, reach = abs(seen), sizes @ counts
    # If all signs agree, it is one choice of signs, half counted; near the middle the formula divides by zero.
    unanimous, middle = seen >= reach - _SAME, seen < 1e-3 * deviation
    t = seen / deviation**2
    low, high = np.zeros(len(rows)), np.full(len(rows), np.inf)
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            tanh = np.tanh(t[:, None] * sizes)
            slope, curvature = (sizes * tanh) @ counts, (sizes * sizes * (1.0 - tanh * tanh)) @ counts
            low, high = np.where(slope < seen, t, low), np.where(slope < seen, high, t)
            following = t + (seen - slope) / curvature
            outside = ~((following > low) & (following < high))
            bisected = np.where(np.isinf(high), 2.0 * t, (low + high) / 2.0)
            following = np.where(outside, bisected, following)
            done = unanimous | middle | (abs(following - t) <= 1e-9 * t)
            if done.all():
                break
            t = np.where(done, t, following)
        scaled = t[:, None] * sizes
        cumulant = (scaled + np.log1p(np.exp(-2.0 * scaled)) - math.log(2.0)) @ counts
        w, u = np.sqrt(2.0 * (t * seen - cumulant)), t * np.sqrt(curvature)
        tail = _normal_tail(w) + np.exp(-w * w / 2.0) / math.sqrt(2.0 * math.pi) * (1.0 / u - 1.0 / w)
    least = 0.5 ** ((sizes > 0.0) @ counts + 1.0)
    tail = np.where(unanimous, least, np.clip(tail, least, 0.5))
    tail = np.where(side < 0.0, 1.0 - tail, tail)
    return np.where(middle, normal, tail)


def _normal_tail(scores: Floats) -> Floats:
    return np.array([0.5 * math.erfc(score / math.sqrt(2.0)) for score in scores.tolist()])
