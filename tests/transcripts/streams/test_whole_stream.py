import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerkey.model.reply import Reply
from answerkey.transcripts.payloads import Streamed, reply_from_object
from answerkey.transcripts.streams import STREAM_KINDS, EventReader, assemble


def reply(events: list[Any], kind: Any = "sse", *, done: bool = False) -> tuple[Reply, bool]:
    data = [event if isinstance(event, str) else json.dumps(event) for event in events]
    payload, whole = assemble(kind, data, done=done)
    return reply_from_object(payload), whole


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more}


def test_openai_chat() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    events = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk({}, "stop"),
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage},
    ]
    read, whole = reply(events, done=True)
    assert (read.text, read.response_id, whole) == ("Hello", "chatcmpl-1", True)
    assert read.usage is not None
    assert read.usage.total_tokens == 13
    assert not read.evidence.tools_observed


def call(arguments: str, **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    return {**more, "function": {**({"name": name} if name else {}), "arguments": arguments}}


@pytest.mark.parametrize(
    "fragments",
    [
        # By the book: the index tells the fragments apart.
        [
            call('{"q"', index=0, id="a", name="one"),
            call('{"q": 2}', index=1, id="b", name="two"),
            call(": 1}", index=0),
        ],
        # Every call has index 0 and comes whole.
        [call('{"q": 1}', index=0, id="a", name="one"), call('{"q": 2}', index=0, id="b", name="two")],
        # No index at all; fragments without id belong to the last call.
        [call('{"q"', id="a", name="one"), call(": 1}"), call('{"q": 2}', id="b", name="two")],
    ],
)
def test_openai_calls_as_providers_send_them(fragments: list[dict[str, Any]]) -> None:
    events = [*(chunk({"tool_calls": [fragment]}) for fragment in fragments), chunk({}, "tool_calls")]
    read, _ = reply(events)
    assert [(one.name, one.arguments) for one in read.tool_calls] == [("one", {"q": 1}), ("two", {"q": 2})]


def test_openai_responses() -> None:
    whole_response = {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "output": [
            {"type": "function_call", "call_id": "c", "name": "search", "arguments": '{"q": "x"}'},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        ],
    }
    events: list[Any] = [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_text.delta", "delta": "Do"},
        {"type": "response.output_text.delta", "delta": "ne."},
    ]
    cut, whole = reply(events)
    assert (cut.text, whole) == ("Done.", False)
    read, whole = reply([*events, {"type": "response.completed", "response": whole_response}])
    assert (read.text, read.tools_used, whole) == ("Done.", ("search",), True)


def test_anthropic() -> None:
    events = [
        {
            "type": "message_start",
            "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": {"input_tokens": 5}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"a"'},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": ": 1}"},
        },
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    read, whole = reply(events)
    assert (read.text, whole) == ("Let me look.", True)
    assert [(one.name, one.arguments) for one in read.tool_calls] == [("look", {"a": 1})]
    assert read.usage is not None
    assert (read.usage.input_tokens, read.usage.output_tokens) == (5, 7)
    assert not reply(events[:-1])[1]
    overloaded, _ = reply(
        [events[0], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}]
    )
    assert overloaded.failure is not None


def test_vercel_5() -> None:
    events = [
        {"type": "start", "messageId": "m1"},
        {"type": "start-step"},
        {"type": "tool-input-start", "toolCallId": "t1", "toolName": "search"},
        {"type": "tool-input-available", "toolCallId": "t1", "toolName": "search", "input": {"q": "x"}},
        {"type": "tool-output-available", "toolCallId": "t1", "output": {"hits": 2}},
        {"type": "tool-input-available", "toolCallId": "t2", "toolName": "pay", "input": {}},
        {"type": "tool-output-error", "toolCallId": "t2", "errorText": "declined"},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "text-start", "id": "x"},
        {"type": "text-delta", "id": "x", "delta": "Two "},
        {"type": "text-delta", "id": "x", "delta": "hits."},
        {"type": "text-end", "id": "x"},
        {"type": "source-url", "sourceId": "s1", "url": "https://a.example", "title": "A"},
        {"type": "finish"},
    ]
    read, whole = reply(events)
    assert (read.text, whole, read.response_id) == ("Two hits.", True, "m1")
    assert [(one.name, one.result, one.error) for one in read.tool_calls] == [
        ("search", {"hits": 2}, None),
        ("pay", None, "declined"),
    ]
    assert read.sources[0].uri == "https://a.example"


