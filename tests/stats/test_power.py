import math
import random

import pytest
from statsmodels.stats.power import TTestPower

from answerkey.stats.power import detectable_difference, power_of, questions_needed, split_variance


@pytest.mark.parametrize("n", [2, 5, 15, 50, 400, 3000, 20_000])
@pytest.mark.parametrize("effect", [0.02, 0.2, 0.5, 1.2])
def test_power_is_that_of_statsmodels(n: int, effect: float) -> None:
    expected = float(TTestPower().power(effect, n, 0.05))
    if math.isnan(expected):  # the noncentral t of SciPy gives up where the power is 1
        expected = 1.0
    assert power_of(n, 0.25, effect * 0.25) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("effect", [0.05, 0.15, 0.3, 0.8, 2.0])
def test_the_number_of_questions_is_that_of_statsmodels(effect: float) -> None:
    expected = TTestPower().solve_power(effect, power=0.8, alpha=0.05)
    assert questions_needed(0.3, effect * 0.3) == pytest.approx(math.ceil(expected), abs=1)


def test_the_detectable_difference_is_detected_as_often_as_said() -> None:
    found = detectable_difference(0.2 / math.sqrt(30), 29)
    assert found is not None
    assert power_of(30, 0.2, found) == pytest.approx(0.8, abs=0.01)


def test_nothing_to_detect() -> None:
    assert detectable_difference(0.0, 14) is None
    assert questions_needed(0.2, 0.0) is None
    assert questions_needed(0.2, 1e-7) is None
    assert power_of(1, 0.2, 0.1) == 0.0


def test_variance_is_split_as_it_was_made() -> None:
    source = random.Random(2)
    trials = {}
    for index in range(2000):
        level = source.gauss(0.7, 0.2)
        trials[f"q{index}"] = [level + source.gauss(0, 0.1) for _ in range(source.choice([2, 3, 4]))]
    found = split_variance(trials)
    assert found is not None
    assert found.between == pytest.approx(0.04, rel=0.1)
    assert found.within == pytest.approx(0.01, rel=0.1)


def test_flaky_questions_are_named() -> None:
    found = split_variance({"stable": [1.0, 1.0], "flaky": [1.0, 0.0], "wobbly": [0.8, 0.9]})
    assert found is not None
    assert [name for name, _ in found.flaky] == ["flaky", "wobbly"]
    assert split_variance({"only": [1.0]}) is None
