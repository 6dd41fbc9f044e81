"""The mean of paired differences: interval, p-value, effect size and what could have been detected.

Two things go wrong with Student's t for scores of chatbots. A rare large change may not have been drawn: of fifteen
questions two of which changed, the t interval holds the truth 73% of the time. So two imagined differences, +1 and -1, are
mixed in with a small weight that falls with every change that was seen. At the end of the interval that faces zero, where the
sign-flip test stands guard as well, it also falls the more their sizes vary: changes of one size say nothing about other
sizes, changes of many sizes show how far they reach. And differences are skewed: many small gains, few large losses. So the
quantiles are corrected for skewness by Hall's transformation, outwards more than inwards.
The sign-flip test needs neither, but asks whether the versions are exchangeable, which versions that are equal on average
in different ways are not. The p-value is the larger of the two tests', and zero lies outside the interval only if both
exclude it. docs/statistics.md has the simulated rates, benchmarks/statistics makes them.
Differences that belong together (questions from one template or one conversation) count as one: signs are flipped per
cluster, and the standard error is the jackknife's over clusters.
"""

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from answerkey.stats.distributions import t_quantile, t_two_sided
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

# Weight of each imagined difference if nothing changed, and how it falls with the number of changes and with the evenness
# of their sizes. Chosen, as the next one is, by the simulated rates of a hundred kinds of scores, and tried on others.
_IMAGINED = 0.9
_FALL = 1.5
_EVEN = 5.0
# The share of the skewness seen that is corrected for, where that moves an end of the interval away from the mean and where
# it moves it nearer: in small samples part of it is chance, and a narrower interval is the worse mistake.
_OUTWARDS = 0.7
_INWARDS = 0.4
# A mean nearer to zero is zero: scores are rounded to nine decimals.
_SAME = 1e-12
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
    # Standard deviation of the differences, and standard error of their mean: as seen, and with what may be unseen.
    deviation: float
    seen_error: float
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
    changed = n - _zeros(values)
    if groups == 1:
        near = far = _Shape(mean, bound or 0.0, 0.0)
        p_value, method = None, "a single pair" if n == 1 else "one cluster"
    else:
        weight, evenness = (0.0, 1.0) if bound is None else _imagined(sums)
        far = _shape(sums, sizes, n, weight, bound or 0.0)
        near = far if evenness == 1.0 else _shape(sums, sizes, n, weight * evenness**_EVEN, bound or 0.0)
        p_value, method = _tested(sums, near)
    quantile = t_quantile(0.5 + level / 2.0, max(groups - 1, 1))
    # The lower end faces zero if the candidate is better; rounding must not decide which it is.
    low = (near if mean > _SAME else far).end(quantile)
    high = (near if mean < -_SAME else far).end(-quantile)
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
        seen_error=near.error if groups == 1 else _shape(sums, sizes, n, 0.0, 0.0).error,
        error=near.error,
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


def _absolute(values: "Values") -> float:
    """The sum of sizes, whatever their signs."""
    return math.fsum(map(abs, values)) if isinstance(values, list) else float(abs(values).sum())


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


class _Shape(NamedTuple):
    """What an end of the interval is made of."""

    centre: float
    # The standard error of the mean.
    error: float
    # The skewness of the mean.
    skewness: float

    def end(self, quantile: float) -> float:
        """The lower end for a positive quantile, the upper one for a negative."""
        return self.centre - _unbent(quantile, self._bend(quantile)) * self.error

    def t_value(self) -> float:
        """Student's t of zero: beyond the quantile exactly where the end that faces zero excludes it."""
        if self.error == 0.0:
            return math.copysign(math.inf, self.centre)
        return _bent(self.centre / self.error, self._bend(self.centre))

    def _bend(self, side: float) -> float:
        """How much of the skewness is corrected for, at the lower end if `side` is positive, else at the upper one."""
        return self.skewness * (_OUTWARDS if self.skewness * side < 0.0 else _INWARDS)


def _imagined(sums: "Values") -> tuple[float, float]:
    """The weight of either imagined difference, and how even the sizes of those seen are.

    Evenness is 1 if all changes have one size and falls the more they vary: 1 / (1 + the squared coefficient of variation).
    """
    groups, ties = len(sums), _zeros(sums)
    changed = groups - ties
    weight = _IMAGINED * ties / groups / (1.0 + changed) ** _FALL
    if not ties or not changed:
        return weight, 1.0
    return weight, min(_absolute(sums) ** 2 / (changed * _squares(sums, 0.0)), 1.0)


def _shape(sums: "Values", sizes: "Values | None", n: int, weight: float, bound: float) -> _Shape:
    """Centre, error and skewness, with two differences of ±`bound` mixed in, of this weight each."""
    groups = len(sums)
    size = n / groups
    total = n + 2.0 * weight * size
    centre = _total(sums) / total
    count = groups + 2.0 * weight
    squares, cubes = _jackknife(sums, sizes, centre, total)
    for imagined in (size * bound, -size * bound):
        distance = imagined - size * centre
        squares += weight * distance**2
        cubes += weight * distance**3
    if squares <= 1e-15 * count:
        return _Shape(centre, 0.0, 0.0)
    # The jackknife's residuals exceed plain ones by groups / (groups - 1).
    shrink = (count - 1.0) / count if sizes is not None else count / (count - 1.0)
    skewness = (cubes / count) / (squares / count) ** 1.5
    return _Shape(centre, math.sqrt(squares * shrink) / total, skewness / math.sqrt(count))


def _tested(sums: "Values", shape: _Shape) -> tuple[float | None, str]:
    """The larger of the sign-flip test's p-value and that of the interval."""
    flipped, method = sign_flip_p_value(sums)
    if flipped is None:
        return None, method
    corrected = t_two_sided(shape.t_value(), len(sums) - 1)
    return max(flipped, corrected), f"{method}, and t for skewed differences"


def _bent(t: float, bend: float) -> float:
    """Hall's transformation (1992), after which a skewed mean's t is nearly Student's."""
    return t + bend * t * t / 3.0 + bend * bend * t**3 / 27.0 + bend / 6.0


def _unbent(t: float, bend: float) -> float:
    """Its inverse."""
    if abs(bend) < 1e-6:
        return t
    return 3.0 / bend * (math.cbrt(1.0 + bend * (t - bend / 6.0)) - 1.0)


def _jackknife(sums: "Values", sizes: "Values | None", centre: float, total: float) -> tuple[float, float]:
    """Sums of squares and cubes of what leaving each group out would move, or of plain residuals without clusters."""
    if isinstance(sums, list) or isinstance(sizes, list):
        if sizes is None:
            residuals = [value - centre for value in sums]
        else:
            pairs = zip(sums, sizes, strict=True)
            residuals = [(s - m * centre) / (1.0 - m / total) for s, m in pairs if m < total]
        return math.fsum(r * r for r in residuals), math.fsum(r**3 for r in residuals)
    many = sums - centre if sizes is None else (sums - sizes * centre) / (1.0 - sizes / total)
    # Not a product of vectors: the threads that numpy starts for one cost more than they save.
    squares = many * many
    many *= squares
    return float(squares.sum()), float(many.sum())
