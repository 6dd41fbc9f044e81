"""Grading off the loop: the asking never waits for a scorer, and what grades it gives the same scorecards."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import answerkey as ak
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.runs.workers import GradingPool
from answerkey.scorers.grader import make_grader

LEDGER = "\n".join(f"2024-08-{n % 28 + 1:02} | rent {n} | ${n * 1144:,}.00" for n in range(40))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trials(count: int, text: str = LEDGER) -> list[Trial]:
    return [
        Trial(
            ak.Question(id=f"q{n}", question="How much?", expected_keywords=("1144", "rent", "cats")),
            1,
            n,
            (Reply(text=text),),
        )
        for n in range(count)
    ]


def graded(given: list[Trial], **options: Any) -> dict[str, Scorecard]:
    cards: dict[str, Scorecard] = {}

    async def run() -> None:
        grading = GradingPool(
            options.pop("grader", None) or make_grader(),
            lambda trial, card: cards.update({trial.question.id: card}),
            budget=options.pop("budget", 60.0),
            **options,
        )
        grading.open()
        try:
            for trial in given:
                await grading.put(trial)
            await grading.finish()
        finally:
            assert grading.close() == []

    asyncio.run(run())
    return cards


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were started for grading."""
    found: list[int] = []
    real = GradingPool.start_worker

    def start(self: GradingPool) -> Any:
        process = real(self)
        found.append(process.pid)
        return process

    monkeypatch.setattr(GradingPool, "start_worker", start)
    return found


def test_questions_are_asked_on_while_a_scorer_is_stuck() -> None:
    asked: list[str] = []
    all_asked = threading.Event()

    async def bot(question: str) -> str:
        asked.append(question)
        if len(asked) == 40:
            all_asked.set()
        return "yes"

    def stuck(question: ak.Question, reply: Reply) -> bool:
        # On the asking loop, this would never come true.
        return all_asked.wait(60)

    questions = [{"id": f"q{n}", "question": f"Q{n}?"} for n in range(40)]
    run = ak.evaluate(questions, bot, scorers=[stuck], concurrency=2)
    assert run.summary.metrics["stuck"] == 1.0


def test_a_cheap_run_starts_no_process(started: list[int]) -> None:
    assert len(graded(trials(50, "1,144 for rent"))) == 50
    assert started == []


def test_processes_give_the_same_scorecards_as_the_thread(
    monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    given = [*trials(12), Trial(ak.Question(id="null", question="?"), 1, 12, (Reply(),))]
    here = graded(given)
    monkeypatch.setattr("answerkey.runs.workers._WORTH_PROCESSES_SECONDS", 0.0)
    assert graded(given) == here
    assert started


def test_a_long_reply_goes_to_a_process_at_once(started: list[int]) -> None:
    cards = graded(trials(3, "1144 rent " * 12_000))
    assert all(card.components["response_quality"].value == pytest.approx(2 / 3) for card in cards.values())
    assert len(cards) == 3
    assert started


CHECKS = """
import time

def picky(question, reply):
    if question.id == "q1":
        while True:
            pass
    if question.id == "q2":
        time.sleep(3600)
    if question.id == "q3":
        import os
        os._exit(7)
    return 1.0
"""


def test_a_process_that_uses_up_its_budget_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every reply is graded in a process from the start: in a thread, the last scorer below would end this process.
    monkeypatch.setattr("answerkey.runs.workers._LONG_TEXT", -1)
    monkeypatch.setattr("answerkey.runs.workers._WORTH_PROCESSES_SECONDS", 0.0)
    (tmp_path / "checks.py").write_text(CHECKS)
    (tmp_path / "answerkey.toml").write_text('[scorers.picky]\npython = "checks.py:picky"\nweight = 0.0\n')
    questions = [{"id": f"q{n}", "question": f"Q{n}?"} for n in range(6)]
    weights = {"response_quality": 0.5, "picky": 0.5}
    from answerkey.config import load_settings

    settings = load_settings(tmp_path)
    run = ak.evaluate(
        questions,
        lambda question: "yes",
        settings=settings,
        scoring=ak.Scoring(weights=weights),
        # Far more than the other scorers need on a loaded machine.
        scoring_seconds=2.0,
    )
    assert run.summary.harness == {"scorer": 1, "too_costly": 2}
    assert run.summary.score == 1.0
    assert run.summary.coverage == 0.5


def test_the_asking_waits_when_too_much_is_ungraded(chatbot: Callable[..., Any]) -> None:
    free = threading.Event()
    bot = chatbot(lambda body: {"answer": "yes", "tools_used": []})

    def slow(question: ak.Question, reply: Reply) -> bool:
        return free.wait(60)

    async def run() -> int:
        questions = [{"id": f"q{n}", "question": f"Q{n}?"} for n in range(3000)]
        asking = asyncio.create_task(ak.evaluate_async(questions, bot.url, scorers=[slow], concurrency=50))
        before = -1
        # It stands still once so many wait.
        while len(bot.asked) != before or before < 1000:
            before = len(bot.asked)
            await asyncio.sleep(1.0)
        free.set()
        await asking
        return before

    assert asyncio.run(run()) < 1500
    assert len(bot.asked) == 3000
