"""A linear model of the words of a reply: how likely it is an error message instead of an answer, or declines to answer.

A word weighs what its runs of characters weigh together, so that a new word, or another form of a known one, has a weight too.
Only the beginning and the end of a long reply are read, and every digit is read as 0. `tools/fit` fits the weights.
"""

import gzip
from collections.abc import Mapping, Sequence
from functools import cache
from math import exp, sqrt
from pathlib import Path

import msgspec

from answerkey.text.normalise import Remembered, lazy

_HEAD, _TAIL = 240, 80
SHORTEST_RUN, _LONGEST_RUN, _LONGEST_WORD = 3, 5, 24
_MARKS = ".,!?:;\"“”'()[]*…。，！？、「」«»"
# Thai, kana, Han and Hangul, which are written without spaces or whose words carry endings: also one or two characters count.
_DENSE = lazy("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Most numbers are new words; with 0 for every digit they are known ones.
_ZEROS = bytes.maketrans(b"123456789", b"000000000")


class Weights(msgspec.Struct, frozen=True):
    """The fitted weights, as whole numbers of a unit."""

    bias: float
    unit: float
    # A reply at least this likely to be an error is charged.
    charged_from: float
    # The first characters of a run → the rest of it → weight, in JSON: most beginnings are in no word of a reply.
    runs: dict[str, msgspec.Raw]
    # Other feature of the reply → weight.
    shapes: dict[str, int]


class Model:
    """Weighs replies, and remembers what words weigh."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._words = Remembered(self._weigh_word)
        # The beginning of a run → the rests of runs, and what these weigh.
        self._rests = Remembered(self._decode_rests)

    def probability(self, stripped: str) -> float:
        """How likely a reply without spaces around it is an error."""
        return self.weigh(words_of(stripped), {})

    def weigh(self, words: Sequence[str], features: Mapping[str, float]) -> float:
        """The probability by a reply's words in lower case and its other features."""
        shapes = self.weights.shapes
        total = sum(map(self._words.__getitem__, words)) / sqrt(len(words))
        total += sum([shapes.get(name, 0) * value for name, value in features.items()])
        return 1 / (1 + exp(-max(-30.0, min(30.0, self.weights.bias + self.weights.unit * total))))

    def _weigh_word(self, word: str) -> int:
        """What the `runs_of` a word weigh together."""
        return sum([self._rests[run[:SHORTEST_RUN]].get(run[SHORTEST_RUN:], 0) for run in runs_of(word)])

    def _decode_rests(self, beginning: str) -> dict[str, int]:
        return msgspec.json.decode(self.weights.runs.get(beginning, b"{}"), type=dict[str, int])


@cache
def shipped_model(folder: Path = Path(__file__).parent) -> Model:
    """The weights in a package's folder."""
    packed = (folder / "weights.json.gz").read_bytes()
    return Model(msgspec.json.decode(gzip.decompress(packed), type=Weights))


def words_of(stripped: str) -> list[str]:
    """The words that are read of a text, and its first word, its length and its last character as words of their own."""
    read = stripped if len(stripped) <= _HEAD + _TAIL else f"{stripped[:_HEAD]} {stripped[-_TAIL:]}"
    words = read.lower().encode().translate(_ZEROS).decode().split()
    last = stripped[-1]
    end = "a" if last.isalpha() else "0" if last.isdigit() else last
    return [*words, f"^{words[0]}", f"§{min(10, len(stripped).bit_length())}§", f"¶{end}¶"]


def runs_of(word: str) -> list[str]:
    """The runs of characters in a word in lower case, its ends marked by spaces, and the word itself."""
    marked = f" {word.strip(_MARKS)[:_LONGEST_WORD]} "
    size = len(marked)
    runs = [marked]
    for start in range(size - SHORTEST_RUN + 1):
        # No run is the whole word.
        last = min(start + _LONGEST_RUN, size - (start == 0))
        runs += [marked[start:end] for end in range(start + SHORTEST_RUN, last + 1)]
    if not word.isascii() and _DENSE.search(word):
        runs += [marked[start : start + length] for length in (1, 2) for start in range(1, size - length)]
    return runs
