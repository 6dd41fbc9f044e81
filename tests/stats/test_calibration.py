"""Short simulations of tools/simulate: false alarms, coverage and power, alone and in units."""

from pathlib import Path

import numpy as np
import pytest
import sections
from populations import Population

TRIALS = 300


def population(name: str) -> Population:
    return next(p for p in (*sections.EQUAL, *sections.DIFFERENT) if p.name == name)


def source() -> np.random.Generator:
    return np.random.default_rng(3)


# Three standard errors of 300 trials around 3 to 6% and 93 to 97%.
@pytest.mark.parametrize("structure", ["alone", "fives", "conversations"])
def test_false_alarms_of_equal_chatbots(structure: str) -> None:
    rates = sections.difference_rates(population("fair chatbot"), 30, structure, TRIALS, source())
    assert 0.01 <= rates.clear <= 0.09
    assert 0.90 <= rates.held <= 0.99


@pytest.mark.parametrize("name", ["good to better", "a tool lost on 10%", "fair to good"])
def test_coverage_and_power_where_there_is_a_difference(name: str) -> None:
    rates = sections.difference_rates(population(name), 50, "alone", TRIALS, source())
    assert 0.90 <= rates.held <= 0.99
    assert rates.held >= rates.t_held - 0.01


@pytest.mark.parametrize("structure", ["alone", "fives", "conversations"])
@pytest.mark.parametrize("name", ["good chatbot", "pass/fail at 80%"])
def test_coverage_of_one_runs_score(name: str, structure: str) -> None:
    held, t_held = sections.mean_rates(population(name), 20, structure, TRIALS, source())
    assert 0.90 <= held <= 0.99
    assert held >= t_held


def test_a_planned_size_has_its_power() -> None:
    _, power = sections.planned_power(population("fair to good"), 5000, 600, source())
    assert power == pytest.approx(0.8, abs=0.07)


def test_slow_failures_are_no_evidence() -> None:
    # Counted as they come in, slow failures were a false alarm in twelve of twelve.
    assert sections.early_alarms(12, "failures", source(), asked=40) <= 1 / 12


def test_the_documented_ci_set_up(tmp_path: Path) -> None:
    for count in (1, 2, 4):
        assert sections.ci_alarm(sections.broken(0), sections.broken(count), tmp_path)
    assert not sections.ci_alarm(sections.broken(1), sections.broken(1), tmp_path)
    chance = source()
    noisy = [sections.noisy(0.8, chance) for _ in range(2)]
    assert sum(sections.ci_alarm(*noisy, tmp_path) for _ in range(12)) <= 2
