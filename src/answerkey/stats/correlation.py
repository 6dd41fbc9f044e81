"""Correlation of two paired series, with an interval that is honest about few pairs."""

from collections.abc import Sequence
from math import atanh, fsum, sqrt, tanh
from typing import NamedTuple

__all__ = ["Correlation", "correlate"]

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
    mean_first, mean_second = fsum(first) / n, fsum(second) / n
    spread_first = fsum((value - mean_first) ** 2 for value in first)
    spread_second = fsum((value - mean_second) ** 2 for value in second)
    # A constant series leaves rounding noise, not zero.
    if spread_first <= 1e-18 * n or spread_second <= 1e-18 * n:
        return None
    shared = fsum((x - mean_first) * (y - mean_second) for x, y in zip(first, second, strict=True))
    r = max(-1.0, min(1.0, shared / sqrt(spread_first * spread_second)))
    if abs(r) > 1 - 1e-12:
        return Correlation(round(r, 9), round(r, 9), round(r, 9), n)
    half = _Z95 / sqrt(n - 3)
    centre = atanh(r)
    return Correlation(round(r, 9), round(tanh(centre - half), 9), round(tanh(centre + half), 9), n)
