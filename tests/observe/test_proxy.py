"""The recording proxy: bytes pass as they are and as they arrive, and each request is told to belong to one question or none."""

import asyncio
import gzip
import http.client
import importlib.util
import json
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest
from aiohttp import web
from yarl import URL

from answerkey.errors import ConfigError
from answerkey.model.options import Options
from answerkey.model.reply import Failure, Reply
from answerkey.observe.observers import ObservedTarget, Observers
from answerkey.observe.proxy import Upstreams
from answerkey.protocols import Ask
from answerkey.targets.python_target import PythonTarget

_FILE = Path(__file__).parents[2] / "interop" / "model_server.py"
_SPEC = importlib.util.spec_from_file_location("model_server", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
model_server = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(model_server)

CALLS = [("query_database", {"sql": "SELECT total"}), ("search_document_content", {"query": "lease"})]
RESULTS = ["442300", "Error: index offline"]
QUESTION = "What is the total, and what does the lease say?"
Post = Callable[[str, Any], Any]


def asking(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


def ask_for(question: str = QUESTION, number: int = 1) -> Ask:
    return Ask(question=question, conversation_id="c", traceparent=f"00-{number:032x}-{'ab' * 8}-01")


def chat(post: Post, question: str, stream: bool) -> None:
    asked = {"role": "user", "content": question}
    post("/openai/v1/chat/completions", {"messages": [asked], "stream": stream})
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for one, name, given in model_server.CALLS
    ]
    results = [
        {"role": "tool", "tool_call_id": f"call_{n}", "content": text} for n, text in enumerate(RESULTS, 1)
    ]
    messages = [asked, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
    post("/openai/v1/chat/completions", {"messages": messages, "stream": stream})


def responses(post: Post, question: str, stream: bool) -> None:
    post("/openai/v1/responses", {"input": question, "stream": stream})
    results = [
        {"type": "function_call_output", "call_id": f"call_{n}", "output": text}
        for n, text in enumerate(RESULTS, 1)
    ]
    # The question is not in this one: it goes on from the response.
    post("/openai/v1/responses", {"input": results, "previous_response_id": "resp_1", "stream": stream})


def anthropic(post: Post, question: str, stream: bool) -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": question}]}
    post("/anthropic/v1/messages", {"messages": [asked], "stream": stream})
    calls = [
        {"type": "tool_use", "id": one, "name": name, "input": given}
        for one, name, given in model_server.CALLS
    ]
    results = [
        {"type": "tool_result", "tool_use_id": f"call_{n}", "content": text}
        for n, text in enumerate(RESULTS, 1)
    ]
    results[1]["is_error"] = True  # type: ignore[assignment]
    messages = [asked, {"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    post("/anthropic/v1/messages", {"messages": messages, "stream": stream})


def gemini(post: Post, question: str, stream: bool) -> None:
    path = f"/gemini/v1beta/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    asked = {"role": "user", "parts": [{"text": question}]}
    post(path, {"contents": [asked]})
    calls = [{"functionCall": {"name": name, "args": given}} for _, name, given in model_server.CALLS]
    values = [{"result": RESULTS[0]}, {"error": RESULTS[1]}]
    results = [
        {"functionResponse": {"name": name, "response": value}}
        for (_, name, _), value in zip(model_server.CALLS, values, strict=True)
    ]
    post(path, {"contents": [asked, {"role": "model", "parts": calls}, {"role": "user", "parts": results}]})


def ollama(post: Post, question: str, stream: bool) -> None:
    asked = {"role": "user", "content": question}
    post("/ollama/api/chat", {"messages": [asked], "stream": stream})
    calls = [{"function": {"name": name, "arguments": given}} for _, name, given in model_server.CALLS]
    results = [
        {"role": "tool", "tool_name": name, "content": text}
        for (_, name, _), text in zip(model_server.CALLS, RESULTS, strict=True)
    ]
    messages = [asked, {"role": "assistant", "content": "", "tool_calls": calls}, *results]
    post("/ollama/api/chat", {"messages": messages, "stream": stream})


class Bot:
    """A chatbot that makes its requests through the proxy; a function in a thread."""

    def __init__(self, work: Callable[[Post, str], object], **more: Any) -> None:
        model = model_server.serve_model()
        named = {
            name: f"{model}/v1" if name == "openai" else model
            for name in ("openai", "anthropic", "gemini", "ollama")
        }
        options = Options(proxy=0, trace_quiet=0.05, upstreams=named | more.pop("upstreams", {}), **more)
        self.target = ObservedTarget(
            PythonTarget(lambda question: self._answer(work, question)), Observers(options)
        )

    def _answer(self, work: Callable[[Post, str], object], question: str) -> str:
        def post(path: str, body: Any, headers: dict[str, str] | None = None) -> bytes:
            given = {
                "Content-Type": "application/json",
                "Authorization": "Bearer sk-secret",
                **(headers or {}),
            }
            request = urllib.request.Request(
                self.target.addresses["proxy"] + path, json.dumps(body).encode(), given
            )
            return urllib.request.urlopen(request).read()

        work(post, question)
        return "done"

    async def asked(self, *asks: Ask) -> list[Reply]:
        async def one(ask: Ask) -> Reply:
            return await self.target.observe(ask, await self.target.ask(ask))

        async with self.target:
            return await asyncio.gather(*[one(ask) for ask in asks])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", [chat, responses, anthropic, gemini, ollama])
async def test_the_calls_of_an_agent_in_every_api(api: Callable[..., None], stream: bool) -> None:
    bot = Bot(lambda post, question: api(post, question, stream))
    (reply,) = await bot.asked(ask_for())
    assert [(call.name, call.arguments) for call in reply.tool_calls] == CALLS
    found, failed = reply.tool_calls
    assert "442300" in str(found.result)
    assert found.error is None
    assert "index offline" in str(failed.error)
    assert found.start_ms is not None
    assert (reply.evidence.kind, reply.evidence.completeness, reply.evidence.tools_observed) == (
        "proxy",
        "complete",
        True,
    )
    assert reply.usage is not None
    assert reply.usage.input_tokens == 22
    assert bot.target.warnings() == []
    assert "sk-secret" not in repr(vars(bot.target)) + repr(reply)


async def test_questions_at_the_same_time_are_distinguished_by_their_whole_text() -> None:
    bot = Bot(lambda post, question: chat(post, question, False))
    asks = [
        ask_for(text, number)
        for number, text in enumerate(("What is the total?", "What is the total? And the lease?"), 1)
    ]
    for reply in await bot.asked(*asks):
        assert [(call.name, call.arguments) for call in reply.tool_calls] == CALLS
        assert reply.evidence.completeness == "complete"


TOOLS = [{"type": "function", "function": {"name": "query_database"}}]


def with_tools(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [*messages], "tools": TOOLS}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def test_an_agent_that_is_offered_no_tools_may_call_them_as_text() -> None:
    """DSPy, the CodeAgent of smolagents and LlamaIndex's ReAct agent send no tools to the model."""

    async def handle(request: web.Request) -> web.Response:
        message = {"role": "assistant", "content": "Action: query_database"}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}]})

    runner, address = await served(handle)
    for tools, observed in ((None, False), (TOOLS, True)):
        bot = Bot(
            lambda post, question, tools=tools: post(  # type: ignore[misc]
                "/openai/v1/chat/completions", {**asking(question), "tools": tools}
            ),
            upstreams={"openai": address},
        )
        (reply,) = await bot.asked(ask_for())
        assert reply.evidence.tools_observed is observed
        assert reply.evidence.completeness == ("complete" if observed else "partial")
        assert bool(reply.evidence.unread) is not observed
    await runner.cleanup()


