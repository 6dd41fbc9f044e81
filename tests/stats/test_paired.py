"""The verdict rule: what it says of nested gains, ties, units, margins and of too few questions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerkey.stats.paired import Difference, holm, paired_difference, unseen_rate, verdict_of


def difference(values: list[float], **options: object) -> Difference:
    found = paired_difference(values, **options)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_more_gains_never_weaken_a_verdict() -> None:
    before = difference([0.1] * 5 + [0.0] * 10)
    for gains in range(6, 16):
        found = difference([0.1] * gains + [0.0] * (15 - gains))
        assert verdict_of(found) == "better"
        assert found.p_value is not None
        assert before.p_value is not None
        assert found.p_value <= before.p_value
        assert found.low >= before.low
        before = found


def test_gains_that_are_all_alike_are_not_known_for_sure() -> None:
    found = difference([0.1] * 15)
    assert 0.05 < found.low < 0.1 < found.high < 0.4
    lost = difference([-0.1] * 15)
    assert (lost.low, lost.high) == pytest.approx((-found.high, -found.low))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.integers(-8, 10).map(lambda n: n / 10), min_size=5, max_size=40),
    st.lists(st.integers(0, 4).map(lambda n: n / 10), min_size=40, max_size=40),
)
def test_no_raise_anywhere_weakens_it(values: list[float], raises: list[float]) -> None:
    order = {"worse": 0, "no clear difference": 1, "better": 2}
    more = [min(1.0, round(value + gain, 9)) for value, gain in zip(values, raises, strict=False)]
    assert order[verdict_of(difference(more))] >= order[verdict_of(difference(values))]


@settings(deadline=None, max_examples=150)
@given(st.lists(st.integers(-10, 10).map(lambda n: n / 10), min_size=1, max_size=60))
def test_interval_and_verdict_say_the_same(values: list[float]) -> None:
    found = difference(values)
    clear = verdict_of(found) != "no clear difference"
    assert clear == (not found.low <= 0.0 <= found.high)
    assert -1.0 <= found.low <= found.mean + 1e-9
    assert found.mean - 1e-9 <= found.high <= 1.0
    mirrored = difference([-value for value in values])
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low), abs=1e-7)


def test_a_unit_counts_once_however_many_questions_it_has() -> None:
    values = [0.2] * 28 + [0.2, 0.2]
    assert verdict_of(difference(values)) == "better"
    grouped = difference(values, units=["template"] * 28 + ["x", "y"])
    assert (grouped.units, verdict_of(grouped)) == (3, "no clear difference")
    one = difference([0.3] * 30, units=["template"] * 30)
    assert (one.p_value, one.low, one.high) == (None, -1.0, 1.0)


def test_units_of_one_question_are_the_questions() -> None:
    values = np.round(np.random.default_rng(1).normal(0.05, 0.2, 40), 9).tolist()
    plain, grouped = difference(values), difference(values, units=list(range(40)))
    assert (grouped.low, grouped.high, grouped.p_value) == (plain.low, plain.high, plain.p_value)


def test_what_was_not_drawn_widens_the_interval_away_from_zero() -> None:
    ties = difference([0.0] * 50)
    assert ties.p_value is None
    assert ties.high == pytest.approx(0.05, abs=0.005)
    lost = difference([-0.4] * 6 + [0.0] * 44)
    assert verdict_of(lost) == "worse"
    # Two thirds of the width lie beyond the mean.
    assert lost.mean - lost.low > lost.high - lost.mean > 0


def test_the_same_within_a_declared_margin() -> None:
    ties = difference([0.0] * 200)
    assert verdict_of(ties) == "no clear difference"
    assert verdict_of(ties, margin=0.02) == "same"
    assert verdict_of(difference([0.0] * 20), margin=0.02) == "no clear difference"
    small = difference([0.01] * 150 + [0.0] * 50)
    assert (verdict_of(small), verdict_of(small, margin=0.02)) == ("better", "same")


def test_nothing_is_made_up_of_too_little() -> None:
    assert paired_difference([]) is None
    assert paired_difference([1.0, 2.0, 3.0, 4.0], bound=None) is None
    one = difference([-1.0])
    assert (one.p_value, one.low, one.high, verdict_of(one)) == (None, -1.0, 1.0, "no clear difference")
    assert verdict_of(None) == "no clear difference"


def test_unbounded_differences() -> None:
    found = difference([-100.0 + i for i in range(20)], bound=None)
    assert found.high < 0
    assert verdict_of(found, higher_is_better=False) == "better"


def test_what_so_many_units_cannot_see() -> None:
    assert unseen_rate(48) == pytest.approx(0.06, abs=0.001)
    assert unseen_rate(20) == pytest.approx(0.14, abs=0.001)


def test_holm() -> None:
    assert holm([0.01, None, 0.04, 0.03]) == [0.03, None, 0.06, 0.06]
