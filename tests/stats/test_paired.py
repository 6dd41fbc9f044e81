import random

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests

from answerkey.stats import paired
from answerkey.stats.paired import holm, paired_difference, verdict_of
from answerkey.stats.signflip import sign_flip_p_value


def test_of_symmetric_differences_without_ties_the_interval_is_the_paired_t_interval() -> None:
    source = random.Random(1)
    half = [source.uniform(0.01, 0.3) for _ in range(20)]
    differences = [0.05 + size for size in half] + [0.05 - size for size in half]
    for bound in (1.0, None):
        found = paired_difference(differences, bound=bound)
        assert found is not None
        low, high = stats.t.interval(0.95, 39, loc=np.mean(differences), scale=stats.sem(differences))
        assert (found.low, found.high) == pytest.approx((min(low, 0.0), high), abs=1e-9)
        assert found.effect_size == pytest.approx(np.mean(differences) / np.std(differences, ddof=1))


def test_the_interval_of_skewed_differences_holds_what_the_corrected_t_does_not_reject() -> None:
    differences = [0.8, 0.4, 0.4, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, -0.05, -0.1, 0.3, 0.6]
    found = paired_difference(differences)
    assert found is not None
    n, error, skewness = len(differences), stats.sem(differences), stats.skew(differences)

    def corrected(mean: float, share: float) -> float:
        """Hall (1992), with a share of the skewness."""
        t, g = (np.mean(differences) - mean) / error, share * skewness / np.sqrt(n)
        return float(t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6)

    critical = stats.t.ppf(0.975, n - 1)
    # Four tenths where it narrows the interval, seven where it widens it.
    assert found.low == pytest.approx(optimize.brentq(lambda m: corrected(m, 0.4) - critical, -0.5, 0.5))
    assert found.high == pytest.approx(optimize.brentq(lambda m: corrected(m, 0.7) + critical, 0.0, 1.5))
    # It reaches further to the side of the large changes.
    assert found.high - found.mean > 1.2 * (found.mean - found.low)
    assert found.p_value == pytest.approx(
        max(2 * stats.t.sf(abs(corrected(0.0, 0.4)), n - 1), sign_flip_p_value(differences)[0] or 0.0)
    )
    assert verdict_of(found) == "better"


def test_few_changes_leave_room_for_those_not_seen() -> None:
    """Nothing changed among fifteen: about the Wilson interval of none among fifteen."""
    for n, room in ((15, 0.18), (50, 0.055), (200, 0.0135)):
        found = paired_difference([0.0] * n)
        assert found is not None
        assert found.high == -found.low == pytest.approx(room, rel=0.05)
        seen = paired_difference([0.4] * 3 + [0.0] * (n - 3))
        assert seen is not None
        assert seen.high < found.high + 0.4


def test_changes_of_many_sizes_leave_less_room_towards_zero_than_changes_of_one_size() -> None:
    """Both have the mean, and nearly the error, of the other; only the varied ones show how far changes reach."""
    even = paired_difference([0.1] * 7 + [0.0] * 8)
    varied = paired_difference([0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25] + [0.0] * 8)
    assert even is not None
    assert varied is not None
    assert even.mean == pytest.approx(varied.mean)
    assert even.seen_error < varied.seen_error
    # Room is left for a loss of a whole point: not enough is known to call the first an improvement.
    assert even.p_value is not None
    assert varied.p_value is not None
    assert varied.p_value < 0.05 < even.p_value
    # Away from zero both leave it.
    mirrored = paired_difference([-0.1] * 7 + [0.0] * 8)
    assert mirrored is not None
    assert (mirrored.low, mirrored.high, mirrored.p_value) == pytest.approx(
        (-even.high, -even.low, even.p_value)
    )


@pytest.mark.parametrize("clustered", [False, True])
def test_many_differences_are_reckoned_as_few_are(clustered: bool) -> None:
    source = random.Random(3)
    differences = [source.choice([0.0, 0.0, 0.0, 0.4, 0.2, -0.1, -0.25]) for _ in range(2500)]
    names = [source.randrange(900) for _ in differences] if clustered else None
    many = paired_difference(differences, clusters=names)
    assert many == paired_difference(np.array(differences), clusters=names)
    saved = paired._MANY
    try:
        paired._MANY = 10**9
        few = paired_difference(differences, clusters=names)
    finally:
        paired._MANY = saved
    assert many is not None
    assert few is not None
    for name in ("mean", "low", "high", "p_value", "deviation", "seen_error", "error", "effect_size"):
        assert getattr(many, name) == pytest.approx(getattr(few, name), rel=1e-9, abs=1e-12)
    assert (many.changed, many.clusters, many.method) == (few.changed, few.clusters, few.method)


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
    # Within two standard errors of 3 to 6% and of 93 to 97%; the full table is benchmarks/statistics.
    assert 0.02 <= alarms / trials <= 0.074
    assert 0.915 <= held / trials <= 0.98


def test_holm_is_that_of_statsmodels() -> None:
    p_values = [0.012, 0.4, 0.0004, 0.03, 0.03, 0.9]
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


def test_missing_tests_are_not_counted() -> None:
    assert holm([0.03, None]) == [0.03, None]
    assert holm([]) == []
