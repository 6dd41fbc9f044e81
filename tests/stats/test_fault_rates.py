"""Faults of one version's repeats: what is rare for a question of this version."""

import random

from answerkey.stats.intervals import FaultRates


def test_a_question_that_fails_every_time_is_rare_among_steady_and_common_among_unsteady_ones() -> None:
    steady = FaultRates([(0, 5)] * 90 + [(1, 5)] * 10)
    unsteady = FaultRates([(faults, 5) for faults in range(6)] * 20)
    assert steady.chance(5, 5, 0, 5) < 0.001
    assert unsteady.chance(5, 5, 3, 5) > 0.1
    assert steady.chance(0, 5, 0, 5) == 1.0


def test_rarity_is_right_at_its_stated_rate() -> None:
    source = random.Random(3)
    rare = total = 0
    for _ in range(10):
        pairs = [[sum(source.random() < 0.3 for _ in range(5)) for _ in range(2)] for _ in range(100)]
        rates = FaultRates((before, 5) for before, _ in pairs)
        rare += sum(rates.chance(after, 5, before, 5) <= 0.01 for before, after in pairs)
        total += len(pairs)
    assert rare <= 0.015 * total
