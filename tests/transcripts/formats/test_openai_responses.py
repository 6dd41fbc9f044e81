from typing import Any

from answerkey.transcripts.payloads import reply_from_payload


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_67ccd2bed1ec8190b14f964abc054267",
        "object": "response",
        "created_at": 1741476542,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-4.1-2025-04-14",
        "output": list(output),
        "parallel_tool_calls": True,
        "usage": {
            "input_tokens": 36,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": 87,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 123,
        },
        **more,
    }


def said(text: str, *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    return {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [part],
        **more,
    }


def test_an_answer() -> None:
    reply = reply_from_payload(response({"type": "reasoning", "id": "rs_1", "summary": []}, said("Hello.")))
    assert reply.text == "Hello."
    assert reply.response_id == "resp_67ccd2bed1ec8190b14f964abc054267"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.reasoning_tokens) == (36, 3, 2)
    assert not reply.evidence.tools_observed
    assert reply.failure is None


def test_calls_of_every_kind_in_order() -> None:
    reply = reply_from_payload(
        response(
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "get_weather",
                "arguments": '{"city": "Paris"}',
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "18 °C"},
            {"type": "mcp_list_tools", "server_label": "s", "tools": []},
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "name": "roll",
                "server_label": "dice",
                "arguments": "{}",
                "output": None,
                "error": {"type": "mcp_tool_execution_error", "content": "no dice"},
            },
            {
                "type": "mcp_call",
                "id": "mcp_2",
                "name": "roll",
                "arguments": "{}",
                "output": "4",
                "error": "old style",
            },
            {
                "type": "file_search_call",
                "id": "fs_1",
                "status": "completed",
                "queries": ["purpose"],
                "results": [{"file_id": "file-1", "filename": "a.pdf", "score": 0.9, "text": "…"}],
            },
            {
                "type": "web_search_call",
                "id": "ws_1",
                "action": {"type": "search", "query": "x", "sources": [{"url": "https://w"}]},
            },
            {"type": "custom_tool_call", "call_id": "c", "name": "code", "input": "print()"},
            said("Done.", {"type": "file_citation", "file_id": "file-1", "filename": "a.pdf", "index": 3}),
        ),
    )
    assert reply.tools_used == ("get_weather", "roll", "roll", "file_search", "web_search", "code")
    weather, roll, old, files, web, code = reply.tool_calls
    assert (weather.arguments, weather.result) == ({"city": "Paris"}, "18 °C")
    assert roll.error == "mcp_tool_execution_error: no dice"
    assert (old.error, old.result) == ("old style", "4")
    assert files.arguments == {"queries": ["purpose"]}
    assert web.arguments == {"type": "search", "query": "x"}
    assert code.arguments_text == "print()"
    assert [(source.id, source.score, source.cited) for source in reply.sources] == [
        ("file-1", 0.9, None),
        ("https://w", None, None),
        ("file-1", None, True),
    ]


def test_commentary_is_not_the_answer() -> None:
    reply = reply_from_payload(
        response(said("Looking…", phase="commentary"), said("42.", phase="final_answer"))
    )
    assert reply.text == "42."


def test_a_refusal_a_failure_and_an_incomplete_response() -> None:
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert reply_from_payload(response(refused)).text == "No."
    failed = reply_from_payload(
        response(status="failed", error={"code": "rate_limit_exceeded", "message": "slow down"})
    )
    assert failed.failure is not None
    assert failed.failure.kind == "rate_limit"
    cut = reply_from_payload(
        response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    )
    assert cut.failure is not None
    assert "max_output_tokens" in cut.failure.message


def test_a_history_of_items() -> None:
    items = [
        {"role": "user", "content": "What?"},
        {"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "x"},
        {"role": "assistant", "content": "That."},
    ]
    reply = reply_from_payload({"messages": items})
    assert (reply.text, reply.tools_used, reply.tool_calls[0].result) == ("That.", ("a",), "x")


def test_items_with_a_user_message_are_the_whole_conversation() -> None:
    """`to_input_list()` of OpenAI Agents under `output`: the user's words are not the answer's."""
    items = [
        {"role": "user", "content": "What is the total?"},
        {"type": "function_call", "call_id": "c1", "name": "query", "arguments": '{"sql": "a"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "442300"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "It is 442300."}],
        },
    ]
    reply = reply_from_payload({"id": "q1", "output": items})
    assert reply.text == "It is 442300."
    assert [(call.name, call.result) for call in reply.tool_calls] == [("query", "442300")]
    assert reply.evidence.tools_observed
