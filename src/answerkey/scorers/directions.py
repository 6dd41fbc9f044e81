"""Directions: which way each metric is better, as its scorer declares it."""

from collections.abc import Iterable

from answerkey.protocols import Direction, Scorer

__all__ = ["directions_of"]


def directions_of(scorers: Iterable[Scorer]) -> dict[str, Direction]:
    """Every name that the scorers may give a value under, with the way in which it is better."""
    found: dict[str, Direction] = {}
    for scorer in scorers:
        declared = scorer.direction
        found |= {scorer.name: declared} if isinstance(declared, str) else dict(declared)
    return found
