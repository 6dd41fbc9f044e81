"""What bots that know nothing score, through the scorers that every chatbot gets."""

from typing import Any

import pytest

from answerkey.datasets.golden_sets import parse_question
from answerkey.model.options import Scoring
from answerkey.model.question import QuestionSet
from answerkey.runs.audit import Audit, audit_document, audit_questions


def audit(*rows: dict[str, Any], scoring: Scoring | None = None) -> Audit:
    questions = [parse_question({"id": f"q{index}", **row}) for index, row in enumerate(rows, start=1)]
    return audit_questions(QuestionSet(questions=tuple(questions)), scoring)


def scores(result: Audit) -> dict[str, float]:
    return {bot.name: bot.score for bot in result.bots}


AUGUST = {
    "question": "What was my rental income in August 2024?",
    "expected_tools": ["query_database"],
    "expected_keywords": ["August", "2024", "rental", "income", "16144"],
}
EIN = {
    "question": "What is our tax number?",
    "expected_tools": ["query_database"],
    "expected_keywords": ["83-4567890"],
}


def test_a_specific_question_gives_nothing_away() -> None:
    result = audit(EIN)
    assert scores(result) == {"silent": 0.0, "echo": 0.2, "refuser": 0.2, "every-tool": 0.6, "parrot": 0.2}
    assert result.floor == 0.6
    assert all(bot.passed == () for bot in result.bots)


def test_an_echo_finds_what_stands_in_the_question() -> None:
    result = audit(AUGUST)
    assert scores(result)["echo"] == pytest.approx(0.2 + 0.4 * 4 / 5)
    assert "the question itself contains August, 2024, rental, income" in result.questions[0].because


def test_without_expectations_everybody_passes() -> None:
    result = audit({"question": "Hello"})
    assert result.floor == 1.0
    assert result.questions[0].because == "echo: no tool is expected; no keyword is expected"
    assert {bot.name for bot in result.bots if bot.passed} == {
        "silent",
        "echo",
        "refuser",
        "every-tool",
        "parrot",
    }


def test_the_parrot_knows_the_other_questions_keywords() -> None:
    first = {**EIN, "expected_tools": [], "expected_keywords": ["Montrose"]}
    second = {"question": "Which town?", "expected_keywords": [["Montrose", "Ouray"]]}
    result = audit(first, second)
    assert scores(result)["parrot"] == 1.0
    assert (
        result.questions[0].because
        == "parrot: no tool is expected; other questions' keywords contain Montrose"
    )


def test_the_parrot_does_not_know_a_questions_own_keywords() -> None:
    assert scores(audit(EIN, AUGUST))["parrot"] == 0.2


def test_calling_every_tool_is_no_help_where_tools_are_forbidden() -> None:
    other = {"question": "What is the weather?", "expected_tools": ["weather"]}
    assert scores(audit({**EIN, "forbidden_tools": ["weather"]}, other))["every-tool"] == pytest.approx(
        (0.2 + 1.0) / 2
    )


def test_a_keyword_inside_a_refusal_gives_it_away() -> None:
    result = audit({"question": "Who?", "expected_keywords": ["or"]})
    assert result.questions[0].because.startswith("refuser: no tool is expected; a refusal contains or")


def test_a_conversation_is_answered_turn_by_turn() -> None:
    turns = [
        {"question": "Where is Montrose?", "expected_keywords": ["Montrose"]},
        {"question": "And its zip?", "expected_keywords": ["81401"]},
    ]
    result = audit({"turns": turns})
    assert scores(result)["echo"] == pytest.approx((1.0 + 0.6) / 2)


def test_the_configured_scoring_counts() -> None:
    only_words = Scoring(weights={"tool_usage": 0.0, "response_quality": 1.0, "error_handling": 0.0})
    assert scores(audit(AUGUST, scoring=only_words))["echo"] == pytest.approx(0.8)


def test_marks_without_words_are_those_of_a_full_grading() -> None:
    rows: list[dict[str, Any]] = [
        AUGUST,
        EIN,
        {"question": "Hello"},
        {"question": "Which of 2024 and 83?", "expected_keywords": ["2024", ["or", "83"], {"number": 83}]},
        {"question": "Is the server down? Error 500", "expected_keywords": ["down", "DOWN", "16,144"]},
        {"question": "Weather?", "expected_tools": ["weather"], "expected_keywords": [{"regex": "W.*r"}]},
    ]
    # A question with checks is graded in full; these checks do not count.
    checked = [{**row, "checks": [{"max_words": 5}]} for row in rows]
    for scoring in (None, Scoring(match="literal"), Scoring(match="smart")):
        assert audit_document(audit(*rows, scoring=scoring)) == audit_document(
            audit(*checked, scoring=scoring)
        )


def test_the_document() -> None:
    document = audit_document(audit(AUGUST, EIN))
    assert list(document) == ["floor", "bots", "questions"]
    assert [set(bot) for bot in document["bots"]] == [{"name", "score", "passed"}] * 5
    assert [set(question) for question in document["questions"]] == [{"id", "floor", "because"}] * 2
    assert document["floor"] == max(bot["score"] for bot in document["bots"])
