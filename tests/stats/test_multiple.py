import pytest
from statsmodels.stats.multitest import multipletests

from answerkey.stats.multiple import holm


def test_holm_is_that_of_statsmodels() -> None:
    p_values = [0.012, 0.4, 0.0004, 0.03, 0.03, 0.9]
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


def test_missing_tests_are_not_counted() -> None:
    assert holm([0.03, None]) == [0.03, None]
    assert holm([]) == []
