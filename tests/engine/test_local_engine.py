import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from answerkey.engine import LONGEST_WAIT, LocalEngine
from answerkey.model.options import Options
from answerkey.model.question import Question
from answerkey.model.reply import Evidence, Reply, ToolCall
from answerkey.model.scorecard import Trial
from answerkey.protocols import Ask
from answerkey.targets.resolve import resolve_target

ANSWER = {"answer": "yes", "tools_used": []}


def questions(count: int) -> list[Trial]:
    return [Trial(Question(id=f"q{n}", question=f"Question {n}?"), 1, n) for n in range(count)]


def ask(target: Any, tasks: list[Trial], **options: Any) -> list[Trial]:
    async def run() -> list[Trial]:
        chosen = Options(**options)
        async with resolve_target(target, settings={}, concurrency=chosen.concurrency) as opened:
            return [exchange async for exchange in LocalEngine(chosen).ask_all([opened], tasks)]

    return asyncio.run(run())


def test_no_more_than_the_allowed_number_are_under_way(chatbot: Callable[..., Any]) -> None:
    async def slow(body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return ANSWER

    bot = chatbot(slow)
    done = ask(bot.url, questions(40), concurrency=7)
    assert sorted(exchange.question.id for exchange in done) == sorted(f"q{n}" for n in range(40))
    assert bot.most_under_way == 7


def test_every_turn_of_a_conversation_has_its_id_and_trials_have_their_own(
    chatbot: Callable[..., Any],
) -> None:
    bot = chatbot(lambda body: ANSWER)
    turns = tuple(Question(id=f"c#{n}", question=f"turn {n}") for n in range(3))
    conversation = Question(id="c", question="turn 0", turns=turns)
    ask(bot.url, [Trial(conversation, 1), Trial(conversation, 2)], concurrency=1)
    assert [body["question"] for body in bot.asked] == ["turn 0", "turn 1", "turn 2"] * 2
    ids = [body["conversation_id"] for body in bot.asked]
    assert len(set(ids[:3])) == len(set(ids[3:])) == 1
    assert ids[0] != ids[3]


def test_a_question_that_takes_too_long_is_a_timeout(chatbot: Callable[..., Any]) -> None:
    async def stuck(body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.0 if body["question"] == "Question 1?" else 30)
        return ANSWER

    failures = {
        e.question.id: e.replies[0].failure for e in ask(chatbot(stuck).url, questions(2), timeout=0.3)
    }
    assert failures["q1"] is None
    assert failures["q0"].kind == "timeout"
    assert "0.3 s" in failures["q0"].message


def test_429_is_retried_after_the_time_it_names_and_waiting_is_not_latency(
    chatbot: Callable[..., Any],
) -> None:
    times: list[float] = []

    def busy_once(body: dict[str, Any]) -> Any:
        times.append(time.monotonic())
        if len(times) == 1:
            return web.json_response({"detail": "slow down"}, status=429, headers={"Retry-After": "1"})
        return ANSWER

    ((reply,),) = [exchange.replies for exchange in ask(chatbot(busy_once).url, questions(1))]
    assert reply.text == "yes"
    assert reply.timings.attempts == 2
    assert times[1] - times[0] >= 1.0
    assert reply.timings.retry_ms >= 1000
    assert reply.timings.latency_ms < 1000


def test_when_retries_are_used_up_the_failure_counts(chatbot: Callable[..., Any]) -> None:
    busy = chatbot(lambda body: web.json_response({}, status=503))
    ((reply,),) = [exchange.replies for exchange in ask(busy.url, questions(1), retries=1)]
    assert len(busy.asked) == 2
    assert reply.failure.kind == "http"


def test_an_error_of_the_chatbot_is_not_retried(chatbot: Callable[..., Any]) -> None:
    broken = chatbot(lambda body: web.json_response({"detail": "boom"}, status=500))
    ((reply,),) = [exchange.replies for exchange in ask(broken.url, questions(1))]
    assert len(broken.asked) == 1
    assert reply.failure.kind == "http"
    assert "500" in reply.failure.message


def test_nobody_waits_for_ever(chatbot: Callable[..., Any]) -> None:
    far = str(int(LONGEST_WAIT) + 1)
    busy = chatbot(lambda body: web.json_response({}, status=429, headers={"Retry-After": far}))
    ((reply,),) = [exchange.replies for exchange in ask(busy.url, questions(1))]
    assert reply.failure.kind == "rate_limit"
    assert far in reply.failure.message
    assert len(busy.asked) == 1


def test_the_rate_limit_spaces_questions_and_counts_as_queueing(chatbot: Callable[..., Any]) -> None:
    times: list[float] = []

    def record(body: dict[str, Any]) -> dict[str, Any]:
        times.append(time.monotonic())
        return ANSWER

    done = ask(chatbot(record).url, questions(6), rate=20, concurrency=6)
    assert max(times) - min(times) >= 5 / 20 * 0.9
    assert max(exchange.replies[0].timings.queue_ms for exchange in done) >= 200


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ConnectionResetError("peer"), "connection"),
        (TimeoutError("model"), "timeout"),
        (MemoryError(), "memory"),
        (ValueError("bad"), "exception"),
        (SystemExit(1), "exception"),
    ],
)
def test_whatever_a_chatbot_raises_is_data(raised: BaseException, kind: str) -> None:
    async def bot(question: str) -> str:
        raise raised

    ((reply,),) = [exchange.replies for exchange in ask(bot, questions(1), retries=0)]
    assert reply.failure.kind == kind
    assert reply.text is None


def test_each_attempt_carries_its_own_trace(chatbot: Callable[..., Any]) -> None:
    bot = chatbot(lambda body: ANSWER)
    done = ask(bot.url, questions(2))
    headers = {body["question"]: body["headers"]["traceparent"] for body in bot.asked}
    for exchange in done:
        sent = headers[exchange.question.question]
        assert sent == f"00-{exchange.replies[0].trace_id}-{sent.split('-')[2]}-01"


class GivesUp:
    """A chatbot that never answers, and knows what it has done."""

    name = fingerprint = "gives up"

    async def __aenter__(self) -> "GivesUp":
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing is open."""

    async def ask(self, ask: Ask) -> Reply:
        return await asyncio.get_running_loop().create_future()

    def so_far(self, ask: Ask) -> Reply:
        return Reply(tool_calls=(ToolCall(name="query_database"),), evidence=Evidence(tools_observed=True))


class Broken(GivesUp):
    """One that cannot tell what it has done, nor what was observed."""

    def so_far(self, ask: Ask) -> Reply:
        raise KeyError("lost track")

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        raise ValueError("saw nothing")


def test_a_target_that_cannot_tell_what_it_has_done_is_data_too() -> None:
    done = ask(Broken(), questions(3), timeout=0.05)
    assert len(done) == 3
    for one in done:
        assert one.reply.failure is not None
        assert one.reply.failure.kind == "local_resources"
        assert "saw nothing" in one.reply.failure.message

    del Broken.observe
    for one in ask(Broken(), questions(3), timeout=0.05):
        assert one.reply.failure is not None
        assert one.reply.failure.kind == "timeout"
        assert "lost track" in one.reply.failure.message


def test_what_was_done_until_a_timeout_counts() -> None:
    (done,) = ask(GivesUp(), questions(1), timeout=0.05)
    assert done.reply.failure is not None
    assert (done.reply.failure.kind, done.reply.tools_used) == ("timeout", ("query_database",))
    assert (done.reply.timings.latency_ms or 0.0) >= 50
