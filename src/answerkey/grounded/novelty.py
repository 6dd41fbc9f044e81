"""Novelty: the share of a reply's content words that occur nowhere in its evidence."""

from collections.abc import Iterable

from answerkey.grounded.context import content_stems

__all__ = ["novelty_of"]


def novelty_of(text: str, evidence: Iterable[str]) -> float | None:
    """New content words ÷ content words, each counted once by its stem; None without a content word."""
    said = content_stems(text)
    known = frozenset().union(*map(content_stems, evidence))
    return len(said - known) / len(said) if said else None
