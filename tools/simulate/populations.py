"""Scores to draw from: many pairs each, so that the truth is known exactly.

Scores are made as the standard makes them, 0.4 tools + 0.4 keywords found + 0.2 errors, on questions of differing
difficulty, so that they are skewed, tied and bounded; beside them pass/fail, judges' and retrieval scores, and plain
tables of changes. The interval's constants were chosen on these and on others like them, so that none of them is a hold-out;
drawn.py has some that are.
"""

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

__all__ = ["DIFFERENT", "EQUAL", "LOPSIDED", "Population", "passes"]

Pair = tuple[float, float]
Maker = Callable[[random.Random], Pair]
Skills = tuple[float, float, float]

GOOD, FAIR, POOR = (4.0, 3.5, 6.0), (2.0, 1.0, 4.0), (-1.0, -1.0, 1.0)
_PAIRS = 30_000


class Population:
    """Pairs of scores and what is true of them."""

    def __init__(self, name: str, differences: list[float], scores: list[float]) -> None:
        self.name = name
        self.differences = differences
        self.scores = scores
        self.truth = math.fsum(differences) / len(differences)
        self.mean = math.fsum(scores) / len(scores)
        # The shares of questions that differ between the versions, and that differ from the commonest score.
        self.changed = 1.0 - differences.count(0.0) / len(differences)
        self.varied = 1.0 - Counter(scores).most_common(1)[0][1] / len(scores)


def made(name: str, make: Maker, *, equal: bool) -> Population:
    """Drawn pairs; of equal versions in both orders, so that they are exactly as good."""
    source = random.Random(f"population {name}")
    pairs = [make(source) for _ in range(_PAIRS)]
    if equal:
        pairs += [(b, a) for a, b in pairs]
    return Population(name, [round(b - a, 9) for a, b in pairs], [a for a, _ in pairs])


def table(name: str, *changes: tuple[str, float]) -> Population:
    """Differences from a table of (share, difference); the rest is tied."""
    differences: list[float] = []
    size = 12_000
    for share, difference in changes:
        differences += [round(difference, 9)] * int(Fraction(share) * size)
    differences += [0.0] * (size - len(differences))
    return Population(name, differences, [0.5] * size)


def reply(source: random.Random, hard: float, keywords: int, skills: Skills) -> float:
    """One reply's score by a chatbot of the given skills (log odds) to a question of the given difficulty."""
    tool, quality, error = skills

    def succeeds(skill: float) -> bool:
        return source.random() < 1.0 / (1.0 + math.exp(hard - skill))

    found = sum(succeeds(quality) for _ in range(keywords)) / keywords
    return round(0.4 * succeeds(tool) + 0.4 * found + 0.2 * succeeds(error), 9)


def versions(first: Skills, second: Skills, *, same: float = 0.0, repeat: int = 1) -> Maker:
    """Two versions; a share `same` of questions gets the same reply from both."""

    def make(source: random.Random) -> Pair:
        hard, keywords = source.gauss(0.0, 2.0), source.randint(2, 6)

        def asked(skills: Skills) -> float:
            return math.fsum(reply(source, hard, keywords, skills) for _ in range(repeat)) / repeat

        base = asked(first)
        return base, base if source.random() < same else asked(second)

    return make


def passes(first: float, second: float, linked: float = 0.5) -> Maker:
    """Pass or fail; a share of questions shares its luck."""

    def make(source: random.Random) -> Pair:
        luck = source.random()
        other = luck if source.random() < linked else source.random()
        return float(luck < first), float(other < second)

    return make


def judged(source: random.Random) -> Pair:
    """Continuous scores, as a judge's mean gives."""
    return source.betavariate(6, 2), source.betavariate(6, 2)


def retrieved(gain: float) -> Maker:
    """nDCG: often 0, often 1, else one of a few values."""

    def one(source: random.Random, shift: float) -> float:
        luck = source.random()
        if luck < 0.25 - shift:
            return 0.0
        return 1.0 if luck > 0.6 - shift else source.choice([0.63, 0.5, 0.43, 0.39, 0.92, 0.85, 0.7])

    return lambda source: (one(source, 0.0), one(source, gain))


NEARLY = (3.0, 2.5, 5.0)

# Two chatbots that are equally good.
EQUAL = [
    made("good chatbot", versions(GOOD, GOOD), equal=True),
    made("fair chatbot", versions(FAIR, FAIR), equal=True),
    made("poor chatbot", versions(POOR, POOR), equal=True),
    made("good, 60% same replies", versions(NEARLY, NEARLY, same=0.6), equal=True),
    made("good, 85% same replies", versions(NEARLY, NEARLY, same=0.85), equal=True),
    made("pass/fail at 80%", passes(0.8, 0.8), equal=True),
    made("pass/fail at 95%", passes(0.95, 0.95), equal=True),
    made("judge's means", judged, equal=True),
    made("fair, three repeats", versions(FAIR, FAIR, repeat=3), equal=True),
    made("good, three repeats", versions(GOOD, GOOD, repeat=3), equal=True),
    made("pass/fail at 60%", passes(0.6, 0.6), equal=True),
    made("nDCG", retrieved(0.0), equal=True),
]
# Equal on average, but in different ways: many small changes one way, few large ones the other way.
LOPSIDED = [
    table("30% +0.10, 7.5% -0.40", ("0.3", 0.1), ("0.075", -0.4)),
    table("30% +0.13, 10% -0.40", ("0.3", 0.4 / 3), ("0.1", -0.4)),
    table("45% +0.10, 15% -0.30", ("0.45", 0.1), ("0.15", -0.3)),
    table("40% +0.05, 5% -0.40", ("0.4", 0.05), ("0.05", -0.4)),
    table("20% +0.20, 5% -0.80", ("0.2", 0.2), ("0.05", -0.8)),
]
DIFFERENT = [
    made("fair to good", versions(FAIR, (3.5, 2.5, 5.0)), equal=False),
    made("good to better", versions(NEARLY, (4.5, 4.5, 6.0)), equal=False),
    table("a tool lost on 10%", ("0.1", -0.4)),
    made("20% of replies worse", versions(NEARLY, (1.0, 1.0, 3.0), same=0.8), equal=False),
    table("30% +0.2", ("0.3", 0.2)),
    made("poor to fair", versions(POOR, FAIR), equal=False),
    made("nDCG better", retrieved(0.12), equal=False),
    table("15% -0.4, 10% +0.2", ("0.15", -0.4), ("0.1", 0.2)),
    table("25% -0.4", ("0.25", -0.4)),
    table("50% +0.1", ("0.5", 0.1)),
    table("8% of passes lost", ("0.08", -1.0)),
]
