"""What `smart` was given: word lists, names of features, and small trees over them, all of them data files.

`benchmarks/fit_smart.py` fits the trees on labelled replies. A tree is a list of nodes [feature, threshold, left, right,
value]; a leaf has feature -1. A score is the log-odds that a careful reader finds the keyword said.
"""

import tomllib
from functools import lru_cache
from importlib import resources

import msgspec

from answerkey.text.keyword import Threshold

_FOLDER = resources.files("answerkey.match")
_READ = tomllib.loads(_FOLDER.joinpath("vocabulary.toml").read_text("utf-8"))
WORDS = {name: frozenset(words.split()) for name, words in _READ["words"].items()}
# An abbreviation to what it can stand for, and back.
EQUIVALENTS: dict[str, list[str]] = {}
for _one, *_others in map(str.split, _READ["lists"]["abbreviations"].strip().splitlines()):
    for _other in _others:
        EQUIVALENTS.setdefault(_one, []).append(_other)
        EQUIVALENTS.setdefault(_other, []).append(_one)
# A word to those that it is never a misspelling of: "employer" and "employee", "Tuesday" and "Thursday".
EXCLUSIVE = {word: line for line in _READ["lists"]["exclusive"].splitlines() for word in line.split()}
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

    def score(self, values: Values) -> float:
        """The log-odds of a candidate."""
        total = self.base
        for tree in self.trees:
            feature, threshold, left, right, value = tree[0]
            while feature >= 0:
                feature, threshold, left, right, value = tree[left if values[feature] <= threshold else right]
            total += value
        return total


@lru_cache(maxsize=1)
def shipped_model() -> Trees:
    """The model of this version."""
    return msgspec.json.decode(_FOLDER.joinpath("smart.json").read_bytes(), type=Trees)


@lru_cache(maxsize=65536)
def score(values: Values) -> float:
    """The log-odds by it. Features are rounded, so that many replies of a log are equal to one that was met before."""
    return shipped_model().score(values)
