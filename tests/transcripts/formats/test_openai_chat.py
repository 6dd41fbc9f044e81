from typing import Any

from answerkey.model.reply import ToolCall
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import reply_from_payload


def completion(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    return {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "object": "chat.completion",
        "created": 1741569952,
        "model": "gpt-4.1-2025-04-14",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", **message},
                "logprobs": None,
                "finish_reason": finish,
            }
        ],
        "usage": {
            "prompt_tokens": 19,
            "completion_tokens": 10,
            "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 6, "accepted_prediction_tokens": 0},
        },
        "service_tier": "default",
    }


def test_an_answer() -> None:
    cited = {
        "type": "url_citation",
        "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2},
    }
    reply = reply_from_payload(completion({"content": "Hi!", "refusal": None, "annotations": [cited]}))
    assert reply.text == "Hi!"
    assert reply.response_id == "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (19, 10, 29)
    assert (reply.usage.cached_tokens, reply.usage.reasoning_tokens) == (4, 6)
    assert (reply.sources[0].uri, reply.sources[0].cited) == ("https://a.example", True)
    assert not reply.evidence.tools_observed, "a final response cannot prove that no tool was called before"


def test_calls() -> None:
    calls = [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
        },
        {"id": "call_2", "type": "custom", "custom": {"name": "run_code", "input": "print(1)"}},
    ]
    reply = reply_from_payload(completion({"content": None, "tool_calls": calls}, "tool_calls"))
    assert reply.text is None
    assert reply.tool_calls == (
        ToolCall(name="get_weather", id="call_1", arguments={"city": "Paris"}),
        ToolCall(name="run_code", id="call_2", arguments_text="print(1)"),
    )
    assert reply.evidence.tools_observed


def test_the_legacy_function_call_and_completion() -> None:
    reply = reply_from_payload(
        completion({"content": None, "function_call": {"name": "a", "arguments": "{}"}})
    )
    assert reply.tools_used == ("a",)
    old = {"object": "text_completion", "choices": [{"text": "Hello", "index": 0, "finish_reason": "stop"}]}
    assert reply_from_payload(old).text == "Hello"


def test_a_refusal_and_a_filter() -> None:
    assert reply_from_payload(completion({"content": None, "refusal": "I can't."})).text == "I can't."
    filtered = reply_from_payload(completion({"content": None}, "content_filter"))
    assert filtered.failure is not None


TRANSCRIPT = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Earlier question"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "old", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c0", "content": "x"},
    {"role": "assistant", "content": "Earlier answer"},
    {
        "role": "user",
        "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "our address?"}],
    },
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "query_database", "arguments": '{"sql": "select"}'},
            },
            {"id": "c2", "type": "function", "function": {"name": "search", "arguments": "{broken"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": '{"error": "index is down"}'},
    {"role": "tool", "tool_call_id": "c1", "content": "900 S 9th St"},
    {"role": "assistant", "content": "It is 900 S 9th St."},
]


def test_a_transcript_is_read_from_the_question() -> None:
    asked = QuestionContext("What is our address?")
    reply = reply_from_payload({"messages": TRANSCRIPT}, context=asked)
    assert reply.text == "It is 900 S 9th St."
    assert reply.tool_calls == (
        ToolCall(
            name="query_database",
            id="c1",
            arguments={"sql": "select"},
            result="900 S 9th St",
            result_seen=True,
        ),
        ToolCall(
            name="search",
            id="c2",
            arguments_text="{broken",
            result='{"error": "index is down"}',
            result_seen=True,
            error="index is down",
        ),
    )
    assert reply.evidence.kind == "transcript"
    assert reply.evidence.tools_observed
    assert reply_from_payload(TRANSCRIPT, context=asked) == reply, "a bare list is a transcript too"
    earlier = reply_from_payload(TRANSCRIPT, context=QuestionContext("Earlier question"))
    assert (earlier.text, earlier.tools_used) == ("Earlier answer", ("old",))


def test_a_transcript_without_the_question_is_read_whole() -> None:
    for asked in (QuestionContext(), QuestionContext("Something else")):
        reply = reply_from_payload({"messages": TRANSCRIPT}, context=asked)
        assert reply.text == "It is 900 S 9th St."
        assert [(call.name, call.result) for call in reply.tool_calls] == [
            ("old", "x"),
            ("query_database", "900 S 9th St"),
            ("search", '{"error": "index is down"}'),
        ]


def test_a_transcript_beside_the_usual_names() -> None:
    reply = reply_from_payload(
        {"id": "q1", "answer": "Short.", "messages": TRANSCRIPT, "latency_ms": 5},
        context=QuestionContext(recorded=True),
    )
    assert reply.text == "Short."
    assert reply.tools_used == ("old", "query_database", "search")
    assert reply.timings.latency_ms == 5
    named = reply_from_payload({"answer": "Short.", "messages": TRANSCRIPT, "tools_used": ["x"]})
    assert named.tools_used == ("x",)


def test_a_transcript_that_ends_with_calls_has_no_answer() -> None:
    assert reply_from_payload({"messages": TRANSCRIPT[:4]}).text is None
    assert reply_from_payload({"messages": TRANSCRIPT[:2]}).text is None
    no_tools = reply_from_payload({"messages": TRANSCRIPT[-1:]})
    assert no_tools.tool_calls == ()
    assert not no_tools.evidence.tools_observed
