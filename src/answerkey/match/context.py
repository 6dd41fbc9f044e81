"""What is said of a keyword, by the words around it: "moved from Tuesday to Thursday" says Thursday and not Tuesday.

A logistic regression over the words before and behind the keyword in its sentence, by their side, their distance and whether
a break (a comma, a bracket, a dash) lies between, the two or three words that touch it, and the words beside its sentence.
`benchmarks/fit_smart.py` fits it on labelled replies; what it says is one feature of the trees. A token is a folded word,
"#" for any number, or "=" for a word of the question.
"""

import gzip
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from importlib import resources
from operator import getitem
from typing import Any, NamedTuple

import msgspec

from answerkey.text.normalise import Remembered

# How many words on each side of the keyword count, and how many on each side of its sentence.
NEAR, BESIDE = 6, 8
# A word's weights are by side, distance (1, 2, 3 or 4, 5 or 6) and whether a break lies between.
_BEFORE, _BEHIND = (6, 6, 4, 4, 2, 0), (8, 10, 12, 12, 14, 14)
SLOTS = 16
# The weights of the words around a keyword, by how many of them on either side stand nearer than the first break.
_PLACES = [
    [
        tuple(slot + (index < NEAR - before) for index, slot in enumerate(_BEFORE))
        + tuple(slot + (index >= behind) for index, slot in enumerate(_BEHIND))
        for behind in range(NEAR + 1)
    ]
    for before in range(NEAR + 1)
]
# Before the first and behind the last word of a sentence.
_START, _END = ["<"] * NEAR, [">"] * NEAR
# Steps in one unit of log-odds, and their limit: finer ones tell the trees nothing.
_STEP, _LIMIT = 2.0, 3.0
_MOST_REMEMBERED = 100_000
_token = Remembered(lambda word: "#" if word[0].isdigit() else word).__getitem__


class Surroundings(NamedTuple):
    """Where a keyword stands."""

    # The tokens before it and behind it, and how many of each stand nearer than the first break.
    tokens: list[str]
    before: int
    behind: int
    # Its sentence asks; the words before that, and behind it.
    asks: bool
    earlier: list[str]
    later: list[str]

    def slots(self) -> tuple[int, ...]:
        """The place of each token's weight."""
        return _PLACES[self.before][self.behind]

    def touching(self) -> tuple[str, str, str, str, str]:
        """The two and three tokens before the keyword, those behind it, and the one on each side."""
        third, second, first, following, next_one, last = self.tokens[NEAR - 3 : NEAR + 3]
        here = ("_" if self.before else ",_") if self.behind else "_,"
        two, behind = f"{second} {first} {here}", f"{here} {following} {next_one}"
        return two, f"{third} {two}", behind, f"{behind} {last}", f"{first} {here} {following}"


def read_tokens(before: list[str], behind: list[str], asked: frozenset[str]) -> list[str]:
    """The tokens of the words of a sentence before a keyword and behind it, as many as count."""
    tokens = [*_START[len(before) :], *map(_token, before), *map(_token, behind), *_END[len(behind) :]]
    return tokens if asked.isdisjoint(tokens) else ["=" if one in asked else one for one in tokens]


def in_steps(log_odds: float) -> float:
    """Within the limits and rounded, so that many candidates are equal."""
    return round(max(-_LIMIT, min(_LIMIT, log_odds)) * _STEP) / _STEP


class _Weights(dict[str, Any]):
    """Of every token, those that have none included."""

    def __init__(self, known: Mapping[str, Any], none: Any) -> None:
        super().__init__(known)
        self._none, self._room = none, len(known) + _MOST_REMEMBERED

    def __missing__(self, token: str) -> Any:
        if len(self) < self._room:
            self[token] = self._none
        return self._none


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
    def _ready(
        self,
    ) -> tuple[Callable[[str], tuple[float, ...]], Callable[[str], float], Callable[[str], float]]:
        words = _Weights(self.words, (0.0,) * SLOTS)
        earlier, later = _Weights(self.earlier, 0.0), _Weights(self.later, 0.0)
        return words.__getitem__, earlier.__getitem__, later.__getitem__

    def log_odds(self, place: Surroundings) -> float:
        """How likely it is that a careful reader finds it said."""
        word, earlier, later = self._ready
        touching = self.touching
        total = sum(map(getitem, map(word, place.tokens), place.slots()), self.base + self.asks * place.asks)
        for one in place.touching():
            if one in touching:
                total += touching[one]
        return in_steps(total + sum(map(earlier, place.earlier)) + sum(map(later, place.later)))


@lru_cache(maxsize=1)
def shipped_around() -> Around:
    """The model of this version."""
    data = resources.files("answerkey.match").joinpath("context.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(data), type=Around)
