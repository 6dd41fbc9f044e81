"""Event streams of LangGraph (serialised), LlamaIndex, Mastra and ADK."""

from typing import Any

import pytest

from answerkey.model.reply import Reply
from answerkey.transcripts.formats import streamed
from answerkey.transcripts.payloads import reply_from_object, reply_from_payload
from answerkey.transcripts.streams import assemble_events

TEXT = "The total is 442300."


def read(*events: Any) -> Reply:
    payload, whole = assemble_events([*events])
    return streamed(reply_from_payload(payload), whole)


def calls_of(reply: Reply) -> list[tuple[str, Any, Any]]:
    return [(call.name, call.arguments, call.result) for call in reply.tool_calls]


def serialised(kind: str, **fields: Any) -> dict[str, Any]:
    """A message as langchain_core.load.dumps writes it."""
    path = ["langchain", "schema", "messages", kind]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {**fields, "type": kind}}


def test_langgraph_messages_in_langchains_serialisation() -> None:
    def piece(**chunk: Any) -> list[Any]:
        call = serialised("AIMessageChunk", content="", id="run-1", tool_call_chunks=[{"index": 0, **chunk}])
        return [call, {"langgraph_node": "agent"}]

    result = serialised("ToolMessage", content="442300", id="t1", tool_call_id="c1", name="query_database")
    texts = [
        [serialised("AIMessageChunk", content=text, id="run-2", tool_call_chunks=[]), {}]
        for text in ("The total ", "is 442300.")
    ]
    reply = read(
        piece(name="query_database", id="c1", args=""),
        piece(args='{"sql": '),
        piece(args='"a"}'),
        [result, {"langgraph_node": "tools"}],
        *texts,
    )
    assert reply.text == TEXT
    assert calls_of(reply) == [("query_database", {"sql": "a"}, "442300")]


def test_llamaindex_text_is_cumulative_in_one_field_and_new_in_another() -> None:
    def stream(delta: str, response: str) -> dict[str, Any]:
        return {"delta": delta, "response": response, "current_agent_name": "Agent", "tool_calls": []}

    call = {"tool_name": "query_database", "tool_kwargs": {"sql": "a"}, "tool_id": "c1"}
    output = {"content": "442300", "is_error": False}
    said = {"role": "assistant", "blocks": [{"block_type": "text", "text": TEXT}]}
    events: list[dict[str, Any]] = [
        stream("Let me see.", "Let me see."),
        call,
        {**call, "tool_output": output},
        stream("The", "The"),
        stream("", "The"),
        stream(" total is 442300.", TEXT),
    ]
    for finished in ([], [{"response": said, "current_agent_name": "Agent", "tool_calls": []}]):
        reply = read(*events, *finished)
        assert reply.text == TEXT
        assert calls_of(reply) == [("query_database", {"sql": "a"}, "442300")]
        assert reply.evidence.completeness == ("complete" if finished else "partial")


def test_mastra_has_the_fields_in_a_payload() -> None:
    def event(kind: str, **payload: Any) -> dict[str, Any]:
        return {"type": kind, "runId": "r", "from": "AGENT", "payload": payload}

    call = {"toolCallId": "c1", "toolName": "query_database"}
    failing = {"toolCallId": "c2", "toolName": "search"}
    reply = read(
        event("start"),
        event("tool-call", **call, args={"sql": "a"}),
        event("tool-call", **failing, args={"q": "lease"}),
        event("tool-result", **call, result="442300"),
        event("tool-error", **failing, error={"message": "index offline"}),
        event("text-delta", id="t", text="The total "),
        event("text-delta", id="t", text="is 442300."),
        event("finish", output={"usage": {"inputTokens": 44, "outputTokens": 28}}),
    )
    assert reply.text == TEXT
    assert calls_of(reply) == [("query_database", {"sql": "a"}, "442300"), ("search", {"q": "lease"}, None)]
    assert reply.tool_calls[1].error == "index offline"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (44, 28)


@pytest.mark.parametrize("camel", [False, True])
def test_adk_events_as_a_list_and_as_a_stream(camel: bool) -> None:
    invocation = "invocationId" if camel else "invocation_id"
    tokens = "usageMetadata" if camel else "usage_metadata"
    counted = {"promptTokenCount": 11, "candidatesTokenCount": 7}

    def event(role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        content = {"role": role, "parts": [*parts]}
        return {invocation: "e-1", "author": "agent", "content": content, "partial": None, **more}

    call = {"function_call": {"id": "c1", "name": "query_database", "args": {"sql": "a"}}}
    result = {"function_response": {"id": "c1", "name": "query_database", "response": {"result": "442300"}}}
    events = [
        event("model", call, **{tokens: counted}),
        event("user", result),
        event("model", {"text": "The "}, partial=True),
        event("model", {"text": TEXT}, **{tokens: counted}),
    ]
    for reply in (read(*events), reply_from_object(events)):
        assert reply.text == TEXT
        assert calls_of(reply) == [("query_database", {"sql": "a"}, "442300")]
        assert reply.usage is not None
        assert reply.usage.input_tokens == 22
        assert reply.evidence.tools_observed
