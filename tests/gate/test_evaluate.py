from typing import Any

import pytest

from answerkey.errors import UnknownNameError, UsageError
from answerkey.gates import check_gates, evaluate_gates, parse_gate
from answerkey.model.options import Scoring
from answerkey.scorers.plan import make_grader

DOCUMENT: dict[str, Any] = {
    "summary": {
        "score": 0.4 + 0.3 + 0.2,
        "grade": "A",
        "interval": {"low": 0.81, "high": 0.95, "level": 0.95},
        "components": {"tool_usage": 0.93, "response_quality": None},
        "coverage": 1.0,
        "errors": {"timeout": 2},
        "error_rate": 0.02,
        "latency_ms": {"mean": 900.0, "p95": 2900.0, "max": 4000.0},
        "usage": {"cost": 0.12},
        "metrics": {"groundedness": 0.7, "score": 0.1},
    },
    "categories": [
        {"category": "Tax", "score": 0.95, "components": {"tool_usage": 1.0}},
        {"category": "Rent", "score": 0.65, "components": {"tool_usage": 0.5}},
    ],
    "slices": {"persona": [{"name": "owner", "score": 0.8}]},
}
COMPARISON: dict[str, Any] = {
    "verdict": "no clear difference",
    "difference": {"mean": -0.03, "low": -0.08, "high": 0.02, "p_value": 0.2},
    "components": {
        "tool_usage": {"mean": -0.2, "low": -0.3, "high": -0.1, "p_value": 0.001, "verdict": "worse"}
    },
    "fixed": 1,
    "broken": 2,
    "new_errors": {"timeout": 2},
}


@pytest.mark.parametrize(
    ("gate", "passed", "value"),
    [
        ("score >= 0.9", True, pytest.approx(0.9)),
        ("score < 0.9", False, pytest.approx(0.9)),
        ("score_low >= 0.85", False, 0.81),
        ("grade >= B", True, "A"),
        ("tool_usage >= 0.90", True, 0.93),
        ("response_quality >= 0", False, None),
        ("error_rate < 0.02", False, 0.02),
        ("errors.timeout <= 2", True, 2),
        ("errors.memory == 0", True, 0),
        ("p95_latency_ms < 3000", True, 2900.0),
        ("p50_latency_ms < 3000", False, None),
        ("coverage == 1", True, 1.0),
        ("cost <= 0.15", True, 0.12),
        ("groundedness >= 0.6", True, 0.7),
        ("every category >= 0.70", False, {"Rent": 0.65}),
        ("every category >= 0.60", True, {"Rent": 0.65}),
        ("every category tool_usage >= 0.6", False, {"Rent": 0.5}),
        ('category "Tax" >= 0.9', True, {"Tax": 0.95}),
        ("every persona > 0.5", True, {"owner": 0.8}),
        ("no regression", True, "no clear difference"),
        ("no regression in tool_usage", False, "worse"),
        ("difference > -0.02", False, -0.03),
        ("difference_low > -0.1", True, -0.08),
        ("difference.tool_usage > -0.3", True, -0.2),
        ("broken == 0", False, 2),
        ("new_errors == 0", False, 2),
    ],
)
def test_gates(gate: str, passed: bool, value: Any) -> None:
    (result,) = evaluate_gates([parse_gate(gate)], DOCUMENT, COMPARISON)
    assert (result.gate, result.passed, result.value) == (gate, passed, value)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="unknown name 'tool_use'; did you mean tool_usage"):
        evaluate_gates([parse_gate("tool_use >= 1")], DOCUMENT)
    with pytest.raises(UnknownNameError, match=r"did you mean errors\.memory"):
        evaluate_gates([parse_gate("errors.memroy == 0")], DOCUMENT)
    with pytest.raises(UnknownNameError, match="no category is called 'Taxes'; there are: Rent, Tax"):
        evaluate_gates([parse_gate('category "Taxes" >= 1')], DOCUMENT)
    with pytest.raises(UnknownNameError, match="unknown name 'speed'"):
        evaluate_gates([parse_gate("no regression in speed")], DOCUMENT, COMPARISON)


