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

__all__ = ["Difference", "Verdict", "holm", "paired_difference", "verdict_of"]

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
# Fewer numbers than these are added up exactly.
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
    clusters: "Sequence[Hashable] | npt.NDArray[np.int64] | None" = None,
    level: float = 0.95,
    bound: float | None = 1.0,
) -> Difference | None:
    """The mean of `differences`, which lie within ±`bound` (None: unbounded, as latencies are).

    None without differences, and for a single unbounded one: nothing bounds what it could have been.
    """
    # Loaded here: whoever only reads what was compared needs no numpy.
    import numpy as np

    values = np.asarray(differences, dtype=np.float64)
    sums, sizes = (values, None) if clusters is None else _by_cluster(values, clusters)
    n, groups = len(values), len(sums)
    if n == 0 or (groups == 1 and bound is None):
        return None
    mean = _total(values) / n
    deviation = math.sqrt(_total((values - mean) ** 2) / (n - 1)) if n > 1 else 0.0
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
        changed=int(np.count_nonzero(values)),
        clusters=groups,
        deviation=deviation,
        seen_error=near.error if groups == 1 else _shape(sums, sizes, n, 0.0, 0.0).error,
        error=near.error,
        effect_size=mean / deviation if deviation > 1e-12 else None,
    )


def verdict_of(
    difference: Difference | None, *, p_value: float | None = None, higher_is_better: bool = True
) -> Verdict:
    """Better or worse only if the test (with `p_value` in its place, when corrected) and the interval agree."""
    if difference is None:
        return "no clear difference"
    p = difference.p_value if p_value is None else p_value
    if p is None or p >= 1.0 - difference.level or difference.low <= 0.0 <= difference.high:
        return "no clear difference"
    return "better" if (difference.mean > 0.0) == higher_is_better else "worse"


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


def _total(values: "Floats") -> float:
    return math.fsum(values.tolist()) if len(values) < _MANY else float(values.sum())


def _by_cluster(
    values: "Floats", clusters: "Sequence[Hashable] | npt.NDArray[np.int64]"
) -> "tuple[Floats, Floats | None]":
    """Sums and sizes of the clusters; sizes are None when every difference is its own."""
    import numpy as np

    _, numbers, counts = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
    if len(counts) == len(values):
        return values, None
    return np.round(np.bincount(numbers, values), 9), counts.astype(np.float64)


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


def _imagined(sums: "Floats") -> tuple[float, float]:
    """The weight of either imagined difference, and how even the sizes of those seen are.

    Evenness is 1 if all changes have one size and falls the more they vary: 1 / (1 + the squared coefficient of variation).
    """
    groups = len(sums)
    ties = int((sums == 0.0).sum())
    changed = groups - ties
    weight = _IMAGINED * ties / groups / (1.0 + changed) ** _FALL
    if not ties or not changed:
        return weight, 1.0
    return weight, min(_total(abs(sums)) ** 2 / (changed * _total(sums**2)), 1.0)


def _shape(sums: "Floats", sizes: "Floats | None", n: int, weight: float, bound: float) -> _Shape:
    """Centre, error and skewness, with two differences of ±`bound` mixed in, of this weight each."""
    groups = len(sums)
    size = n / groups
    total = n + 2.0 * weight * size
    centre = _total(sums) / total
    count = groups + 2.0 * weight
    # What leaving each group out would move, or plain residuals without clusters.
    moved = sums - centre if sizes is None else (sums - sizes * centre) / (1.0 - sizes / total)
    squares, cubes = _total(moved * moved), _total(moved * moved * moved)
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


def _tested(sums: "Floats", shape: _Shape) -> tuple[float | None, str]:
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
