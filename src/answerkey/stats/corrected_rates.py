"""The true rate behind a fallible judge, from few items that people labelled and many that only the judge saw.

Prediction-powered inference (PPI++, Angelopoulos, Duchi and Zrnic 2023) is unbiased whatever the judge is worth, and
the better the judge, the narrower. Rogan and Gladen's estimate turns the judge's rate round by its sensitivity and
specificity; its interval is Lang and Reiczigel's (2014), which takes the uncertainty of all three into account. Both
suppose that the labelled items are a random sample.
"""

import math
from collections.abc import Sequence

import msgspec

from answerkey.stats.distributions import normal_quantile, t_quantile
from answerkey.stats.intervals import Interval

__all__ = ["CorrectedRate", "prediction_powered_rate", "rogan_gladen_rate"]


# Disagreements of judge and people that are added to those seen, half in each direction. Without it the interval
# covers 91% instead of 95% where 60 labels hold about one disagreement; tests/stats/test_corrected_rates.py simulates it.
_PSEUDO = 1.0


class CorrectedRate(msgspec.Struct, frozen=True):
    """An estimate of the true rate."""

    value: float
    interval: Interval
    # How far the judge was relied on (PPI++'s λ): 0 not at all, 1 fully; None for other estimates.
    reliance: float | None = None


def prediction_powered_rate(
    human: Sequence[float],
    judged: Sequence[float],
    unlabelled: Sequence[float],
    *,
    level: float = 0.95,
    small_sample: bool = True,
) -> CorrectedRate | None:
    """PPI++ with λ tuned from the data: `human` and `judged` are of the same items, `unlabelled` the judge's on others.

    `small_sample` widens the interval for few labels: Student's t, and one disagreement more than was seen, since a dozen
    items without one do not prove that there is none. Without it, it is ppi-python's interval.
    """
    n, many = len(human), len(unlabelled)
    if n < 2 or many < 2:
        return None
    reliance = _reliance(human, judged, unlabelled)
    mean_unlabelled = math.fsum(unlabelled) / many
    errors = [label - reliance * guess for label, guess in zip(human, judged, strict=True)]
    value = reliance * mean_unlabelled + math.fsum(errors) / n
    variance = _variance(errors)
    if small_sample:
        variance = (n * variance + _PSEUDO) / (n + _PSEUDO)
    spread = math.sqrt(reliance**2 * _variance(unlabelled) / many + variance / n)
    quantile = t_quantile(0.5 + level / 2, n - 1) if small_sample else normal_quantile(0.5 + level / 2)
    interval = Interval(low=value - quantile * spread, high=value + quantile * spread, level=level)
    if small_sample:
        value = min(max(value, 0.0), 1.0)
        interval = Interval(low=max(interval.low, 0.0), high=min(interval.high, 1.0), level=level)
    return CorrectedRate(value, interval, reliance)


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
) -> CorrectedRate | None:
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
    return CorrectedRate(min(max(value, 0.0), 1.0), Interval(low=low, high=high, level=level))
