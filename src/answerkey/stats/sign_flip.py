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

# All sets are enumerated up to this many units. Above, scores on a lattice (three decimals; shares of up to ten keywords
# with weights of two decimals) are convolved, which is exact too. Only what is on none, or too fine for its number of
# units, has Lugannani and Rice's (1980) approximation: 0.8 to 1.4 times the exact p-value.
_ENUMERATE_TO = 15
_LATTICES = (1_000.0, 252_000.0)
# Units times points of the lattice: about a tenth of a second.
_MOST_STEPS = 100_000_000
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
    if len(sums) < _NORMAL_FROM and (steps := _lattice(sums)) is not None:
        return _lattice_share(steps)
    values, counts = _counted(sums)
    return float(_shares(values[None, :], counts)[0])


def _lattice(sums: Floats) -> npt.NDArray[np.int64] | None:
    """Return the sums as whole steps; None if they are not on a lattice, or if it has too many points to be walked."""
    for lattice in _LATTICES:
        steps = np.rint(sums * lattice).astype(np.int64)
        if float(abs(sums * lattice - steps).max()) <= lattice * _SAME:
            steps //= np.gcd.reduce(steps)
            return steps if len(steps) * int(abs(steps).sum()) <= _MOST_STEPS else None
    return None


def _lattice_share(steps: npt.NDArray[np.int64]) -> float:
    """Return the share of sets below zero, plus half of those at zero, exactly: units are added one by one."""
    falls = -int(steps[steps < 0].sum())
    # Index: the sum of a set, counted from the lowest possible one. Choosing a fall or not is symmetric, so every unit
    # may be added with its size.
    shares = np.zeros(int(abs(steps).sum()) + 1)
    shares[0], reach = 1.0, 0
    for step in sorted(abs(steps).tolist()):
        shares[: reach + 1] *= 0.5
        added = shares[: reach + 1].copy()
        shares[step : reach + step + 1] += added
        reach += step
    return float(shares[:falls].sum() + shares[falls] / 2.0)


def rows_at_most_zero(rows: Floats) -> Floats:
    """Return `at_most_zero` of each row, for simulations: approximate where rows have more units than are enumerated."""
    shares = np.empty(len(rows))
    few = np.count_nonzero(rows, axis=1) <= _ENUMERATE_TO
    shares[few] = [at_most_zero(row) for row in rows[few]]
    if not few.all():
        # Ties are left out as far as all rows have them.
        many = np.sort(rows[~few], axis=1)
        kept = many[:, np.any(many != 0.0, axis=0)]
        shares[~few] = _shares(kept, np.ones(kept.shape[1]))
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
    curvature = np.ones(len(rows))
    with np.errstate(all="ignore"):
        active = np.flatnonzero(~(unanimous | middle))
        t[active], curvature[active] = _saddle_points(sizes[active], counts, seen[active], t[active])
        scaled = t[:, None] * sizes
        cumulant = (scaled + np.log1p(np.exp(-2.0 * scaled)) - math.log(2.0)) @ counts
        w, u = np.sqrt(2.0 * (t * seen - cumulant)), t * np.sqrt(curvature)
        tail = _normal_tail(w) + np.exp(-w * w / 2.0) / math.sqrt(2.0 * math.pi) * (1.0 / u - 1.0 / w)
    least = 0.5 ** ((sizes > 0.0) @ counts + 1.0)
    tail = np.where(unanimous, least, np.clip(tail, least, 0.5))
    tail = np.where(side < 0.0, 1.0 - tail, tail)
    return np.where(middle, normal, tail)


def _saddle_points(sizes: Floats, counts: Floats, seen: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Return, for each row, where the slope of the cumulant function is `seen`, and the curvature there."""
    curvatures = np.ones(len(t))
    t, active = t.copy(), np.arange(len(t))
    low, high = np.zeros(len(t)), np.full(len(t), np.inf)
    for _ in range(_STEPS):
        tanh = np.tanh(t[active, None] * sizes)
        slope, curvature = (sizes * tanh) @ counts, (sizes * sizes * (1.0 - tanh * tanh)) @ counts
        here, below = t[active], slope < seen
        low, high = np.where(below, here, low), np.where(below, high, here)
        following = here + (seen - slope) / curvature
        outside = ~((following > low) & (following < high))
        bisected = np.where(np.isinf(high), 2.0 * here, (low + high) / 2.0)
        following = np.where(outside, bisected, following)
        curvatures[active] = curvature
        left = abs(following - here) > 1e-9 * here
        t[active[left]] = following[left]
        if not left.all():
            active, sizes, seen, low, high = active[left], sizes[left], seen[left], low[left], high[left]
        if not len(active):
            break
    return t, curvatures


def _normal_tail(scores: Floats) -> Floats:
    return np.array([0.5 * math.erfc(score / math.sqrt(2.0)) for score in scores.tolist()])
