"""Repeats of questions whose outcome changed: how often chance alone would call one broken."""

import random

import pytest

from answerkey.stats.intervals import chance_of_no_success


def test_without_evidence_every_pass_rate_is_possible() -> None:
    # About as likely as for rates spread evenly between 0 and 1: 1 / (K + 1).
    assert chance_of_no_success([0], [], 5) == pytest.approx(1 / 6, abs=0.04)
    assert chance_of_no_success([0], [], 20) < chance_of_no_success([0], [], 5)


def test_questions_of_one_pass_rate_give_its_binomial_chance() -> None:
    alike = [7, 6, 8, 7, 5, 9, 7, 8, 6, 7] * 5
    assert chance_of_no_success(alike, alike, 10) < 1e-4
    # The same mean, but very different questions.
    differing = [1, 9, 10, 9, 10, 2, 8, 10, 3, 8] * 5
    assert chance_of_no_success(differing, [count for count in differing if count < 10], 10) > 0.01


@pytest.mark.parametrize("times", [5, 10, 20])
def test_equal_versions_are_rarely_called_broken_although_questions_differ(times: int) -> None:
    source, refused, trials = random.Random(times), 0, 100
    for _ in range(trials):
        broken, fixed = [], []
        for _ in range(106):
            rate = source.betavariate(0.5, 0.2)
            before, after = (source.random() < rate for _ in range(2))
            if before != after:
                (broken if before else fixed).append(sum(source.random() < rate for _ in range(times)))
        chance = chance_of_no_success(broken, fixed, times) * len(broken)
        refused += 0 in broken and chance < 0.05
    # One pooled pass rate refused 30 of 100 at ten repeats.
    assert refused <= 5
