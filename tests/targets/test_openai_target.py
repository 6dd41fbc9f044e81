import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from answerkey.errors import ConfigError
from answerkey.model.reply import Reply
from answerkey.protocols import Ask, RetryableError
from answerkey.targets.openai_target import OpenAISettings, OpenAITarget
from answerkey.targets.secrets import Secrets

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def completion(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}],
        "usage": USAGE,
    }


def calling(*calls: tuple[str, str]) -> dict[str, Any]:
    made = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return completion({"content": None, "tool_calls": made})


class Model:
    """A small OpenAI-compatible server that plays a script and keeps the requests."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.Request) -> web.Response:
        if request.path.endswith("/tool"):
            arguments = await request.json()
            if arguments.get("fail"):
                return web.json_response({"detail": "no"}, status=500)
            return web.json_response(
                {"doubled": arguments["n"] * 2, "auth": request.headers.get("Authorization")}
            )
        self.requests.append(await request.json())
        self.headers.append(dict(request.headers))
        answer = self.script.pop(0)
        return answer if isinstance(answer, web.Response) else web.json_response(answer)

    def ask(self, *asks: Ask, secrets: Secrets | None = None, **settings: Any) -> list[Reply]:
        async def run() -> list[Reply]:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self.handle)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            base = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            for tool in settings.get("tools", []):
                if "url" in tool:
                    tool["url"] = tool["url"].replace("BASE", base)
            read = msgspec.convert({"openai": "test-model", "base_url": base, **settings}, OpenAISettings)
            try:
                async with OpenAITarget(read, secrets=secrets) as target:
                    return [
                        await target.ask(one) for one in asks or [Ask(question="What?", conversation_id="c")]
                    ]
            finally:
                await runner.cleanup()

        return asyncio.run(run())


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "my_tools_for_models.py"
    path.write_text(
        "def add(a: int, b: int = 1):\n    'Adds two numbers.'\n    return {'sum': a + b}\n"
        "async def wait(text: str):\n    return text\n"
        "def fail(**anything):\n    raise KeyError('missing')\n",
    )
    return str(path)


def test_a_plain_answer() -> None:
    model = Model(completion({"content": "Hello."}))
    (reply,) = model.ask(system="Be kind.", parameters={"temperature": 0})
    assert reply.text == "Hello."
    assert reply.tool_calls == ()
    assert reply.evidence.tools_observed, "the loop is ours, so no call means no call"
    (request,) = model.requests
    assert request["model"] == "test-model"
    assert request["temperature"] == 0
    assert request["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "What?"},
    ]
    assert "tools" not in request
    assert "Authorization" not in model.headers[0]


def test_the_loop_over_tools(tools: str) -> None:
    model = Model(
        calling(("add", '{"a": 2, "b": 3}'), ("wait", '{"text": "x"}')),
        calling(("double", '{"n": 4}'), ("fixed", "{}")),
        completion({"content": "5 and 8."}),
    )
    (reply,) = model.ask(
        tools=[
            {"name": "add", "python": f"{tools}:add"},
            {"name": "wait", "python": f"{tools}:wait"},
            {"name": "double", "url": "BASE/tool", "parameters": {"type": "object"}},
            {"name": "fixed", "result": [1, 2]},
        ],
        api_key="sk-literal-key-123",
    )
    assert reply.text == "5 and 8."
    assert reply.tools_used == ("add", "wait", "double", "fixed")
    assert [call.result for call in reply.tool_calls] == [
        {"sum": 5},
        "x",
        {"doubled": 8, "auth": None},
        [1, 2],
    ]
    assert all(call.duration_ms is not None and call.result_seen for call in reply.tool_calls)
    assert reply.usage is not None
    assert reply.usage.total_tokens == 45, "summed over the calls of the model"
    definition = model.requests[0]["tools"][0]["function"]
    assert definition["description"] == "Adds two numbers."
    assert definition["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    }
    sent_back = [message for message in model.requests[1]["messages"] if message["role"] == "tool"]
    assert sent_back == [
        {"role": "tool", "tool_call_id": "call_0", "content": '{"sum": 5}'},
        {"role": "tool", "tool_call_id": "call_1", "content": "x"},
    ]
    assert model.headers[0]["Authorization"] == "Bearer sk-literal-key-123"


def test_tools_that_fail_are_told_to_the_model(tools: str) -> None:
    model = Model(
        calling(("fail", "{}"), ("unknown", "{}"), ("fail", "not json"), ("remote", '{"fail": true}')),
        completion({"content": "Sorry."}),
    )
    (reply,) = model.ask(
        tools=[{"name": "fail", "python": f"{tools}:fail"}, {"name": "remote", "url": "BASE/tool"}]
    )
    assert reply.text == "Sorry."
    assert reply.failure is None
    errors = [call.error or "" for call in reply.tool_calls]
    assert errors[0] == "KeyError: 'missing'"
    assert errors[1] == "there is no tool 'unknown'"
    assert errors[2].startswith("the arguments are not a JSON object")
    assert errors[3].startswith("RuntimeError: HTTP 500")
    assert [message["content"] for message in model.requests[1]["messages"][-4:]] == [
        f"Error: {error}" for error in errors
    ]


def test_a_model_that_never_answers() -> None:
    model = Model(*[calling(("fixed", "{}"))] * 3)
    (reply,) = model.ask(tools=[{"name": "fixed", "result": 1}], max_turns=3)
    assert reply.failure is not None
    assert "after 3 turns" in reply.failure.message
    assert reply.tools_used == ("fixed",) * 3


def test_turns_of_a_conversation() -> None:
    model = Model(completion({"content": "one"}), completion({"content": "two"}))
    model.ask(*[Ask(question=f"q{turn}", conversation_id="c", turn=turn) for turn in range(2)])
    assert [message["content"] for message in model.requests[1]["messages"]] == ["q0", "one", "q1"]


def test_errors_of_the_api() -> None:
    refused = web.json_response(
        {"error": {"message": "bad model", "type": "invalid_request_error"}}, status=404
    )
    (reply,) = Model(refused).ask()
    assert reply.failure is not None
    assert reply.failure.kind == "http"
    assert reply.failure.message == "HTTP 404: invalid_request_error: bad model"
    limited = web.json_response({"error": {"message": "slow"}}, status=429, headers={"Retry-After": "3"})
    with pytest.raises(RetryableError) as caught:
        Model(limited).ask()
    assert (caught.value.failure.kind, caught.value.retry_after) == ("rate_limit", 3.0)
    for broken in (web.Response(text="<html>"), web.json_response({"hello": 1})):
        (reply,) = Model(broken).ask()
        assert reply.failure is not None
        assert reply.failure.kind == "malformed"


def test_the_key_comes_from_the_environment_and_stays_out_of_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-1")
    model = Model(completion({"content": "my key is sk-very-secret-1"}))
    (reply,) = model.ask()
    assert model.headers[0]["Authorization"] == "Bearer sk-very-secret-1"
    assert reply.text == "my key is ${OPENAI_API_KEY}"
    assert "sk-very" not in json.dumps(msgspec.to_builtins(reply))


def test_settings_that_are_wrong() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY, which is not set"):
        asyncio.run(OpenAITarget(OpenAISettings(openai="gpt-x")).__aenter__())
    with pytest.raises(ConfigError, match="needs exactly one of python, url and result"):
        Model().ask(tools=[{"name": "a"}])
    with pytest.raises(ConfigError, match="two tools have the same name"):
        Model().ask(tools=[{"name": "a", "result": 1}, {"name": "a", "result": 2}])
