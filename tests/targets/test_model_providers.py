"""The same conversation with each provider's API, against a server that speaks its wire format (interop/model_server.py)."""

import asyncio
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web

from answerkey.protocols import Ask
from answerkey.targets.resolve import resolve_target

from .asking import ask_all
from .scripted_model import Model

KINDS: dict[str, dict[str, Any]] = {
    "chat": {"openai": "scripted"},
    "responses": {"openai": "scripted", "api": "responses"},
    "by name": {"openai-responses": "scripted"},
    "anthropic": {"anthropic": "scripted"},
    "gemini": {"gemini": "scripted"},
    "ollama": {"ollama": "scripted"},
}


def _load_server() -> ModuleType:
    path = Path(__file__).parents[2] / "interop" / "model_server.py"
    spec = importlib.util.spec_from_file_location("scripted_model_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SERVER = _load_server()
BASE = SERVER.serve_model()


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "OLLAMA"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)


@pytest.fixture
def tools(tmp_path: Path) -> list[dict[str, str]]:
    path = tmp_path / "tools_of_all_providers.py"
    path.write_text(
        "def query_database(sql: str):\n    'Query the database.'\n    return {'total': 442300}\n"
        "def search_document_content(query: str):\n    raise ValueError('index offline')\n"
    )
    names = ("query_database", "search_document_content")
    return [{"name": name, "python": f"{path}:{name}"} for name in names]


def test_a_model_is_named_on_the_command_line_with_its_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", BASE)
    for spec, response in (("openai:scripted", "chatcmpl-1"), ("openai-responses:scripted", "resp_1")):
        target = resolve_target(spec)
        (reply,) = ask_all(target, Ask(question="q", conversation_id="c"))
        assert (target.name, reply.text, reply.response_id) == (spec, SERVER.ANSWER, response)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_turns_with_tools(kind: str, stream: bool, tools: list[dict[str, str]]) -> None:
    table = {**KINDS[kind], "base_url": BASE, "stream": stream, "tools": tools, "system": "Be exact."}
    target = resolve_target("m", settings={"m": table})
    asks = [Ask(question=f"q{turn}", conversation_id="c", turn=turn) for turn in range(2)]
    first, second = ask_all(target, *asks)
    assert (first.text, first.failure, first.finish) == (SERVER.ANSWER, None, None)
    assert [(call.name, call.arguments) for call in first.tool_calls] == [
        (name, given) for _, name, given in SERVER.CALLS
    ]
    assert first.tool_calls[0].result == {"total": 442300}
    assert first.tool_calls[1].error == "ValueError: index offline"
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens) == (22, 14), "of both steps"
    assert first.evidence.tools_observed
    assert (first.timings.first_byte_ms is not None) == stream
    if first.timings.first_byte_ms is not None:
        assert 0 < first.timings.first_byte_ms <= (first.timings.latency_ms or 0.0)
    assert (second.text, second.tool_calls) == (SERVER.ANSWER, ()), "the results of the first turn were sent"


