"""Raters beside each other: their agreement (Pearson's r, Cohen's κ, Krippendorff's α), and means corrected for a judge's errors.

Means and rates are corrected from few items with labels of people and many with the judge's verdict only.
Prediction-powered inference (PPI++, Angelopoulos, Duchi and Zrnic 2023) is unbiased for any judge; a better judge gives a
narrower interval. It is used for means, rates and the difference of two versions. Contributions are summed by unit (question
or group), so that trials, and two versions' replies to one question, may be dependent. Rogan and Gladen's estimate inverts
the judge's rate by its sensitivity and specificity, which may come from an earlier run; its interval is Lang and Reiczigel's
(2014). All assume that the labelled items are a random sample.
"""

import math
from collections.abc import Hashable, Sequence
from statistics import correlation
from typing import NamedTuple

import msgspec

from answerkey.stats.intervals import Interval, normal_quantile, t_quantile, wilson_interval

_Z95 = 1.959963984540054


class Correlation(NamedTuple):
    """Pearson's r; with thumbs up and down as one series, the point-biserial correlation."""

    r: float
    low: float
    high: float
    pairs: int


def correlate(first: Sequence[float], second: Sequence[float]) -> Correlation | None:
    """Pearson's r with Fisher's 95% interval; None where a series does not vary or there are under four pairs."""
    n = len(first)
    if n < 4 or n != len(second):
        return None
    # The spread of a constant series may differ from zero by rounding.
    if any(max(series) - min(series) <= 1e-9 for series in (first, second)):
        return None
    r = correlation(first, second)
    if abs(r) > 1 - 1e-12:
        r = math.copysign(1.0, r)
        return Correlation(round(r, 9), round(r, 9), round(r, 9), n)
    half = _Z95 / math.sqrt(n - 3)
    centre = math.atanh(r)
    return Correlation(round(r, 9), round(math.tanh(centre - half), 9), round(math.tanh(centre + half), 9), n)


class Confusion(msgspec.Struct, frozen=True):
    """Counts of verdicts by a judge and people; people are right by definition."""

    # Both said right.
    true_positive: int
    # The judge said right, people wrong.
    false_positive: int
    # The judge said wrong, people right.
    false_negative: int
    # Both said wrong.
    true_negative: int

    @property
    def n(self) -> int:
        """All verdicts."""
        return self.true_positive + self.false_positive + self.false_negative + self.true_negative


class Kappa(msgspec.Struct, frozen=True):
    """Agreement beyond chance: 1 is perfect, 0 is the agreement of two independent raters with these rates."""

    value: float
    standard_error: float
    interval: Interval


def cohen_kappa(table: Confusion, *, level: float = 0.95) -> Kappa | None:
    """Return κ with the standard error of Fleiss, Cohen and Everitt (1969); None if a rater gave all items the same verdict.

    κ and its error would then be 0 whatever the other rater said. If the raters never disagree, the error is 0 too, which few
    items do not prove; the interval then comes from Wilson's interval of the share of agreement.
    """
    n = table.n
    if n == 0:
        return None
    cells = [
        [table.true_positive / n, table.false_positive / n],
        [table.false_negative / n, table.true_negative / n],
    ]
    rows = [sum(row) for row in cells]
    columns = [cells[0][k] + cells[1][k] for k in (0, 1)]
    observed = cells[0][0] + cells[1][1]
    chance = rows[0] * columns[0] + rows[1] * columns[1]
    if 0.0 in (*rows, *columns):
        return None
    kappa = (observed - chance) / (1 - chance)
    diagonal = sum(cells[k][k] * (1 - (rows[k] + columns[k]) * (1 - kappa)) ** 2 for k in (0, 1))
    off_diagonal = (1 - kappa) ** 2 * sum(
        cells[i][j] * (columns[i] + rows[j]) ** 2 for i, j in ((0, 1), (1, 0))
    )
    variance = (diagonal + off_diagonal - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    error = math.sqrt(max(variance, 0.0))
    if observed >= 1.0:
        share = wilson_interval(n, n, level=level)
        low = -1.0 if share is None else (share.low - chance) / (1 - chance)
        return Kappa(kappa, error, Interval(low=max(low, -1.0), high=1.0, level=level))
    half = normal_quantile(0.5 + level / 2) * error
    interval = Interval(low=max(kappa - half, -1.0), high=min(kappa + half, 1.0), level=level)
    return Kappa(kappa, error, interval)


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]]) -> float | None:
    """Return α for interval data: one row of grades per rater, None where a rater gave none.

    None if α is undefined: no item has two grades, or all grades are the same. Observed and expected disagreement are, up to
    a common factor, the variance of the grades within items and of all grades.
    """
    items = [[grade for grade in item if grade is not None] for item in zip(*ratings, strict=True)]
    # A single grade has nothing to agree with.
    items = [item for item in items if len(item) > 1]
    grades = [grade for item in items for grade in item]
    if len(set(grades)) < 2:
        return None
    # Scaled, so that squares of tiny grades do not underflow.
    largest = max(map(abs, grades))
    within = math.fsum(len(item) * _variance([g / largest for g in item]) for item in items) / len(grades)
    return 1.0 - within / _variance([grade / largest for grade in grades])


