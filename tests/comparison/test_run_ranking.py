import random

import msgspec
import pytest

import answerkey
from answerkey.comparison.columns import columns_from_run
from answerkey.comparison.run_ranking import _letters, rank_runs
from answerkey.errors import UsageError
from answerkey.model.judgement import ProbabilityCounts
from comparison.made import canary, judge_record, make_run


def test_runs_are_ranked_and_grouped() -> None:
    source = random.Random(2)
    level = {f"q{i}": source.choice([1.0, 0.8, 0.6]) for i in range(60)}
    worse = {name: round(max(0.0, score - source.choice([0.2, 0.3])), 9) for name, score in level.items()}
    nearly = level | {"q3": 0.5}
    runs = [
        make_run(worse, name="fast", latency_ms=10, cost=0.001),
        make_run(level, name="best", latency_ms=100, cost=0.02),
        make_run(nearly, name="second", latency_ms=200, cost=0.03),
    ]
    found = rank_runs([columns_from_run(run) for run in runs])
    assert [run.name for run in found.runs] == ["best", "second", "fast"]
    assert [run.groups for run in found.runs] == ["a", "a", "b"]
    assert [run.pareto for run in found.runs] == [True, False, True]
    assert found.questions == found.units == 60
    best = found.runs[0]
    assert set(best.measures) >= {"tool_usage", "response_quality", "error_handling"}
    assert best.measures["tool_usage"].interval is not None
    assert [mean.interval is not None for mean in best.categories.values()] == [True]
    assert msgspec.to_builtins(found)["runs"][0]["rank"] == 1


def test_an_unclear_gain_at_a_higher_cost_is_not_on_the_pareto_front() -> None:
    level = {f"q{i}": 0.8 for i in range(40)}
    slightly_better = level | {"q1": 0.9}
    runs = [make_run(level, name="cheap", cost=0.01), make_run(slightly_better, name="dear", cost=0.02)]
    found = answerkey.rank(runs)
    assert [(run.name, run.pareto) for run in found.runs] == [("dear", False), ("cheap", True)]


def test_latency_of_runs_made_at_different_times_does_not_decide_the_pareto_front() -> None:
    level = {f"q{i}": 0.8 for i in range(40)}
    found = answerkey.rank(
        [make_run(level, name="slow", latency_ms=900), make_run(level, name="fast", latency_ms=10)]
    )
    assert [run.pareto for run in found.runs] == [True, True]


def test_only_questions_that_all_runs_have() -> None:
    runs = [make_run({"a": 1.0, "b": 1.0}, name="x"), make_run({"b": 0.5, "c": 1.0}, name="y")]
    found = rank_runs([columns_from_run(run) for run in runs])
    assert (found.questions, found.left_out) == (1, 2)
    with pytest.raises(UsageError, match="no scored question in common"):
        rank_runs([columns_from_run(make_run({q: 1.0}, name=q)) for q in "ab"])


def test_letters_of_overlapping_groups() -> None:
    # 0 and 2 differ, and nothing else: 1 belongs to both groups.
    assert _letters(3, {(0, 1): False, (0, 2): True, (1, 2): False}) == ["a", "ab", "b"]
    assert _letters(3, {(0, 1): True, (0, 2): True, (1, 2): True}) == ["a", "b", "c"]


