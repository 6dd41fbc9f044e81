"""MCP results, Inspect samples, ADK invocations and LangSmith runs."""

from typing import Any

from answerkey.transcripts.payloads import reply_from_payload


def test_an_mcp_result() -> None:
    result = {
        "content": [{"type": "text", "text": "22.5 °C"}],
        "structuredContent": {"t": 22.5},
        "isError": False,
    }
    for payload in (result, {"jsonrpc": "2.0", "id": 5, "result": result}):
        reply = reply_from_payload(payload)
        assert (reply.text, reply.failure) == ("22.5 °C", None)
    structured = reply_from_payload({"content": [], "structuredContent": {"t": 1}})
    assert structured.failure is not None, "an object is nothing that was said"
    assert structured.failure.kind == "malformed"


def test_mcp_failures() -> None:
    failed = reply_from_payload({"content": [{"type": "text", "text": "API rate limit"}], "isError": True})
    assert failed.failure is not None
    assert failed.failure.kind == "tool"
    unknown = reply_from_payload(
        {"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "Unknown tool: x"}}
    )
    assert unknown.failure is not None
    assert unknown.failure.message == "Unknown tool: x"


def test_an_inspect_sample() -> None:
    sample: dict[str, Any] = {
        "id": "q1",
        "epoch": 1,
        "input": "What?",
        "target": "That",
        "messages": [
            {"role": "user", "content": "What?", "source": "input"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}
                ],
            },
            {
                "role": "tool",
                "content": "denied",
                "tool_call_id": "c1",
                "function": "bash",
                "error": {"type": "permission", "message": "denied"},
            },
            {"role": "assistant", "content": "That.", "source": "generate"},
        ],
        "output": {
            "model": "m",
            "choices": [{"message": {"role": "assistant", "content": "That."}, "stop_reason": "stop"}],
        },
        "model_usage": {
            "a": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
            "b": {"input_tokens": 1, "total_tokens": 1},
        },
        "total_time": 1.5,
        "error": None,
    }
    reply = reply_from_payload(sample)
    assert reply.text == "That."
    assert [(call.name, call.arguments, call.error) for call in reply.tool_calls] == [
        ("bash", {"cmd": "ls"}, "permission: denied")
    ]
    assert reply.timings.latency_ms == 1500
    assert reply.usage is not None
    assert reply.usage.total_tokens == 8
    event = {
        "event": "tool",
        "id": "c1",
        "function": "bash",
        "arguments": {"cmd": "ls"},
        "result": "x",
        "working_time": 0.25,
    }
    timed = reply_from_payload({**sample, "events": [{"event": "model"}, event]})
    assert timed.tool_calls[0].duration_ms == 250
    assert reply_from_payload({"version": 2, "samples": [sample]}).text == "That."
    broken = reply_from_payload({**sample, "error": {"message": "RuntimeError('x')", "traceback": "…"}})
    assert broken.failure is not None


def test_an_adk_invocation() -> None:
    turn = {
        "invocation_id": "e-1",
        "user_content": {"parts": [{"text": "Roll."}], "role": "user"},
        "final_response": {"parts": [{"text": "You got 4."}], "role": "model"},
        "intermediate_data": {
            "tool_uses": [{"name": "roll_die", "args": {"sides": 6}, "id": "1"}],
            "tool_responses": [{"name": "roll_die", "id": "1", "response": {"output": 4}}],
        },
    }
    case = {"eval_id": "a", "conversation": [{**turn, "final_response": {"parts": [{"text": "Hi."}]}}, turn]}
    rolled = ("roll_die", {"sides": 6}, 4)
    for payload, times in ((turn, 1), (case, 2), ({"eval_set_id": "s", "eval_cases": [case]}, 2)):
        reply = reply_from_payload(payload)
        assert reply.text == "You got 4."
        assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [rolled] * times


def test_a_langsmith_run() -> None:
    run = {
        "id": "b1",
        "trace_id": "t1",
        "name": "agent",
        "run_type": "chain",
        "inputs": {"question": "?"},
        "outputs": {"answer": "That."},
        "error": None,
        "start_time": "2025-05-01T10:00:00.000000",
        "end_time": "2025-05-01T10:00:01.250000",
        "child_runs": [
            {
                "name": "retriever",
                "run_type": "retriever",
                "outputs": {"documents": [{"page_content": "x", "metadata": {"source": "a.pdf"}}]},
                "child_runs": [],
            },
            {
                "name": "search",
                "run_type": "tool",
                "inputs": {"input": '{"q": "x"}'},
                "outputs": {"output": "found"},
                "start_time": "2025-05-01T10:00:00",
                "end_time": "2025-05-01T10:00:00.100000",
            },
        ],
    }
    reply = reply_from_payload(run)
    assert reply.text == "That."
    assert [(call.name, call.arguments, call.result, call.duration_ms) for call in reply.tool_calls] == [
        ("search", {"q": "x"}, "found", 100.0),
    ]
    assert reply.sources[0].id == "a.pdf"
    assert reply.timings.latency_ms == 1250
    assert (reply.response_id, reply.trace_id, reply.evidence.kind) == ("b1", "t1", "log")
    bare = reply_from_payload({**run, "child_runs": None})
    assert not bare.evidence.tools_observed
    messages = [{"type": "human", "content": "?"}, {"type": "ai", "content": "Agent.", "tool_calls": []}]
    assert reply_from_payload({**run, "outputs": {"messages": messages}}).text == "Agent."
