from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from answerkey.stats.paired import Confusion, cohen_kappa, krippendorff_alpha


@pytest.mark.parametrize("cells", [(40, 9, 6, 45), (80, 10, 5, 5), (3, 2, 4, 11), (20, 15, 15, 20)])
def test_kappa_and_its_error_are_statsmodels(cells: tuple[int, int, int, int]) -> None:
    both, judge_only, people_only, neither = cells
    reference = cohens_kappa(np.array([[both, judge_only], [people_only, neither]]))
    found = cohen_kappa(Confusion(*cells))
    assert found is not None
    assert found.value == pytest.approx(reference.kappa, abs=1e-12)
    assert found.standard_error == pytest.approx(reference.std_kappa, abs=1e-12)
    assert found.interval.low == pytest.approx(reference.kappa_low, abs=1e-9)


def test_perfect_agreement_of_few_is_no_proof() -> None:
    few, many = cohen_kappa(Confusion(6, 0, 0, 6)), cohen_kappa(Confusion(600, 0, 0, 600))
    assert few is not None
    assert many is not None
    assert few.value == many.value == 1.0
    assert few.interval.low < 0.6
    assert many.interval.low > 0.99


def test_a_rater_who_always_says_the_same_has_no_kappa() -> None:
    assert cohen_kappa(Confusion(10, 0, 0, 0)) is None
    assert cohen_kappa(Confusion(0, 0, 0, 0)) is None
    assert cohen_kappa(Confusion(8, 2, 0, 0)) is None
    assert cohen_kappa(Confusion(8, 0, 2, 0)) is None


# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": 4 observers, 12 units, some without a grade (C and D).
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
RATINGS = st.integers(1, 6).flatmap(
    lambda items: st.lists(
        st.lists(st.sampled_from([None, 0.1, 0.25, 0.75, 3.0]), min_size=items, max_size=items),
        min_size=2,
        max_size=4,
    )
)


def test_alpha_is_krippendorffs_own() -> None:
    assert krippendorff_alpha(FOUR_OBSERVERS) == pytest.approx(0.849, abs=5e-4)


def alpha_by_definition(ratings: list[list[float | None]]) -> float | None:
    """1 - observed / expected disagreement over all ordered pairs of grades."""
    items = [[grade for grade in item if grade is not None] for item in zip(*ratings, strict=True)]
    items = [item for item in items if len(item) > 1]
    grades = [grade for item in items for grade in item]

    def apart(a: float, b: float) -> float:
        return (a - b) ** 2

    observed = sum(sum(apart(a, b) for a, b in permutations(item, 2)) / (len(item) - 1) for item in items)
    expected = sum(apart(a, b) for a, b in permutations(grades, 2))
    return 1 - (len(grades) - 1) * observed / expected if expected else None


@given(RATINGS)
def test_alpha_is_what_its_definition_says_in_any_order_of_raters_and_items(
    ratings: list[list[float | None]],
) -> None:
    found = krippendorff_alpha(ratings)
    assert found == pytest.approx(alpha_by_definition(ratings), abs=1e-9)
    assert krippendorff_alpha(ratings[::-1]) == pytest.approx(found, abs=1e-12)
    backwards = [row[::-1] for row in ratings]
    assert krippendorff_alpha(backwards) == pytest.approx(found, abs=1e-12)


@example([0.0, 7.969617219333786e-174], 2)
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9, unique=True), st.integers(2, 5))
def test_raters_who_always_agree_have_alpha_one(grades: list[float], raters: int) -> None:
    assert krippendorff_alpha([grades] * raters) == 1.0


@pytest.mark.parametrize(
    "ratings",
    [[], [[], []], [[1.0, 2.0]], [[1.0, None], [None, 2.0]], [[0.1, 0.1, 0.1], [0.1, 0.1, None]]],
    ids=["nobody", "nothing", "one rater", "no item twice", "always the same"],
)
def test_alpha_needs_two_grades_of_an_item_that_vary(ratings: list[list[float | None]]) -> None:
    assert krippendorff_alpha(ratings) is None
