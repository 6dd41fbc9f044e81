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
    """Pearson's r; with a thumb as one series it is the point-biserial correlation."""

    r: float
    low: float
    high: float
    pairs: int


def correlate(first: Sequence[float], second: Sequence[float]) -> Correlation | None:
    """Pearson's r with Fisher's 95% interval; None where a series does not vary or there are under four pairs."""
    n = len(first)
    if n < 4 or n != len(second):
        return None
    # Of a constant series the mean may differ by rounding, so its spread need not be zero.
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
    """How often a judge and people said what; people are right by definition."""

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
        """All of them."""
        return self.true_positive + self.false_positive + self.false_negative + self.true_negative


class Kappa(msgspec.Struct, frozen=True):
    """Agreement beyond chance: 1 is perfect, 0 is what two raters with these rates reach by chance."""

    value: float
    standard_error: float
    interval: Interval


def cohen_kappa(table: Confusion, *, level: float = 0.95) -> Kappa | None:
    """κ with the standard error of Fleiss, Cohen and Everitt (1969); None where a rater gave every item the same verdict.

    Such a rater cannot show agreement beyond chance: κ and its error would be 0 whatever the other said. If raters never
    disagreed that error is zero too, which few items do not prove; the interval then comes from Wilson's for the share of
    agreement.
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
    seen = cells[0][0] + cells[1][1]
    chance = rows[0] * columns[0] + rows[1] * columns[1]
    if 0.0 in (*rows, *columns):
        return None
    kappa = (seen - chance) / (1 - chance)
    diagonal = sum(cells[k][k] * (1 - (rows[k] + columns[k]) * (1 - kappa)) ** 2 for k in (0, 1))
    beside = (1 - kappa) ** 2 * sum(cells[i][j] * (columns[i] + rows[j]) ** 2 for i, j in ((0, 1), (1, 0)))
    variance = (diagonal + beside - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    error = math.sqrt(max(variance, 0.0))
    if seen >= 1.0:
        share = wilson_interval(n, n, level=level)
        low = -1.0 if share is None else (share.low - chance) / (1 - chance)
        return Kappa(kappa, error, Interval(low=max(low, -1.0), high=1.0, level=level))
    half = normal_quantile(0.5 + level / 2) * error
    interval = Interval(low=max(kappa - half, -1.0), high=min(kappa + half, 1.0), level=level)
    return Kappa(kappa, error, interval)


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]]) -> float | None:
    """α for interval data of a row of grades per rater, item by item, None where a rater gave none.

    None where it is not defined: no item has two grades, or all grades are the same and agreement cannot be told from
    a constant. Krippendorff's observed and expected disagreement are, up to a common factor, the spread of the grades
    within items and of all grades together.
    """
    items = [[grade for grade in item if grade is not None] for item in zip(*ratings, strict=True)]
    # A single grade agrees with nothing and counts for nothing.
    items = [item for item in items if len(item) > 1]
    grades = [grade for item in items for grade in item]
    if len(set(grades)) < 2:
        return None
    # Scaled, so that the squares of tiny grades do not vanish.
    largest = max(map(abs, grades))
    within = math.fsum(len(item) * _variance([g / largest for g in item]) for item in items) / len(grades)
    return 1.0 - within / _variance([grade / largest for grade in grades])


def _variance(grades: Sequence[float]) -> float:
    if len(set(grades)) == 1:
        # The mean of equal numbers is not always that number.
        return 0.0
    mean = math.fsum(grades) / len(grades)
    return math.fsum((grade - mean) ** 2 for grade in grades) / (len(grades) - 1)