def test_what_runs_cost_and_what_keeps_them_from_being_comparable() -> None:
    level = {f"q{i}": 0.8 for i in range(10)}
    runs = [
        make_run(level, name="cheap", cost=0.001),
        make_run(level, name="dear", cost=0.004, wording={"q1": "Asked otherwise?"}),
        make_run(level, name="free"),
    ]
    judges = [
        judge_record("one", reliable=False, canaries=(canary(1.0, passed=False),)),
        judge_record("two", reliable=True),
        None,
    ]
    runs = [
        msgspec.structs.replace(run, info=msgspec.structs.replace(run.info, judge=judge))
        for run, judge in zip(runs, judges, strict=True)
    ]
    ranking = answerkey.rank(runs)
    found = {run.name: run for run in ranking.runs}
    per_point = [found[name].cost_per_point for name in found]
    assert [cost and cost.mean for cost in per_point] == [0.00125, 0.005, None]
    assert [cost and cost.mean for cost in (found[name].cost for name in found)] == [0.001, 0.004, None]
    assert [found[name].pareto for name in found] == [True, False, True]
    assert "runs cheap and dear were judged by different models (one and two)" in ranking.notes
    assert any("the judge of run cheap" in note and "failed its canaries" in note for note in ranking.notes)
    assert "1 question was edited between the runs and paired by id" in ranking.notes


def test_what_a_point_costs_has_an_interval_by_the_scores_as_well() -> None:
    uneven = {f"q{i}": 0.5 + 0.5 * (i % 2) for i in range(40)}
    ranking = answerkey.rank([make_run(uneven, name="a", cost=0.003), make_run(uneven, name="b", cost=0.003)])
    cost, per_point = ranking.runs[0].cost, ranking.runs[0].cost_per_point
    assert cost is not None
    assert cost.interval is not None
    assert cost.interval.high - cost.interval.low == pytest.approx(0.0, abs=1e-12)
    assert per_point is not None
    assert per_point.interval is not None
    assert per_point.mean == pytest.approx(0.004)
    # A third of the mean is a score's standard deviation: t · 0.004 · ⅓ ÷ √39 on each side.
    assert per_point.interval.high - per_point.mean == pytest.approx(2.0227 * 0.004 / 3 / 39**0.5, rel=1e-3)


def test_grades_weighed_by_probability_are_compared_with_their_like() -> None:
    def judged(weighed: ProbabilityCounts | None) -> answerkey.Run:
        run = make_run({"a": 1.0, "b": 0.5}, name="weighed" if weighed else "plain")
        judge = judge_record(probabilities=weighed)
        return msgspec.structs.replace(run, info=msgspec.structs.replace(run.info, judge=judge))

    one, two, plain = judged(ProbabilityCounts(2, 0)), judged(ProbabilityCounts(1, 1)), judged(None)
    note = "only one of runs plain and weighed has grades weighted by probability"
    assert any(note in found for found in answerkey.compare(plain, two).notes)
    assert not [found for found in answerkey.compare(one, two).notes if "probability" in found]


def test_a_judge_that_grades_its_canaries_otherwise_has_drifted() -> None:
    def judged(score: float, prompt: str) -> answerkey.Run:
        run = make_run({"a": 1.0, "b": 0.5}, name=f"at {score}")
        canaries = (canary(score), canary(1.0, model="two"))
        judge = judge_record("one + two", prompt_hash=prompt, canaries=canaries, reliable=True)
        return msgspec.structs.replace(run, info=msgspec.structs.replace(run.info, judge=judge))

    found = answerkey.compare(judged(1.0, "x"), judged(0.75, "y")).notes
    assert any("drifted" in note and "(one: 'sound answer' 1.00 → 0.75)" in note for note in found)
    assert any("judged with a different prompt" in note for note in found)
    assert not [
        note for note in answerkey.compare(judged(1.0, "x"), judged(1.0, "x")).notes if "judge" in note
    ]


def test_error_rates_have_intervals_and_are_of_the_questions_that_all_runs_have() -> None:
    level = {f"q{i}": [1.0, 1.0] for i in range(20)}
    failing = make_run(level, name="failing", errors={"q3": "timeout", "q4": "empty"})
    other = make_run({name: level[name] for name in list(level)[:10]}, name="other")
    found = {run.name: run for run in answerkey.rank([failing, other]).runs}
    assert (found["failing"].error_rate, found["other"].error_rate) == (0.2, 0.0)
    interval = found["failing"].error_interval
    assert interval is not None
    assert 0.0 < interval.low < 0.2 < interval.high < 0.6
