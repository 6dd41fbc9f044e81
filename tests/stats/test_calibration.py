"""The promises of benchmarks/statistics in small, and the rule by which it judges."""

import importlib.util
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scipy import stats

from answerkey.stats.paired import paired_difference, verdict_of
from answerkey.stats.signflip import sign_flip_p_value

FOLDER = Path(__file__).parents[2] / "benchmarks" / "calibration"


@pytest.fixture(scope="module")
def hidden() -> Iterator[ModuleType]:
    # The modules of the benchmark import each other by name.
    sys.path.insert(0, str(FOLDER))
    yield loaded("hidden")
    sys.path.remove(str(FOLDER))


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"calibration_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bounds() -> ModuleType:
    return loaded("bounds")


@pytest.mark.parametrize("n", [15, 50, 200])
@pytest.mark.parametrize("share", [0.02, 0.07, 0.2, 0.32, 0.5, 1.0])
def test_data_are_too_discrete_where_no_outcome_can_be_significant(
    bounds: ModuleType, n: int, share: float
) -> None:
    # Five changes of one sign have the mid-p value 1/32, four have 1/16.
    assert sign_flip_p_value([0.1] * 5)[0] == pytest.approx(1 / 32)
    assert sign_flip_p_value([0.1] * 4)[0] == pytest.approx(1 / 16)
    assert bounds.too_discrete(n, share) == (stats.binom.cdf(4, n, share) > 0.4)


def test_every_row_is_judged_against_both_bounds(bounds: ModuleType) -> None:
    judge = bounds.Judge()
    assert judge.alarms("as promised", 0.05, 2000, discrete=False) == "pass"
    assert judge.alarms("too many", 0.08, 2000, discrete=False) == "FAIL"
    # Too many are never excused; too few only if the data allow no more.
    assert judge.alarms("too many", 0.08, 2000, discrete=True) == "FAIL"
    assert judge.alarms("too few", 0.01, 2000, discrete=False) == "FAIL"
    assert judge.alarms("too few", 0.01, 2000, discrete=True) == "discrete"
    assert judge.coverage("as promised", 0.95, 2000, discrete=False) == "pass"
    assert judge.coverage("too little", 0.90, 2000, discrete=True) == "FAIL"
    assert judge.coverage("too much", 0.99, 2000, discrete=False) == "FAIL"
    assert judge.coverage("too much", 0.99, 2000, discrete=True) == "discrete"
    assert (judge.rows, judge.discrete, len(judge.hidden), len(judge.broken)) == (9, 2, 0, 5)


def test_what_is_hidden_is_judged_by_what_nothing_can_avoid(bounds: ModuleType) -> None:
    judge = bounds.Judge()

    def alarms(rate: float, bound: float | None, held_back: bool = False) -> str:
        verdict: str = judge.alarms(
            "row", rate, 2000, discrete=False, unavoidable=lambda: bound, held_back=lambda: held_back
        )
        return verdict

    assert alarms(0.05, 0.123) == "pass"
    assert alarms(0.09, 0.123) == "hid 12.3"
    # The bound is a bound: more than that fails, and caution is another matter.
    assert alarms(0.15, 0.123) == "FAIL"
    assert alarms(0.09, None, held_back=True) == "FAIL"
    assert alarms(0.01, 0.123) == "FAIL"
    assert alarms(0.01, None, held_back=True) == "hidden"
    assert judge.coverage("row", 0.90, 2000, discrete=False, unavoidable=lambda: 0.123) == "hid 12.3"
    assert judge.coverage("row", 0.85, 2000, discrete=False, unavoidable=lambda: 0.123) == "FAIL"
    assert (judge.rows, len(judge.hidden), len(judge.broken)) == (8, 3, 4)


