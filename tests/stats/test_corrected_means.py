import numpy as np
import pytest
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

from answerkey.stats.paired import (
    Corrected,
    JudgedSample,
    labels_needed,
    prediction_powered_difference,
    prediction_powered_mean,
    rogan_gladen_rate,
)


def sample(human: object, judged: object, rest: object) -> JudgedSample:
    """Replies that are each a unit of its own."""
    human, judged, rest = list(human), list(judged), list(rest)  # type: ignore[call-overload]
    return JudgedSample(human, judged, range(len(human)), rest, range(len(human), len(human) + len(rest)))


def powered_mean(human: object, judged: object, rest: object, **how: bool) -> Corrected | None:
    return prediction_powered_mean(sample(human, judged, rest), **how)


def drawn(
    rng: np.random.Generator, n: int, rate: float, sensitivity: float, specificity: float
) -> tuple[np.ndarray, np.ndarray]:
    """Truth, and what a judge with these error rates makes of it."""
    truth = (rng.random(n) < rate).astype(float)
    passes = np.where(truth == 1, rng.random(n) < sensitivity, rng.random(n) >= specificity)
    return truth, passes.astype(float)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", [(20, 100), (60, 60), (100, 2000)])
def test_without_the_small_sample_care_it_is_ppi_python(seed: int, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    human, judged = drawn(rng, sizes[0], 0.7, 0.9, 0.7)
    _, unlabelled = drawn(rng, sizes[1], 0.7, 0.9, 0.7)
    found = powered_mean(human, judged, unlabelled, small_sample=False)
    assert found is not None
    point = ppi_mean_pointestimate(human, judged, unlabelled)
    low, high = ppi_mean_ci(human, judged, unlabelled, alpha=0.05)
    assert found.value == pytest.approx(float(np.ravel(point)[0]), abs=1e-12)
    assert found.interval.low == pytest.approx(float(np.ravel(low)[0]), abs=1e-9)
    assert found.interval.high == pytest.approx(float(np.ravel(high)[0]), abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "sensitivity", "specificity"), [(0.8, 0.95, 0.5), (0.5, 0.8, 0.8), (0.9, 0.99, 0.9)]
)
def test_both_corrections_cover_the_truth_where_the_judge_is_biased(
    rate: float, sensitivity: float, specificity: float
) -> None:
    rng = np.random.default_rng(1)
    trials, n, many = 400, 60, 600
    covered = {"ppi": 0, "rogan": 0, "judge": 0}
    for _ in range(trials):
        human, judged = drawn(rng, n, rate, sensitivity, specificity)
        _, unlabelled = drawn(rng, many, rate, sensitivity, specificity)
        powered = powered_mean(human, judged, unlabelled)
        right, wrong = judged[human == 1], judged[human == 0]
        rogan = rogan_gladen_rate(
            int(judged.sum() + unlabelled.sum()),
            n + many,
            sensitive=int(right.sum()),
            positives=len(right),
            specific=int((1 - wrong).sum()),
            negatives=len(wrong),
        )
        assert powered is not None
        covered["ppi"] += powered.interval.low <= rate <= powered.interval.high
        covered["rogan"] += rogan is None or rogan.interval.low <= rate <= rogan.interval.high
        raw = np.concatenate([judged, unlabelled])
        half = 1.96 * raw.std() / np.sqrt(len(raw))
        covered["judge"] += abs(raw.mean() - rate) <= half
    assert covered["ppi"] >= 0.925 * trials
    assert covered["rogan"] >= 0.925 * trials
    # What it is for: the judge's own rate misses the truth.
    if abs(rate * sensitivity + (1 - rate) * (1 - specificity) - rate) > 0.05:
        assert covered["judge"] < 0.5 * trials