def _variance(grades: Sequence[float]) -> float:
    if len(set(grades)) == 1:
        # The mean of equal numbers may differ from them by rounding.
        return 0.0
    mean = math.fsum(grades) / len(grades)
    return math.fsum((grade - mean) ** 2 for grade in grades) / (len(grades) - 1)


# Disagreements added to the observed ones, half in each direction. Without it the interval covers 91% instead of 95% if 60
# labels contain about one disagreement (simulated in tests/stats/test_corrected_means.py).
_PSEUDO = 1.0


class Corrected(msgspec.Struct, frozen=True):
    """An estimate of the true mean, rate or difference."""

    value: float
    interval: Interval
    # PPI++'s λ, the weight of the judge: 0 none, 1 full; None for other estimates.
    reliance: float | None = None


class JudgedSample(msgspec.Struct, frozen=True):
    """One run's replies, as values from 0 to 1."""

    # Labelled replies: people's value, the judge's value, and the unit of each.
    human: Sequence[float]
    judged: Sequence[float]
    units: Sequence[Hashable]
    # Unlabelled replies: the judge's value, and the unit of each.
    rest: Sequence[float]
    rest_units: Sequence[Hashable]


class _Estimate(msgspec.Struct, frozen=True):
    value: float
    reliance: float
    # Unit → its contribution to the error.
    influence: dict[Hashable, float]
    # Variance of disagreements that few labels may have missed.
    unseen: float
    labelled_units: int


def prediction_powered_mean(
    sample: JudgedSample, *, level: float = 0.95, small_sample: bool = True
) -> Corrected | None:
    """Return the PPI++ estimate with λ tuned from the data; None without two labelled units and two unlabelled replies.

    `small_sample` widens the interval for few labels: Student's t, and one more disagreement than observed, since a dozen
    items without one do not prove that there is none. Without it, the interval is that of ppi-python.
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
    """Return candidate minus base; units in both runs contribute their difference, which narrows the interval."""
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
    unseen = _PSEUDO * (1.0 - min(_population_variance(errors), 1.0)) / (units * (units + _PSEUDO))
    return _Estimate(reliance * mean_rest + mean_error, reliance, influence, unseen, units)


def labels_needed(sample: JudgedSample, half_width: float, *, level: float = 0.95) -> int | None:
    """Return the total number of labels for an interval of ± `half_width`; None if all replies are not enough."""
    found = _estimate(sample)
    if found is None:
        return None
    errors = [
        label - found.reliance * guess for label, guess in zip(sample.human, sample.judged, strict=True)
    ]
    variance, rest = (
        max(_population_variance(errors), 1.0 / (len(errors) + 1)),
        found.reliance**2 * _population_variance(sample.rest),
    )
    total = len(sample.human) + len(sample.rest)
    allowed = (half_width / normal_quantile(0.5 + level / 2)) ** 2
    enough = (n for n in range(2, total - 1) if rest / (total - n) + variance / n <= allowed)
    return next(enough, None)


def _reliance(human: Sequence[float], judged: Sequence[float], unlabelled: Sequence[float]) -> float:
    n, many = len(human), len(unlabelled)
    mean_human, mean_judged = math.fsum(human) / n, math.fsum(judged) / n
    covariance = math.fsum(
        (label - mean_human) * (guess - mean_judged) for label, guess in zip(human, judged, strict=True)
    )
    values = [*judged, *unlabelled]
    variance = _population_variance(values) * len(values) / (len(values) - 1)
    if variance <= 0:
        return 0.0
    return min(max(covariance / n / ((1 + n / many) * variance), 0.0), 1.0)


def _population_variance(values: Sequence[float]) -> float:
    """Return the variance, divided by n."""
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
    """Return the true rate if a judge passed `passed` of `judged`; None if the judge only guesses.

    The judge passed `sensitive` of the `positives` items that people call right, and failed `specific` of `negatives`.
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
    youden = sensitivity + specificity - 1
    centre = (rate + specificity - 1) / youden
    by_positive = sensitivity * (1 - sensitivity) / n_positive
    by_negative = specificity * (1 - specificity) / n_negative
    shift = 2 * z * z * (centre * by_positive - (1 - centre) * by_negative)
    spread = math.sqrt(rate * (1 - rate) / n + (1 - centre) ** 2 * by_negative + centre**2 * by_positive)
    half = z * spread / youden
    low, high = (min(max(centre + shift + sign * half, 0.0), 1.0) for sign in (-1, 1))
    return Corrected(min(max(value, 0.0), 1.0), Interval(low=low, high=high, level=level))
