"""Agreement of two raters on right or wrong: Cohen's κ with its interval, sensitivity and specificity."""

import math

import msgspec

from answerkey.stats.distributions import normal_quantile
from answerkey.stats.intervals import Interval, wilson_interval

__all__ = ["Confusion", "Kappa", "cohen_kappa"]


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

    @property
    def agreement(self) -> float | None:
        """Share on which both said the same."""
        return (self.true_positive + self.true_negative) / self.n if self.n else None


class Kappa(msgspec.Struct, frozen=True):
    """Agreement beyond chance: 1 is perfect, 0 is what two raters with these rates reach by chance."""

    value: float
    standard_error: float
    interval: Interval


def cohen_kappa(table: Confusion, *, level: float = 0.95) -> Kappa | None:
    """κ with the standard error of Fleiss, Cohen and Everitt (1969); None where chance agreement is certain.

    If raters never disagreed that error is zero, which few items do not prove; the interval then comes from Wilson's
    for the share of agreement.
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
    if chance >= 1.0:
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
    return Kappa(
        kappa, error, Interval(low=max(kappa - half, -1.0), high=min(kappa + half, 1.0), level=level)
    )
