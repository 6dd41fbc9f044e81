from typing import Any

import pytest
from msgspec.structs import replace

from answerkey.errors import UnknownNameError, UsageError
from answerkey.gates import GateSubject, check_gates, evaluate_gates, parse_gate
from answerkey.model.comparison import Comparison, Measure, QuestionChange, Side, Unpaired
from answerkey.model.options import Scoring
from answerkey.model.run import GateResult, Latency, Run, Slice, Summary
from answerkey.report.wording import gate_words
from answerkey.scorers.grader import make_grader
from answerkey.stats.intervals import Interval
from answerkey.stats.paired import Difference, Verdict
from comparison.made import canary, judge_record, make_run


def _slice(name: str, score: float | None, **changes: Any) -> Slice:
    empty: dict[str, Any] = {
        "questions": 1,
        "trials": 1,
        "replies": 1,
        "grade": None,
        "interval": None,
        "components": {},
        "component_intervals": {},
        "passed": 1,
        "pass_rate": 1.0,
        "grades": {},
        "errors": {},
        "error_rate": 0.0,
        "latency_ms": None,
        "metrics": {},
    }
    return Slice(name=name, score=score, **(empty | changes))


def _measure(name: str, mean: float, low: float, high: float, p_value: float, verdict: Verdict) -> Measure:
    difference = Difference(
        mean=mean,
        low=low,
        high=high,
        level=0.95,
        p_value=p_value,
        method="sign-flip",
        pairs=20,
        changed=5,
        units=20,
        deviation=0.1,
        effect_size=None,
    )
    return Measure(
        name=name,
        base=0.9,
        candidate=0.9 + mean,
        graded=True,
        difference=difference,
        p_adjusted=p_value,
        verdict=verdict,
    )


def _flip(kind: Any, number: int) -> QuestionChange:
    return QuestionChange(
        id=f"{kind}{number}",
        category="Tax",
        kind=kind,
        score_from=0.0,
        score_to=1.0,
        passed_from=kind == "broken",
        passed_to=kind == "fixed",
    )


RUN = make_run({"q1": 0.9})
SUMMARY: Summary = replace(
    RUN.summary,
    score=0.4 + 0.3 + 0.2,
    grade="A",
    interval=Interval(0.81, 0.95),
    components={"tool_usage": 0.93, "response_quality": None},
    coverage=1.0,
    errors={"timeout": 2},
    error_rate=0.02,
    latency_ms=Latency(mean=900.0, p50=800.0, p90=2000.0, p95=2900.0, p99=3500.0, max=4000.0),
    usage={"cost": 0.12},
    metrics={"groundedness": 0.7, "score": 0.1},
    categories=(
        _slice("Tax", 0.95, components={"tool_usage": 1.0}),
        _slice("Rent", 0.65, components={"tool_usage": 0.5}),
    ),
    slices={"persona": (_slice("owner", 0.8),)},
)
SIDE = Side(
    id="b", name="b", target="t", score=0.9, questions=20, repeat=1, pass_rate=1.0, error_rate=0.0, errors={}
)
COMPARISON = Comparison(
    base=SIDE,
    candidate=SIDE,
    paired=20,
    units=20,
    unpaired=(),
    edited=(),
    score=_measure("score", -0.03, -0.08, 0.02, 0.2, "no clear difference"),
    verdict="no clear difference",
    detectable=0.1,
    unseen=0.1,
    reasons=(),
    components=(_measure("tool_usage", -0.2, -0.3, -0.1, 0.001, "worse"),),
    metrics=(),
    categories=(),
    flips=(_flip("fixed", 1), _flip("broken", 1), _flip("broken", 2)),
    pass_rate={},
    latency=None,
    cost=None,
    error_rate=None,
    new_errors={"timeout": 2},
)


def evaluate(*gates: str, comparison: Comparison | None = None, **changes: Any) -> list[GateResult]:
    """Results of gates on the run above, with changes to its summary."""
    run: Run = replace(RUN, summary=replace(SUMMARY, **changes), comparison=comparison)
    return evaluate_gates([parse_gate(gate) for gate in gates], GateSubject.of_run(run))


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
        ("errors == 0", False, 2),
        ("errors <= 2", True, 2),
        ("unscored == 0", True, 0),
        ("harness == 0", True, 0),
        ("errors.memory == 0", True, 0),
        ("p95_latency_ms < 3000", True, 2900.0),
        ("latency_ms.mean_interval.low < 3000", False, None),
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
    (result,) = evaluate(gate, comparison=COMPARISON)
    assert (result.gate, result.passed, result.value) == (gate, passed, value)


