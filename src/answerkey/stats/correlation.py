"""Correlation of two paired series, with an interval that is honest about few pairs."""

import math
from collections.abc import Sequence
from statistics import correlation
from typing import NamedTuple

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