@pytest.mark.parametrize("sub_agent", ["planner", "few-shot", "short"])
async def test_the_requests_of_a_sub_agent_are_not_given_to_the_question_that_it_quotes(
    sub_agent: str,
) -> None:
    """Question B's sub-agent is asked what A asks, has A in its system prompt, or has A's words in a longer message."""
    first = {"planner": "What is the total?", "few-shot": "What is the total?", "short": "lease"}[sub_agent]
    second = "Compare the total with the lease."
    quoting = {
        "planner": [user(first)],
        "few-shot": [{"role": "system", "content": f"Example: {first}"}, user("Sub-task 1")],
        "short": [user("Sub-task: lease of the cabin")],
    }[sub_agent]
    both = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()

    def work(post: Post, question: str) -> None:
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()
        if question == second:
            post("/openai/v1/chat/completions", with_tools(*quoting))
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()
        post("/openai/v1/chat/completions", with_tools(user(question)))
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()

    replies = await Bot(work).asked(ask_for(first, 1), ask_for(second, 2))
    assert all(len(reply.tool_calls) <= len(CALLS) for reply in replies)
    assert [reply.evidence.completeness for reply in replies] == ["partial", "partial"]


async def test_the_requests_of_an_attempt_that_timed_out_are_not_given_to_the_next() -> None:
    at_work, go_on, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(post: Post, question: str) -> None:
        first = not at_work.is_set()
        if first:
            loop.call_soon_threadsafe(at_work.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        post("/openai/v1/chat/completions", with_tools(user(question)))
        if first:
            loop.call_soon_threadsafe(gone.set)
        else:
            loop.call_soon_threadsafe(go_on.set)
            asyncio.run_coroutine_threadsafe(gone.wait(), loop).result()

    bot = Bot(work)
    async with bot.target:
        attempt = asyncio.create_task(bot.target.ask(ask_for(number=1)))
        await at_work.wait()
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)
        await bot.target.observe(ask_for(number=1), Reply(failure=Failure("timeout", "no reply within 1 s")))
        reply = await bot.target.observe(ask_for(number=2), await bot.target.ask(ask_for(number=2)))
    assert len(reply.tool_calls) <= len(CALLS)
    assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)


