"""Spans of real instrumentations, recorded by `make interop`, and of conventions that none of them has now."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from answerkey.model.reply import Reply
from answerkey.observe.observations import Observation, join_observations
from answerkey.observe.observers import Receiver, TraceBook, read_export

from .spans import ASKED, TRACEPARENT, as_json, as_protobuf, model_span, span, tool_span

RECORDED = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parent / "interop").glob("*.json"))
}
CALLS = [("query_database", {"sql": "SELECT total"}), ("search_document_content", {"query": "lease"})]


def observe(*requests: bytes, traceparent: str = TRACEPARENT, kind: str = "application/json") -> Observation:
    book = TraceBook(quiet_s=0, longest_s=0)
    book.open(traceparent)
    for body in requests:
        assert Receiver(book).receive("traces", kind, "", body).status == 200
    seen = book.close(traceparent)
    assert seen is not None
    return seen


@pytest.mark.parametrize("name", RECORDED)
def test_a_real_instrumentation_is_read_exactly_or_said_to_be_unobserved(name: str) -> None:
    recorded = RECORDED[name]
    book = TraceBook(quiet_s=0, longest_s=0)
    book.open(recorded["traceparent"])
    for request in recorded["requests"]:
        answer = Receiver(book).receive(
            request["signal"], request["type"], "", base64.b64decode(request["body"])
        )
        assert answer.status == 200
    seen = book.close(recorded["traceparent"])
    assert seen is not None
    reply = join_observations(Reply(text="hello"), [seen])
    if recorded["seen"] == "nothing":
        assert (reply.tool_calls, reply.evidence.tools_observed) == ((), False)
        # OpenInference's release for Haystack sends no span of a model or a tool at all.
        assert reply.evidence.completeness == "partial" or name == "openinference-instrumentation-haystack"
        return
    assert (reply.evidence.kind, reply.evidence.completeness) == ("otel", "complete")
    found, failed = reply.tool_calls
    if recorded["seen"] == "names":
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [
            (name, None) for name, _ in CALLS
        ]
        assert (found.result_seen, found.error, failed.error) == (False, None, "tool_error")
        return
    # Semantic Kernel puts the plug-in before a name.
    assert [(call.name.removeprefix("Books-"), call.arguments) for call in reply.tool_calls] == CALLS
    assert (found.result, found.error) == ("442300", None)
    assert "index offline" in str(failed.error)
    assert found.start_ms is not None
    if name in ("openinference-instrumentation-google-adk", "openinference-instrumentation-dspy"):
        # Its span has the tokens of the last response only, or none has any.
        assert reply.usage is None
        return
    assert reply.usage is not None
    assert reply.usage.input_tokens == 22


@pytest.mark.parametrize(
    "attributes",
    [
        {"ai.toolCall.name": "lookup", "ai.toolCall.id": "t1", "ai.toolCall.args": '{"n":1}', "ai.toolCall.result": '"one"'},
        {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"n": 1}', "mlflow.spanOutputs": '"one"'},
        {"mcp.method.name": "tools/call", "gen_ai.tool.name": "lookup", "gen_ai.tool.call.arguments": '{"n": 1}',
         "gen_ai.tool.call.result": "one"},
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "lookup",
         "traceloop.entity.input": '{"inputs": {"n": 1}, "input_str": ""}',
         "traceloop.entity.output": '{"output": {"content": "one", "status": "success"}}'},
        {"langfuse.observation.type": "tool", "langfuse.observation.input": '{"n": 1}', "langfuse.observation.output": "one"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("write", [as_json, as_protobuf])
def test_a_tool_in_each_convention(attributes: dict[str, Any], write: Any) -> None:
    kind = "application/json" if write is as_json else "application/x-protobuf"
    seen = observe(
        write(span("01" * 8), span("02" * 8, "01" * 8, name="lookup", attributes=attributes)), kind=kind
    )
    assert [(call.name, call.arguments, call.result, call.error) for call in seen.tool_calls] == [
        ("lookup", {"n": 1}, "one", None)
    ]
    assert seen.complete


def test_a_models_calls_in_the_older_conventions() -> None:
    flat = {
        "llm.request.type": "chat",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "lookup",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"n": 1}',
    }
    sdk = {
        "ai.operationId": "ai.streamText.doStream",
        "ai.response.toolCalls": '[{"toolCallId": "c1", "toolName": "lookup", "input": {"n": 1}}]',
        "ai.response.text": "Let me see.",
        "ai.response.finishReason": "tool-calls",
    }
    for attributes in (flat, sdk):
        seen = observe(as_json(span("01" * 8, attributes=attributes)))
        assert [(call.id, call.name, call.arguments) for call in seen.tool_calls] == [
            ("c1", "lookup", {"n": 1})
        ]
        assert seen.complete


def test_a_model_that_called_nothing_is_a_fact_only_if_it_is_told() -> None:
    said = model_span("01" * 8, ASKED, {"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]})
    assert observe(as_json(said)).complete
    stopped = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"]}
    assert observe(as_json(span("01" * 8, attributes=stopped))).complete
    hidden = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["tool_calls"]}
    seen = observe(as_json(span("01" * 8, attributes=hidden)))
    assert (seen.complete, seen.missing) == (False, ("the calls that a model made",))
    untold = observe(as_json(span("01" * 8, attributes={"gen_ai.operation.name": "chat"})))
    assert not untold.complete
    assert not observe(as_json(span("01" * 8))).complete
    # The same instrumentation shows the tool that ran then.
    ran = tool_span("02" * 8, ASKED, "lookup") | {"startTimeUnixNano": "5000", "endTimeUnixNano": "6000"}
    seen = observe(as_json(span("01" * 8, attributes=hidden), ran))
    assert (seen.complete, [call.name for call in seen.tool_calls]) == (True, ["lookup"])


def test_two_instrumentations_of_one_agent_see_each_call_once() -> None:
    asked = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"n": 1}}],
    }
    one = as_json(model_span("01" * 8, ASKED, asked), tool_span("02" * 8, ASKED, "lookup"), scope="one")
    other = {
        "openinference.span.kind": "TOOL",
        "tool.name": "lookup",
        "input.value": '{"n": 1}',
        "output.value": "one",
    }
    seen = observe(one, as_json(span("03" * 8, ASKED, attributes=other), scope="two"))
    assert [(call.id, call.name, call.arguments, call.result) for call in seen.tool_calls] == [
        ("c1", "lookup", {"n": 1}, "one")
    ]


def test_the_same_span_twice_is_once_and_one_within_another_of_its_tool_too() -> None:
    outer = tool_span("02" * 8, ASKED, "lookup")
    inner = tool_span("03" * 8, "02" * 8, "lookup")
    assert len(observe(as_json(outer, inner), as_json(outer)).tool_calls) == 1
    assert len(observe(as_json(outer, tool_span("03" * 8, ASKED, "lookup"))).tool_calls) == 2


def test_documents_of_a_retriever() -> None:
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "The lease ends in May.",
        "output.value": '{"documents": [{"id": "d7", "page_content": "The lease ends in May."}]}',
    }
    seen = observe(as_json(span("01" * 8, attributes=attributes)))
    assert [(source.id, source.text) for source in seen.sources] == [("d7", "The lease ends in May.")]


def test_ids_in_base64_are_the_same_ids() -> None:
    one = span("01" * 8)
    one["traceId"] = base64.b64encode(bytes.fromhex(one["traceId"])).decode()
    one["spanId"] = base64.b64encode(bytes.fromhex(one["spanId"])).decode()
    item = read_export("traces", as_json(one), is_json=True).items[0]
    assert (item.trace_id, item.span_id) == (TRACEPARENT.split("-")[1], "01" * 8)


def _openinference(span_id: str, parent: str, kind: str, name: str, **attributes: str) -> dict[str, Any]:
    return span(span_id, parent, name=name, attributes={"openinference.span.kind": kind, **attributes})


def _asking_model(span_id: str, parent: str, identity: str, sql: str) -> dict[str, Any]:
    made = "llm.output_messages.0.message.tool_calls.0.tool_call"
    return _openinference(
        span_id,
        parent,
        "LLM",
        "LLM",
        **{
            "llm.output_messages.0.message.role": "assistant",
            f"{made}.id": identity,
            f"{made}.function.name": "query_database",
            f"{made}.function.arguments": json.dumps({"sql": sql}),
        },
    )


@pytest.mark.parametrize("name", ["query_database", "query_database.__call__"])
def test_a_tool_span_that_wraps_its_arguments_is_the_call_that_the_model_asked_for(name: str) -> None:
    """smolagents and DSPy record how the tool's function was called; LlamaIndex has a model span around another."""
    wrapped = json.dumps({"args": [], "sanitize_inputs_outputs": True, "kwargs": {"sql": "a"}})
    tool = {"tool.name": name, "input.value": wrapped, "output.value": "442300"}
    spans = [
        _asking_model("01" * 8, ASKED, "c1", "a"),
        _asking_model("02" * 8, "01" * 8, "c1", "a"),
        _openinference("03" * 8, ASKED, "TOOL", name, **tool),
        _openinference("04" * 8, "03" * 8, "TOOL", name, **tool),
    ]
    seen = observe(as_json(*spans))
    assert [(call.name, call.id, call.arguments, call.result) for call in seen.tool_calls] == [
        ("query_database", "c1", {"sql": "a"}, "442300")
    ]
    assert seen.complete


