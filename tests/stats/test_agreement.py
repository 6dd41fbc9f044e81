import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from answerkey.stats.agreement import Confusion, cohen_kappa


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


def test_a_constant_label_leaves_kappa_undefined() -> None:
    assert cohen_kappa(Confusion(10, 0, 0, 0)) is None
    assert cohen_kappa(Confusion(0, 0, 0, 0)) is None
    constant_judge = cohen_kappa(Confusion(8, 2, 0, 0))
    assert constant_judge is not None
    assert constant_judge.value == pytest.approx(0.0)
