from typing import Any

import pytest

from answerkey.transcripts.payloads import reply_from_payload

REST: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "parts": [{"text": "secret", "thought": True}, {"text": "The ring "}, {"text": "is gold."}],
                "role": "model",
            },
            "finishReason": "STOP",
            "index": 0,
            "groundingMetadata": {
                "groundingChunks": [
                    {"web": {"uri": "https://a.example", "title": "a.example"}},
                    {
                        "retrievedContext": {
                            "uri": "gs://b",
                            "title": "B",
                            "text": "gold",
                            "documentName": "docs/b",
                        }
                    },
                ],
                "webSearchQueries": ["ring"],
            },
        },
    ],
    "usageMetadata": {
        "promptTokenCount": 8,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 16,
    },
    "modelVersion": "gemini-2.5-flash",
    "responseId": "abc",
}
SDK: dict[str, Any] = {
    "candidates": [
        {"content": {"parts": [{"text": "The ring is gold."}], "role": "model"}, "finish_reason": "STOP"}
    ],
    "usage_metadata": {
        "prompt_token_count": 8,
        "candidates_token_count": 5,
        "thoughts_token_count": 3,
        "total_token_count": 16,
    },
    "response_id": "abc",
}


@pytest.mark.parametrize("payload", [REST, SDK])
def test_an_answer_in_both_spellings(payload: dict[str, Any]) -> None:
    reply = reply_from_payload(payload)
    assert reply.text == "The ring is gold."
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (8, 8, 16)
    assert reply.response_id == "abc"


def test_grounding() -> None:
    reply = reply_from_payload(REST)
    assert [(source.id, source.rank) for source in reply.sources] == [("https://a.example", 1), ("docs/b", 2)]


def test_calls() -> None:
    parts = [
        {"functionCall": {"name": "find", "args": {"q": "x"}}},
        {"functionCall": {"id": "2", "name": "find", "args": {"q": "y"}}},
    ]
    reply = reply_from_payload(
        {"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}]}
    )
    assert [call.arguments for call in reply.tool_calls] == [{"q": "x"}, {"q": "y"}]
    assert reply.text is None


@pytest.mark.parametrize("key", ["contents", "messages"])
def test_a_history(key: str) -> None:
    history = [
        {"role": "user", "parts": [{"text": "Where?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"q": "x"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"output": "there"}}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"q": "y"}}}]},
        {
            "role": "function",
            "parts": [{"functionResponse": {"name": "find", "response": {"error": "gone"}}}],
        },
        {"role": "model", "parts": [{"text": "There."}]},
    ]
    reply = reply_from_payload({key: history})
    assert reply.text == "There."
    assert [(call.result, call.error) for call in reply.tool_calls] == [
        ("there", None),
        ({"error": "gone"}, "gone"),
    ]


def test_blocked_prompts() -> None:
    blocked = reply_from_payload({"promptFeedback": {"blockReason": "SAFETY"}})
    assert blocked.failure is not None
    assert "SAFETY" in blocked.failure.message
    stopped = reply_from_payload({"candidates": [{"finishReason": "RECITATION", "index": 0}]})
    assert stopped.failure is not None
