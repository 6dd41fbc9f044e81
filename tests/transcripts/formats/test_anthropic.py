from answerkey.model.reply import ToolCall
from answerkey.transcripts.payloads import reply_from_payload

MESSAGE = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-20250514",
    "content": [
        {"type": "thinking", "thinking": "hmm", "signature": "s"},
        {"type": "text", "text": "I'll check the weather."},
        {
            "type": "tool_use",
            "id": "toolu_01",
            "name": "get_weather",
            "input": {"location": "San Francisco, CA"},
        },
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 20,
        "output_tokens": 7,
    },
}


def test_a_response() -> None:
    reply = reply_from_payload(MESSAGE)
    assert reply.text == "I'll check the weather."
    assert reply.tool_calls == (
        ToolCall(name="get_weather", id="toolu_01", arguments={"location": "San Francisco, CA"}),
    )
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens) == (33, 20, 7)
    assert reply.response_id == "msg_01XFDUDYJgAACzvnptvVoYEL"


def test_citations_and_hosted_search() -> None:
    payload = {
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srv_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "url": "https://a.example",
                        "title": "A",
                        "encrypted_content": "…",
                    }
                ],
            },
            {
                "type": "text",
                "text": "Born in 1916.",
                "citations": [
                    {
                        "type": "web_search_result_location",
                        "url": "https://a.example",
                        "title": "A",
                        "cited_text": "1916",
                    },
                ],
            },
        ],
    }
    reply = reply_from_payload(payload)
    assert reply.text == "Born in 1916."
    assert reply.tools_used == ("web_search",)
    assert [(source.id, source.cited) for source in reply.sources] == [
        ("https://a.example", None),
        ("https://a.example", True),
    ]


def test_a_hosted_tool_that_failed() -> None:
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    content = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": error},
        {"type": "text", "text": "No luck."},
    ]
    assert (
        reply_from_payload({"type": "message", "content": content}).tool_calls[0].error == "max_uses_exceeded"
    )


def test_a_transcript_with_the_error_flag() -> None:
    search = {
        "type": "search_result",
        "source": "doc-7",
        "title": "T",
        "content": [{"type": "text", "text": "found"}],
    }
    messages = [
        {"role": "user", "content": "What?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "a", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "boom", "is_error": True}],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t2", "name": "b", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": [search]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "That."}]},
    ]
    reply = reply_from_payload({"messages": messages})
    assert reply.text == "That."
    assert [(call.name, call.error) for call in reply.tool_calls] == [("a", "boom"), ("b", None)]
    assert (reply.sources[0].id, reply.sources[0].text) == ("doc-7", "found")


def test_a_refusal() -> None:
    refused = reply_from_payload({**MESSAGE, "content": [], "stop_reason": "refusal"})
    assert refused.failure is not None
