"""The fitted part of `smart`: small trees over the features, shipped as `smart.json` and walked in plain Python.

Fitted by `benchmarks/fit_smart.py` on labelled replies. A tree is a list of nodes [feature, threshold, left, right, value];
a leaf has feature -1. A score is the log-odds that a careful reader finds the keyword said.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from answerkey.text.keyword import Threshold

__all__ = ["Trees", "shipped_reason", "shipped_score", "shipped_trees"]

_Node = tuple[int, float, int, int, float]


class Trees(msgspec.Struct, frozen=True):
    """A fitted model."""

    # In the order of the values that are scored.
    features: list[str]
    # Log-odds before any tree.
    base: float
    trees: list[list[_Node]]
    # Log-odds above which a keyword counts as said; what each name promises stands in docs/matching.md.
    thresholds: dict[Threshold, float] = {}

    def score(self, values: tuple[float, ...]) -> float:
        """The log-odds that the keyword is said."""
        total = self.base
        for tree in self.trees:
            node = tree[0]
            while node[0] >= 0:
                node = tree[node[2] if values[node[0]] <= node[1] else node[3]]
            total += node[4]
        return total

    def compiled(self) -> Callable[[tuple[float, ...]], float]:
        """`score` as one Python function of nested conditions, some eight times as fast; made of numbers only."""
        names = ", ".join(f"v{index}" for index in range(len(self.features)))
        sums = "\n".join(f"    total += {self._condition(tree, 0)}" for tree in self.trees)
        place: dict[str, Any] = {}
        source = (
            f"def score(values):\n    {names} = values\n    total = {self.base!r}\n{sums}\n    return total\n"
        )
        exec(source, place)  # noqa: S102 - no text of the data file reaches it
        made: Callable[[tuple[float, ...]], float] = place["score"]
        return made

    def _condition(self, tree: list[_Node], at: int) -> str:
        feature, threshold, left, right, value = tree[at]
        if feature < 0:
            return repr(value)
        return f"({self._condition(tree, left)} if v{feature} <= {threshold!r} else {self._condition(tree, right)})"

    def deciding(self, values: tuple[float, ...], count: int = 3) -> list[tuple[str, float]]:
        """What moved the score most, and by how much: each step down a tree is put to the feature that it asks."""
        moved = dict.fromkeys(self.features, 0.0)
        for tree in self.trees:
            node = tree[0]
            while node[0] >= 0:
                child = tree[node[2] if values[node[0]] <= node[1] else node[3]]
                moved[self.features[node[0]]] += child[4] - node[4]
                node = child
        return sorted(moved.items(), key=lambda pair: -abs(pair[1]))[:count]


@lru_cache(maxsize=1)
def shipped_trees() -> Trees:
    """The model of this version."""
    file = resources.files("answerkey.match").joinpath("smart.json")
    return msgspec.json.decode(file.read_bytes(), type=Trees)


@lru_cache(maxsize=1)
def _shipped_function() -> Callable[[tuple[float, ...]], float]:
    return shipped_trees().compiled()


# Features are rounded, so that most replies of a log are equal to one that was met before.
@lru_cache(maxsize=65536)
def shipped_score(values: tuple[float, ...]) -> float:
    """The log-odds that the keyword is said."""
    return _shipped_function()(values)


@lru_cache(maxsize=8192)
def shipped_reason(values: tuple[float, ...]) -> str:
    """The log-odds and what decided, in words."""
    moved = shipped_trees().deciding(values)
    return f"{shipped_score(values):+.1f}: " + ", ".join(f"{name} {by:+.1f}" for name, by in moved)
