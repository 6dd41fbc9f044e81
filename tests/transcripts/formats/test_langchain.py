from typing import Any

import pytest

from answerkey.transcripts.payloads import reply_from_payload

DOCUMENT = {
    "id": "d1",
    "metadata": {"source": "a.pdf", "score": 0.8},
    "page_content": "text",
    "type": "Document",
}
DUMPED: list[dict[str, Any]] = [
    {
        "content": "What?",
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "human",
        "name": None,
        "id": "1",
    },
    {
        "content": "",
        "additional_kwargs": {},
        "response_metadata": {"model_name": "m"},
        "type": "ai",
        "id": "run-1",
        "tool_calls": [{"name": "search", "args": {"q": "x"}, "id": "call_1", "type": "tool_call"}],
        "invalid_tool_calls": [
            {"name": "broken", "args": "{", "id": "call_2", "error": "not JSON", "type": "invalid_tool_call"}
        ],
        "usage_metadata": {
            "input_tokens": 5,
            "output_tokens": 2,
            "total_tokens": 7,
            "input_token_details": {"cache_read": 1},
        },
    },
    {
        "content": "found",
        "type": "tool",
        "name": "search",
        "id": "3",
        "tool_call_id": "call_1",
        "artifact": [DOCUMENT],
        "status": "success",
    },
    {
        "content": "no such tool",
        "type": "tool",
        "name": "broken",
        "tool_call_id": "call_2",
        "artifact": None,
        "status": "error",
    },
    {
        "content": [{"type": "text", "text": "That."}],
        "type": "ai",
        "id": "run-2",
        "tool_calls": [],
        "invalid_tool_calls": [],
        "response_metadata": {},
        "usage_metadata": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
    },
]
CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}


def as_dicts(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": message["type"], "data": message}


def as_constructors(message: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in message.items() if key != "type"}
    name = CLASSES[message["type"]]
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", name],
        "kwargs": {**rest, "type": message["type"]},
    }


@pytest.mark.parametrize("serialise", [lambda message: message, as_dicts, as_constructors])
def test_the_three_serialisations(serialise: Any) -> None:
    reply = reply_from_payload({"messages": [serialise(message) for message in DUMPED]})
    assert reply.text == "That."
    search, broken = reply.tool_calls
    assert (search.name, search.arguments, search.result, search.error) == (
        "search",
        {"q": "x"},
        "found",
        None,
    )
    assert (broken.name, broken.arguments_text, broken.error) == ("broken", "{", "no such tool")
    assert [(source.id, source.score, source.text) for source in reply.sources] == [("d1", 0.8, "text")]
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.total_tokens, reply.usage.cached_tokens) == (14, 19, 1)
    assert reply.evidence.kind == "transcript"


def test_a_single_message_of_a_chain_proves_no_absence_of_calls() -> None:
    reply = reply_from_payload(DUMPED[-1])
    assert reply.text == "That."
    assert not reply.evidence.tools_observed


def test_a_retrieval_chain() -> None:
    reply = reply_from_payload(
        {"input": "?", "context": [DOCUMENT], "answer": "That.", "source_documents": [DOCUMENT]}
    )
    assert reply.text == "That."
    assert reply.sources[0].id == "d1"