def test_what_frameworks_record_as_tools_and_are_none() -> None:
    """ADK has a span for the results of parallel calls together; smolagents answers by calling a tool."""
    adk = [tool_span("01" * 8, ASKED, "query_database"), tool_span("02" * 8, ASKED, "(merged tools)")]
    assert [call.name for call in observe(as_json(*adk, scope="gcp.vertex.agent")).tool_calls] == [
        "query_database"
    ]
    answered = [tool_span("01" * 8, ASKED, "query_database"), tool_span("02" * 8, ASKED, "final_answer")]
    scope = "openinference.instrumentation.smolagents"
    assert [call.name for call in observe(as_json(*answered, scope=scope)).tool_calls] == ["query_database"]
    assert len(observe(as_json(*answered)).tool_calls) == 2, "another framework's tool may be called so"


def test_of_two_instrumentations_the_one_that_counted_all_model_calls_gives_the_tokens() -> None:
    def model(number: int, tokens: int) -> dict[str, Any]:
        made = model_span(f"{number:016x}", ASKED, {"role": "assistant", "parts": []})
        made["attributes"] |= {"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 7}
        return made

    some = as_json(model(1, 11), scope="gcp.vertex.agent")
    whole = as_json(model(2, 11), model(3, 33), scope="openinference.instrumentation.google_adk")
    usage = observe(some, whole).usage
    assert usage is not None
    assert usage.input_tokens == 44


def test_arguments_and_results_in_the_events_of_a_tool_span() -> None:
    """Strands has them in gen_ai.tool.message and gen_ai.choice."""

    def event(name: str, **attributes: str) -> dict[str, Any]:
        return {
            "name": name,
            "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
        }

    tool = tool_span("01" * 8, ASKED, "query_database")
    tool["events"] = [
        event("gen_ai.tool.message", role="tool", content='{"sql": "a"}', id="c1"),
        event("gen_ai.choice", message='[{"text": "442300"}]', id="c1"),
    ]
    (call,) = observe(as_json(tool)).tool_calls
    assert (call.id, call.arguments, call.result_seen) == ("c1", {"sql": "a"}, True)
    assert "442300" in str(call.result)
