"""What a model thought, and why it stopped, in every format that tells it."""

from typing import Any

import pytest

from answerkey.transcripts.payloads import reply_from_payload


@pytest.mark.parametrize(
    "payload",
    [
        {"choices": [{"message": {"content": "7", "reasoning_content": "Hm."}}]},
        {"choices": [{"message": {"content": "7", "reasoning": "Hm."}}]},
        {
            "object": "response",
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "7"}]},
            ],
        },
        {
            "type": "message",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "7"},
            ],
        },
        {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": "7"}]}}]},
        {"message": {"role": "assistant", "content": "7", "thinking": "Hm."}, "done": True},
        {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": "7"}],
                }
            }
        },
        [
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "q"}]},
            {
                "kind": "response",
                "parts": [{"part_kind": "thinking", "content": "Hm."}, {"part_kind": "text", "content": "7"}],
            },
        ],
    ],
)
def test_thoughts_are_told_apart_from_the_answer(payload: Any) -> None:
    reply = reply_from_payload(payload)
    assert (reply.text, reply.reasoning, reply.evidence.unread) == ("7", "Hm.", ())


@pytest.mark.parametrize(
    ("payload", "finish"),
    [
        ({"choices": [{"message": {"content": "7"}, "finish_reason": "length"}]}, "length"),
        ({"choices": [{"message": {"content": "7"}, "finish_reason": "stop"}]}, None),
        (
            {"type": "message", "content": [{"type": "text", "text": "7"}], "stop_reason": "max_tokens"},
            "length",
        ),
        ({"candidates": [{"content": {"parts": [{"text": "7"}]}, "finishReason": "SAFETY"}]}, "filter"),
        ({"message": {"content": "7"}, "done": True, "done_reason": "length"}, "length"),
        (
            {
                "object": "response",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "7"}],
                    }
                ],
            },
            "length",
        ),
        (
            {
                "output": {"message": {"role": "assistant", "content": [{"text": "7"}]}},
                "stopReason": "max_tokens",
            },
            "length",
        ),
    ],
)
def test_why_a_model_stopped(payload: Any, finish: str | None) -> None:
    reply = reply_from_payload(payload)
    assert (reply.text, reply.finish, reply.failure) == ("7", finish, None)
