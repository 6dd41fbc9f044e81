import random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import answerkey
from answerkey.errors import UsageError
from answerkey.model.run import ExperimentLink, Run
from answerkey.report.wording import comparison_facts
from answerkey.runs.api import compare
from comparison.made import make_run


def scores(n: int, seed: int = 1, shift: float = 0.0) -> dict[str, float]:
    source = random.Random(seed)
    return {
        f"q{i}": min(1.0, max(0.0, round(source.choice([1.0, 1.0, 0.8, 0.6, 0.4]) + shift, 9)))
        for i in range(n)
    }


def test_a_regression_is_found_and_its_questions_named() -> None:
    before = dict.fromkeys((f"q{i:02}" for i in range(40)), 1.0)
    after = before | {f"q{i:02}": 0.2 for i in range(12)}
    found = compare(make_run(before, name="base"), make_run(after, name="candidate"))
    assert found.verdict == "worse"
    assert found.difference.mean == pytest.approx(-0.24)
    assert found.difference.high < 0
    assert [flip.id for flip in found.flips] == [f"q{i:02}" for i in range(12)]
    assert (found.broken, found.fixed) == (12, 0)
    assert found.pass_rate["p_value"] < 0.01


def test_many_small_gains_and_one_large_loss_are_pointed_at() -> None:
    before = dict.fromkeys((f"q{i:02}" for i in range(60)), 0.9)
    after = before | {f"q{i:02}": 0.95 for i in range(40)} | {"q50": 0.1}
    found = compare(make_run(before, name="base"), make_run(after, name="candidate"))
    assert found.notes[0].startswith("40 small gains, 1 large loss: look at the loss (q50)")
    mirrored = compare(make_run(after), make_run(before))
    assert mirrored.notes[0].startswith("40 small losses, 1 large gain: look at the gain (q50)")
    # Many losses of one size are a regression, and nothing odd.
    usual = before | {f"q{i:02}": 0.1 for i in range(12)} | {"q50": 1.0}
    assert not any("look at" in note for note in compare(make_run(before), make_run(usual)).notes)


def test_one_group_with_many_of_the_questions_is_noted() -> None:
    before, after = scores(20), scores(20, seed=2)
    groups = {f"q{i}": {"template": "big" if i < 8 else f"g{i}"} for i in range(20)}
    found = compare(make_run(before, metadata=groups), make_run(after, metadata=groups))
    assert any(note.startswith("one group has 8 of 20 questions") for note in found.notes)


def test_the_same_run_twice_is_no_clear_difference() -> None:
    found = compare(make_run(scores(15), name="a"), make_run(scores(15), name="b"))
    assert found.verdict == "no clear difference"
    assert found.difference.p_value is None
    assert found.difference.low < 0 < found.difference.high
    assert "scored the same in both runs" in found.reasons[0]
    assert found.detectable is not None


def test_an_inconclusive_comparison_says_what_it_could_have_seen() -> None:
    before, after = scores(15), scores(15)
    after["q0"], after["q1"] = 0.0, 1.0
    found = compare(make_run(before, name="a"), make_run(after, name="b"))
    assert found.verdict == "no clear difference"
    assert (
        "can only detect differences of 37.3 points or more, by the width of its interval" in found.reasons[0]
    )
    assert (
        "a problem that none of these 15 questions shows could still affect up to 18% of questions like these"
        in found.reasons[-1]
    )
    assert found.unseen == pytest.approx(0.181, abs=0.001)


def test_repeats_are_averaged_within_the_question() -> None:
    before = {f"q{i}": [0.0, 1.0] for i in range(6)}
    after = {f"q{i}": [1.0, 0.0] for i in range(6)}
    found = compare(make_run(before, name="a"), make_run(after, name="b"))
    assert found.paired == 6
    assert found.difference.changed == 0