async def test_a_question_in_a_template_is_matched_while_it_runs_alone() -> None:
    bot = Bot(lambda post, question: chat(post, f"Context: none. Question: {question}", False))
    (reply,) = await bot.asked(ask_for())
    assert [(call.name, call.arguments) for call in reply.tool_calls] == CALLS
    assert reply.evidence.completeness == "complete"


async def test_a_turn_of_a_conversation_beside_a_question_with_the_same_text() -> None:
    both = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()
    earlier = [user("What was the total in May?"), {"role": "assistant", "content": "442300"}]
    turns = iter((0, 1))

    def work(post: Post, question: str) -> None:
        turn = next(turns)
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()
        post("/openai/v1/chat/completions", with_tools(*(earlier * turn), user(question)))
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()

    alone, later = ask_for("And in June?", 1), ask_for("And in June?", 2)
    replies = await Bot(work).asked(alone, msgspec.structs.replace(later, turn=1))
    assert sorted(len(reply.tool_calls) for reply in replies) == [0, len(CALLS)]


async def test_a_call_that_the_client_took_before_it_hung_up_is_listed() -> None:
    is_over = asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        call = {"index": 0, "id": "c1", "function": {"name": "delete_everything", "arguments": "{}"}}
        chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        await response.write(f"data: {json.dumps(chunk)}\n\ndata: {{}}\n\n".encode())
        # The model goes on after the client has hung up.
        await is_over.wait()
        return response

    def work(post: Post, question: str) -> None:
        url = urlsplit(bot.target.addresses["proxy"])
        with socket.create_connection((url.hostname or "", url.port or 0)) as connection:
            body = json.dumps(with_tools(user(question))).encode()
            head = (
                f"POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            connection.sendall(head.encode() + body)
            got = b""
            while b"delete_everything" not in got:
                got += connection.recv(65536)

    runner, address = await served(handle)
    bot = Bot(work, upstreams={"openai": address})
    (reply,) = await bot.asked(ask_for())
    is_over.set()
    await runner.cleanup()
    assert reply.evidence.completeness == "partial"
    assert set(reply.tools_used) <= {"delete_everything"}


async def test_the_same_question_twice_at_once_is_ambiguous_and_said_to_be() -> None:
    both = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()

    def work(post: Post, question: str) -> None:
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()
        chat(post, question, False)
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()

    bot = Bot(work)
    for reply in await bot.asked(ask_for(number=1), ask_for(number=2)):
        assert reply.tool_calls == ()
        assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)
        assert reply.evidence.unread == ("a request that 2 questions could have sent",)
    assert bot.target.warnings()[0].startswith(
        "proxy: 2 request(s) could have been made by several questions"
    )


@pytest.mark.parametrize("way", ["header", "path"])
async def test_a_trace_tells_the_same_question_twice_apart(way: str) -> None:
    both = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()
    numbers = iter((1, 2))

    def work(post: Any, question: str) -> None:
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()
        number = next(numbers)
        trace = f"{number:032x}"
        headers = {"traceparent": f"00-{trace}-{'cd' * 8}-01"} if way == "header" else {}
        path = "" if way == "header" else f"/trace/{trace}"
        for _ in range(number):
            post(
                f"{path}/openai/v1/chat/completions",
                {"messages": [{"role": "user", "content": "rephrased"}]},
                headers,
            )
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result()

    bot = Bot(work)
    replies = await bot.asked(ask_for(number=1), ask_for(number=2))
    assert [len(reply.tool_calls) for reply in replies] == [2, 4]
    assert all(reply.evidence.completeness == "complete" for reply in replies)


