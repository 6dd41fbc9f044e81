"""Boosted decision trees: how they are stored, and what they say. `tools/fit` fits them."""

from collections.abc import Sequence

import msgspec

__all__ = ["Trees"]


class Trees(msgspec.Struct, frozen=True):
    """A fitted model."""

    # Log-odds before any tree.
    base: float
    # The nodes of each tree: feature (-1 for a leaf), threshold, next node up to it and above it, value.
    trees: list[list[tuple[int, float, int, int, float]]]

    def score(self, values: Sequence[float]) -> float:
        """The log-odds of features in the order of the fit."""
        total = self.base
        for tree in self.trees:
            feature, threshold, left, right, value = tree[0]
            while feature >= 0:
                feature, threshold, left, right, value = tree[left if values[feature] <= threshold else right]
            total += value
        return total
