"""The promises of benchmarks/statistics in small, and the rule by which it judges."""

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest
from scipy import stats

from answerkey.stats.paired import paired_difference, verdict_of
from answerkey.stats.signflip import sign_flip_p_value

FOLDER = Path(__file__).parents[2] / "benchmarks" / "calibration"


@pytest.fixture(scope="module")
def bounds() -> ModuleType:
    spec = importlib.util.spec_from_file_location("calibration_bounds", FOLDER / "bounds.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    assert (judge.rows, judge.excused, len(judge.broken)) == (9, 2, 5)


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
