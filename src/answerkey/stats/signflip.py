"""The sign-flip (paired permutation) test: is the mean of paired differences zero?

If two versions are the same, a difference of +x is as likely as one of -x, so the sum that was seen is compared with
the sums that all choices of signs would give. Ties (differences of zero) add nothing and need no special treatment.
The p-value is the mid-p value, which counts half of the sums equal to the one seen: the plain one is far too cautious
on scores with few distinct values (docs/statistics.md has both error rates).

For pass/fail this is McNemar's test (mid-p).
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["NORMAL_FROM", "sign_flip_p_value"]

# With this many non-zero differences the distribution of the sum is normal to three decimals of the p-value.
NORMAL_FROM = 1000
# Enumerate every choice of signs up to this many non-zero differences.
_ENUMERATE_TO = 16
# Largest lattice (points × differences) that is convolved exactly.
_LATTICE_WORK = 10_000_000
_LARGEST_DENOMINATOR = 5000
# Sums closer than this are the same sum: scores are rounded to nine decimals.
_SAME = 1e-8


def sign_flip_p_value(differences: "Sequence[float] | npt.NDArray[np.float64]") -> tuple[float | None, str]:
    """The two-sided mid-p value and the name of the method; None if there is no difference at all."""
    import numpy as np

    changed = np.asarray(differences, dtype=np.float64)
    changed = changed[changed != 0.0]
    if not len(changed):
        return None, "all ties"
    if len(changed) >= NORMAL_FROM:
        spread = math.sqrt(2.0 * float((changed * changed).sum()))
        return math.erfc(abs(float(changed.sum())) / spread), "sign-flip, normal limit"
    seen, sizes = abs(math.fsum(changed.tolist())), abs(changed).tolist()
    if len(sizes) > _ENUMERATE_TO:
        lattice = _lattice(sizes)
        if lattice is not None:
            return _convolved(*lattice, seen), "sign-flip, exact"
        return _saddlepoint(sizes, seen), "sign-flip, saddlepoint"
    return _enumerated(sizes, seen), "sign-flip, exact"


def _enumerated(sizes: Sequence[float], seen: float) -> float:
    """All choices of signs, in whole billionths."""
    import numpy as np

    sums = np.zeros(1, np.int64)
    for size in sizes:
        unit = round(size * 1e9)
        sums = np.concatenate([sums + unit, sums - unit])
    # A sum counts as equal to the one seen within the rounding of its parts.
    edge, slack = round(seen * 1e9), len(sizes)
    # The sums lie symmetrically about zero, so that one side tells the share of both.
    reached, beyond = int((sums >= edge - slack).sum()), int((sums > edge + slack).sum())
    return min(1.0, (reached + beyond) / len(sums) if edge > slack else 0.5 + beyond / len(sums))


def _lattice(sizes: Sequence[float]) -> tuple[Counter[int], int] | None:
    """The sizes as whole multiples of one unit (1 / denominator), if they have one that is not too fine."""
    denominator = 1
    counts = Counter(sizes)
    for size in counts:
        near = Fraction(size).limit_denominator(_LARGEST_DENOMINATOR)
        if abs(float(near) - size) > 2e-9:
            return None
        denominator = math.lcm(denominator, near.denominator)
        if denominator > 1_000_000:
            return None
    units = Counter[int]()
    for size, count in counts.items():
        units[round(size * denominator)] += count
    reach = sum(unit * count for unit, count in units.items())
    return (units, denominator) if reach * len(sizes) <= _LATTICE_WORK else None


def _convolved(units: Counter[int], denominator: int, seen: float) -> float:
    """The exact distribution of the sum on its lattice, one difference at a time."""
    import numpy as np

    reach = sum(unit * count for unit, count in units.items())
    # chances[k]: the sum of the differences with a minus sign is k units.
    chances = np.zeros(reach + 1)
    chances[0] = 1.0
    top = 0
    for unit, count in units.items():
        for _ in range(count):
            chances[unit : top + unit + 1] += chances[: top + 1].copy()
            top += unit
            chances[: top + 1] *= 0.5
    sums = np.abs(reach - 2 * np.arange(reach + 1))
    edge = round(seen * denominator)
    return min(1.0, float(chances[sums > edge].sum() + chances[sums == edge].sum() / 2.0))


def _saddlepoint(sizes: Sequence[float], seen: float) -> float:
    """The tail by Lugannani and Rice's formula: right to a percent of itself, far out too, without drawing signs.

    The cumulant function of a sum of random signs times sizes is the sum of log cosh(t · size).
    """
    counts = Counter(sizes)
    reach = math.fsum(sizes)
    if seen >= reach - _SAME:
        # Every sign agrees: one choice of signs on either side, half counted.
        return 0.5 ** len(sizes)
    variance = math.fsum(n * size * size for size, n in counts.items())
    if seen < 1e-3 * math.sqrt(variance):
        return math.erfc(seen / math.sqrt(2.0 * variance))
    t = seen / variance
    low, high = 0.0, math.inf
    for _ in range(100):
        slope = math.fsum(n * size * math.tanh(t * size) for size, n in counts.items())
        if slope < seen:
            low = t
        else:
            high = t
        bend = math.fsum(n * size * size / math.cosh(min(t * size, 300.0)) ** 2 for size, n in counts.items())
        following = t + (seen - slope) / bend if bend > 1e-300 else math.nan
        if not low < following < high:
            following = 2.0 * t if high == math.inf else (low + high) / 2.0
        if abs(following - t) <= 1e-12 * t:
            break
        t = following
    log_cosh = math.fsum(
        n * (t * size + math.log1p(math.exp(-2.0 * t * size)) - math.log(2.0)) for size, n in counts.items()
    )
    w = math.sqrt(max(2.0 * (t * seen - log_cosh), 1e-300))
    u = t * math.sqrt(bend)
    density = math.exp(-w * w / 2.0) / math.sqrt(2.0 * math.pi)
    tail = math.erfc(w / math.sqrt(2.0)) / 2.0 + density * (1.0 / u - 1.0 / w)
    return min(1.0, max(2.0 * tail, 0.5 ** len(sizes)))
