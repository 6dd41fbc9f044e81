"""A Python chatbot that uses OpenTelemetry's SDK is traced in its own process."""

import asyncio
import json
from typing import Any

import opentelemetry.sdk.trace as sdk
import pytest
from aiohttp import web
from opentelemetry import trace

from answerkey.protocols import Ask
from answerkey.targets.python_target import PythonTarget

from .test_proxy import Bot, ask_for, asking, served


@pytest.fixture(scope="module")
def tracer() -> Any:
    trace.set_tracer_provider(sdk.TracerProvider())
    return trace.get_tracer("bot")


def run_tool(tracer: Any, number: int) -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"}
    attributes["gen_ai.tool.call.arguments"] = json.dumps({"n": number})
    with tracer.start_as_current_span("execute_tool lookup", attributes=attributes) as span:
        span.set_attribute("gen_ai.tool.call.result", f"result {number}")


async def asked(function: Any, count: int = 3) -> Any:
    async with PythonTarget(function) as target:
        asks = [
            Ask(question=str(n), conversation_id="c", traceparent=f"00-{n + 1:032x}-{'ab' * 8}-01")
            for n in range(count)
        ]
        return await asyncio.gather(*[target.ask(ask) for ask in asks])


@pytest.mark.parametrize("is_async", [False, True])
async def test_questions_at_the_same_time_have_each_their_own_spans(tracer: Any, is_async: bool) -> None:
    def answer(question: str) -> str:
        run_tool(tracer, int(question))
        return question

    async def answer_async(question: str) -> str:
        await asyncio.sleep(0)
        return answer(question)

    for number, reply in enumerate(await asked(answer_async if is_async else answer)):
        assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [
            ("lookup", {"n": number}, f"result {number}")
        ]
        assert (reply.evidence.kind, reply.evidence.completeness) == ("otel", "complete")


async def test_a_span_that_has_not_ended_makes_it_partial_and_an_exception_keeps_the_calls(
    tracer: Any,
) -> None:
    def answer(question: str) -> str:
        run_tool(tracer, 1)
        tracer.start_span("in the background")
        raise ValueError("index offline")

    (reply,) = await asked(answer, 1)
    assert reply.failure is not None
    assert [call.name for call in reply.tool_calls] == ["lookup"]
    assert reply.evidence.unread == ("1 span has not ended",)
    assert not reply.evidence.tools_observed


async def test_spans_without_a_model_or_a_tool_say_nothing(tracer: Any) -> None:
    def answer(question: str) -> str:
        with tracer.start_as_current_span("GET /index"):
            return question

    (reply,) = await asked(answer, 1)
    assert (reply.tool_calls, reply.evidence.tools_observed, reply.evidence.kind) == ((), False, "response")


async def test_what_the_proxy_knows_that_it_missed_is_missing_beside_a_whole_trace(tracer: Any) -> None:
    async def broken(request: web.Request) -> web.Response:
        return web.Response(text="<html>")

    def work(post: Any, question: str) -> None:
        run_tool(tracer, 1)
        post("/openai/v1/chat/completions", asking(question))

    runner, address = await served(broken)
    (reply,) = await Bot(work, upstreams={"openai": address}).asked(ask_for())
    await runner.cleanup()
    assert reply.tools_used == ("lookup",)
    assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)
    assert reply.evidence.unread == ("a model's answer that was unreadable or cut off",)