def sse(*events: Any, split: int = 7, cut: int | None = None) -> Callable[..., Any]:
    """Server-sent events that arrive in pieces of a few bytes; `cut`: the connection breaks after so many events."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        text = "".join(
            f"event: x\r\ndata: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}\r\n\r\n"
            for event in events[:cut]
        ).encode()
        for start in range(0, len(text), split):
            await response.write(text[start : start + split])
            await asyncio.sleep(0)
        if cut is not None:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


def anthropic_events(*blocks: tuple[dict[str, Any], list[dict[str, Any]]], stop: str) -> list[Any]:
    """A message of blocks, each with its pieces."""
    events: list[Any] = [
        {"type": "message_start", "message": {"id": "m1", "type": "message", "usage": {"input_tokens": 3}}}
    ]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ended = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 4}}
    return [*events, ended, {"type": "message_stop"}]


THINKING = (
    {"type": "thinking", "thinking": "", "signature": ""},
    [
        {"type": "thinking_delta", "thinking": "Zwölf "},
        {"type": "thinking_delta", "thinking": "Fälle."},
        {"type": "signature_delta", "signature": "c2ln"},
    ],
)
SEVEN = [{"name": "seven", "result": 7}]


def test_anthropic_streams_thoughts_and_calls_and_gets_them_back() -> None:
    called = (
        {"type": "tool_use", "id": "t1", "name": "seven", "input": {}},
        [{"type": "input_json_delta", "partial_json": piece} for piece in ('{"a"', ": 1}")],
    )
    empty = ({"type": "text", "text": ""}, [])
    said = (
        {"type": "text", "text": ""},
        [{"type": "text_delta", "text": piece} for piece in ("Sie", "ben.")],
    )
    model = Model(
        sse(*anthropic_events(THINKING, empty, called, stop="tool_use")),
        sse(*anthropic_events(said, stop="end_turn")),
        kind="anthropic",
    )
    (reply,) = model.ask(tools=SEVEN, stream=True, api_key="key-123", parameters={"stop": ["X"], "seed": 1})
    assert (reply.text, reply.reasoning, reply.tools_used) == ("Sieben.", "Zwölf Fälle.", ("seven",))
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (6, 8)
    assert reply.timings.first_byte_ms is not None
    first, second = model.requests
    assert model.paths[0] == "/v1/messages", "a base address with and without /v1 is the same"
    assert model.headers[0]["x-api-key"] == "key-123"
    assert first["stop_sequences"] == ["X"]
    assert first["tools"] == [
        {"name": "seven", "description": "", "input_schema": {"type": "object", "properties": {}}}
    ]
    assert second["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Zwölf Fälle.", "signature": "c2ln"},
                {"type": "tool_use", "id": "t1", "name": "seven", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "7", "is_error": False}],
        },
    ]


def test_anthropic_pauses_refuses_and_runs_tools_itself() -> None:
    searched = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "lease"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ]
    paused = {"type": "message", "content": searched, "stop_reason": "pause_turn"}
    ended = {"type": "message", "content": [{"type": "text", "text": "None."}], "stop_reason": "end_turn"}
    model = Model(paused, ended, kind="anthropic")
    (reply,) = model.ask(tools=SEVEN)
    assert (reply.text, reply.tools_used) == ("None.", ("web_search",))
    assert model.requests[1]["messages"][1] == {"role": "assistant", "content": searched}
    (reply,) = Model({"type": "message", "content": [], "stop_reason": "refusal"}, kind="anthropic").ask()
    assert reply.failure is not None
    assert (reply.failure.message, reply.finish) == ("the model refused to answer", "refusal")


def test_gemini_keeps_ids_signatures_and_places_of_parameters() -> None:
    parts = [
        {"text": "Hm.", "thought": True},
        {"functionCall": {"id": "g1", "name": "seven", "args": {}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "none", "args": {}}},
    ]
    called = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    answer = {"candidates": [{"content": {"parts": [{"text": "7"}]}, "finishReason": "MAX_TOKENS"}]}
    model = Model(called, answer, kind="gemini")
    (reply,) = model.ask(
        tools=SEVEN, parameters={"max_tokens": 9, "generationConfig": {"topK": 3}, "safetySettings": []}
    )
    assert (reply.text, reply.reasoning, reply.finish) == ("7", "Hm.", "length")
    assert model.paths[0] == "/v1/v1beta/models/test-model:generateContent"
    first, second = model.requests
    assert first["generationConfig"] == {"maxOutputTokens": 9, "topK": 3}
    assert first["safetySettings"] == []
    assert second["contents"][1] == {"role": "model", "parts": parts}
    assert second["contents"][2]["parts"] == [
        {"functionResponse": {"name": "seven", "response": {"output": 7}, "id": "g1"}},
        {"functionResponse": {"name": "none", "response": {"error": "there is no tool 'none'"}}},
    ]
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    (reply,) = Model(blocked, kind="gemini").ask()
    assert reply.failure is not None
    assert reply.failure.message == "the provider blocked the prompt: SAFETY"


def test_responses_send_back_all_items() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "seven", "arguments": "{}"},
    ]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "7"}]}
    model = Model(
        {"object": "response", "output": items},
        {"object": "response", "output": [said], "status": "completed"},
    )
    (reply,) = model.ask(tools=SEVEN, api="responses", parameters={"max_tokens": 5})
    assert (reply.text, reply.reasoning) == ("7", "Hm.")
    assert reply.tools_used == ("web_search", "seven")
    assert model.requests[0]["max_output_tokens"] == 5
    assert model.requests[1]["input"][1:] == [
        *items,
        {"type": "function_call_output", "call_id": "c1", "output": "7"},
    ]


def test_ollama_is_told_the_name_and_a_host_without_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    called = {"message": {"content": "", "tool_calls": [{"function": {"name": "seven", "arguments": "x"}}]}}
    ended = {"message": {"content": "7", "thinking": "Hm."}, "done": True, "done_reason": "length"}
    model = Model({**called, "done": True}, ended, kind="ollama")
    (reply,) = model.ask(tools=SEVEN, parameters={"temperature": 0, "keep_alive": 5})
    assert (reply.text, reply.reasoning, reply.finish) == ("7", "Hm.", "length")
    first, second = model.requests
    assert (first["options"], first["keep_alive"], first["stream"]) == ({"temperature": 0}, 5, False)
    assert second["messages"][2] == {
        "role": "tool",
        "tool_name": "seven",
        "content": "Error: the arguments are not a JSON object: x",
    }
    monkeypatch.setenv("OLLAMA_HOST", BASE.removeprefix("http://"))
    assert ask_all(resolve_target("ollama:scripted"), Ask(question="q", conversation_id="c"))[0].tools_used


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_a_stream_that_breaks_off_is_asked_for_again_and_its_half_is_forgotten() -> None:
    events = [chunk({"content": "Thr"}), chunk({"content": "ee."}), chunk({}, "stop"), "[DONE]"]
    overloaded = [
        {"type": "message_start", "message": {}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ]
    for model in (
        Model(sse(*events, cut=1), sse(*events)),
        Model(sse(*events[:2]), sse(*events)),
        Model(
            sse(*overloaded),
            sse(
                *anthropic_events(
                    ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Three."}]),
                    stop="end_turn",
                )
            ),
            kind="anthropic",
        ),
    ):
        (reply,) = model.ask_in_a_run(stream=True)
        assert (reply.text, reply.failure, reply.timings.attempts) == ("Three.", None, 2)


def test_a_stream_of_calls_as_servers_really_send_them() -> None:
    """Ollama's index 0 for all, names sent again, reasoning in pieces, usage at the end, a stream nobody asked for."""
    pieces = [
        chunk({"reasoning_content": "I "}),
        chunk({"reasoning_content": "see."}),
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "seven", "arguments": "{}"}}]}),
        chunk({"tool_calls": [{"index": 0, "id": "b", "function": {"name": "seven", "arguments": '{"x"'}}]}),
        chunk({"tool_calls": [{"index": 0, "id": "b", "function": {"arguments": ": 1}"}}]}),
        chunk({}, "tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}},
        "[DONE]",
    ]
    model = Model(sse(*pieces, split=1), sse(chunk({"content": "7"}), chunk({}, "stop")))
    (reply,) = model.ask(tools=SEVEN)
    assert [call.arguments for call in reply.tool_calls] == [{}, {"x": 1}]
    assert (reply.text, reply.reasoning) == ("7", "I see.")
    assert reply.usage is not None
    assert reply.usage.output_tokens == 3
    assert [call["id"] for call in model.requests[1]["messages"][1]["tool_calls"]] == ["a", "b"]
    assert model.requests[1]["messages"][1]["reasoning_content"] == "I see."


def test_streaming_among_the_parameters_is_streaming() -> None:
    model = Model(sse(chunk({"content": "7"}), chunk({}, "stop")))
    (reply,) = model.ask(parameters={"stream": True})
    assert reply.text == "7"
    assert model.requests[0]["stream_options"] == {"include_usage": True}
