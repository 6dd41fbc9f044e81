import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.stats.durations import percentiles


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_percentile_is_numpys(values: list[float], percent: float) -> None:
    expected = float(np.percentile(values, percent))
    assert percentiles(values, [percent]) == pytest.approx([expected], rel=1e-9, abs=1e-9)


def test_several_percentiles_at_once() -> None:
    assert percentiles([3, 1, 2]) == pytest.approx([2, 2.8, 2.9, 2.98])
    assert percentiles([]) == []