async def test_a_request_of_no_question_makes_those_under_way_partial() -> None:
    bot = Bot(
        lambda post, question: post(
            "/openai/v1/chat/completions", {"messages": [{"role": "user", "content": "Other"}]}
        )
    )
    (reply,) = await bot.asked(ask_for())
    assert reply.tool_calls == ()
    assert reply.evidence.unread == ("a request that no question could be found for",)
    assert not reply.evidence.tools_observed


async def test_a_chatbot_that_does_not_use_the_proxy_is_unobserved() -> None:
    bot = Bot(lambda post, question: None)
    (reply,) = await bot.asked(ask_for())
    assert reply == Reply(text="done", timings=reply.timings)
    assert bot.target.warnings()[0].startswith("proxy: 1 question(s) sent nothing")


async def served(handle: Callable[[web.Request], Any]) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


@pytest.mark.parametrize("as_stream", [False, True])
async def test_a_tool_of_an_mcp_server(as_stream: bool) -> None:
    async def handle(request: web.Request) -> web.Response:
        given = await request.json()
        result = {"content": [{"type": "text", "text": "442300"}], "isError": False}
        answer = {"jsonrpc": "2.0", "id": given.get("id"), "result": result}
        if as_stream:
            notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
            text = "".join(f"event: message\ndata: {json.dumps(one)}\n\n" for one in (notice, answer))
            return web.Response(text=text, content_type="text/event-stream")
        return web.json_response(answer)

    runner, address = await served(handle)

    def work(post: Post, question: str) -> None:
        post("/openai/v1/chat/completions", asking(question))
        post("/database", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        parameters = {"name": "query_database", "arguments": {"sql": "SELECT total"}}
        post("/database", {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": parameters})

    (reply,) = await Bot(work, upstreams={"database": f"{address}/mcp"}).asked(ask_for())
    assert [(call.name, call.arguments) for call in reply.tool_calls] == CALLS
    assert (reply.tool_calls[0].result, reply.tool_calls[0].id) == ("442300", "call_1")
    assert reply.tool_calls[0].duration_ms is not None
    assert reply.evidence.completeness == "complete"
    # Without the model's own requests, other tools may have been called.
    (reply,) = await Bot(
        lambda post, question: post(
            "/database", {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t"}}
        ),
        upstreams={"database": f"{address}/mcp"},
    ).asked(ask_for())
    assert [call.name for call in reply.tool_calls] == ["t"]
    assert reply.evidence.completeness == "partial"
    await runner.cleanup()


async def test_bytes_pass_untouched_and_as_they_arrive() -> None:
    gate = asyncio.Event()
    got: list[Any] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        got.append((request.raw_path, dict(request.headers), await request.read()))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Own": "1"})
        await response.prepare(request)
        await response.write(b'data: {"first": \xf0\x9f')
        await gate.wait()
        await response.write(b"\x98\x80}\n\ndata: [DONE]\n\n")
        return response

    runner, address = await served(handle)
    target = ObservedTarget(
        PythonTarget(lambda question: ""),
        Observers(Options(proxy=0, upstreams={"openai": f"{address}/v1"})),
    )
    async with target, aiohttp.ClientSession() as session:
        url = URL(f"{target.addresses['proxy']}/openai/v1/chat/completions?a=b%2Fc", encoded=True)
        headers = {"Authorization": "Bearer sk-secret", "traceparent": "00-1-2-3"}
        async with session.post(url, data=b'{"messages": [ ]}', headers=headers) as response:
            # The first piece is here while the server still waits.
            assert await response.content.readany() == b'data: {"first": \xf0\x9f'
            gate.set()
            assert await response.content.read() == b"\x98\x80}\n\ndata: [DONE]\n\n"
            assert response.headers["X-Own"] == "1"
        path, received, body = got[0]
        assert (path, body) == ("/v1/chat/completions?a=b%2Fc", b'{"messages": [ ]}')
        assert (received["Authorization"], received["traceparent"]) == ("Bearer sk-secret", "00-1-2-3")
        async with session.get(f"{target.addresses['proxy']}/nowhere/x") as response:
            assert response.status == 404
    await runner.cleanup()


async def test_a_compressed_answer_is_read_and_passes_compressed() -> None:
    payload = gzip.compress(json.dumps(model_server._chat(False, model_server.CALLS)).encode())

    async def handle(request: web.Request) -> web.Response:
        return web.Response(
            body=payload, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}
        )

    runner, address = await served(handle)
    bodies = []
    bot = Bot(
        lambda post, question: bodies.append(post("/openai/v1/chat/completions", asking(question))),
        upstreams={"openai": address},
    )
    (reply,) = await bot.asked(ask_for())
    assert bodies == [payload]
    assert [call.name for call in reply.tool_calls] == ["query_database", "search_document_content"]
    await runner.cleanup()


@pytest.mark.parametrize(
    "answer",
    [
        {"body": b'{"unheard": "of"}', "content_type": "application/json"},
        {"body": b"<html>", "content_type": "text/html"},
        {
            "body": b'data: {"choices": [{"index": 0, "delta": {"content": "It i"}}]}\n\n',
            "content_type": "text/event-stream",
        },
    ],
)
async def test_an_answer_that_is_not_understood_or_cut_off_is_said(answer: dict[str, Any]) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(**answer)

    runner, address = await served(handle)
    bot = Bot(
        lambda post, question: post("/openai/v1/chat/completions", asking(question)),
        upstreams={"openai": address},
    )
    (reply,) = await bot.asked(ask_for())
    assert reply.evidence.unread == ("a model's answer that was unreadable or cut off",)
    assert not reply.evidence.tools_observed
    await runner.cleanup()


async def test_a_model_that_breaks_off_breaks_off_for_the_client_too_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices": []}\n\n')
        assert request.transport is not None
        request.transport.abort()
        return response

    seen: list[type[Exception]] = []

    def work(post: Post, question: str) -> None:
        try:
            post("/openai/v1/chat/completions", asking(question))
        except (http.client.HTTPException, OSError) as error:
            seen.append(type(error))

    runner, address = await served(handle)
    (reply,) = await Bot(work, upstreams={"openai": address}).asked(ask_for())
    await runner.cleanup()
    assert seen == [http.client.IncompleteRead]
    assert reply.evidence.completeness == "partial"
    assert [record for record in caplog.records if record.name.startswith("aiohttp")] == []


async def test_an_upstream_that_is_away_is_a_502_without_its_key() -> None:
    seen = []

    def work(post: Post, question: str) -> None:
        try:
            post(
                "/gemini/v1beta/models/m:generateContent?key=sk-secret",
                {"contents": [{"parts": [{"text": question}]}]},
            )
        except urllib.error.HTTPError as error:
            seen.append((error.code, error.read().decode()))

    (reply,) = await Bot(work, upstreams={"gemini": "http://127.0.0.1:9"}).asked(ask_for())
    assert seen[0][0] == 502
    assert "127.0.0.1:9" in seen[0][1]
    assert "sk-secret" not in seen[0][1]
    assert reply.tool_calls == ()


def test_the_chatbots_base_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/team/v2")
    upstreams = Upstreams({"anthropic": "http://127.0.0.1:5", "files": "https://files.example/mcp/"})
    assert (
        upstreams.environment("http://127.0.0.1:4319")["OPENAI_BASE_URL"]
        == "http://127.0.0.1:4319/openai/team/v2"
    )
    assert upstreams.find("/openai/team/v2/responses") == "https://gateway.example/team/v2/responses"
    assert upstreams.find("/anthropic/v1/messages") == "http://127.0.0.1:5/v1/messages"
    assert upstreams.find("/files") == "https://files.example/mcp"
    assert upstreams.find("/unknown/x") is None
    with pytest.raises(ConfigError, match="upstreams: files"):
        Upstreams({"files": "ftp://x"})


@pytest.mark.parametrize("field", ["messages", "instructions", "system", "systemInstruction"])
async def test_hashes_of_the_system_prompt_and_of_the_tools_that_are_offered(field: str) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("find", "pay")]

    async def hashes(prompt: str, tools: list[Any], questions: int = 1) -> tuple[str | None, str | None]:
        def work(post: Post, question: str) -> None:
            said = [{"role": "user", "content": question}]
            more = {"tools": tools}
            text = prompt.format(question)
            if field == "messages":
                said.insert(0, {"role": "system", "content": text})
            else:
                more[field] = [{"text": text}]
            post("/openai/v1/chat/completions", {"messages": said, **more})

        bot = Bot(work)
        await bot.asked(*(ask_for(f"Question {number}?", number) for number in range(1, questions + 1)))
        return bot.target.prompt_hash, bot.target.tools_hash

    prompt, offered = await hashes("Be brief.", tools)
    assert prompt
    assert offered
    assert await hashes("Be brief.", tools[::-1], 2) == (prompt, offered)
    longer, same = await hashes("Be long.", tools)
    assert longer not in (None, prompt)
    assert same == offered
    assert (await hashes("Be brief.", tools[:1]))[1] not in (None, offered)
    # A prompt that is another one for each question says nothing of the version.
    assert await hashes("Today: {}", [], 8) == (None, None)
