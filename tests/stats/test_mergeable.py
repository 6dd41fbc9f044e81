"""Figures that merge in any order: moments over units, intervals."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.stats import intervals
from answerkey.stats.intervals import Durations, UnitMoments, mean_interval, percentiles, to_fixed_point

UNITS = st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=2, max_size=20)


@given(UNITS)
def test_moments_give_the_interval_of_the_values(units: list[list[float]]) -> None:
    moments = UnitMoments()
    for unit in units:
        moments.add(sum(map(to_fixed_point, unit)), len(unit), bounded=True)
    values = [value for unit in units for value in unit]
    named = [number for number, unit in enumerate(units) for _ in unit]
    assert moments.mean == pytest.approx(sum(values) / len(values), abs=1e-12)
    expected, found = mean_interval(values, named), moments.interval()
    assert expected is not None
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)


@given(UNITS, st.randoms())
def test_moments_merge_in_any_order_to_the_same(units: list[list[float]], chosen: random.Random) -> None:
    def merged() -> UnitMoments:
        parts = [UnitMoments() for _ in range(3)]
        for unit in units:
            chosen.choice(parts).add(sum(map(to_fixed_point, unit)), len(unit), bounded=True)
        chosen.shuffle(parts)
        total = UnitMoments()
        for part in parts:
            total.merge(part)
        return total

    one, two = merged(), merged()
    assert (one.mean, one.interval()) == (two.mean, two.interval())


def test_few_durations_are_exact_and_many_are_within_a_tenth_of_a_percent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = random.Random(1)
    taken = [chosen.lognormvariate(6, 1) for _ in range(3000)]
    exact = percentiles(taken, (50, 90, 99))
    assert filled(taken).percentiles((50, 90, 99)) == exact
    monkeypatch.setattr(intervals, "MAX_EXACT", 1000)
    one, two = filled(taken[:1500]), filled(taken[1500:])
    one.merge(two)
    other = filled(list(reversed(taken)))
    for found in (one, other):
        assert found.percentiles((50, 90, 99)) == pytest.approx(exact, rel=0.002)
        assert (found.count, found.longest) == (3000, max(taken))
        assert found.mean == pytest.approx(sum(taken) / 3000, rel=1e-9)
    assert one.percentiles((1, 50, 99)) == other.percentiles((1, 50, 99))


def filled(values: list[float]) -> Durations:
    found = Durations()
    for value in values:
        found.add(value)
    return found
