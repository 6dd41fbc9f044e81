"""The mean of paired differences: a sign-flip test over units, the interval of the means that it does not reject, a verdict.

The verdict is better or worse if the test (`stats/sign_flip.py`) rejects "no difference" at 5%; the interval's end nearer to
zero is then the smallest mean that the test does not reject. The other end, and both ends of an inconclusive comparison,
allow for one more unit that changed as much as the largest observed change. If all units changed by the same amount, or
none did, that unit changed by 1, and the end nearer to zero has one more unit without a change. With a margin, an interval
inside ± the margin is "same". docs/statistics.md explains it.
"""

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from answerkey.stats.sign_flip import Floats

Verdict = Literal["better", "worse", "same", "no clear difference"]

# With fewer units, no choice of signs is rarer than 5%.
MIN_UNITS = 5
# Distance from zero of an interval's end that excludes zero by a tie: scores are rounded to nine decimals.
_NEAREST = 1e-9


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of paired differences, candidate minus base, with its uncertainty."""

    mean: float
    low: float
    high: float
    level: float
    # None: all pairs are tied, or there is a single unit.
    p_value: float | None
    method: str
    # Pairs, pairs that differ, and units.
    pairs: int
    changed: int
    units: int
    # Standard deviation of the differences.
    deviation: float
    # Mean difference in standard deviations of the differences; None if they do not vary.
    effect_size: float | None


def paired_difference(
    differences: "Sequence[float] | Floats",
    *,
    units: "Sequence[Hashable] | npt.NDArray[np.int64] | None" = None,
    level: float = 0.95,
    bound: float | None = 1.0,
) -> Difference | None:
    """Return the mean of `differences`, which are within ±`bound` (None: unbounded, e.g. latencies), with its interval.

    None without differences, and with too few unbounded ones.
    """
    # Imported here, so that reading a stored comparison does not load numpy.
    import numpy as np

    values = np.asarray(differences, dtype=np.float64)
    sums, sizes = unit_sums(values, units)
    n, groups = len(values), len(sums)
    if n == 0 or (bound is None and groups < MIN_UNITS):
        return None
    mean = math.fsum(values.tolist()) / n
    deviation = float(values.std(ddof=1)) if n > 1 else 0.0
    p_value, method = None, "all ties"
    if groups == 1:
        method = "a single unit"
    elif sums.any():
        p_value, method = _p_value(sums), "sign-flip"
    low, high = _interval(
        sums, sizes, level, bound, mean, significant=p_value is not None and p_value < 1.0 - level
    )
    return Difference(
        mean=mean,
        low=low,
        high=high,
        level=level,
        p_value=p_value,
        method=method if groups == n else f"{method}, by unit",
        pairs=n,
        changed=int(np.count_nonzero(values)),
        units=groups,
        deviation=deviation,
        effect_size=mean / deviation if deviation > 1e-12 else None,
    )


def clear_sign(
    differences: "Floats", *, units: "npt.NDArray[np.int64] | None" = None, level: float = 0.95
) -> int:
    """Return the sign of a significant mean of unbounded differences, else 0; faster than `paired_difference`."""
    sums, _ = unit_sums(differences, units)
    if len(sums) < MIN_UNITS or not sums.any() or _p_value(sums) >= 1.0 - level:
        return 0
    return 1 if math.fsum(differences.tolist()) > 0.0 else -1


def _p_value(sums: "Floats") -> float:
    from answerkey.stats.sign_flip import at_most_zero

    return min(1.0, 2.0 * min(at_most_zero(sums), at_most_zero(-sums)))


def _interval(
    sums: "Floats", sizes: "Floats", level: float, bound: float | None, mean: float, *, significant: bool
) -> tuple[float, float]:
    """Return the means that the test does not reject; the ends away from zero allow for one more unit."""
    import numpy as np

    from answerkey.stats.sign_flip import set_mean_quantile

    tail = (1.0 - level) / 2.0
    if len(sums) < MIN_UNITS:
        return -(bound or math.inf), bound or math.inf
    changes, size = sums / sizes, float(sizes.mean())
    more, alike = np.append(sizes, size), float(np.ptp(changes)) < _NEAREST
    most = bound if alike and bound else float(abs(changes).max())
    # The end nearer to zero is the test's own; if nothing varies, it allows for one more unit without a change.
    facing, widths = (np.append(sums, 0.0), more) if alike else (sums, sizes)
    # The upper end is the lower end of the negated differences.
    low = min(set_mean_quantile(np.append(sums, -most * size), more, tail), mean)
    high = max(-set_mean_quantile(np.append(-sums, -most * size), more, tail), mean)
    if significant and mean > 0.0:
        low = max(set_mean_quantile(facing, widths, tail), _NEAREST)
    elif significant:
        high = min(-set_mean_quantile(-facing, widths, tail), -_NEAREST)
    else:
        low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if bound is None else (max(low, -bound), min(high, bound))


def unit_sums(
    values: "Floats", units: "Sequence[Hashable] | npt.NDArray[np.int64] | None"
) -> "tuple[Floats, Floats]":
    """Return sums and sizes of the units."""
    import numpy as np

    if units is None:
        return values, np.ones(len(values))
    _, numbers, counts = np.unique(np.asarray(units), return_inverse=True, return_counts=True)
    return np.round(np.bincount(numbers, values), 9), counts.astype(np.float64)


def verdict_of(
    difference: Difference | None,
    *,
    p_value: float | None = None,
    higher_is_better: bool = True,
    margin: float | None = None,
) -> Verdict:
    """Return the verdict; `p_value` replaces the difference's own if it was corrected for several tests.

    With a margin, an interval inside it is "same", even if it excludes zero.
    """
    if difference is None:
        return "no clear difference"
    if margin is not None and -margin <= difference.low and difference.high <= margin:
        return "same"
    p = difference.p_value if p_value is None else p_value
    if p is None or p >= 1.0 - difference.level:
        return "no clear difference"
    return "better" if (difference.mean > 0.0) == higher_is_better else "worse"


def unseen_rate(units: int, level: float = 0.95) -> float:
    """Return how frequent something may be that none of `units` units showed (about 3 ÷ units)."""
    return 1.0 - (1.0 - level) ** (1.0 / units) if units else 1.0


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values with Holm's correction for several tests, in the same order; None values are not counted."""
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        corrected[index] = highest
    return corrected
