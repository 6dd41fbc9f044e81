"""Mistakes and objects that scripts and notebooks pass."""

from collections.abc import Callable
from typing import Any

import pytest

import answerkey as ak
from answerkey.errors import AnswerkeyError, ConfigError

GOLDEN = [{"id": "a", "question": "What?", "expected_keywords": ["20"]}]


def bot(question: str) -> str:
    return "It is 20."


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ak.Scoring(match="smrt"), "[scoring] match = 'smrt': use literal, standard, smart"),  # type: ignore[arg-type]
        (lambda: ak.evaluate(GOLDEN, bot, repeat="2"), "[run] repeat: must be a whole number, not text"),
        (
            lambda: ak.evaluate(GOLDEN, bot, repeet=2),
            "unknown setting 'repeet' in [run]; did you mean 'repeat'?",
        ),
        (
            lambda: ak.evaluate([*GOLDEN, *GOLDEN], bot),
            "several questions have the id 'a'; ids must be unique",
        ),
        (lambda: ak.evaluate([], bot), "the golden set has no questions"),
    ],
)
def test_a_mistake_is_one_clear_error(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(AnswerkeyError) as raised:
        call()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ak.compare("first", "second"), "no run 'second'"),
        (lambda: ak.why("first", 42), "a run is a Run, or the id or name of a stored one, not 42"),  # type: ignore[arg-type]
        (lambda: ak.compare(None, "first"), "not None"),  # type: ignore[arg-type]
        (lambda: ak.evaluate(GOLDEN, bot, judge=42), "judge must be a model's name, several names or"),
    ],
)
def test_a_run_or_judge_that_is_none_is_one_clear_error(call: Callable[[], Any], message: str) -> None:
    ak.evaluate(GOLDEN, bot, name="first")
    with pytest.raises(AnswerkeyError, match=message):
        call()


def test_stored_runs_are_compared_by_name() -> None:
    ak.evaluate(GOLDEN, bot)
    ak.evaluate(GOLDEN, lambda question: "I do not know.")
    assert ak.compare("latest~1", "latest").difference.mean < 0
    assert [case.id for case in ak.why("latest~1", "latest").cases] == ["a"]


def test_a_run_can_be_given_instead_of_its_id() -> None:
    run = ak.evaluate(GOLDEN, bot)
    assert ak.rescore(run, scoring=ak.Scoring(match="smart")).id == run.id
    assert ak.resume(run, target=bot).score == run.score


def test_weights_that_do_not_add_up_are_refused_in_python_too() -> None:
    with pytest.raises(ConfigError, match=r"add up to 1\.5"):
        ak.Scoring(weights={"tool_usage": 1, "response_quality": 0.5})
