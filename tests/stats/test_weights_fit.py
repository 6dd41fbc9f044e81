import math
import random

import pytest
import statsmodels.api as sm

from answerkey.errors import UsageError
from answerkey.stats.weights_fit import _fit, area_under_curve, fit_weights

STANDARD = {"tool_usage": 0.4, "response_quality": 0.4, "error_handling": 0.2}


def people(n: int, weights: dict[str, float], *, seed: int = 1, scale: float = 8.0):
    """Verdicts of people who weigh components in a given way."""
    source = random.Random(seed)
    rows, verdicts = [], []
    for _ in range(n):
        row = {
            "tool_usage": float(source.random() < 0.7),
            "response_quality": source.choice([0.0, 0.25, 0.5, 0.75, 1.0]),
            "error_handling": float(source.random() < 0.8),
        }
        score = sum(weights[name] * value for name, value in row.items())
        verdicts.append(float(source.random() < 1 / (1 + math.exp(-scale * (score - 0.6)))))
        rows.append(row)
    return rows, verdicts


def test_weights_are_recovered_and_clearly_better() -> None:
    truth = {"tool_usage": 0.1, "response_quality": 0.8, "error_handling": 0.1}
    rows, verdicts = people(1500, truth)
    found = fit_weights(rows, verdicts, STANDARD, clusters=range(len(rows)))
    assert sum(found.fitted.values()) == pytest.approx(1.0, abs=1e-5)
    for name, weight in truth.items():
        assert found.fitted_low[name] - 0.02 <= weight <= found.fitted_high[name] + 0.02
    assert found.verdict == "better"
    assert found.fitted_auc > found.current_auc


def test_people_who_agree_with_the_standard_change_nothing() -> None:
    rows, verdicts = people(400, STANDARD, seed=4)
    found = fit_weights(rows, verdicts, STANDARD, clusters=range(len(rows)))
    assert found.verdict == "no clear difference"


def test_the_fit_is_the_logistic_regression_of_statsmodels() -> None:
    import numpy as np

    rows, verdicts = people(800, {"tool_usage": 0.3, "response_quality": 0.4, "error_handling": 0.3}, seed=2)
    x = np.array([list(row.values()) for row in rows])
    intercept, slopes = _fit(x, np.array(verdicts), steps=5000)
    reference = sm.Logit(verdicts, sm.add_constant(x)).fit(disp=0).params
    assert [intercept, *slopes] == pytest.approx(list(reference), rel=0.1, abs=0.15)


def test_area_under_curve() -> None:
    assert area_under_curve([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]) == pytest.approx(0.75)
    assert area_under_curve([1, 1, 1, 1], [0, 1, 0, 1]) == 0.5
    assert math.isnan(area_under_curve([1, 2], [1, 1]))


def test_a_component_that_never_varies_is_named() -> None:
    rows, verdicts = people(200, STANDARD)
    for row in rows:
        row["error_handling"] = 1.0
    assert fit_weights(rows, verdicts, STANDARD, clusters=range(len(rows))).constant == ("error_handling",)


@pytest.mark.parametrize("n", [0, 1, 19])
def test_too_few_verdicts(n: int) -> None:
    rows, verdicts = people(n, STANDARD)
    with pytest.raises(UsageError, match="too few"):
        fit_weights(rows, verdicts, STANDARD, clusters=range(len(rows)))


def test_one_kind_of_verdict_says_nothing() -> None:
    rows, _ = people(100, STANDARD)
    with pytest.raises(UsageError, match="too few"):
        fit_weights(rows, [1.0] * 100, STANDARD, clusters=range(100))


def test_equal_scores_say_nothing() -> None:
    rows = [dict.fromkeys(STANDARD, 1.0)] * 40
    with pytest.raises(UsageError, match="same component scores"):
        fit_weights(rows, [0.0, 1.0] * 20, STANDARD, clusters=range(40))