def test_vercel_4_lines() -> None:
    lines = [
        'f:{"messageId":"m1"}',
        '9:{"toolCallId":"t1","toolName":"search","args":{"q":"x"}}',
        'a:{"toolCallId":"t1","result":"two"}',
        'e:{"finishReason":"tool-calls"}',
        'f:{"messageId":"m1"}',
        '0:"Two "',
        '0:"hits."',
        'd:{"finishReason":"stop","usage":{"promptTokens":4,"completionTokens":2}}',
    ]
    read, whole = reply(lines, "data-stream")
    assert (read.text, read.tools_used, whole) == ("Two hits.", ("search",), True)
    assert read.usage is not None
    assert read.usage.input_tokens == 4
    failed, whole = reply(['3:"boom"'], "data-stream")
    assert failed.failure is not None
    assert not whole


def test_ollama_lines() -> None:
    calls = [{"function": {"name": "search", "arguments": {"q": "x"}}}]
    events = [
        {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False},
        {"model": "m", "message": {"role": "assistant", "content": "Two "}, "done": False},
        {"model": "m", "message": {"role": "assistant", "content": "hits."}, "done": True, "eval_count": 3},
    ]
    read, whole = reply(events, "lines")
    assert (read.text, read.tools_used, whole) == ("Two hits.", ("search",), True)
    assert not reply(events[:-1], "lines")[1]


def test_gemini() -> None:
    events: list[Any] = [
        {"candidates": [{"content": {"parts": [{"text": "Two "}], "role": "model"}}]},
        {
            "candidates": [{"content": {"parts": [{"text": "hits."}]}, "finishReason": "STOP"}],
            "usageMetadata": {"totalTokenCount": 3},
        },
    ]
    read, whole = reply(events)
    assert (read.text, whole) == ("Two hits.", True)


def test_streams_without_a_protocol() -> None:
    assert reply(["Hel", "lo"])[0].text == "Hello"
    assert reply([{"token": "Hel"}, {"token": "lo"}, {"done_reason": "stop", "tools_used": ["a"]}])[
        0
    ].tools_used == ("a",)
    assert reply([{"answer": "He"}, {"answer": "Hello"}])[0].text == "Hello"
    assert (
        reply([{"delta": "He"}, {"delta": "llo"}, {"answer": "Hello.", "sources": ["d"]}])[0].text == "Hello."
    )
    assert reply([{"answer": "whole", "tools_used": []}])[0].text == "whole"


def test_server_sent_events_however_they_are_cut() -> None:
    raw = (
        'event: x\r\ndata: {"a":\r\ndata: 1}\r\n\r\n: comment\r\ndata: é\r\n\r\ndata: [DONE]\r\n\r\n'.encode()
    )
    for size in (1, 2, 3, 7, 1000):
        reader = EventReader("sse")
        events = [event for at in range(0, len(raw), size) for event in reader.feed(raw[at : at + size])]
        events += reader.feed(b"", last=True)
        assert events == ['{"a":\n1}', "é"]
        assert reader.done


def test_the_last_event_needs_no_blank_line() -> None:
    reader = EventReader("sse")
    assert reader.feed(b"data: a") == []
    assert reader.feed(b"", last=True) == ["a"]


def test_content_types() -> None:
    assert STREAM_KINDS["text/event-stream"] == "sse"
    assert STREAM_KINDS["application/x-ndjson"] == "lines"
    assert "application/json" not in STREAM_KINDS


_TYPES = st.sampled_from(
    [
        "message_start",
        "content_block_delta",
        "content_block_start",
        "response.output_item.done",
        "text-delta",
        "tool-input-available",
        "tool-result",
        "source-url",
        "AIMessageChunk",
        "TOOL_CALL_START",
        "MESSAGES_SNAPSHOT",
        "run_item_stream_event",
        "assistant",
        "part_start",
        "agent_run_result",
    ]
)
_VALUE = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | _TYPES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "choices",
                    "delta",
                    "message",
                    "done",
                    "tool_calls",
                    "function",
                    "id",
                    "index",
                    "candidates",
                    "content",
                    "item",
                    "key",
                    "self",
                    "messages",
                    "role",
                    "event_kind",
                    "part",
                    "result",
                    "step_number",
                    "tool_call_chunks",
                    "toolCallId",
                    "contentBlockDelta",
                    "contentBlockStart",
                    "start",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_VALUE, max_size=5), st.sampled_from(["sse", "lines", "data-stream"]))
def test_no_stream_whatsoever_crashes(events: list[Any], kind: Any) -> None:
    reply(events, kind)
    reply_from_object(Streamed(events))
