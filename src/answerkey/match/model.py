"""The fitted part of `smart`: small trees over the features, shipped as `smart.json` and walked in plain Python.

Fitted by `benchmarks/fit_smart.py` on labelled replies. A tree is a list of nodes [feature, threshold, left, right, value]; a leaf
has feature -1. The score is the log-odds that a careful reader finds the keyword said.
"""

from functools import lru_cache
from importlib import resources

import msgspec

from answerkey.text.keyword import Threshold

__all__ = ["THRESHOLDS", "deciding_features", "score"]

_Node = tuple[int, float, int, int, float]


class _Model(msgspec.Struct, frozen=True):
    """The data file."""

    # In the order of the values that `score` is given.
    features: list[str]
    # Log-odds before any tree.
    base: float
    trees: list[list[_Node]]
    # Log-odds above which a keyword counts as said: `even` is the likelier verdict, `strict` wants nine in ten of what it
    # accepts to be right, `lenient` wants nine in ten of what is right to be accepted (on replies nobody fitted to).
    thresholds: dict[Threshold, float]


_MODEL = msgspec.json.decode(
    resources.files("answerkey.match").joinpath("smart.json").read_bytes(), type=_Model
)
THRESHOLDS: dict[Threshold, float] = _MODEL.thresholds
FEATURES = tuple(_MODEL.features)


# Features are rounded, so that most replies of a log are equal to one that was met before.
@lru_cache(maxsize=65536)
def score(values: tuple[float, ...]) -> float:
    """The log-odds that the keyword is said."""
    total = _MODEL.base
    for tree in _MODEL.trees:
        node = tree[0]
        while node[0] >= 0:
            node = tree[node[2] if values[node[0]] <= node[1] else node[3]]
        total += node[4]
    return total


def deciding_features(values: tuple[float, ...], count: int = 3) -> list[tuple[str, float]]:
    """The features that moved the score most, with by how much: each step down a tree is put to the feature it asks."""
    moved = dict.fromkeys(FEATURES, 0.0)
    for tree in _MODEL.trees:
        node = tree[0]
        while node[0] >= 0:
            child = tree[node[2] if values[node[0]] <= node[1] else node[3]]
            moved[FEATURES[node[0]]] += child[4] - node[4]
            node = child
    return sorted(moved.items(), key=lambda pair: -abs(pair[1]))[:count]
