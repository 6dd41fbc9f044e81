from answerkey.transcripts.payloads import reply_from_payload

CHAT = {
    "model": "llama3.2",
    "created_at": "2025-07-07T20:22:19.184789Z",
    "message": {"role": "assistant", "content": "Sunny.", "thinking": "hm"},
    "done": True,
    "done_reason": "stop",
    "total_duration": 174560334,
    "load_duration": 101397084,
    "prompt_eval_count": 11,
    "prompt_eval_duration": 13074791,
    "eval_count": 18,
    "eval_duration": 52479709,
}


def test_a_chat() -> None:
    reply = reply_from_payload(CHAT)
    assert reply.text == "Sunny."
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 18)
    assert reply.timings.latency_ms == 174.560334
    assert not reply.evidence.tools_observed


def test_calls() -> None:
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Tokyo"}}}],
    }
    (call,) = reply_from_payload({**CHAT, "message": message}).tool_calls
    assert (call.name, call.arguments) == ("weather", {"city": "Tokyo"})


def test_generate() -> None:
    payload = {key: value for key, value in CHAT.items() if key != "message"}
    assert reply_from_payload({**payload, "response": "Blue."}).text == "Blue."


def test_a_transcript_without_ids() -> None:
    messages = [
        {"role": "user", "content": "?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"function": {"name": "a", "arguments": {}}},
                {"function": {"name": "b", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_name": "b", "content": "from b"},
        {"role": "tool", "tool_name": "a", "content": "from a"},
        {"role": "assistant", "content": "Done."},
    ]
    reply = reply_from_payload({"messages": messages})
    assert [(call.name, call.result) for call in reply.tool_calls] == [("a", "from a"), ("b", "from b")]
