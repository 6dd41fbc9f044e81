"""What is said of a keyword, by the words around it: "moved from Tuesday to Thursday" says Thursday and not Tuesday.

A logistic regression over the words before and behind the keyword in its sentence, by their side, their distance and how many
breaks (a comma, a bracket, a dash) lie between, the two or three words that touch it, and the words beside its sentence.
`benchmarks/fit_smart.py` fits it on labelled replies; what it says is one feature of the trees. A token is a folded word, with
"," before it where a break is, "#" for any number and "=" for a word of the question.
"""

import gzip
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec

# How many words on each side of the keyword count, and how many on each side of its sentence.
NEAR, BESIDE = 6, 8
# A word's weights are by side, distance (1, 2, 3 or 4, 5 or 6) and breaks between (none, one, more).
_BEFORE, _BEHIND = (0, 3, 6, 6, 9, 9), (12, 15, 18, 18, 21, 21)
SLOTS = 24
# Behind the first and before the last word of a sentence.
_START, _END = ("<",) * 3, (">",) * 3
# Steps in one unit of log-odds, and their limit: finer ones tell the trees nothing.
_STEP, _LIMIT = 2.0, 3.0


class Sentence:
    """One sentence of a reply as tokens."""

    def __init__(self, text: str, known: dict[str, str]) -> None:
        """`text` has "," before words that follow a break; `known` are the tokens of the question's words."""
        self.tokens = [*_START, *[known.get(one) or _tokens[one] for one in text.split()], *_END]
        self._broken = "," in text

    def near(self, at: int, size: int) -> list[tuple[str, int]]:
        """The tokens around the words from `at` on, each with the place of its weight."""
        at += len(_START)
        before, behind = self.tokens[max(0, at - NEAR) : at], self.tokens[at + size : at + size + NEAR]
        before.reverse()
        if not self._broken:
            return [*zip(before, _BEFORE), *zip(behind, _BEHIND)]  # noqa: B905
        found, breaks, later = [], 0, self.tokens[at]
        for token, slot in zip(before, _BEFORE):  # noqa: B905
            breaks += later[0] == ","
            later = token
            found.append((token.lstrip(","), slot + min(2, breaks)))
        breaks = 0
        for token, slot in zip(behind, _BEHIND):  # noqa: B905
            breaks += token[0] == ","
            found.append((token.lstrip(","), slot + min(2, breaks)))
        return found

    def touching(self, at: int, size: int) -> tuple[str, ...]:
        """The two and three tokens before the words from `at` on, those behind them, and the one on each side."""
        at += len(_START)
        third, second, first = self.tokens[at - 3 : at]
        following, next_one, last = self.tokens[at + size : at + size + 3]
        here = ",_" if self.tokens[at][0] == "," else "_"
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


class _Tokens(dict[str, str]):
    """The token of each word, worked out once."""

    def __missing__(self, word: str) -> str:
        bare = word.lstrip(",")
        token = "," * (bare != word) + ("#" if bare[:1].isdigit() else bare)
        if len(self) < 100_000:
            self[word] = token
        return token


_tokens = _Tokens()


class Around(msgspec.Struct, frozen=True):
    """A fitted model."""

    base: float
    # A sentence that asks.
    asks: float
    # The weights of a token in the order of the slots.
    words: dict[str, tuple[float, ...]]
    touching: dict[str, float]
    # The weights of a word before the sentence of the keyword, and behind it.
    earlier: dict[str, float]
    later: dict[str, float]

    def log_odds(self, place: Surroundings) -> float:
        """How likely it is that a careful reader finds it said."""
        sentence, at, size, asks, before, behind = place
        words, touching, earlier, later = self.words, self.touching, self.earlier, self.later
        total = self.base + self.asks * asks
        for token, slot in sentence.near(at, size):
            if token in words:
                total += words[token][slot]
        for one in sentence.touching(at, size):
            if one in touching:
                total += touching[one]
        total += sum([earlier[one] for one in before if one in earlier])
        total += sum([later[one] for one in behind if one in later])
        return in_steps(total)


@lru_cache(maxsize=1)
def shipped_around() -> Around:
    """The model of this version."""
    data = resources.files("answerkey.match").joinpath("context.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(data), type=Around)
