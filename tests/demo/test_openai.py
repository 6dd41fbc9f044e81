"""The tool loop against a scripted, OpenAI-compatible server on loopback."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from answerkey_demo import open_chatbot
from answerkey_demo.tools import ToolExecutionError

Script = Callable[[list[dict[str, Any]]], dict[str, Any]]


def call(name: str, arguments: object, key: str = "c1") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": key, "type": "function", "function": {"name": name, "arguments": text}}


def ask(
    script: Script, monkeypatch: pytest.MonkeyPatch, *questions: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Ask the variant `openai` of a server that answers by the script; gives the last reply and the requests."""
    requests: list[dict[str, Any]] = []

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        requests.append({"body": body, "authorization": request.headers.get("authorization")})
        document = script(body["messages"])
        if "status" in document:
            return web.Response(status=document["status"], text=document["text"])
        usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
        return web.json_response(
            {"object": "chat.completion", "choices": [{"message": document}], "usage": usage}
        )

    async def run() -> dict[str, Any]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        monkeypatch.setenv("ANSWERKEY_DEMO_BASE_URL", f"http://127.0.0.1:{port}/v1/")
        monkeypatch.setenv("ANSWERKEY_DEMO_MODEL", "scripted")
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        try:
            bot = open_chatbot("openai")
            reply: dict[str, Any] = {}
            for question in questions:
                reply = await bot.ask(question, "c")
            return reply
        finally:
            await runner.cleanup()

    return asyncio.run(run()), requests


def test_runs_the_tools_that_the_model_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(messages: list[dict[str, Any]]) -> dict[str, Any]:
        results = [m for m in messages if m["role"] == "tool"]
        if not results:
            sql = "SELECT SUM(amount) AS total FROM transactions WHERE category = 'rent' AND date LIKE '2024-08%'"
            return {"content": None, "tool_calls": [call("query_database", {"sql": sql})]}
        total = json.loads(results[-1]["content"])["rows"][0]["total"]
        return {"content": f"It was ${total:,.0f}."}

    reply, requests = ask(script, monkeypatch, "What was my rental income in August 2024?")
    assert reply["answer"] == "It was $16,144."
    assert reply["tools_used"] == ["query_database"]
    assert reply["usage"] == {"input_tokens": 20, "output_tokens": 6, "total_tokens": 26}
    assert requests[0]["authorization"] == "Bearer secret"
    assert [t["function"]["name"] for t in requests[0]["body"]["tools"]] == [
        "query_database",
        "search_document_content",
        "list_business_documents",
    ]


def test_several_calls_in_one_message_and_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(messages: list[dict[str, Any]]) -> dict[str, Any]:
        if any(m["role"] == "tool" for m in messages):
            ids = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
            return {"content": f"done {','.join(ids)}"}
        return {
            "content": "",
            "tool_calls": [
                call("search_document_content", {"query": "quorum"}, "a"),
                call("list_business_documents", {"type": "minutes"}, "b"),
            ],
        }

    reply, _ = ask(script, monkeypatch, "Quorum?")
    assert reply["answer"] == "done a,b"
    assert reply["tools_used"] == ["search_document_content", "list_business_documents"]
    assert reply["sources"][0]["id"] == "operating-agreement"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (call("query_database", {"sql": "DROP TABLE units"}), "read-only"),
        (call("no_such_tool", {}), "no tool is called"),
        (call("query_database", "{not json"), "not a JSON object"),
        (call("query_database", "[1]"), "not a JSON object"),
        (call("query_database", {"name": "x", "sql": "SELECT 1"}), "wrong arguments"),
        (call("search_document_content", {"query": "x", "document_id": "nope"}), "Document not found"),
    ],
)
def test_a_wrong_call_goes_back_to_the_model_as_an_error(
    monkeypatch: pytest.MonkeyPatch, bad: dict[str, Any], told: str
) -> None:
    def script(messages: list[dict[str, Any]]) -> dict[str, Any]:
        results = [m["content"] for m in messages if m["role"] == "tool"]
        return {"content": results[-1]} if results else {"content": None, "tool_calls": [bad]}

    reply, _ = ask(script, monkeypatch, "?!a")
    assert reply["answer"].startswith("Error:")
    assert told in reply["answer"]


def test_the_conversation_is_shown_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    reply, requests = ask(
        lambda messages: {"content": f"answer {len(messages)}"}, monkeypatch, "One?", "Two?"
    )
    said = [m["content"] for m in requests[1]["body"]["messages"][1:]]
    assert said == ["One?", "answer 2", "Two?"]
    assert reply["answer"] == "answer 4"


def test_an_endless_loop_of_tool_calls_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolExecutionError, match="without answering"):
        ask(
            lambda m: {"content": None, "tool_calls": [call("list_business_documents", {})]},
            monkeypatch,
            "Loop?",
        )


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"status": 500, "text": "overloaded"}, "answered 500"),
        ({"status": 200, "text": "hello"}, "no chat completion"),
    ],
)
def test_a_broken_endpoint_is_a_connection_error(
    monkeypatch: pytest.MonkeyPatch, document: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConnectionError, match=told):
        ask(lambda messages: document, monkeypatch, "Hello?")


def test_a_setting_that_a_model_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(
        [
            {"status": 400, "text": "Unsupported parameter: 'max_tokens'"},
            {"content": "Hello."},
            {"content": "Again."},
        ]
    )
    reply, requests = ask(lambda messages: next(answers), monkeypatch, "Hello?", "Hello again?")
    assert reply["answer"] == "Again."
    assert ["max_tokens" in request["body"] for request in requests] == [True, False, False]
    assert all(request["body"]["temperature"] == 0 for request in requests)


def test_a_null_reply_stays_null(monkeypatch: pytest.MonkeyPatch) -> None:
    reply, _ = ask(lambda messages: {"content": None}, monkeypatch, "Hello?")
    assert reply["answer"] is None
