"""A chatbot behind HTTP, seen by the receiver and the proxy at once: each call once, with what each saw of it."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from answerkey.config import Settings
from answerkey.model.options import Price
from answerkey.runs.api import ab, evaluate_async, resume
from free_ports import free_port

from .spans import as_protobuf, model_span, span, tool_span
from .test_proxy import asking, model_server, served


async def send_spans(session, port, trace, *spans):
    """As an exporter does."""
    body = as_protobuf(*(one | {"traceId": trace} for one in spans))
    headers = {"Content-Type": "application/x-protobuf"}
    async with session.post(f"http://127.0.0.1:{port}/v1/traces", data=body, headers=headers) as answer:
        assert answer.status == 200


async def test_an_http_chatbot_with_both_observers(tmp_path: Path) -> None:
    traces, proxy = free_port(), free_port()

    async def chat(request: web.Request) -> web.Response:
        question = (await request.json())["question"]
        _, trace, parent, _ = request.headers["traceparent"].split("-")
        ran: dict[str, Any] = {"gen_ai.tool.call.id": "call_1", "gen_ai.tool.call.result": "442300"}
        spans = [span("01" * 8, parent), tool_span("02" * 8, "01" * 8, "query_database", **ran)]
        async with aiohttp.ClientSession() as session:
            # The model asks for two calls; the span of one of them is sent.
            async with session.post(
                f"http://127.0.0.1:{proxy}/openai/v1/chat/completions", json=asking(question)
            ) as one:
                assert one.status == 200
                # Who hangs up before the end has seen a part, and so has the proxy.
                await one.read()
            await send_spans(session, traces, trace, *spans)
        return web.json_response({"answer": "It is 442300."})

    runner, address = await served(chat)
    run = await evaluate_async(
        [
            {"question": f"What is the total of {name}?", "expected_tools": ["query_database"]}
            for name in ("May", "June")
        ],
        f"{address}/chat",
        settings=Settings(store=str(tmp_path / "s.db")),
        traces=traces,
        proxy=proxy,
        trace_quiet=0.05,
        upstreams={"openai": f"{model_server.serve_model()}/v1"},
    )
    await runner.cleanup()
    assert run.summary.tools_unobserved == 0
    for result in run.results:
        first, second = result.reply.tool_calls
        assert (first.name, first.arguments, first.result) == (
            "query_database",
            {"sql": "SELECT total"},
            "442300",
        )
        assert (second.name, second.result_seen) == ("search_document_content", False)
        assert result.reply.evidence.completeness == "complete"
    assert [line for line in run.warnings if line.startswith(("traces", "proxy"))] == []


_TOOL = tool_span("02" * 8, "01" * 8, "query_database")
_SAID = {"role": "assistant", "parts": [{"type": "text", "content": "It is 442300."}]}
_SHOWN = [model_span(f"{number:016x}", "01" * 8, _SAID) for number in (3, 4)]
_CLIENT = span(f"{7:016x}", f"{3:016x}")
_HIDDEN = model_span(f"{5:016x}", "01" * 8)
_CUT_OFF = "a model's answer that was unreadable or cut off"
_NOBODY = "a request that no question could be found for"
_UNKNOWN = "a model's call whose outcome is not in its span"


@pytest.mark.parametrize(
    ("sent", "requests", "unread"),
    [
        # The proxy could not read a model's answer. As many model calls in the trace do not mean the same ones.
        ([_TOOL], [("broken", 0)], (_CUT_OFF,)),
        ([_TOOL, _SHOWN[0]], [("broken", 0)], (_CUT_OFF,)),
        ([_TOOL, *_SHOWN], [("openai", 0), ("broken", 0)], (_CUT_OFF,)),
        ([_TOOL, *_SHOWN], [("openai", 0), ("other", 0)], (_NOBODY,)),
        # The request names the span that sent it: the model's, or a client's inside it.
        ([_TOOL, _SHOWN[0]], [("broken", 3)], ()),
        ([_TOOL, _SHOWN[0], _CLIENT], [("broken", 7)], ()),
        ([_TOOL, *_SHOWN], [("openai", 3), ("broken", 4)], ()),
        ([_TOOL, _SHOWN[0]], [("openai", 3), ("broken", 4)], (_CUT_OFF,)),
        # The trace has a model whose calls it does not show; the proxy saw that model call, or another.
        ([_HIDDEN], [("openai", 0)], (_UNKNOWN,)),
        ([_HIDDEN], [("openai", 5)], ()),
    ],
)
async def test_what_one_observer_missed_is_missing_unless_the_other_saw_the_same_model_call(
    tmp_path: Path, sent: list[dict[str, Any]], requests: list[tuple[str, int]], unread: tuple[str, ...]
) -> None:
    traces, proxy = free_port(), free_port()

    async def handle(request: web.Request) -> web.Response:
        if request.path.startswith("/broken"):
            return web.Response(text="<html>")
        question = (await request.json())["question"]
        _, trace, parent, _ = request.headers["traceparent"].split("-")
        async with aiohttp.ClientSession() as session:
            for path, number in requests:
                url = f"http://127.0.0.1:{proxy}/{path}/v1/chat/completions"
                body = asking("In other words" if path == "other" else question)
                headers = {"traceparent": f"00-{trace}-{number:016x}-01"} if number else {}
                async with session.post(url, json=body, headers=headers) as one:
                    await one.read()
            await send_spans(session, traces, trace, span("01" * 8, parent), *sent)
        return web.json_response({"answer": "It is 442300."})

    runner, address = await served(handle)
    model = model_server.serve_model()
    run = await evaluate_async(
        [{"question": "What is the total?", "expected_tools": ["query_database"]}],
        f"{address}/chat",
        settings=Settings(store=str(tmp_path / "s.db")),
        traces=traces,
        proxy=proxy,
        trace_quiet=0.05,
        upstreams={"openai": f"{model}/v1", "other": model, "broken": f"{address}/broken"},
    )
    await runner.cleanup()
    seen = run.results[0].reply.evidence
    assert seen.unread == unread
    assert seen.completeness == ("partial" if unread else "complete")
    assert run.summary.tools_unobserved == bool(unread)


async def test_an_experiment_has_one_receiver_for_both_and_a_resumed_run_says_what_it_could_not_tell(
    tmp_path: Path,
) -> None:
    traces = free_port()

    async def chat(request: web.Request) -> web.Response:
        _, trace, parent, _ = request.headers["traceparent"].split("-")
        spans = [span("01" * 8, parent), tool_span("02" * 8, "01" * 8, "query_database")]
        # A span of a trace that nobody asked under.
        stray = span("03" * 8) | {"traceId": "9" * 32}
        body = as_protobuf(*(one | {"traceId": trace} for one in spans), stray)
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"http://127.0.0.1:{traces}/v1/traces",
                data=body,
                headers={"Content-Type": "application/x-protobuf"},
            ) as one,
        ):
            assert one.status == 200
        return web.json_response({"answer": "It is 442300."})

    runner, address = await served(chat)
    questions = [
        {"question": f"What is the total of {name}?", "expected_tools": ["query_database"]}
        for name in ("May", "June")
    ]
    settings = Settings(store=str(tmp_path / "s.db"))
    observed: dict[str, Any] = {"settings": settings, "traces": traces, "trace_quiet": 0.05}
    experiment = await asyncio.to_thread(ab, questions, f"{address}/chat", f"{address}/other", **observed)
    for run in experiment.runs:
        assert [result.reply.tools_used for result in run.results] == [("query_database",)] * 2
    assert experiment.warnings == ("traces: 4 span(s) of traces that no question began were not used",)

    costs = {"prices": {f"{address}/chat": Price(reply=1.0)}, "budget": 1.5, "concurrency": 1}
    part = await evaluate_async(questions, f"{address}/chat", **observed, **costs)
    assert part.summary.replies == 1
    whole = await asyncio.to_thread(resume, part.id, settings=settings, budget=9.0)
    await runner.cleanup()
    assert whole.summary.replies == 2
    assert "traces: 1 span(s) of traces that no question began were not used" in whole.warnings
