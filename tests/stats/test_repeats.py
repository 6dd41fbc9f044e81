"""Repeats of questions whose outcome changed: how often chance alone would call one broken."""

import math
import random

import pytest

from answerkey.stats.intervals import Repeats, chance_of_no_success


def chance_of(broken: list[int], fixed: list[int], times: int) -> float:
    return chance_of_no_success(
        [Repeats(successes=broken, times=times), Repeats(successes=fixed, times=times, left_out=times)], times
    )


def test_without_evidence_every_pass_rate_is_possible() -> None:
    # About as likely as for rates spread evenly between 0 and 1: 1 / (K + 1).
    assert chance_of([0], [], 5) == pytest.approx(1 / 6, abs=0.04)
    assert chance_of([0], [], 20) < chance_of([0], [], 5)


def test_questions_of_one_pass_rate_give_its_binomial_chance() -> None:
    alike = [7, 6, 8, 7, 5, 9, 7, 8, 6, 7] * 5
    assert chance_of(alike, alike, 10) < 1e-4
    # The same mean, but very different questions.
    differing = [1, 9, 10, 9, 10, 2, 8, 10, 3, 8] * 5
    assert chance_of(differing, [count for count in differing if count < 10], 10) > 0.01


def test_a_hard_question_that_passes_once_is_evidence_that_hard_questions_vary() -> None:
    alike = Repeats(successes=[4, 4, 5, 4], times=5)
    hard = Repeats(successes=[3, 0, 0, 2], times=20, passed=0, failed=2)
    assert chance_of_no_success([alike, hard], 5) > 3 * chance_of_no_success([alike], 5)


# A fifth of the questions pass 15% of the time, the others always; a tenth pass between never and 40% of the time.
HARD = [lambda source: 1.0 if source.random() < 0.8 else 0.15]
HARD += [lambda source: 1.0 if source.random() < 0.9 else 0.4 * source.random()]
DIFFERING = [lambda source: source.betavariate(0.5, 0.2)]


@pytest.mark.parametrize("population", [*HARD, *DIFFERING], ids=["hard", "harder", "differing"])
@pytest.mark.parametrize(("questions", "times"), [(20, 3), (50, 3), (20, 5), (106, 10)])
def test_equal_versions_are_rarely_called_broken(population, questions: int, times: int) -> None:
    """The decision of `--confirm`; `tools/simulate --only repeats` has more of it."""
    source, refused, trials = random.Random(times), 0, 100
    for _ in range(trials):
        broken, fixed, failing = [], [], []
        for _ in range(questions):
            rate = population(source)
            before, after = (source.random() < rate for _ in range(2))
            if before != after:
                (broken if before else fixed).append(sum(source.random() < rate for _ in range(times)))
            elif not before:
                failing.append(rate)
        asked = math.ceil(20 / max(1, len(failing[:20])))
        groups = [
            Repeats(successes=broken, times=times),
            Repeats(successes=fixed, times=times, left_out=times),
            Repeats(
                successes=[sum(source.random() < rate for _ in range(asked)) for rate in failing[:20]],
                times=asked,
                passed=0,
                failed=2,
            ),
        ]
        if 0 in broken:
            varied = any(group.varied for group in groups)
            refused += not varied or chance_of_no_success(groups, times) * len(broken) < 0.05
    # Without the questions that fail in both runs, up to 16; with one pooled pass rate, up to 60.
    assert refused <= 5