@pytest.mark.parametrize(
    ("gate", "finding"),
    [
        ("score_low >= 0.85", "score_low is 0.81"),
        ("response_quality >= 0", "response_quality is unknown"),
        ("every category >= 0.70", "Rent is 0.65"),
        ("no regression in tool_usage", "the verdict is worse"),
    ],
)
def test_a_failed_gate_says_what_it_found(gate: str, finding: str) -> None:
    (result,) = evaluate(gate, comparison=COMPARISON)
    assert result.finding == finding


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="unknown name 'tool_use'; did you mean tool_usage"):
        evaluate("tool_use >= 1")
    with pytest.raises(UnknownNameError, match=r"did you mean errors\.memory"):
        evaluate("errors.memroy == 0")
    with pytest.raises(UnknownNameError, match="there is no category 'Taxes'; did you mean 'Tax'"):
        evaluate('category "Taxes" >= 1')
    with pytest.raises(UnknownNameError, match="unknown name 'speed'"):
        evaluate("no regression in speed", comparison=COMPARISON)


def test_a_gate_on_a_comparison_needs_one() -> None:
    with pytest.raises(UsageError, match="--baseline"):
        evaluate("no regression")


def test_every_slice_fails_if_there_is_none() -> None:
    (result,) = evaluate("every tag >= 0.1")
    assert not result.passed


def test_a_run_that_is_not_fully_scored_fails_every_gate_on_a_number() -> None:
    score, rate = evaluate("score >= 0.5", "error_rate < 0.5", coverage=0.875)
    assert (score.passed, score.value) == (False, pytest.approx(0.9))
    assert score.reason == "coverage is 87.5%; allow that with a gate such as coverage >= 0.87"
    assert not rate.passed
    (compared,) = evaluate("no regression", comparison=COMPARISON, coverage=0.875)
    assert not compared.passed


def test_questions_without_a_score_in_the_baseline_fail_gates_on_the_comparison() -> None:
    lacking = replace(COMPARISON, unpaired=(Unpaired("q1", "not scored"),))
    compared, score = evaluate("no regression", "score >= 0.5", comparison=lacking)
    assert not compared.passed
    assert compared.reason.startswith("1 question has no score in the baseline")
    assert score.passed


def test_an_unreliable_judge_of_the_baseline_fails_gates_on_the_comparison() -> None:
    judge = judge_record(
        reliable=False,
        unreliable_because=("m gave the 'empty' canary 1.00",),
        canaries=(canary(1.0, passed=False),),
        touches={"score": 0},
    )
    judged = replace(COMPARISON, base=replace(SIDE, judge=judge))
    compared, score = evaluate("no regression", "score >= 0.5", comparison=judged)
    assert compared.reason.startswith(
        "the judge of the baseline is not reliable: m gave the 'empty' canary 1.00"
    )
    assert score.passed


def test_a_missing_number_says_why() -> None:
    (result,) = evaluate("score >= 0.5", score=None, coverage=0.0)
    assert result.reason.startswith("coverage is 0.0%")


def test_a_coverage_just_below_one_is_not_shown_as_one() -> None:
    (result,) = evaluate("score >= 0.5", coverage=0.99996)
    assert result.reason.startswith("coverage is 99.9%")


def test_a_gate_on_the_coverage_allows_it() -> None:
    results = evaluate("score >= 0.5", "coverage >= 0.8", coverage=0.875)
    assert [result.passed for result in results] == [True, True]
    results = evaluate("score >= 0.5", "coverage >= 0.9", coverage=0.875)
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
        "judge.relaible == 1",
    ):
        with pytest.raises(UnknownNameError, match="unknown name"):
            check_gates([unknown], grader.directions)


@pytest.mark.parametrize("gate", ["groundedness >= 0.9", "metrics.groundedness > 0"])
def test_a_gate_on_groundedness_needs_a_judge_or_model(gate: str) -> None:
    with pytest.raises(
        UsageError, match=r"needs a judge or an entailment model; name one with --judge MODEL"
    ):
        check_gates([gate], make_grader(Scoring()).directions)
    with pytest.raises(UsageError, match=r"\[grounded\] links = true"):
        check_gates(["linked > 0.5"], make_grader(Scoring()).directions)
    assert check_gates([gate], {"groundedness": "higher"})


def test_a_bound_of_an_interval_is_named_as_one_sided() -> None:
    low, plain = evaluate("score_low >= 0.5", "score >= 0.5")
    assert "the true value is below it with a probability of 2.5%" in gate_words(low)
    assert gate_words(plain) == "score >= 0.5: the value is 0.900"


def test_a_count_is_shown_as_one() -> None:
    subject = GateSubject(numbers={"fabricated": 1, "resilience": 0.5})
    counted, share = evaluate_gates([parse_gate("fabricated == 0"), parse_gate("resilience >= 0.8")], subject)
    assert gate_words(counted) == "fabricated == 0: the value is 1"
    assert gate_words(share) == "resilience >= 0.8: the value is 0.500"


def test_a_gate_without_a_value_says_so() -> None:
    [found] = evaluate_gates([parse_gate("resilience >= 0.8")], GateSubject(numbers={"resilience": None}))
    assert gate_words(found) == "resilience >= 0.8: there is no value"
