"""The mean of paired differences: the sign-flip test over units, the interval of what it does not reject, the verdict.

A verdict is better or worse if the test (`stats/sign_flip.py`) rejects "no difference" at 5%; the end of the interval that
faces zero is then the smallest mean that the same test does not reject. The other end, and both where nothing was shown,
allow for what was not drawn: one unit more that changed as much as the largest change seen. Where all units changed alike,
or none did, that unit changed by a whole point, and the end that faces zero has one more that did not change.
With a declared margin, an interval that lies inside it is "same". see docs/comparing.md.
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

# Of fewer units no choice of signs is rarer than 5%.
LEAST_UNITS = 5
# The end of an interval that excludes zero by a tie is this far from it: scores are rounded to nine decimals.
_NEAREST = 1e-9


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of paired differences, candidate minus base, with its uncertainty."""

    mean: float
    low: float
    high: float
    level: float
    # None: everything is tied, or there is a single unit; nothing is made up then.
    p_value: float | None
    method: str
    # Pairs, of which so many differ, and the units that they belong to.
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
    """The mean of `differences`, which lie within ±`bound` (None: unbounded, as latencies are).

    None without differences, and for too few unbounded ones: nothing bounds what they could have been.
    """
    # Loaded here: whoever only reads what was compared needs no numpy.
    import numpy as np

    values = np.asarray(differences, dtype=np.float64)
    sums, sizes = unit_sums(values, units)
    n, groups = len(values), len(sums)
    if n == 0 or (bound is None and groups < LEAST_UNITS):
        return None
    mean = math.fsum(values.tolist()) / n
    deviation = float(values.std(ddof=1)) if n > 1 else 0.0
    p_value, method = None, "all ties"
    if groups == 1:
        method = "a single unit"
    elif sums.any():
        p_value, method = _p_value(sums), "sign-flip"
    low, high = _interval(
        sums, sizes, level, bound, mean, shown=p_value is not None and p_value < 1.0 - level
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
    """1, -1, or 0 where it is not clear: which way unbounded differences go, without the interval, which takes longer."""
    sums, _ = unit_sums(differences, units)
    if len(sums) < LEAST_UNITS or not sums.any() or _p_value(sums) >= 1.0 - level:
        return 0
    return 1 if math.fsum(differences.tolist()) > 0.0 else -1


def _p_value(sums: "Floats") -> float:
    from answerkey.stats.sign_flip import at_most_zero

    return min(1.0, 2.0 * min(at_most_zero(sums), at_most_zero(-sums)))


def _interval(
    sums: "Floats", sizes: "Floats", level: float, bound: float | None, mean: float, *, shown: bool
) -> tuple[float, float]:
    """All means that the test does not reject; away from zero with one unit more."""
    import numpy as np

    from answerkey.stats.sign_flip import set_mean_quantile

    tail = (1.0 - level) / 2.0
    if len(sums) < LEAST_UNITS:
        return -(bound or math.inf), bound or math.inf
    changes, size = sums / sizes, float(sizes.mean())
    more, alike = np.append(sizes, size), float(np.ptp(changes)) < _NEAREST
    most = bound if alike and bound else float(abs(changes).max())
    # What faces zero is the test's own; where nothing varies, one unit more that did not change stands for what was not drawn.
    facing, widths = (np.append(sums, 0.0), more) if alike else (sums, sizes)
    # The upper end is the lower one of the candidate's losses.
    low = min(set_mean_quantile(np.append(sums, -most * size), more, tail), mean)
    high = max(-set_mean_quantile(np.append(-sums, -most * size), more, tail), mean)
    if shown and mean > 0.0:
        low = max(set_mean_quantile(facing, widths, tail), _NEAREST)
    elif shown:
        high = min(-set_mean_quantile(-facing, widths, tail), -_NEAREST)
    else:
        low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if bound is None else (max(low, -bound), min(high, bound))


def unit_sums(
    values: "Floats", units: "Sequence[Hashable] | npt.NDArray[np.int64] | None"
) -> "tuple[Floats, Floats]":
    """Sums and sizes of the units."""
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
    """What the difference shows; `p_value` takes the place of its own when corrected for many.

    With a margin, an interval inside it is "same", whether or not it excludes zero: that is what a margin declares.
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
    """How common something may be that none of so many units showed (3 ÷ units, near enough)."""
    return 1.0 - (1.0 - level) ** (1.0 / units) if units else 1.0


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction: of many tests at once, the chance of even one false alarm stays at its level.

    The corrected p-values come in the same order; those that do not exist are not counted.
    """
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        corrected[index] = highest
    return corrected
