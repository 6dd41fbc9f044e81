"""Intervals: reference values, honesty at the edges, simulated coverage."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import answerkey
from answerkey.stats.intervals import Interval, mean_interval, wilson_interval


@pytest.mark.parametrize(
    ("successes", "n"), [(0, 1), (0, 15), (7, 15), (15, 15), (180, 200), (99_000, 100_000)]
)
def test_rates_agree_with_statsmodels(successes: int, n: int) -> None:
    low, high = proportion_confint(successes, n, method="wilson")
    found = wilson_interval(successes, n)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((float(low), float(high)), abs=1e-9)


def test_unbounded_values_get_the_t_interval_of_scipy() -> None:
    values = [120.0, 180.5, 95.2, 410.0, 133.3]
    low, high = stats.t.interval(0.95, 4, loc=sum(values) / 5, scale=stats.sem(values))
    found = mean_interval(values, bounded=False)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


def test_nothing_is_known_without_values() -> None:
    assert mean_interval([]) is None
    assert wilson_interval(0, 0) is None
    assert mean_interval([3.0], bounded=False) is None


def test_fifteen_of_fifteen_is_not_certainty() -> None:
    found = mean_interval([1.0] * 15)
    assert found is not None
    assert found.high == 1.0
    assert 0.70 < found.low < 0.80


def test_one_question_says_almost_nothing() -> None:
    found = mean_interval([0.7])
    assert found is not None
    assert found.low < 0.05
    assert found.high > 0.95


def test_equal_scores_do_not_give_a_point() -> None:
    found = mean_interval([0.6] * 15)
    assert found is not None
    assert found.high - found.low > 0.3


def test_many_scores_far_from_the_bounds_approach_students_t() -> None:
    source = random.Random(3)
    values = [source.betavariate(20, 10) for _ in range(500)]
    ours, plain = mean_interval(values), mean_interval(values, bounded=False)
    assert ours is not None
    assert plain is not None
    assert (ours.low, ours.high) == pytest.approx((plain.low, plain.high), abs=4e-4)


def test_questions_of_one_unit_count_once() -> None:
    values = [1.0, 1.0, 0.4, 0.4, 0.8, 0.8] * 10
    units = [index // 2 for index in range(60)]
    grouped, halved = mean_interval(values, units), mean_interval(values[::2])
    assert grouped is not None
    assert halved is not None
    assert (grouped.low, grouped.high) == pytest.approx((halved.low, halved.high), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_the_interval_stays_within_the_bounds(values: list[float]) -> None:
    found = mean_interval(values)
    assert found is not None
    assert 0.0 <= found.low <= found.high <= 1.0


@pytest.mark.parametrize("rate", [0.6, 0.9, 0.97])
@pytest.mark.parametrize("n", [20, 50])
def test_coverage_on_scores_of_a_good_chatbot(rate: float, n: int) -> None:
    """The composite of a chatbot that fails rarely: mostly 1.0, some 0.6 and 0.8, ties everywhere."""
    source = random.Random(n)

    def score() -> float:
        tool = 1.0 if source.random() < rate else 0.0
        found = sum(source.random() < rate for _ in range(4)) / 4
        return round(0.4 * tool + 0.4 * found + 0.2, 9)

    truth = 0.8 * rate + 0.2
    trials = 1500
    held = 0
    for _ in range(trials):
        found = mean_interval([score() for _ in range(n)])
        assert isinstance(found, Interval)
        held += found.low <= truth <= found.high
    assert 0.92 <= held / trials <= 0.985


def test_a_group_with_most_of_the_questions_is_named() -> None:
    def run(largest: int) -> answerkey.Run:
        questions = [
            {"id": f"q{n}", "question": f"Say {n}?", "expected_keywords": [f"<{n}>"]}
            | ({"group": "tax"} if n < largest else {})
            for n in range(12)
        ]
        return answerkey.evaluate(questions, lambda question: f"<{question[4:-1]}>")

    [warning] = [line for line in run(5).warnings if "one group" in line]
    assert warning.startswith("one group has 5 of 12 questions: intervals are too narrow")
    assert run(5).summary.largest_unit == 5
    assert not any("one group" in line for largest in (1, 4, 12) for line in run(largest).warnings)
