"""Checks of a golden case: each kind, their weighted mean, and what cannot be decided."""

from pathlib import Path
from typing import Any

import pytest

import answerkey as ak
from answerkey.config import Settings
from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import InputError
from answerkey.model.question import RUBRIC_PREFIX, QuestionSet
from answerkey.scorers.grader import make_grader


@ak.scorer
def starts_with(question: ak.Question, reply: ak.Reply, text: str = "Dear") -> bool:
    return (reply.text or "").startswith(text)


def checked(check: dict[str, Any], reply: ak.Reply) -> tuple[float | None, str]:
    question = parse_question({"question": "?", "checks": [check]})
    (outcome,) = make_grader().grade(question, (reply,)).findings["checks"]["checks"]
    return outcome["score"], outcome["reason"]


@pytest.mark.parametrize(
    ("check", "text", "score", "reason"),
    [
        ({"contains": "Montrose"}, "in montrose, CO", 1.0, "says it"),
        ({"contains": ["a", "b"]}, "only a", 0.0, "does not say b"),
        ({"contains": "x"}, None, 0.0, "does not say x"),
        ({"equals": "yes"}, " yes\n", 1.0, "the reply is 'yes'"),
        ({"equals": "yes"}, "Yes", 0.0, "the reply is 'Yes'"),
        ({"equals": {"a": 1, "b": True}}, '{"b": true, "a": 1}', 1.0, None),
        ({"equals": {"a": 1}}, '{"a": true}', 0.0, None),
        ({"regex": r"\d{3}"}, "call 970", 1.0, "found at 5"),
        ({"regex": r"\d{3}"}, "call", 0.0, "the pattern does not occur"),
        ({"is_json": True}, '{"a": 1}', 1.0, "it is JSON"),
        ({"is_json": True}, "```json\n{}\n```", 0.0, None),
        ({"is_json": False}, "words", 1.0, None),
        ({"json_schema": {"required": ["a"]}}, '{"a": 1}', 1.0, "it fits the schema"),
        ({"json_schema": {"required": ["a"]}}, "{}", 0.0, 'the whole: "a" is a required property'),
        ({"max_words": 2}, "one two three", 0.0, "3 words, at most 2"),
        ({"language": "de"}, "Das ist nicht der Vertrag, den wir mit Ihnen haben.", 1.0, None),
        ({"language": "de"}, "This is not the contract that we have with you.", 0.0, None),
        ({"language": "de"}, "442300", None, "the text has no words"),
        ({"language": "ja"}, "これは契約です。", 1.0, None),
        ({"starts_with": {"text": "Hello"}}, "Hello you", 1.0, "yes"),
        ({"starts_with": True}, "Hello you", 0.0, "no"),
    ],
)
def test_each_kind(check: dict[str, Any], text: str | None, score: float | None, reason: str | None) -> None:
    found = checked(check, ak.Reply(text=text))
    assert found[0] == score, found
    assert reason is None or found[1] == reason


def test_limits_on_time_and_cost_need_a_measurement() -> None:
    unknown = ak.Reply(text="x")
    assert checked({"max_latency_ms": 100}, unknown) == (None, "the latency was not measured")
    assert checked({"max_cost": 0.1}, unknown) == (None, "the cost was not reported")
    known = ak.Reply(text="x", timings=ak.Timings(latency_ms=150), usage=ak.Usage(cost=0.05))
    assert checked({"max_latency_ms": 100}, known) == (0.0, "took 150 ms, at most 100")
    assert checked({"max_cost": 0.1}, known) == (1.0, "cost 0.05, at most 0.1")


def test_a_schema_s_pattern_takes_linear_time_and_nothing_is_fetched() -> None:
    slow = {"json_schema": {"type": "string", "pattern": "(a+)+$"}}
    assert checked(slow, ak.Reply(text=f'"{"a" * 50_000}b"'))[0] == 0.0
    with pytest.raises(ValueError, match="is not fetched; write the schema out in full"):
        parse_question({"question": "?", "checks": [{"json_schema": {"$ref": "http://127.0.0.1:1/x"}}]})


CASE = {
    "question": "?",
    "checks": [
        {"contains": "yes", "weight": 3, "name": "agrees"},
        {"max_words": 2},
    ],
}


def test_the_weighted_mean_is_a_metric_or_a_component() -> None:
    question = parse_question(CASE)
    reply = ak.Reply(text="yes it is so")
    card = make_grader().grade(question, (reply,))
    assert card.metrics["checks"] == 0.75
    assert card.total == 1.0
    weights = {"tool_usage": 0.3, "response_quality": 0.3, "error_handling": 0.2, "checks": 0.2}
    grader = make_grader(ak.Scoring(weights=weights))
    card = grader.grade(question, (reply,))
    assert card.total == 0.95
    assert card.components["checks"].reason == "1 of 2 checks passed; max_words: 4 words, at most 2"
    assert card.components["checks"].details["checks"][0]["name"] == "agrees"
    # As with keywords, a question that has none has them all.
    assert grader.grade(parse_question({"question": "?"}), (reply,)).total == 1.0
    assert "checks" not in make_grader().grade(parse_question({"question": "?"}), (reply,)).metrics


def test_one_check_that_cannot_be_decided_leaves_all_without_a_value() -> None:
    question = parse_question({"question": "?", "checks": [{"contains": "x"}, {"rubric": "Is it kind?"}]})
    weights = {"tool_usage": 0.4, "response_quality": 0.4, "checks": 0.2}
    card = make_grader(ak.Scoring(weights=weights)).grade(question, (ak.Reply(text="x"),))
    assert card.total is None
    assert card.components["checks"].reason.startswith("rubric: needs a judge")


def test_a_rubric_takes_what_the_judge_said_of_it() -> None:
    question = parse_question({"question": "?", "checks": [{"rubric": "Is it kind?"}]})
    said = (ak.Score("judge", 0.5, ""), ak.Score(f"{RUBRIC_PREFIX}Is it kind?", 0.75, "4 of 5: kind"))
    card = make_grader().grade(question, (ak.Reply(text="x"),), (said,))
    assert card.metrics["checks"] == 0.75
    assert [name for name in card.metrics if name.startswith(RUBRIC_PREFIX)] == []


def test_a_check_by_a_function_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file_checks.py").write_text("def kind(question, reply):\n    return 0.5\n")
    question = parse_question({"question": "?", "checks": [{"python": "file_checks.py:kind"}]})
    settings = Settings(path=str(tmp_path / "answerkey.toml"))
    assert make_grader(None, settings).grade(question, (ak.Reply(text="x"),)).metrics["checks"] == 0.5


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ({"python": "nowhere.py:kind"}, "check 'python': there is no file nowhere.py"),
        ({"starts_with": {"txt": "x"}}, "check 'starts_with': the scorer 'starts_with' does not fit"),
    ],
)
def test_a_check_that_can_never_be_decided_is_refused_before_anything_is_asked(
    check: dict[str, Any], says: str
) -> None:
    question = parse_question({"question": "?", "checks": [check]}, line=7)
    with pytest.raises(InputError, match=f"golden.jsonl:7: {says}"):
        make_grader().check_questions(QuestionSet(questions=(question,), path="golden.jsonl"))
    # Where nobody asked, it is unscored with the reason.
    assert make_grader().grade(question, (ak.Reply(text="x"),)).metrics["checks"] is None
