"""Percentiles without numpy, by numpy's default ("linear") definition."""

from collections.abc import Sequence

__all__ = ["percentile", "percentiles"]


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The given percentile (0 to 100) of values in ascending order; None without values."""
    if not ordered:
        return None
    position = (len(ordered) - 1) * percent / 100.0
    below = min(max(int(position), 0), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    share = position - below
    low, high = ordered[below], ordered[above]
    # numpy interpolates from the nearer end, which keeps equal neighbours exactly equal.
    return high - (high - low) * (1.0 - share) if share >= 0.5 else low + (high - low) * share


def percentiles(values: Sequence[float], percents: Sequence[float] = (50, 90, 95, 99)) -> list[float]:
    """Several percentiles of values in any order, sorted once; empty without values."""
    ordered = sorted(values)
    found = (percentile(ordered, percent) for percent in percents)
    return [value for value in found if value is not None]