def test_a_good_judge_narrows_the_interval_and_a_useless_one_does_not_hurt() -> None:
    rng = np.random.default_rng(3)
    widths = {}
    for name, accuracy in (("good", 0.97), ("useless", 0.5)):
        human, judged = drawn(rng, 80, 0.6, accuracy, accuracy)
        _, unlabelled = drawn(rng, 3000, 0.6, accuracy, accuracy)
        found = powered_mean(human, judged, unlabelled)
        assert found is not None
        widths[name] = found.interval.high - found.interval.low
    alone = 2 * 1.99 * np.sqrt(0.6 * 0.4 / 80)
    assert widths["good"] < 0.6 * alone
    assert widths["useless"] < 1.1 * alone


def test_rogan_and_gladen_by_hand() -> None:
    found = rogan_gladen_rate(60, 100, sensitive=90, positives=100, specific=80, negatives=100)
    assert found is not None
    assert found.value == pytest.approx((0.6 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert found.interval.low < found.value < found.interval.high


def test_a_judge_at_chance_corrects_nothing() -> None:
    assert rogan_gladen_rate(50, 100, sensitive=5, positives=10, specific=5, negatives=10) is None
    assert rogan_gladen_rate(50, 100, sensitive=5, positives=10, specific=0, negatives=0) is None
    assert powered_mean([1.0], [1.0], [1.0, 0.0]) is None


def test_no_disagreement_among_few_labels_is_no_certainty() -> None:
    found = powered_mean([1.0] * 10 + [0.0] * 5, [1.0] * 10 + [0.0] * 5, [1.0, 0.0] * 500)
    assert found is not None
    assert found.interval.high - found.interval.low > 0.1


@pytest.mark.parametrize(("sensitivity", "specificity"), [(0.95, 0.9), (0.98, 0.6), (0.7, 0.6)])
def test_a_corrected_difference_covers_the_truth_at_its_rate(sensitivity: float, specificity: float) -> None:
    """The short version of `python tools/simulate --only judge`."""
    rng = np.random.default_rng(7)
    trials, held, base, candidate = 400, 0, 0.7, 0.8
    for _ in range(trials):
        luck = rng.random(300)
        other = np.where(rng.random(300) < 0.5, luck, rng.random(300))
        runs = []
        for right in (luck < base, other < candidate):
            passes = (rng.random(300) < np.where(right, sensitivity, 1 - specificity)).astype(float)
            order = rng.permutation(300)
            known, rest = order[:80], order[80:]
            runs.append(
                JudgedSample(
                    right[known].astype(float).tolist(),
                    passes[known].tolist(),
                    known.tolist(),
                    passes[rest].tolist(),
                    rest.tolist(),
                )
            )
        found = prediction_powered_difference(*runs)
        assert found is not None
        held += found.interval.low <= candidate - base <= found.interval.high
    assert 0.925 * trials <= held <= 0.975 * trials


def test_replies_of_one_unit_are_not_counted_as_many() -> None:
    rest = [1.0, 0.0] * 100
    human = [1.0] * 20 + [0.0] * 20
    judged = [1.0] * 15 + [0.0] * 25
    alone = powered_mean(human, judged, rest)
    fives = [number // 5 for number in range(40)]
    grouped = prediction_powered_mean(JudgedSample(human, judged, fives, rest, range(99, 299)))
    assert alone is not None
    assert grouped is not None
    assert grouped.value == alone.value
    assert grouped.interval.high - grouped.interval.low > 1.5 * (alone.interval.high - alone.interval.low)


def test_how_many_labels_are_needed() -> None:
    rng = np.random.default_rng(5)
    human, judged = drawn(rng, 60, 0.7, 0.9, 0.8)
    _, rest = drawn(rng, 2000, 0.7, 0.9, 0.8)
    found = sample(human, judged, rest)
    wide, narrow = labels_needed(found, 0.1), labels_needed(found, 0.05)
    assert wide is not None
    assert narrow is not None
    # Half as wide takes about four times as many.
    assert 3 * wide < narrow < 6 * wide
    assert labels_needed(found, 0.001) is None
