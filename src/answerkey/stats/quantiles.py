"""Percentiles without numpy, by numpy's default ("linear") definition."""

from collections.abc import Sequence

__all__ = ["percentiles"]


def percentiles(values: Sequence[float], percents: Sequence[float] = (50, 90, 95, 99)) -> list[float]:
    """Several percentiles (0 to 100) of values in any order, sorted once; empty without values."""
    ordered = sorted(values)
    found = []
    for percent in percents if ordered else ():
        position = (len(ordered) - 1) * percent / 100.0
        below = min(max(int(position), 0), len(ordered) - 1)
        low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
        share = position - below
        # numpy interpolates from the nearer end, which keeps equal neighbours exactly equal.
        found.append(high - (high - low) * (1.0 - share) if share >= 0.5 else low + (high - low) * share)
    return found
