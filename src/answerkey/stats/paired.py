"""The mean of paired differences: interval, p-value, effect size and what could have been detected.

The interval is Student's t interval with a trace of two imagined differences, +1 and -1, whose weight grows with the
share of ties. Without them, fifteen questions of which two changed give an interval that holds the truth 73% of the
time: the rare large change was simply not drawn. The test is the sign-flip test. A difference is called clear only if
both agree, so zero stays inside the interval unless the sign-flip test excludes it too.
Differences that belong together (questions from one template or one conversation) count as one: signs are flipped per
cluster, and the standard error is the jackknife's over clusters.
"""

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from answerkey.stats.distributions import t_quantile
from answerkey.stats.signflip import sign_flip_p_value

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    # A list where there are few: numpy takes longer to import than they take to add up.
    Values = list[float] | Floats
    Labels = Sequence[Hashable] | npt.NDArray[np.int64]

__all__ = ["Difference", "Verdict", "paired_difference", "verdict_of"]

Verdict = Literal["better", "worse", "no clear difference"]

# Weight of each imagined difference if everything is tied; chosen by simulation (docs/statistics.md).
_PSEUDO = 0.1
# From here on numpy is used.
_MANY = 2000


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of paired differences, candidate minus base, with its uncertainty."""

    mean: float
    low: float
    high: float
    level: float
    # None: everything is tied, or there is a single pair; nothing is made up then.
    p_value: float | None
    method: str
    # Pairs, of which so many differ.
    pairs: int
    changed: int
    clusters: int
    # Standard deviation of the differences, and standard error of their mean.
    deviation: float
    error: float
    # Mean difference in standard deviations of the differences; None if they do not vary.
    effect_size: float | None


def paired_difference(
    differences: "Sequence[float] | Floats",
    *,
    clusters: "Labels | None" = None,
    level: float = 0.95,
    bound: float | None = 1.0,
) -> Difference | None:
    """The mean of `differences`, which lie within ±`bound` (None: unbounded, as latencies are).

    None without differences, and for a single unbounded one: nothing bounds what it could have been.
    """
    n = len(differences)
    values = _values(differences)
    sums, sizes = _by_cluster(values, clusters)
    groups = len(sums)
    if n == 0 or (groups == 1 and bound is None):
        return None
    mean = _total(values) / n
    squares = _squares(values, mean)
    deviation = math.sqrt(squares / (n - 1)) if n > 1 else 0.0
    centre, error = _centre_and_error(sums, sizes, n, bound) if groups > 1 else (mean, bound or 0.0)
    half = t_quantile(0.5 + level / 2.0, max(groups - 1, 1)) * error
    low, high = centre - half, centre + half
    changed = n - _zeros(values)
    p_value, method = (
        sign_flip_p_value(sums) if groups > 1 else (None, "a single pair" if n == 1 else "one cluster")
    )
    if p_value is None or p_value >= 1.0 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    if bound is not None:
        low, high = max(low, -bound), min(high, bound)
    if groups < n:
        method += ", by cluster"
    return Difference(
        mean=mean,
        # The imagined differences pull the centre towards zero by a hair; the mean itself is always inside.
        low=min(low, mean),
        high=max(high, mean),
        level=level,
        p_value=p_value,
        method=method,
        pairs=n,
        changed=changed,
        clusters=groups,
        deviation=deviation,
        error=error,
        effect_size=mean / deviation if deviation > 1e-12 else None,
    )


def verdict_of(
    difference: Difference, *, p_value: float | None = None, higher_is_better: bool = True
) -> Verdict:
    """Better or worse only if the test (with `p_value` in its place, when corrected) and the interval agree."""
    p = difference.p_value if p_value is None else p_value
    if p is None or p >= 1.0 - difference.level or difference.low <= 0.0 <= difference.high:
        return "no clear difference"
    return "better" if (difference.mean > 0.0) == higher_is_better else "worse"


def _values(differences: "Sequence[float] | Floats") -> "Values":
    if len(differences) >= _MANY:
        import numpy as np

        return np.asarray(differences, dtype=np.float64)
    return list(differences) if isinstance(differences, Sequence) else differences.tolist()


def _total(values: "Values") -> float:
    return math.fsum(values) if isinstance(values, list) else float(values.sum())


def _squares(values: "Values", centre: float) -> float:
    """The sum of squared distances from a centre."""
    if isinstance(values, list):
        return math.fsum((value - centre) ** 2 for value in values)
    distances = values - centre
    distances *= distances
    # Not a product of vectors: the threads that numpy starts for one cost more than they save.
    return float(distances.sum())


def _zeros(values: "Values") -> int:
    return values.count(0.0) if isinstance(values, list) else int((values == 0.0).sum())


def _by_cluster(differences: "Values", clusters: "Labels | None") -> "tuple[Values, Values | None]":
    """Sums and sizes of the clusters; sizes are None when every difference is its own."""
    if clusters is None:
        return differences, None
    if not isinstance(differences, list):
        import numpy as np

        _, numbers, counts = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
        if len(counts) == len(differences):
            return differences, None
        return np.round(np.bincount(numbers, differences), 9), counts.astype(np.float64)
    sums: dict[Hashable, float] = {}
    sizes: dict[Hashable, float] = {}
    for value, cluster in zip(differences, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value
        sizes[cluster] = sizes.get(cluster, 0.0) + 1.0
    if len(sums) == len(differences):
        return differences, None
    return [round(value, 9) for value in sums.values()], list(sizes.values())


def _centre_and_error(
    sums: "Values", sizes: "Values | None", n: int, bound: float | None
) -> tuple[float, float]:
    """Centre and standard error of the interval, with the imagined differences mixed in where values are bounded."""
    groups = len(sums)
    weight = 0.0 if bound is None else _PSEUDO * _zeros(sums) / groups
    size = n / groups
    total = n + 2.0 * weight * size
    centre = _total(sums) / total
    imagined = 2.0 * weight * (size * (bound or 0.0)) ** 2
    count = groups + 2.0 * weight
    if sizes is None:
        squares = _squares(sums, 0.0) + imagined - total * centre * centre
        return centre, math.sqrt(max(squares, 0.0) / max(count - 1.0, 1e-9) / total)
    squares = imagined + _jackknife(sums, sizes, centre, total)
    return centre, math.sqrt(squares * (count - 1.0) / count) / total


def _jackknife(sums: "Values", sizes: "Values", centre: float, total: float) -> float:
    """The sum of squares of what leaving each cluster out would move."""
    if isinstance(sums, list) or isinstance(sizes, list):
        pairs = zip(sums, sizes, strict=True)
        return math.fsum(((s - m * centre) / (1.0 - m / total)) ** 2 for s, m in pairs if m < total)
    residuals = (sums - sizes * centre) / (1.0 - sizes / total)
    return float((residuals * residuals).sum())