def test_a_gate_on_a_comparison_without_one() -> None:
    with pytest.raises(UsageError, match="--baseline"):
        evaluate_gates([parse_gate("no regression")], DOCUMENT)


def test_every_slice_of_none_does_not_pass() -> None:
    (result,) = evaluate_gates([parse_gate("every tag >= 0.1")], DOCUMENT)
    assert not result.passed


PARTLY: dict[str, Any] = {"summary": {**DOCUMENT["summary"], "coverage": 0.875}, "categories": []}


def test_a_run_that_was_not_scored_in_full_passes_no_gate_on_a_number() -> None:
    score, rate = evaluate_gates([parse_gate(gate) for gate in ["score >= 0.5", "error_rate < 0.5"]], PARTLY)
    assert (score.passed, score.value) == (False, pytest.approx(0.9))
    assert score.reason == "coverage is 87.5%; allow that with a gate such as coverage >= 0.87"
    assert not rate.passed
    (compared,) = evaluate_gates([parse_gate(gate) for gate in ["no regression"]], PARTLY, COMPARISON)
    assert not compared.passed


def test_what_the_baseline_lacks_is_not_compared_and_passes_no_gate_on_a_comparison() -> None:
    lacking = {**COMPARISON, "unpaired": [{"id": "q1", "reason": "not scored"}]}
    gates = [parse_gate(gate) for gate in ("no regression", "score >= 0.5")]
    compared, score = evaluate_gates(gates, DOCUMENT, lacking)
    assert not compared.passed
    assert compared.reason.startswith("the baseline has no score of 1 questions")
    assert score.passed


def test_a_missing_number_says_why() -> None:
    silent = {"summary": {**DOCUMENT["summary"], "score": None, "coverage": 0.0}, "categories": []}
    (result,) = evaluate_gates([parse_gate("score >= 0.5")], silent)
    assert result.reason.startswith("coverage is 0.0%")


def test_a_coverage_below_the_whole_never_reads_as_the_whole() -> None:
    nearly = {"summary": {**DOCUMENT["summary"], "coverage": 0.99996}, "categories": []}
    (result,) = evaluate_gates([parse_gate("score >= 0.5")], nearly)
    assert result.reason.startswith("coverage is 99.9%")


def test_a_gate_on_the_coverage_allows_it() -> None:
    results = evaluate_gates([parse_gate(gate) for gate in ["score >= 0.5", "coverage >= 0.8"]], PARTLY)
    assert [result.passed for result in results] == [True, True]
    results = evaluate_gates([parse_gate(gate) for gate in ["score >= 0.5", "coverage >= 0.9"]], PARTLY)
    assert [result.passed for result in results] == [False, False]


def test_gates_are_checked_against_the_names_that_the_scorers_give() -> None:
    grader = make_grader(Scoring(retrieval=("P@5",)))
    known = ["score >= 0.9", "tool_f1 > 0", "P@5 > 0", "duplicate_sources == 0", "errors.timeout == 0"]
    more = ["components.tool_usage > 0", "metrics.tool_f1 > 0", "usage.cost < 1", "total_tokens < 9"]
    more += ["judge.reliable == 1", "grades.F == 0", "p99_latency_ms < 9", 'category "Tax" checks >= 1']
    assert len(check_gates([*known, *more], grader.directions)) == 13
    for unknown in (
        "P@10 > 0",
        "polite >= 1",
        "tool_use > 0",
        "components.tool_use > 0",
        "errors.memroy == 0",
    ):
        with pytest.raises(UnknownNameError, match="unknown name"):
            check_gates([unknown], grader.directions)


@pytest.mark.parametrize("gate", ["groundedness >= 0.9", "metrics.groundedness > 0"])
def test_a_gate_on_groundedness_needs_somebody_who_judges(gate: str) -> None:
    with pytest.raises(
        UsageError, match=r"only from a judge or an entailment model; name one with --judge MODEL"
    ):
        check_gates([gate], make_grader(Scoring()).directions)
    with pytest.raises(UsageError, match=r"\[grounded\] links = true"):
        check_gates(["linked > 0.5"], make_grader(Scoring()).directions)
    assert check_gates([gate], {"groundedness": "higher"})