def test_questions_of_one_template_count_as_one() -> None:
    before = dict.fromkeys((f"q{i}" for i in range(30)), 0.5)
    after = dict.fromkeys(before, 0.7)
    template = {name: {"template": "rent of month"} for name in list(before)[:28]}
    plain = compare(make_run(before, name="a"), make_run(after, name="b"))
    clustered = compare(
        make_run(before, name="a", metadata=template), make_run(after, name="b", metadata=template)
    )
    assert plain.verdict == "better"
    assert clustered.verdict == "no clear difference"
    assert clustered.units == clustered.difference.units == 3
    # And so do their pass rates.
    failing = compare(
        make_run(dict.fromkeys(before, 1.0), name="a", metadata=template),
        make_run(dict.fromkeys(before, 0.0), name="b", metadata=template),
    )
    assert (failing.pass_rate["low"], failing.pass_rate["high"]) == (-1.0, 1.0)


def test_the_same_within_a_margin() -> None:
    level = scores(300)
    found = compare(make_run(level, name="a"), make_run(level, name="b"), margin=0.02)
    assert found.verdict == found.to_dict()["verdict"] == "same"
    assert "within the margin of ±2 points" in found.reasons[0]
    with pytest.raises(UsageError, match="between 0 and 1"):
        compare(make_run(level, name="a"), make_run(level, name="b"), margin=2)


def test_pairing_is_by_content_then_by_id_and_the_rest_is_listed() -> None:
    before = make_run({"same": 1.0, "edited": 1.0, "gone": 0.5}, name="a")
    after = make_run({"same": 1.0, "edited": 0.9, "new": 0.5}, name="b", wording={"edited": "Asked anew?"})
    found = compare(before, after)
    assert found.paired == 2
    assert found.edited == ("edited",)
    assert [(item.id, item.reason) for item in found.unpaired] == [
        ("gone", "only in base"),
        ("new", "only in candidate"),
    ]
    assert any("are not compared" in note for note in found.notes)


def test_runs_without_a_question_in_common() -> None:
    with pytest.raises(UsageError, match="no scored question in common"):
        compare(make_run({"a": 1.0}, name="a"), make_run({"b": 1.0}, name="b"))


def test_one_question_in_common_makes_no_verdict() -> None:
    found = compare(make_run({"q": 1.0}, name="a"), make_run({"q": 0.0}, name="b"))
    assert found.verdict == "no clear difference"
    assert found.difference.p_value is None
    assert "one question in common" in found.reasons[0]
    msgspec.json.encode(found.to_dict())


def test_a_missing_component_is_noted_and_the_rest_compared() -> None:
    before = make_run(scores(20), name="a")
    after = make_run(scores(20), name="b", components=("tool_usage",))
    found = compare(before, after)
    assert [measure.name for measure in found.components] == ["tool_usage"]
    assert any("error_handling, response_quality is missing in run b" in note for note in found.notes)


def test_categories_are_corrected_together() -> None:
    category = {f"q{i}": f"c{i % 4}" for i in range(80)}
    before = make_run(scores(80), name="a", category=category)
    worse = {name: max(0.0, score - 0.4 * (int(name[1:]) % 4 == 0)) for name, score in scores(80).items()}
    found = compare(before, make_run(worse, name="b", category=category))
    by_name = {measure.name: measure for measure in found.categories}
    assert by_name["c0"].verdict == "worse"
    assert {by_name[f"c{i}"].verdict for i in (1, 2, 3)} == {"no clear difference"}
    assert by_name["c0"].difference is not None
    assert (
        by_name["c0"].p_adjusted == by_name["c0"].difference.p_value
    )  # the others are all ties: one test in all


