"""A linear model of the words of a reply: how likely it is an error message instead of an answer, or declines to answer.

A word weighs what its runs of characters weigh together, so that a new word, or another form of a known one, has a weight too.
Only the beginning and the end of a long reply are read. `tools/fit` fits the weights.
"""

import gzip
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from math import exp, sqrt

import msgspec

from answerkey.text.normalise import Remembered, lazy

_HEAD, _TAIL = 240, 80
_SHORTEST_RUN, _LONGEST_RUN, _LONGEST_WORD = 3, 5, 24
_MARKS = ".,!?:;\"“”'()[]*…。，！？、「」«»"
# Thai, kana, Han and Hangul, which are written without spaces or whose words carry endings: also one or two characters count.
_DENSE = lazy("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Weights(msgspec.Struct, frozen=True):
    """The fitted weights, as whole numbers of a unit."""

    bias: float
    unit: float
    # A reply at least this likely to be an error is charged.
    charged_from: float
    # Run of characters → weight, and other feature of the reply → weight.
    runs: dict[str, int]
    shapes: dict[str, int]


class Model:
    """Weighs replies, and remembers what words weigh."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        weight, beginnings = weights.runs.get, frozenset(run[:_SHORTEST_RUN] for run in weights.runs)
        self._words = Remembered(lambda word: sum([weight(run, 0) for run in runs_of(word, beginnings)]))

    def probability(self, stripped: str) -> float:
        """How likely a reply without spaces around it is an error."""
        words = clip(stripped).lower().split()
        shapes = self.weights.shapes
        return self._logistic(words, sum([shapes.get(name, 0) for name in shapes_of(stripped, words)]))

    def weigh(self, words: Sequence[str], features: Mapping[str, float]) -> float:
        """The probability by a reply's words in lower case and its other features."""
        shapes = self.weights.shapes
        return self._logistic(words, sum([shapes.get(name, 0) * value for name, value in features.items()]))

    def _logistic(self, words: Sequence[str], other: float) -> float:
        total = sum(map(self._words.__getitem__, words)) / sqrt(len(words)) + other
        return 1 / (1 + exp(-max(-30.0, min(30.0, self.weights.bias + self.weights.unit * total))))


@cache
def shipped_model(package: str = "answerkey.detect") -> Model:
    """The weights in a package."""
    from importlib.resources import files  # slow to load, and plain replies do without

    packed = (files(package) / "weights.json.gz").read_bytes()
    return Model(msgspec.json.decode(gzip.decompress(packed), type=Weights))


def clip(text: str) -> str:
    """The beginning and the end of a long text."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"


def runs_of(word: str, beginnings: Container[str] | None = None) -> list[str]:
    """The runs of characters in a word in lower case, its ends marked by spaces, and the word itself.

    With `beginnings`, runs that begin with other characters are left out: few of those in an amount or a name have a weight.
    """
    marked = f" {word.strip(_MARKS)[:_LONGEST_WORD]} "
    size = len(marked)
    starts: Iterable[int] = range(size - _SHORTEST_RUN + 1)
    if beginnings is not None:
        starts = [start for start in starts if marked[start : start + _SHORTEST_RUN] in beginnings]
    # No run is the whole word.
    runs = [
        marked[start:end]
        for start in starts
        for end in range(start + _SHORTEST_RUN, min(start + _LONGEST_RUN, size - (start == 0)) + 1)
    ]
    if not word.isascii() and _DENSE.search(word):
        runs += [marked[start : start + length] for length in (1, 2) for start in range(1, size - length)]
    return [marked, *runs]


def shapes_of(stripped: str, words: list[str]) -> tuple[str, ...]:
    """Features of a reply beside its words: length, last character, first and last word."""
    last = stripped[-1]
    end = "a" if last.isalpha() else "0" if last.isdigit() else last
    return (
        f"length {min(10, len(stripped).bit_length())}",
        f"end {end}",
        f"first {words[0]}",
        f"last {words[-1]}",
    )
