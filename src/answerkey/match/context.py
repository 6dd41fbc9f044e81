"""What is said of a keyword, by the words around it: "moved from Tuesday to Thursday" says Thursday and not Tuesday.

A logistic regression over the words before and behind the keyword in its sentence, by their side, their distance and whether
a break (a comma, a bracket, a dash) lies between, the two or three words that touch it, and the words beside its sentence.
`benchmarks/fit_smart.py` fits it on labelled replies; what it says is one feature of the trees. A token is a folded word, with
"," before it where a break is, "#" for any number and "=" for a word of the question.
"""

import gzip
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property, lru_cache
from importlib import resources
from operator import getitem
from typing import NamedTuple, TypeVar

import msgspec

from answerkey.text.normalise import Remembered

_Weight = TypeVar("_Weight", float, tuple[float, ...])

# How many words on each side of the keyword count, and how many on each side of its sentence.
NEAR, BESIDE = 6, 8
# A word's weights are by side, distance (1, 2, 3 or 4, 5 or 6) and whether a break lies between.
_BEFORE, _BEHIND = (6, 6, 4, 4, 2, 0), (8, 10, 12, 12, 14, 14)
SLOTS = 16
# The weights of the words around a keyword, by how many of them stand before the first break on either side.
_PLACES = [
    [
        tuple(slot + (index < NEAR - before) for index, slot in enumerate(_BEFORE))
        + tuple(slot + (index >= behind) for index, slot in enumerate(_BEHIND))
        for behind in range(NEAR + 1)
    ]
    for before in range(NEAR + 1)
]
_UNBROKEN = _PLACES[NEAR][NEAR]
# Before the first and behind the last word of a sentence.
_START, _END = ["<"] * NEAR, [">"] * NEAR
# Steps in one unit of log-odds, and their limit: finer ones tell the trees nothing.
_STEP, _LIMIT = 2.0, 3.0
_MOST_REMEMBERED = 100_000


class Sentence:
    """One sentence of a reply as tokens."""

    def __init__(self, text: str, known: dict[str, str]) -> None:
        """`text` has "," before words that follow a break; `known` are the tokens of the question's words."""
        tokens = list(map(_token, text.split()))
        if not known.keys().isdisjoint(tokens):
            tokens = [known.get(one, one) for one in tokens]
        self.tokens = _START + tokens + _END
        self._breaks = [at for at, one in enumerate(self.tokens) if one[0] == ","] if "," in text else None

    def near(self, at: int, size: int) -> tuple[list[str], tuple[int, ...]]:
        """The tokens around the words from `at` on, and the place of each one's weight."""
        at, end, breaks = at + NEAR, at + NEAR + size, self._breaks
        tokens = self.tokens[at - NEAR : at] + self.tokens[end : end + NEAR]
        if not breaks:
            return tokens, _UNBROKEN
        last, following = bisect_right(breaks, at), bisect_left(breaks, end)
        before = min(NEAR, at - breaks[last - 1]) if last else NEAR
        behind = min(NEAR, breaks[following] - end) if following < len(breaks) else NEAR
        return tokens, _PLACES[before][behind]

    def touching(self, at: int, size: int) -> tuple[str, ...]:
        """The two and three tokens before the words from `at` on, those behind them, and the one on each side."""
        at += NEAR
        third, second, first, own = self.tokens[at - 3 : at + 1]
        following, next_one, last = self.tokens[at + size : at + size + 3]
        here = ",_" if own[0] == "," else "_"
        two, behind = f"{second} {first} {here}", f"_ {following} {next_one}"
        return two, f"{third} {two}", behind, f"{behind} {last}", f"{first} {here} {following}"


class Surroundings(NamedTuple):
    """Where a keyword stands: its sentence, its first word in it, how many words it has, and what is around the sentence."""

    sentence: Sentence
    at: int
    size: int
    asks: bool
    earlier: list[str]
    later: list[str]


def in_steps(log_odds: float) -> float:
    """Within the limits and rounded, so that many candidates are equal."""
    return round(max(-_LIMIT, min(_LIMIT, log_odds)) * _STEP) / _STEP


def _make_token(word: str) -> str:
    bare = word.lstrip(",")
    return "," * (bare != word) + ("#" if bare[:1].isdigit() else bare)


_token = Remembered(_make_token).__getitem__


class _Weights(dict[str, _Weight]):
    """Of every token, those without one and those behind a break included."""

    def __init__(self, known: dict[str, _Weight], none: _Weight) -> None:
        super().__init__(known)
        self._none, self._room = none, len(known) + _MOST_REMEMBERED

    def __missing__(self, token: str) -> _Weight:
        weight = self.get(token.lstrip(","), self._none)
        if len(self) < self._room:
            self[token] = weight
        return weight


class Around(msgspec.Struct, frozen=True, dict=True):
    """A fitted model."""

    base: float
    # A sentence that asks.
    asks: float
    # The weights of a token by its place.
    words: dict[str, tuple[float, ...]]
    touching: dict[str, float]
    # The weights of a word before the sentence of the keyword, and behind it.
    earlier: dict[str, float]
    later: dict[str, float]

    @cached_property
    def _ready(self) -> tuple[Callable[[str], tuple[float, ...]], Callable[[str], float], Callable[[str], float]]:
        words = _Weights(self.words, (0.0,) * SLOTS)
        earlier, later = _Weights(self.earlier, 0.0), _Weights(self.later, 0.0)
        return words.__getitem__, earlier.__getitem__, later.__getitem__

    def log_odds(self, place: Surroundings) -> float:
        """How likely it is that a careful reader finds it said."""
        sentence, at, size, asks, before, behind = place
        word, earlier, later = self._ready
        touching = self.touching
        tokens, slots = sentence.near(at, size)
        total = sum(map(getitem, map(word, tokens), slots), self.asks * asks + self.base)
        for one in sentence.touching(at, size):
            if one in touching:
                total += touching[one]
        return in_steps(total + sum(map(earlier, before)) + sum(map(later, behind)))


@lru_cache(maxsize=1)
def shipped_around() -> Around:
    """The model of this version."""
    data = resources.files("answerkey.match").joinpath("context.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(data), type=Around)
