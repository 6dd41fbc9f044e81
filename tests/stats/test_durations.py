import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.stats.intervals import MAX_EXACT, Durations, percentiles


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_percentile_is_numpys(values: list[float], percent: float) -> None:
    expected = float(np.percentile(values, percent))
    assert percentiles(values, [percent]) == pytest.approx([expected], rel=1e-9, abs=1e-9)


def test_several_percentiles_at_once() -> None:
    assert percentiles([3, 1, 2]) == pytest.approx([2, 2.8, 2.9, 2.98])
    assert percentiles([]) == []


@pytest.mark.parametrize("sizes", [(MAX_EXACT + 1,), (49_000, 2000, 1500, 3), (30_000, 30_000), (5000,) * 13])
def test_many_merge_in_any_order(sizes: tuple[int, ...]) -> None:
    drawn = np.random.default_rng(3).lognormal(5, 1, sum(sizes)).round(2)
    parts = np.split(drawn, np.cumsum(sizes)[:-1])
    found = []
    for order in (parts, parts[::-1]):
        # Added up part by part, and once more into a whole, as the slices of a summary are.
        slice_of_log, whole = Durations(), Durations()
        for part in order:
            taken = Durations()
            taken.extend(part.tolist())
            slice_of_log.merge(taken)
        whole.merge(slice_of_log)
        whole.merge(Durations())
        found.append((whole.count, whole.mean, whole.longest, whole.percentiles((50, 99))))
    assert found[0] == found[1]
    count, mean, longest, shown = found[0]
    assert (count, longest) == (len(drawn), drawn.max())
    assert mean == pytest.approx(drawn.mean(), rel=1e-9)
    assert shown == pytest.approx(np.percentile(drawn, (50, 99)), rel=0.0011)
