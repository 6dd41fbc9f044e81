import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from answerkey.stats.intervals import mcnemar_p_value, newcombe_interval


@pytest.mark.parametrize(("fixed", "broken"), [(1, 0), (5, 0), (7, 3), (4, 4), (60, 41), (0, 12)])
def test_mcnemar_is_the_mid_p_value_of_statsmodels_exact_test(fixed: int, broken: int) -> None:
    reference = mcnemar([[50, broken], [fixed, 20]], exact=True).pvalue
    mid = mcnemar_p_value(fixed, broken)
    assert mid is not None
    pmf = float(stats.binom.pmf(min(fixed, broken), fixed + broken, 0.5))
    assert mid == pytest.approx(min(1.0, float(reference) - (0 if fixed == broken else pmf)), abs=1e-12)


def test_without_flips_there_is_no_p_value() -> None:
    assert mcnemar_p_value(0, 0) is None


def test_newcombes_own_example() -> None:
    """Newcombe 1998, "Improved confidence intervals … paired data", method 10, counts 36, 12, 2, 0."""
    found = newcombe_interval(both=36, fixed=12, broken=2, neither=0)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.0569, 0.3404), abs=5e-5)


def test_no_flips_is_not_certainty() -> None:
    found = newcombe_interval(both=15, fixed=0, broken=0, neither=0)
    assert found is not None
    assert found.low < -0.1
    assert found.high > 0.1
    assert newcombe_interval(both=0, fixed=0, broken=0, neither=0) is None
