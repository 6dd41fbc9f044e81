"""The fitted part of `smart`: small trees over named features, shipped as `smart.json` and run as one Python function.

Fitted by `benchmarks/fit_smart.py` on labelled replies. A tree is a list of nodes [feature, threshold, left, right, value];
a leaf has feature -1. A score is the log-odds that a careful reader finds the keyword said.
"""

import tomllib
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from answerkey.text.keyword import Threshold

_FOLDER = resources.files("answerkey.match")
# A feature's name to its direction, in the order in which the model reads them; each is explained in the file.
DIRECTIONS: dict[str, int] = tomllib.loads(_FOLDER.joinpath("features.toml").read_text("utf-8"))
Values = tuple[float, ...]


class Trees(msgspec.Struct, frozen=True):
    """A fitted model."""

    # Log-odds before any tree.
    base: float
    trees: list[list[tuple[int, float, int, int, float]]]
    # Log-odds above which a keyword counts as said; what each name promises stands in docs/matching.md.
    thresholds: dict[Threshold, float] = {}

    def compiled(self) -> Callable[[Values], float]:
        """The log-odds of a candidate, as one function of nested conditions; made of numbers only."""
        names = ", ".join(f"v{index}" for index in range(len(DIRECTIONS)))
        sums = "\n".join(f"    total += {self._condition(tree, 0)}" for tree in self.trees)
        source = (
            f"def score(values):\n    {names} = values\n    total = {self.base!r}\n{sums}\n    return total\n"
        )
        place: dict[str, Any] = {}
        exec(source, place)  # noqa: S102 - no text of the data file reaches it
        made: Callable[[Values], float] = place["score"]
        return made

    def _condition(self, tree: list[tuple[int, float, int, int, float]], at: int) -> str:
        feature, threshold, left, right, value = tree[at]
        if feature < 0:
            return repr(value)
        return f"({self._condition(tree, left)} if v{feature} <= {threshold!r} else {self._condition(tree, right)})"


@lru_cache(maxsize=1)
def shipped_trees() -> Trees:
    """The model of this version."""
    return msgspec.json.decode(_FOLDER.joinpath("smart.json").read_bytes(), type=Trees)


@lru_cache(maxsize=1)
def shipped_score() -> Callable[[Values], float]:
    """Its function; features are rounded, so that many replies of a log are equal to one that was met before."""
    return lru_cache(maxsize=65536)(shipped_trees().compiled())
