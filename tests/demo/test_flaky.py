"""Faults are real, seeded and reproducible."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from answerkey_demo import Chatbot, open_chatbot
from answerkey_demo.chatbot import FAULTS, FlakyBrain
from answerkey_demo.tools import ToolExecutionError

QUESTION = "What was my rental income in August 2024?"


def outcome(bot: Chatbot, question: str = QUESTION) -> Any:
    try:
        return asyncio.run(bot.ask(question))["answer"]
    except Exception as error:  # noqa: BLE001 (what is raised is what is tested)
        return error


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("connection", ConnectionRefusedError),
        ("tool", ToolExecutionError),
        ("timeout", TimeoutError),
        ("memory", MemoryError),
    ],
)
def test_faults_that_are_raised(kind: str, expected: type[Exception]) -> None:
    assert type(outcome(open_chatbot(f"flaky?kinds={kind}&rate=1"))) is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("empty", ""),
        ("null", None),
        ("error_text", "I encountered an error"),
        ("trace", "Traceback (most recent call"),
    ],
)
def test_faults_that_are_replies(kind: str, expected: str | None) -> None:
    answer = outcome(open_chatbot(f"flaky?kinds={kind}&rate=1"))
    assert answer == expected if not expected else answer.startswith(expected)


def test_a_failing_tool_was_called_and_says_so() -> None:
    error = outcome(open_chatbot("flaky?kinds=tool&rate=1"))
    assert error.tool_calls[0]["name"] == "query_database"
    assert error.tool_calls[0]["error"].startswith("ToolExecutionError")


def test_faults_meet_questions_that_need_no_tool_as_well() -> None:
    assert isinstance(outcome(open_chatbot("flaky?kinds=tool&rate=1"), "Hello"), ToolExecutionError)


def test_rate_nothing_and_everything() -> None:
    assert "$16,144" in outcome(open_chatbot("flaky?rate=0"))
    assert outcome(open_chatbot("flaky?rate=1&kinds=empty")) == ""


def test_the_seed_decides_and_nothing_else() -> None:
    questions = [f"Question {number}?" for number in range(400)]

    def faults(seed: int) -> list[str | None]:
        brain = FlakyBrain(open_chatbot().brain, rate=0.3, seed=seed)
        return [brain.fault(question, 0) for question in questions]

    assert faults(7) == faults(7)
    assert faults(7) != faults(8)
    counts = Counter(faults(7))
    assert 0.2 < 1 - counts[None] / len(questions) < 0.4
    assert set(counts) - {None} == set(FAULTS)


def test_another_attempt_may_succeed() -> None:
    brain = FlakyBrain(open_chatbot().brain, rate=0.5, seed=3)
    attempts = {brain.fault(QUESTION, attempt) is None for attempt in range(20)}
    assert attempts == {True, False}
