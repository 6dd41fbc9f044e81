"""The truth behind a fallible judge, from few items that people labelled and many that only the judge saw.

Prediction-powered inference (PPI++, Angelopoulos, Duchi and Zrnic 2023) is unbiased whatever the judge is worth, and
the better the judge, the narrower. It serves means, rates and the difference of two versions: what each unit (question
or group) adds to the estimate is summed over units, so that trials and two versions' replies to one question may depend on
each other. Rogan and Gladen's estimate turns the judge's rate round by its sensitivity and specificity, which may come
from an earlier run; its interval is Lang and Reiczigel's (2014). All suppose that the labelled items are a random sample.
"""

import math
from collections.abc import Hashable, Sequence

import msgspec

from answerkey.stats.distributions import normal_quantile, t_quantile
from answerkey.stats.intervals import Interval

# Disagreements of judge and people that are added to those seen, half in each direction. Without it the interval
# covers 91% instead of 95% where 60 labels hold about one disagreement; tests/stats/test_corrected_means.py simulates it.
_PSEUDO = 1.0


class Corrected(msgspec.Struct, frozen=True):
    """An estimate of the true mean, rate or difference."""

    value: float
    interval: Interval
    # How far the judge was relied on (PPI++'s λ): 0 not at all, 1 fully; None for other estimates.
    reliance: float | None = None


class JudgedSample(msgspec.Struct, frozen=True):
    """One run's replies, as values from 0 to 1."""

    # Of the labelled replies: people's value, the judge's, and the unit that each belongs to.
    human: Sequence[float]
    judged: Sequence[float]
    units: Sequence[Hashable]
    # Of those that only the judge saw.
    rest: Sequence[float]
    rest_units: Sequence[Hashable]


class _Estimate(msgspec.Struct, frozen=True):
    value: float
    reliance: float
    # What each unit adds to the estimate's error.
    influence: dict[Hashable, float]
    # What labels that hold few disagreements leave unseen, as a variance.
    unseen: float
    labelled_units: int


def prediction_powered_mean(
    sample: JudgedSample, *, level: float = 0.95, small_sample: bool = True
) -> Corrected | None:
    """PPI++ with λ tuned from the data; None without two labelled replies and two others.

    `small_sample` widens the interval for few labels: Student's t, and one disagreement more than was seen, since a dozen
    items without one do not prove that there is none. Without it, it is ppi-python's interval.
    """
    found = _estimate(sample)
    if found is None:
        return None
    spread = math.sqrt(
        math.fsum(part * part for part in found.influence.values()) + found.unseen * small_sample
    )
    tail = 0.5 + level / 2
    half = spread * (t_quantile(tail, found.labelled_units - 1) if small_sample else normal_quantile(tail))
    low, high, value = found.value - half, found.value + half, found.value
    if small_sample:
        low, high, value = max(low, 0.0), min(high, 1.0), min(max(value, 0.0), 1.0)
    return Corrected(value, Interval(low=low, high=high, level=level), found.reliance)


def prediction_powered_difference(
    base: JudgedSample, candidate: JudgedSample, *, level: float = 0.95
) -> Corrected | None:
    """Candidate minus base; a unit that both have adds its difference, so that pairing narrows the interval."""
    first, second = _estimate(base), _estimate(candidate)
    if first is None or second is None:
        return None
    added = {
        unit: second.influence.get(unit, 0.0) - first.influence.get(unit, 0.0)
        for unit in {*first.influence, *second.influence}
    }
    spread = math.sqrt(math.fsum(part * part for part in added.values()) + first.unseen + second.unseen)
    half = spread * t_quantile(0.5 + level / 2, min(first.labelled_units, second.labelled_units) - 1)
    value = second.value - first.value
    return Corrected(value, Interval(low=max(value - half, -1.0), high=min(value + half, 1.0), level=level))


