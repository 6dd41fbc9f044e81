import numpy
import pytest
from scipy import stats

from answerkey.stats.paired import correlate


def test_equals_scipys_pearson_with_its_interval():
    generator = numpy.random.default_rng(3)
    first = generator.normal(size=60)
    second = 0.5 * first + generator.normal(size=60)
    ours = correlate(list(first), list(second))
    theirs = stats.pearsonr(first, second)
    interval = theirs.confidence_interval()
    assert (ours.r, ours.low, ours.high) == pytest.approx((theirs.statistic, interval.low, interval.high))


def test_no_correlation_where_a_series_is_constant_or_short():
    assert correlate([1, 1, 1, 1, 1], [1, 2, 3, 4, 5]) is None
    assert correlate([1, 2, 3], [1, 2, 3]) is None
