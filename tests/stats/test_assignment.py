import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from answerkey.scorers.components import cheapest_assignment

# Ties, which credits are full of, and costs that have none.
COSTS = st.one_of(
    st.integers(0, 3).map(float), st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0]), st.floats(-1e6, 1e6)
)
MATRICES = st.tuples(st.integers(1, 7), st.integers(1, 7)).flatmap(
    lambda shape: st.lists(
        st.lists(COSTS, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    )
)


@given(MATRICES)
def test_the_total_is_scipys_and_nothing_is_assigned_twice(costs: list[list[float]]) -> None:
    pairs = cheapest_assignment(costs)
    rows, columns = zip(*pairs, strict=True)
    assert len(pairs) == len(set(rows)) == len(set(columns)) == min(len(costs), len(costs[0]))
    best = np.array(costs)[linear_sum_assignment(costs)].sum()
    assert sum(costs[row][column] for row, column in pairs) == pytest.approx(best, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("shape", [(60, 60), (20, 90), (90, 20)])
def test_larger_matrices_too(shape: tuple[int, int]) -> None:
    costs = np.random.default_rng(7).random(shape)
    expected = sorted(zip(*(side.tolist() for side in linear_sum_assignment(costs)), strict=True))
    assert cheapest_assignment(costs.tolist()) == expected


def test_the_cheapest_first_is_not_always_the_cheapest_together() -> None:
    assert cheapest_assignment([[1.0, 2.0], [1.0, 9.0]]) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("costs", [[], [[]], [[], []]])
def test_nothing_can_be_assigned_to_nothing(costs: list[list[float]]) -> None:
    assert cheapest_assignment(costs) == []