def _estimate(sample: JudgedSample) -> _Estimate | None:
    n, many, units = len(sample.human), len(sample.rest), len(set(sample.units))
    if units < 2 or many < 2:
        return None
    reliance = _reliance(sample.human, sample.judged, sample.rest)
    mean_rest = math.fsum(sample.rest) / many
    errors = [label - reliance * guess for label, guess in zip(sample.human, sample.judged, strict=True)]
    mean_error = math.fsum(errors) / n
    influence: dict[Hashable, float] = {}
    for unit, error in zip(sample.units, errors, strict=True):
        influence[unit] = influence.get(unit, 0.0) + (error - mean_error) / n
    for unit, value in zip(sample.rest_units, sample.rest, strict=True):
        influence[unit] = influence.get(unit, 0.0) + reliance * (value - mean_rest) / many
    unseen = _PSEUDO * (1.0 - min(_variance(errors), 1.0)) / (units * (units + _PSEUDO))
    return _Estimate(reliance * mean_rest + mean_error, reliance, influence, unseen, units)


def labels_needed(sample: JudgedSample, half_width: float, *, level: float = 0.95) -> int | None:
    """How many labels in all make the corrected mean's interval ± `half_width`; None if all replies' would not do."""
    found = _estimate(sample)
    if found is None:
        return None
    errors = [
        label - found.reliance * guess for label, guess in zip(sample.human, sample.judged, strict=True)
    ]
    variance, rest = (
        max(_variance(errors), 1.0 / (len(errors) + 1)),
        found.reliance**2 * _variance(sample.rest),
    )
    whole = len(sample.human) + len(sample.rest)
    allowed = (half_width / normal_quantile(0.5 + level / 2)) ** 2
    enough = (n for n in range(2, whole - 1) if rest / (whole - n) + variance / n <= allowed)
    return next(enough, None)


def _reliance(human: Sequence[float], judged: Sequence[float], unlabelled: Sequence[float]) -> float:
    n, many = len(human), len(unlabelled)
    mean_human, mean_judged = math.fsum(human) / n, math.fsum(judged) / n
    together = math.fsum(
        (label - mean_human) * (guess - mean_judged) for label, guess in zip(human, judged, strict=True)
    )
    everything = [*judged, *unlabelled]
    variance = _variance(everything) * len(everything) / (len(everything) - 1)
    if variance <= 0:
        return 0.0
    return min(max(together / n / ((1 + n / many) * variance), 0.0), 1.0)


def _variance(values: Sequence[float]) -> float:
    """The variance of values, divided by n."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def rogan_gladen_rate(
    passed: int,
    judged: int,
    *,
    sensitive: int,
    positives: int,
    specific: int,
    negatives: int,
    level: float = 0.95,
) -> Corrected | None:
    """The true rate where a judge passed `passed` of `judged`; None if the judge is no better than chance.

    Of `positives` items that people called right it passed `sensitive`, of `negatives` it failed `specific`.
    """
    if not judged or not positives or not negatives:
        return None
    sensitivity, specificity = sensitive / positives, specific / negatives
    if sensitivity + specificity <= 1:
        return None
    value = (passed / judged + specificity - 1) / (sensitivity + specificity - 1)
    z = normal_quantile(0.5 + level / 2)
    # Lang and Reiczigel: pseudo-observations in all three samples, and a shift of the centre.
    n, n_positive, n_negative = judged + z * z, positives + 2.0, negatives + 2.0
    rate = (passed + z * z / 2) / n
    sensitivity, specificity = (sensitive + 1) / n_positive, (specific + 1) / n_negative
    if sensitivity + specificity <= 1:
        return None
    better = sensitivity + specificity - 1
    centre = (rate + specificity - 1) / better
    by_positive = sensitivity * (1 - sensitivity) / n_positive
    by_negative = specificity * (1 - specificity) / n_negative
    shift = 2 * z * z * (centre * by_positive - (1 - centre) * by_negative)
    spread = math.sqrt(rate * (1 - rate) / n + (1 - centre) ** 2 * by_negative + centre**2 * by_positive)
    half = z * spread / better
    low, high = (min(max(centre + shift + sign * half, 0.0), 1.0) for sign in (-1, 1))
    return Corrected(min(max(value, 0.0), 1.0), Interval(low=low, high=high, level=level))