def test_a_rare_large_loss_hides_from_fifty_questions_and_not_from_two_hundred(hidden: ModuleType) -> None:
    """Of 50 questions none of the losses is drawn with a chance of 0.95^50 = 7.7%; what is left is a plain gain."""
    lopsided = [0.2] * 200 + [-0.8] * 50 + [0.0] * 750
    bound = hidden.unavoidable(lopsided, 50, 0.0, 0.06, 0.97, random.Random(1))
    missed = 0.95**50
    assert missed * 0.8 + (1 - missed) * 0.05 <= bound <= missed + (1 - missed) * 0.05
    assert hidden.unavoidable(lopsided, 200, 0.0, 0.06, 0.97, random.Random(1)) is None
    # Of fifteen questions too few change for a verdict, so that more caution costs nothing.
    assert hidden.unavoidable(lopsided, 15, 0.0, 0.06, 0.97, random.Random(1)) is None


def test_equal_chatbots_have_nothing_to_hide(hidden: ModuleType) -> None:
    source = random.Random(2)
    sizes = [0.0, 0.0, 0.1, 0.2, 0.4, 0.4, 1.0]
    half = [round(source.choice(sizes) * source.random(), 9) for _ in range(2000)]
    equal = half + [-value for value in half]
    for n in (15, 50):
        assert hidden.unavoidable(equal, n, 0.0, 0.06, 0.97, source) is None
        assert not hidden.holds_back(equal, n, 0.0, 0.06, source)
        assert hidden.widened(equal, n, 0.0, 0.06, source) < 0.97
    # Nor have those of whom few questions change, where Student's own interval holds the truth in 98% of experiments.
    sparse = [0.05] * 50 + [-0.05] * 50 + [0.2] * 100 + [-0.2] * 100 + [0.0] * 700
    assert hidden.widened(sparse, 15, 0.0, 0.06, source) < 0.97


def test_of_populations_drawn_by_chance_few_rows_may_lie_outside(bounds: ModuleType) -> None:
    def judged(outside: int, alarms: float = 0.05) -> Any:
        each, judge = bounds.Judge(), bounds.Judge()
        each.alarms("row", alarms, 2000, discrete=False)
        for number in range(39):
            each.coverage("row", 0.90 if number < outside else 0.95, 2000, discrete=False)
        judge.take(each)
        assert judge.rows == 40
        return judge

    assert (len(judged(2).tolerated), len(judged(2).broken)) == (2, 0)
    assert (len(judged(3).tolerated), len(judged(3).broken)) == (0, 3)
    assert len(judged(0, alarms=0.09).broken) == 1


def test_caution_is_owed_where_a_rare_loss_would_make_a_visible_gain_false(hidden: ModuleType) -> None:
    source = random.Random(3)
    small = [0.1] * 500 + [0.0] * 500
    # Fifteen questions cannot tell it from its twin that is no better on average, a thousand can.
    assert hidden.widened(small, 15, 0.05, 0.06, source) > 0.99
    assert hidden.widened(small, 1000, 0.05, 0.06, source) < 0.97
    assert hidden.holds_back([0.05] * 400 + [-0.4] * 50 + [0.0] * 550, 15, 0.0, 0.06, source)


def test_equal_on_average_in_different_ways_is_not_called_a_difference() -> None:
    """Many small gains, few large losses: the sign-flip test alone is wrong in every sixth experiment."""
    source = random.Random(4)
    population = [0.1] * 300 + [-0.4] * 75 + [0.0] * 625
    trials, ours, alone, held = 1500, 0, 0, 0
    for _ in range(trials):
        differences = source.choices(population, k=15)
        found = paired_difference(differences)
        assert found is not None
        clear = verdict_of(found) != "no clear difference"
        assert clear == (found.p_value is not None and found.p_value < 0.05)
        ours += clear
        held += found.low <= 0.0 <= found.high
        p = sign_flip_p_value(differences)[0]
        alone += p is not None and p < 0.05
    assert ours / trials <= 0.06
    assert held / trials >= 0.93
    assert alone / trials > 0.12
