import itertools
import random
from collections import Counter

import pytest
from scipy import stats

from answerkey.stats.signflip import _convolved, _saddlepoint, sign_flip_p_value


def by_hand(differences: list[float]) -> float:
    seen = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    beyond = sum(value > seen + 1e-8 for value in sums)
    equal = sum(abs(value - seen) <= 1e-8 for value in sums)
    return (beyond + equal / 2) / len(sums)


@pytest.mark.parametrize("seed", range(8))
def test_small_samples_are_enumerated(seed: int) -> None:
    source = random.Random(seed)
    differences = [round(source.choice([0, 0.4, -0.4, 0.2, 0.133333333, -0.08]), 9) for _ in range(10)]
    found, method = sign_flip_p_value(differences)
    assert found == pytest.approx(by_hand(differences), abs=1e-12)
    assert method == "sign-flip, exact"


def test_scipys_permutation_test_agrees() -> None:
    differences = [
        0.3141,
        -0.1272,
        0.2718,
        0.0577,
        0.4669,
        -0.0201,
        0.1803,
        0.0915,
        0.2103,
        -0.3303,
        0.4142,
        0.1101,
    ]
    reference = stats.permutation_test(
        (differences, [0.0] * 12), lambda a, b: sum(a) - sum(b), permutation_type="samples", n_resamples=5000
    )
    found, _ = sign_flip_p_value(differences)
    # SciPy's is the plain p-value: it counts the sum that was seen, and its mirror image, in full.
    assert found == pytest.approx(float(reference.pvalue) - 1 / 2**12, abs=1e-12)


@pytest.mark.parametrize("n", [20, 60, 400])
@pytest.mark.parametrize("lean", [0.0, 0.03, 0.1, 0.25])
def test_the_saddlepoint_agrees_with_the_exact_lattice(n: int, lean: float) -> None:
    source = random.Random(f"{n} {lean}")
    differences = [round(source.uniform(-0.5, 0.5) + lean, 3) for _ in range(n)]
    exact = _convolved(*_units(differences), abs(sum(differences)))
    found, method = sign_flip_p_value([d + 1e-6 * source.random() for d in differences])
    assert method == "sign-flip, saddlepoint"
    assert found == pytest.approx(exact, rel=0.03, abs=0.002)


def _units(differences: list[float]) -> tuple[Counter[int], int]:
    return Counter(round(abs(d) * 1000) for d in differences if d), 1000


def test_the_normal_limit_agrees_with_the_saddlepoint() -> None:
    source = random.Random(4)
    differences = [source.uniform(-0.5, 0.52) for _ in range(1000)]
    normal, method = sign_flip_p_value(differences)
    assert method == "sign-flip, normal limit"
    assert normal == pytest.approx(
        _saddlepoint([abs(d) for d in differences], abs(sum(differences))), abs=5e-4
    )


def test_every_sign_alike() -> None:
    found, _ = sign_flip_p_value([0.1 + i * 1.0001e-6 for i in range(30)])
    assert found == pytest.approx(2**-30)


def test_pass_and_fail_is_mcnemars_mid_p() -> None:
    differences = [1.0] * 12 + [-1.0] * 4 + [0.0] * 30
    found, _ = sign_flip_p_value(differences)
    expected = 2 * stats.binom.cdf(4, 16, 0.5) - stats.binom.pmf(4, 16, 0.5)
    assert found == pytest.approx(float(expected), abs=1e-12)


def test_all_ties_give_no_p_value() -> None:
    assert sign_flip_p_value([0.0, 0.0]) == (None, "all ties")
    assert sign_flip_p_value([]) == (None, "all ties")
