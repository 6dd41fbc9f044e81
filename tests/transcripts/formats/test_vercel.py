from answerkey.transcripts.payloads import reply_from_payload


def test_a_message_of_version_5() -> None:
    message = {
        "id": "msg-1",
        "role": "assistant",
        "metadata": {"usage": {"inputTokens": 5, "outputTokens": 6, "totalTokens": 11}},
        "parts": [
            {"type": "step-start"},
            {"type": "text", "text": "Looking… "},
            {
                "type": "tool-getWeather",
                "toolCallId": "1",
                "state": "output-available",
                "input": {"city": "X"},
                "output": {"t": 3},
            },
            {
                "type": "dynamic-tool",
                "toolName": "pay",
                "toolCallId": "2",
                "state": "output-error",
                "input": {},
                "errorText": "declined",
            },
            {"type": "tool-drop", "toolCallId": "3", "state": "output-denied", "input": {}},
            {"type": "step-start"},
            {"type": "reasoning", "text": "hmm"},
            {"type": "text", "text": "Three degrees."},
            {"type": "source-url", "sourceId": "s1", "url": "https://a.example", "title": "A"},
            {
                "type": "source-document",
                "sourceId": "s2",
                "mediaType": "application/pdf",
                "title": "B",
                "filename": "b.pdf",
            },
        ],
    }
    reply = reply_from_payload(message)
    assert reply.text == "Three degrees."
    assert [(call.name, call.error) for call in reply.tool_calls] == [
        ("getWeather", None),
        ("pay", "declined"),
        ("drop", "the call was denied"),
    ]
    assert reply.tool_calls[0].result == {"t": 3}
    assert [source.id for source in reply.sources] == ["s1", "s2"]
    assert reply.usage is not None
    assert reply.usage.total_tokens == 11
    assert reply.response_id == "msg-1"


def test_messages_of_version_4() -> None:
    invocation = {
        "state": "result",
        "step": 0,
        "toolCallId": "1",
        "toolName": "getWeather",
        "args": {"city": "X"},
        "result": "3",
    }
    messages = [
        {"id": "0", "role": "user", "content": "Weather?"},
        {"id": "1", "role": "assistant", "content": "Three degrees.", "toolInvocations": [invocation]},
    ]
    with_parts = {
        "id": "1",
        "role": "assistant",
        "content": "Three degrees.",
        "parts": [
            {"type": "tool-invocation", "toolInvocation": invocation},
            {"type": "text", "text": "Three degrees."},
        ],
    }
    for payload in ({"messages": messages}, messages[-1], with_parts):
        reply = reply_from_payload(payload)
        assert reply.text == "Three degrees."
        assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [
            ("getWeather", {"city": "X"}, "3")
        ]


def test_the_result_of_generate_text() -> None:
    payload = {
        "text": "Three degrees.",
        "finishReason": "stop",
        "toolCalls": [],
        "toolResults": [],
        "usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9},
        "totalUsage": {"inputTokens": 12, "outputTokens": 4, "totalTokens": 16},
        "steps": [
            {
                "text": "",
                "finishReason": "tool-calls",
                "toolCalls": [
                    {"type": "tool-call", "toolCallId": "1", "toolName": "getWeather", "input": {"city": "X"}}
                ],
                "toolResults": [
                    {"type": "tool-result", "toolCallId": "1", "toolName": "getWeather", "output": "3"}
                ],
                "usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7},
            },
            {"text": "Three degrees.", "finishReason": "stop", "toolCalls": [], "toolResults": []},
        ],
    }
    reply = reply_from_payload(payload)
    assert reply.text == "Three degrees."
    assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [
        ("getWeather", {"city": "X"}, "3")
    ]
    assert reply.usage is not None
    assert reply.usage.total_tokens == 16
    assert reply.evidence.kind == "transcript"


def test_the_messages_of_all_steps_go_before_those_of_the_last() -> None:
    call = {"type": "tool-call", "toolCallId": "1", "toolName": "search", "input": {"q": "lease"}}
    said = {"role": "assistant", "content": "It ends in May."}
    steps = [{"role": "assistant", "content": [call]}, said]
    reply = reply_from_payload({"response": {"messages": [said]}, "responseMessages": steps})
    assert (reply.text, reply.tools_used) == ("It ends in May.", ("search",))
    assert reply.evidence.tools_observed