def test_new_errors_latency_and_cost() -> None:
    before = make_run(scores(20), name="a", latency_ms=100, cost=0.01)
    after = make_run(
        scores(20), name="b", latency_ms=300, cost=0.01, errors={"q1": "timeout", "q2": "timeout"}
    )
    found = compare(before, after)
    assert found.new_errors == {"timeout": 2}
    # Made at different times: the latencies are shown and not tested.
    assert found.latency is not None
    assert (found.latency.tested, found.latency.verdict) == (False, "no clear difference")
    document = found.to_dict()["latency_ms"]
    assert (document["mean"], document["low"], document["p_value"]) == (200.0, None, None)
    link = ExperimentLink(runs=("a-id", "b-id"), early_stop=False, looks=0)
    before, after = (replace(run, info=replace(run.info, experiment=link)) for run in (before, after))
    interleaved = compare(before, after).latency
    assert interleaved is not None
    assert (interleaved.tested, interleaved.verdict) == (True, "worse")
    assert found.cost is not None
    assert found.cost.verdict == "no clear difference"


def test_the_document_has_the_agreed_keys() -> None:
    document = compare(make_run(scores(20), name="a"), make_run(scores(20, shift=-0.3), name="b")).to_dict()
    agreed = [
        "base",
        "candidate",
        "paired",
        "unpaired",
        "units",
        "difference",
        "verdict",
        "detectable",
        "components",
    ]
    assert {*agreed, "categories", "flips"} <= set(document)
    assert set(document["difference"]) >= {"mean", "low", "high", "level", "p_value", "method"}
    assert {"id", "from", "to"} <= set(document["flips"][0])
    assert set(document["components"]) == {"tool_usage", "response_quality", "error_handling"}


def test_the_packages_own_door() -> None:
    assert answerkey.compare(make_run(scores(9), name="a"), make_run(scores(9), name="b")).verdict == (
        "no clear difference"
    )


def with_metric(run: Run, name: str, **info: Any) -> Run:
    """The run with its metric `f1` under another name."""
    renamed = [
        trial.scored(msgspec.structs.replace(trial.scorecard, metrics={name: trial.scorecard.metrics["f1"]}))
        for trial in run.results
    ]
    return msgspec.structs.replace(run, info=msgspec.structs.replace(run.info, **info), results=renamed)


@pytest.mark.parametrize(
    ("name", "directions", "verdict"),
    [
        ("shouting", {"shouting": "lower"}, "worse"),
        # A name says nothing by itself.
        ("forbidden_words", {}, "better"),
        # Of runs that were kept before directions were.
        ("duplicate_sources", {}, "worse"),
    ],
)
def test_which_way_is_better_is_what_the_run_keeps(
    name: str, directions: dict[str, str], verdict: str
) -> None:
    low = {f"q{n}": 0.1 + 0.01 * (n % 7) for n in range(30)}
    high = {identity: score + 0.5 for identity, score in low.items()}
    base, candidate = (
        with_metric(make_run(scores, name=label), name, directions=directions)
        for label, scores in (("base", low), ("candidate", high))
    )
    (measure,) = compare(base, candidate).metrics
    assert (measure.name, measure.verdict) == (name, verdict)


def test_error_rates_are_compared_by_the_same_test() -> None:
    right = {f"q{n}": 1.0 for n in range(20)}
    failing = make_run(right, name="failing", errors={f"q{n}": "timeout" for n in range(6)})
    found = answerkey.compare(make_run(right, name="sound"), failing)
    assert found.error_rate is not None
    assert found.error_rate.difference is not None
    assert (found.error_rate.base, found.error_rate.candidate, found.error_rate.verdict) == (
        0.0,
        0.3,
        "worse",
    )
    assert 0.0 < found.error_rate.difference.low < 0.3 < found.error_rate.difference.high < 0.7
    assert found.to_dict()["error_rate"]["candidate"] == 0.3
    (told,) = (fact for fact in comparison_facts(found) if fact.startswith("errors"))
    low, high = 100 * found.error_rate.difference.low, 100 * found.error_rate.difference.high
    assert told.startswith(f"errors 0% → 30% ({low:+.1f} to {high:+.1f} points, p = 0.0")
