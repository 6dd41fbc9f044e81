"""Every distribution function against SciPy's."""

import math

import pytest
from scipy import special, stats

from answerkey.stats.intervals import (
    beta_cdf,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile,
    t_two_sided,
)

PROBABILITIES = [1e-12, 1e-6, 0.001, 0.0242, 0.025, 0.2, 0.5, 0.8, 0.975, 0.999, 1 - 1e-9]


@pytest.mark.parametrize("p", PROBABILITIES)
def test_normal_quantile(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("x", [-30.0, -8.0, -1.96, 0.0, 0.3, 5.0])
def test_normal_cdf(x: float) -> None:
    assert normal_cdf(x) == pytest.approx(stats.norm.cdf(x), rel=1e-12)


@pytest.mark.parametrize("a", [0.5, 1, 3.25, 9.99, 10, 80, 5e4, 1e6])
@pytest.mark.parametrize("b", [0.5, 1, 7, 10, 300, 4e5])
def test_beta(a: float, b: float) -> None:
    for p in (0.001, 0.025, 0.3, 0.975, 0.9999):
        x = float(special.betaincinv(a, b, p))
        if 0 < x < 1:
            assert beta_cdf(x, a, b) == pytest.approx(float(special.betainc(a, b, x)), rel=1e-8, abs=1e-11)


@pytest.mark.parametrize("df", [1, 2, 3, 4.7, 14, 49, 199, 999, 1e5, 1e8, 1e12])
@pytest.mark.parametrize("p", [1e-9, 0.0005, 0.025, 0.4, 0.5, 0.6, 0.95, 0.975, 0.9995])
def test_t(df: float, p: float) -> None:
    x = float(stats.t.ppf(p, df))
    assert t_quantile(p, df) == pytest.approx(x, rel=1e-8, abs=1e-12)
    assert t_cdf(x, df) == pytest.approx(float(stats.t.cdf(x, df)), rel=1e-8)
    assert t_two_sided(x, df) == pytest.approx(float(2 * stats.t.sf(abs(x), df)), rel=1e-8)


def test_impossible_arguments_are_not_numbers() -> None:
    assert math.isnan(normal_quantile(1.5))
    assert math.isnan(t_quantile(-0.1, 4))
