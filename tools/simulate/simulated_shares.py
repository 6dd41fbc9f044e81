"""A simulated share with Wilson's 95% interval of the simulation itself."""

import math

__all__ = ["format_share"]


def format_share(share: float, trials: int) -> str:
    """The share with its Monte-Carlo interval: a bar is missed only if all of that lies outside."""
    z = 1.96
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    return f"{share:.1%} [{max(0.0, middle - half):.1%}–{min(1.0, middle + half):.1%}]"
