"""The sign-flip test and its interval against their definitions, and their monotony on every pattern of fifteen questions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from answerkey.stats import sign_flip
from answerkey.stats.sign_flip import at_most_zero, rows_at_most_zero, set_mean_quantile

differences = st.lists(st.integers(-10, 10).map(lambda n: n / 10), min_size=1, max_size=9)


@given(differences)
def test_the_share_is_that_of_all_choices_of_signs(values: list[float]) -> None:
    seen = sum(values)
    totals = [
        sum(sign * abs(v) for sign, v in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    expected = sum((t > seen + 1e-9) + 0.5 * (abs(t - seen) <= 1e-9) for t in totals) / len(totals)
    assert at_most_zero(np.array(values)) == pytest.approx(expected)


@pytest.mark.parametrize(("wins", "losses"), [(12, 4), (14, 6), (40, 22), (700, 640)])
def test_pass_and_fail_is_mcnemars_mid_p(wins: int, losses: int) -> None:
    n = wins + losses
    expected = stats.binom.cdf(losses, n, 0.5) - stats.binom.pmf(losses, n, 0.5) / 2
    values = np.array([1.0] * wins + [-1.0] * losses + [0.0] * 30)
    assert at_most_zero(values) == pytest.approx(float(expected), rel=1e-9)


def test_more_units_than_are_enumerated_are_right_to_a_few_percent() -> None:
    source = np.random.default_rng(4)
    for _ in range(30):
        values = np.round(
            source.choice([0.1, 0.2, 0.25, 0.4, -0.1, -0.3], 15) + source.normal(0, 0.01, 15), 9
        )
        exact = at_most_zero(values)
        near = float(sign_flip._shares(values[None, :], np.ones(15))[0])
        assert near == pytest.approx(exact, rel=0.06, abs=1e-4)


def test_rows_are_judged_as_each_alone() -> None:
    source = np.random.default_rng(5)
    rows = np.round(source.choice([0.0, 0.0, 0.4, -0.2], (20, 60)), 9)
    alone = [rows_at_most_zero(row[None, :])[0] for row in rows]
    assert rows_at_most_zero(rows) == pytest.approx(alone, rel=1e-6)
    # Simulations approximate what a comparison computes exactly.
    for share, row in zip(alone, rows, strict=True):
        assert 0.7 < min(share, 1 - share) / min(at_most_zero(row), 1 - at_most_zero(row)) < 1.5


@given(st.lists(st.integers(-60, 60).filter(bool).map(lambda n: round(n / 60, 9)), min_size=2, max_size=12))
def test_the_convolution_is_the_enumeration(values: list[float]) -> None:
    steps = sign_flip._lattice(np.array(values))
    assert steps is not None
    assert sign_flip._lattice_share(steps) == pytest.approx(at_most_zero(np.array(values)), rel=1e-12)


def test_a_further_gain_weakens_no_verdict_where_enumeration_ends() -> None:
    source = np.random.default_rng(3)
    borderline = 0
    while borderline < 200:
        values = np.round(source.integers(1, 21, 15) * source.choice([1, 1, 1, -1], 15) / 20, 9)
        share = at_most_zero(values)
        if not 0.015 < share < 0.025:
            continue
        borderline += 1
        for gain in (0.001, 0.05, 1.0):
            assert at_most_zero(np.append(values, gain)) <= share


def test_every_gain_more_strengthens_the_verdict_on_all_patterns_of_fifteen_questions() -> None:
    # Each of fifteen questions gains a step of its own or stays as it was.
    steps = np.arange(1, 16) / 100
    share = np.array([at_most_zero(steps * pattern) for pattern in _patterns()])
    places = np.arange(1 << 15)
    for question in range(15):
        without = places[(places >> question) & 1 == 0]
        assert (share[without | 1 << question] <= share[without]).all()


def test_every_loss_that_becomes_a_gain_strengthens_it_too() -> None:
    steps = np.array([0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.15, 0.2, 0.2, 0.2, 0.3, 0.4, 0.4, 0.4, 0.8])
    # The share of a pattern of signs is the share of all patterns whose total is at least as large.
    totals = np.round((2 * _patterns() - 1) @ steps, 9)
    ordered = np.sort(totals)
    above = len(totals) - np.searchsorted(ordered, totals, "right")
    share = (above + len(totals) - np.searchsorted(ordered, totals, "left")) / 2 / len(totals)
    for place in range(0, 1 << 15, 997):
        assert at_most_zero(steps * (2 * _patterns()[place] - 1)) == pytest.approx(share[place])
    places = np.arange(1 << 15)
    for question in range(15):
        without = places[(places >> question) & 1 == 0]
        assert (share[without | 1 << question] <= share[without]).all()


def _patterns() -> "np.typing.NDArray[np.int64]":
    return (np.arange(1 << 15)[:, None] >> np.arange(15)) & 1


@settings(deadline=None)
@given(st.lists(st.integers(-10, 10).map(lambda n: n / 10), min_size=6, max_size=12), st.integers(0, 5))
def test_the_end_of_the_interval_is_where_the_test_turns(values: list[float], raised: int) -> None:
    sums, sizes = np.array(values), np.ones(len(values))
    low = set_mean_quantile(sums, sizes, 0.025)
    assert at_most_zero(np.round(sums - (low + 1e-6), 9)) >= 0.025
    assert at_most_zero(np.round(sums - (low - 1e-6), 9)) < 0.025
    # Monotone as well: a larger difference anywhere never lowers it.
    sums[raised] += 0.3
    assert set_mean_quantile(sums, sizes, 0.025) >= low - 1e-9


def test_enumeration_and_formula_agree_on_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    source = np.random.default_rng(6)
    sums, sizes = source.normal(0.2, 0.3, 15), source.integers(1, 6, 15).astype(float)
    exact = set_mean_quantile(sums, sizes, 0.025)
    monkeypatch.setattr(sign_flip, "_ENUMERATE_TO", 5)
    assert set_mean_quantile(sums, sizes, 0.025) == pytest.approx(exact, abs=0.01)


def test_too_few_units_bound_nothing() -> None:
    assert set_mean_quantile(np.array([0.1] * 4), np.ones(4), 0.025) == -math.inf
    assert set_mean_quantile(np.array([0.1] * 5), np.ones(5), 0.025) == pytest.approx(0.1)
