import random

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from answerkey.stats.paired import paired_difference, verdict_of


def test_without_ties_the_interval_is_the_paired_t_interval() -> None:
    source = random.Random(1)
    differences = [source.uniform(-0.2, 0.4) for _ in range(40)]
    found = paired_difference(differences)
    assert found is not None
    low, high = stats.t.interval(0.95, 39, loc=np.mean(differences), scale=stats.sem(differences))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.effect_size == pytest.approx(np.mean(differences) / np.std(differences, ddof=1))
    assert verdict_of(found) == "better"


def test_unbounded_differences_get_the_plain_t_interval() -> None:
    differences = [120.0, -30.0, 80.0, 0.0, 0.0, 15.0]
    found = paired_difference(differences, bound=None)
    low, high = stats.t.interval(0.95, 5, loc=np.mean(differences), scale=stats.sem(differences))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high))


def test_the_clustered_error_is_the_jackknife_of_statsmodels() -> None:
    source = random.Random(5)
    clusters = [source.randrange(12) for _ in range(80)]
    effect = {c: source.uniform(-0.3, 0.3) for c in clusters}
    differences = [round(0.05 + effect[c] + source.uniform(-0.1, 0.1), 9) for c in clusters]
    found = paired_difference(differences, clusters=clusters)
    assert found is not None
    means = [
        np.mean([d for d, c in zip(differences, clusters, strict=True) if c != k]) for k in set(clusters)
    ]
    groups = len(means)
    jackknife = np.sqrt((groups - 1) / groups * sum((m - np.mean(differences)) ** 2 for m in means))
    assert found.error == pytest.approx(jackknife)
    # The sandwich of statsmodels is the same up to the leverage of each cluster.
    fit = sm.OLS(differences, np.ones(80)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert found.error == pytest.approx(float(fit.bse[0]), rel=0.15)
    assert found.clusters == groups


def test_one_big_cluster_cannot_make_a_verdict() -> None:
    found = paired_difference([0.3] * 30, clusters=["template"] * 30)
    assert found is not None
    assert found.p_value is None
    assert verdict_of(found) == "no clear difference"


def test_all_ties_are_no_proof_of_sameness() -> None:
    found = paired_difference([0.0] * 15)
    assert found is not None
    assert found.p_value is None
    assert found.low < -0.05
    assert found.high > 0.05
    assert verdict_of(found) == "no clear difference"


def test_a_single_pair_says_nothing() -> None:
    found = paired_difference([-1.0])
    assert found is not None
    assert found.p_value is None
    assert (found.low, found.high) == (-1.0, 1.0)
    assert verdict_of(found) == "no clear difference"
    assert paired_difference([]) is None


@pytest.mark.parametrize("seed", range(20))
def test_zero_is_outside_the_interval_only_if_the_test_excludes_it(seed: int) -> None:
    source = random.Random(seed)
    differences = [source.choice([0, 0, 0, 0.4, 0.2, -0.1]) for _ in range(15)]
    found = paired_difference(differences)
    assert found is not None
    assert found.low <= found.mean <= found.high
    if found.p_value is None or found.p_value >= 0.05:
        assert found.low <= 0.0 <= found.high


def test_lower_is_better_for_latency() -> None:
    found = paired_difference([-100.0 + i for i in range(20)], bound=None)
    assert found is not None
    assert verdict_of(found, higher_is_better=False) == "better"


@pytest.mark.parametrize("n", [15, 50])
def test_error_rate_of_two_equal_chatbots(n: int) -> None:
    """Two chatbots of the same quality on questions of differing difficulty; the full table: benchmarks/statistics."""
    source = random.Random(7)
    trials, alarms, held = 1200, 0, 0
    for _ in range(trials):
        differences = []
        for _ in range(n):
            ease = source.betavariate(4, 1.5)
            scores = [
                0.4 * (source.random() < ease) + 0.4 * sum(source.random() < ease for _ in range(4)) / 4
                for _ in "ab"
            ]
            differences.append(round(scores[0] - scores[1], 9))
        found = paired_difference(differences)
        assert found is not None
        alarms += found.p_value is not None and found.p_value < 0.05
        held += found.low <= 0.0 <= found.high
    assert 0.025 <= alarms / trials <= 0.07
    assert held / trials >= 0.93
