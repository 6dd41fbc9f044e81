"""Agreement of two series or raters: Pearson's r, Cohen's κ and Krippendorff's α, with intervals."""

import math
from collections.abc import Sequence
from statistics import correlation
from typing import NamedTuple

import msgspec

from answerkey.stats.distributions import normal_quantile
from answerkey.stats.intervals import Interval, wilson_interval

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
