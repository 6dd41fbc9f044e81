"""Formats without a package to record them from: Bedrock Converse, OpenTelemetry's messages, streams cut short."""

import json
from typing import Any, ClassVar

import pytest

from answerkey.transcripts.payloads import Streamed, reply_from_object, reply_from_payload

USE = {"toolUse": {"toolUseId": "t1", "name": "search", "input": {"q": "x"}}}
FAILED = {"toolResult": {"toolUseId": "t1", "content": [{"text": "offline"}], "status": "error"}}
FOUND = {"toolResult": {"toolUseId": "t1", "content": [{"json": {"hits": 2}}], "status": "success"}}


def test_bedrock_converse() -> None:
    payload = {
        "output": {"message": {"role": "assistant", "content": [{"text": "Looking."}, USE]}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7, "cacheReadInputTokens": 3},
        "metrics": {"latencyMs": 12},
    }
    reply = reply_from_payload(payload)
    assert (reply.text, reply.tools_used, reply.timings.latency_ms) == ("Looking.", ("search",), 12)
    assert reply.tool_calls[0].arguments == {"q": "x"}
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (8, 3)


@pytest.mark.parametrize(
    ("result", "brought", "error"), [(FAILED, "offline", "offline"), (FOUND, {"hits": 2}, None)]
)
def test_a_history_of_bedrock(result: Any, brought: Any, error: str | None) -> None:
    messages = [
        {"role": "user", "content": [{"text": "Where?"}]},
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"text": "There."}]},
    ]
    reply = reply_from_payload({"messages": messages})
    assert (reply.text, reply.tool_calls[0].result, reply.tool_calls[0].error) == ("There.", brought, error)


def test_a_stream_of_bedrock() -> None:
    use = {"toolUseId": "t1", "name": "search"}
    events = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Look"}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "ing."}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": use}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"q":'}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '"x"}'}}}},
        {"messageStop": {"stopReason": "tool_use"}},
        {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}}},
    ]
    reply = reply_from_object(Streamed(events))
    assert (reply.text, reply.tools_used, reply.tool_calls[0].arguments) == (
        "Looking.",
        ("search",),
        {"q": "x"},
    )
    assert (reply.evidence.kind, reply.evidence.completeness) == ("stream", "complete")
    assert reply_from_object(Streamed(events[:4])).evidence.completeness == "partial"


def test_messages_of_opentelemetry() -> None:
    asked = [
        {"role": "user", "parts": [{"type": "text", "content": "Where?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c", "name": "search", "arguments": {"q": "x"}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "there"}]},
    ]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "There."}], "finish_reason": "stop"}]
    older = json.loads(json.dumps(asked).replace('"response"', '"result"'))
    span = {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said)}
    for payload in (span, {"messages": [*asked, *said]}, [*older, *said]):
        reply = reply_from_payload(payload)
        assert (reply.text, reply.tools_used) == ("There.", ("search",))
        assert (reply.tool_calls[0].arguments, reply.tool_calls[0].result) == ({"q": "x"}, "there")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "model", "parts": [{"text": "There."}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "There."}], "finish_reason": "stop"},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "There."}]},
    ],
)
def test_a_single_message_proves_no_absence_of_calls(message: Any) -> None:
    reply = reply_from_payload(message)
    assert (reply.text, reply.evidence.tools_observed) == ("There.", False)


def test_a_configuration_called_text_is_not_the_answer() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}
    for text in (None, {"format": {"type": "text"}}):
        assert reply_from_payload({"object": "response", "output": [said], "text": text}).text == "Yes."


def test_a_structured_answer_of_an_agent_is_not_written_out() -> None:
    class Run:
        final_output: ClassVar = {"total": 3}

        def to_input_list(self) -> list[dict[str, Any]]:
            return [{"role": "user", "content": "?"}, {"type": "function_call", "call_id": "c", "name": "a"}]

    reply = reply_from_object(Run())
    assert reply.tools_used == ("a",)
    assert reply.failure is not None
    assert (reply.text, reply.failure.kind) == (None, "malformed")


def test_an_a2a_task_that_failed() -> None:
    message = {
        "kind": "message",
        "role": "agent",
        "parts": [{"kind": "text", "text": "No index."}],
        "messageId": "m",
    }
    task = {"id": "t", "contextId": "c", "kind": "task", "status": {"state": "failed", "message": message}}
    reply = reply_from_payload({"jsonrpc": "2.0", "id": 1, "result": task})
    assert reply.failure is not None
    assert reply.failure.message == "the task was failed: No index."
    data = {
        **task,
        "status": {"state": "completed"},
        "artifacts": [{"parts": [{"kind": "data", "data": {"a": 1}}]}],
    }
    assert reply_from_payload(data).evidence.unread == ("data",)


def test_an_error_in_ag_ui() -> None:
    events = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "RUN_ERROR", "message": "rate limit", "code": "429"},
    ]
    reply = reply_from_payload(events)
    assert reply.failure is not None
    assert reply.failure.kind == "rate_limit"


def test_claudes_agent_that_gave_up() -> None:
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Hm."}]}},
        {
            "type": "result",
            "subtype": "error_max_turns",
            "is_error": True,
            "total_cost_usd": 0.1,
            "usage": {},
        },
    ]
    reply = reply_from_object(Streamed(lines))
    assert reply.failure is not None
    assert "error_max_turns" in reply.failure.message
    assert reply.usage is not None
    assert reply.usage.cost == 0.1


def test_a_smolagents_code_agent_may_call_tools_inside_its_code() -> None:
    step = {
        "step_number": 1,
        "code_action": "print(query_database('SELECT 1'))",
        "tool_calls": [{"id": "c1", "function": {"name": "python_interpreter", "arguments": "print(1)"}}],
        "observations": "1",
    }
    reply = reply_from_payload({"steps": [step], "output": "It is 1."})
    assert reply.tools_used == ("python_interpreter",)
    assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)
    assert reply.evidence.unread == ("tool calls inside code",)


def test_haystack_messages_with_results_in_parts() -> None:
    call = {"tool_name": "search", "arguments": {"q": "lease"}, "id": "c1"}
    messages = [
        {"role": "user", "content": [{"text": "What does the lease say?"}]},
        {"role": "assistant", "content": [{"tool_call": call}]},
        {
            "role": "tool",
            "content": [{"tool_call_result": {"result": "index offline", "error": True, "origin": call}}],
        },
        {"role": "assistant", "content": [{"text": "I could not look."}]},
    ]
    reply = reply_from_payload({"messages": messages})
    (made,) = reply.tool_calls
    assert (made.name, made.arguments, made.result) == ("search", {"q": "lease"}, "index offline")
    assert made.error
    assert reply.text == "I could not look."


def test_cached_tokens_that_the_total_includes_are_counted_once() -> None:
    """Strands with an OpenAI model."""
    usage = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18, "cacheReadInputTokens": 3}
    reply = reply_from_payload({"answer": "x", "usage": usage})
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (11, 3)


def test_all_messages_of_the_ai_sdk_7_and_not_only_those_of_the_last_step() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "query", "input": {"sql": "a"}}
    said = {"role": "assistant", "content": [{"type": "text", "text": "It is 1."}]}
    payload = {
        "responseMessages": [{"role": "assistant", "content": [call]}, said],
        "response": {"messages": [said]},
    }
    reply = reply_from_payload(payload)
    assert (reply.text, reply.tools_used, reply.evidence.tools_observed) == ("It is 1.", ("query",), True)
