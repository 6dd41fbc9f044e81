"""Populations that nobody chose: chatbots, judges and retrievers of random skill, compared in random ways.

The interval's constants were chosen on other draws, so what they show is what other scores will show. A seed gives the same
ones again; another seed gives others.
"""

import random
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from populations import Population

__all__ = ["drawn"]

Column = npt.NDArray[np.float64]
# Difficulty of each question, whether it is one that a change touches, and which version is asked: a score for each.
Asked = Callable[[Column, npt.NDArray[np.bool_], bool], Column]

_PAIRS = 20_000


def drawn(count: int, seed: int) -> list[Population]:
    """`count` pairs of equally good versions, and as many pairs with a difference."""
    source = random.Random(f"drawn {seed}")
    kinds = (chatbot, chatbot, chatbot, checks, judge, retriever)
    return [
        _population(
            f"{kinds[number % len(kinds)].__name__} {number + 1}", kinds[number % len(kinds)], source, equal
        )
        for equal in (True, False)
        for number in range(count)
    ]


def _population(
    name: str,
    kind: Callable[[random.Random, np.random.Generator, float], Asked],
    source: random.Random,
    equal: bool,
) -> Population:
    generator = np.random.default_rng(source.getrandbits(64))
    hard = generator.normal(0.0, source.uniform(0.5, 3.0), _PAIRS)
    repeats = source.choice([1, 1, 2, 3, 5])
    # A share of questions is answered alike by both; a change touches all of the rest, or few and those the more.
    alike = source.choice([0.0, 0.0, source.uniform(0.2, 0.7)])
    touched = source.choice([1.0, source.uniform(0.05, 0.3)])
    shift = 0.0 if equal else source.choice([-1, 1]) * (source.uniform(0.3, 1.5) if touched == 1.0 else 4.0)
    asked = kind(source, generator, shift)
    changes = generator.random(_PAIRS) < touched
    first, second = (
        sum(asked(hard, changes, later) for _ in range(repeats)) / repeats for later in (False, True)
    )
    second = np.where(generator.random(_PAIRS) < alike, first, second)
    differences = np.round(np.round(second, 9) - np.round(first, 9), 9)
    scores = np.round(first, 9)
    if equal:
        differences, scores = np.concatenate((differences, -differences)), np.concatenate((first, second))
    return Population(f"{name}, {repeats}x", differences.tolist(), scores.tolist())


def chatbot(source: random.Random, generator: np.random.Generator, shift: float) -> Asked:
    """Scores as the standard makes them."""
    tool, quality, error = source.uniform(-1, 5), source.uniform(-1, 5), source.uniform(2, 7)
    keywords = generator.integers(1, source.choice([4, 6, 8]), _PAIRS)
    # What changed: tools, replies, or everything.
    what = source.choice(["tool", "quality", "all"])

    def asked(hard: Column, changes: npt.NDArray[np.bool_], later: bool) -> Column:
        moved = np.where(changes & later, shift, 0.0)
        by_tool, by_quality = (moved if what in (part, "all") else 0.0 for part in ("tool", "quality"))
        uses = generator.random(_PAIRS) < chance(tool + by_tool - hard)
        finds = generator.binomial(keywords, chance(quality + by_quality - hard)) / keywords
        answers = generator.random(_PAIRS) < chance(error - hard)
        return 0.4 * uses + 0.4 * finds + 0.2 * answers

    return asked


def checks(source: random.Random, generator: np.random.Generator, shift: float) -> Asked:
    """Pass or fail."""
    skill = source.uniform(0, 4)

    def asked(hard: Column, changes: npt.NDArray[np.bool_], later: bool) -> Column:
        moved = np.where(changes & later, shift, 0.0)
        return (generator.random(_PAIRS) < chance(skill + moved - hard)).astype(np.float64)

    return asked


def judge(source: random.Random, generator: np.random.Generator, shift: float) -> Asked:
    """Four criteria on a scale of five or three marks, weighted 40, 30, 20 and 10."""
    step = source.choice([0.25, 0.5])
    skill, noise = source.uniform(0, 2.5), source.uniform(0.1, 0.3)

    def asked(hard: Column, changes: npt.NDArray[np.bool_], later: bool) -> Column:
        level = chance(skill + np.where(changes & later, shift, 0.0) - hard / 2.0)
        marks = [
            weight * np.clip(np.round((level + generator.normal(0.0, noise, _PAIRS)) / step) * step, 0.0, 1.0)
            for weight in (0.4, 0.3, 0.2, 0.1)
        ]
        return sum(marks, np.zeros(_PAIRS))

    return asked


def retriever(source: random.Random, generator: np.random.Generator, shift: float) -> Asked:
    """nDCG of five results, of which one to three are relevant."""
    relevant, skill = source.randint(1, 3), source.uniform(-1, 2)
    gains = 1.0 / np.log2(np.arange(2, 7))

    def asked(hard: Column, changes: npt.NDArray[np.bool_], later: bool) -> Column:
        level = chance(skill + np.where(changes & later, shift, 0.0) - hard)[:, None]
        hits = generator.random((_PAIRS, 5)) < level * 0.8 ** np.arange(5)
        hits &= np.cumsum(hits, axis=1) <= relevant
        return (hits * gains).sum(axis=1) / gains[:relevant].sum()

    return asked


def chance(log_odds: Column) -> Column:
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-log_odds))
