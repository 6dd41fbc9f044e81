"""What recognises texts: regular expressions that are compiled when they are first used, digests, and boosted decision trees.

Most commands meet few of the texts that the expressions are for. `tools/fit` fits the trees.
"""

import re

# Where hashlib has it from. Importing hashlib also starts OpenSSL, which takes as long as forty other modules.
from _blake2 import blake2b as blake2b
from collections.abc import Sequence
from typing import Any, cast

import msgspec

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn", "pattern", "flags")


class _Lazy:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        # Only ever called while the instance has no methods of its own.
        compiled = re.compile(*self._given)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy(pattern: str, flags: int = 0) -> "re.Pattern[str]":
    """A pattern that is compiled at its first use; an invalid one raises only then."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


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
