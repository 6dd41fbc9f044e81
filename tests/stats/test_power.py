import random

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from answerkey.stats.paired import paired_difference, verdict_of
from answerkey.stats.sign_flip import Pilot, split_variance, units_for_same


def test_dense_differences_have_the_power_of_the_t_test() -> None:
    pilot = Pilot(np.random.default_rng(1).normal(0.0, 0.25, 4000), np.ones(4000))
    for units, shift in ((100, 0.05), (3000, 0.015)):
        expected = float(TTestPower().power(shift / 0.25, units, 0.05))
        assert pilot.power(units, shift) == pytest.approx(expected, abs=0.06)


def test_the_needed_units_show_the_difference_as_often_as_said() -> None:
    pilot = Pilot(np.array([0.4] * 10 + [-0.2] * 10 + [0.0] * 80), np.ones(100))
    units = pilot.units_needed(0.05, 0.8)
    assert units is not None
    assert pilot.power(units, 0.05) == pytest.approx(0.8, abs=0.06)
    assert pilot.detectable(units, 0.8) == pytest.approx(0.05, abs=0.01)
    low, high = pilot.spread(0.05)
    assert low < 1.0 < high


def test_changes_as_in_the_pilot_need_more_units_than_changes_one_way() -> None:
    """A pilot that only lost: 30% of the questions fell by 0.85. The review of this found 98 and about 700 units."""
    losses = np.array([-0.85] * 30 + [0.0] * 70)
    one_way = Pilot(losses, np.ones(100)).units_needed(0.05, 0.8)
    both_ways = Pilot(losses, np.ones(100), both_ways=True).units_needed(0.05, 0.8)
    assert one_way is not None
    assert both_ways is not None
    assert one_way < 150 < 500 < both_ways < 900
    # As stated: as many questions change, and by as much, with a mean of 5 points.
    source, significant = np.random.default_rng(1), 0
    for _ in range(200):
        changed = source.random(both_ways) < 0.3
        signs = np.where(source.random(both_ways) < (1 + 0.05 / 0.255) / 2, 1.0, -1.0)
        significant += (
            verdict_of(paired_difference(np.where(changed, 0.85 * signs, 0.0))) != "no clear difference"
        )
    assert significant / 200 == pytest.approx(0.8, abs=0.09)


def test_the_verdict_same_needs_more_units_the_smaller_the_margin() -> None:
    pilot = Pilot(np.array([0.1, -0.1] * 10 + [0.0] * 80), np.ones(100))
    least = [units_for_same(pilot, margin, 0.8)[0] for margin in (0.01, 0.02, 0.03, 0.05)]
    assert least == [224, 117, 80, 50]
    planned = units_for_same(pilot, 0.02, 0.8)[1]
    assert planned is not None
    source = np.random.default_rng(2)
    same = sum(
        verdict_of(paired_difference(source.choice(pilot.sums, planned)), margin=0.02) == "same"
        for _ in range(200)
    )
    assert same / 200 > 0.7


def test_units_of_questions_that_go_together_need_more_questions() -> None:
    values = np.random.default_rng(2).normal(0.0, 0.2, 200)
    alone = Pilot(values, np.ones(200)).units_needed(0.05, 0.8)
    fives = Pilot(values * 5, np.full(200, 5.0)).units_needed(0.05, 0.8)
    assert alone is not None
    # As many units, and so five times the questions.
    assert fives == pytest.approx(alone, rel=0.15)


def test_a_pilot_without_changes_does_not_promise_much() -> None:
    pilot = Pilot(np.zeros(50), np.ones(50))
    needed = pilot.units_needed(0.05, 0.8)
    assert needed is not None
    assert needed > 40
    assert pilot.power(1, 0.5) == 0.0
    assert pilot.detectable(3, 0.8) is None
    low, high = pilot.spread(0.05)
    assert low == 1.0
    assert 1.0 < high < 3.0


def test_a_pilot_in_which_everything_changed_plans_small_differences_too() -> None:
    # No weighting of changes of 0.4 has a mean of 0.05, and five questions do not show that.
    needed = Pilot(np.full(20, 0.4), np.ones(20)).units_needed(0.05, 0.8)
    assert needed is not None
    assert 40 < needed < 80


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
