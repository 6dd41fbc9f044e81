import dataclasses
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerkey.errors import ConfigError
from answerkey.model.reply import Reply, ToolCall
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import ReplyMapping, Streamed, reply_from_object, reply_from_payload


@pytest.mark.parametrize("name", ["answer", "response", "text", "output", "message", "content", "reply"])
def test_the_text_under_its_usual_names(name: str) -> None:
    reply = reply_from_payload({name: "900 S 9th St"})
    assert reply.text == "900 S 9th St"
    assert reply.failure is None
    assert reply.evidence.kind == "response"
    assert not reply.evidence.tools_observed


def test_a_whole_reply_under_the_usual_names() -> None:
    reply = reply_from_payload(
        {
            "answer": "It is 442,300.",
            "tools_used": ["query_database", "query_database"],
            "sources": ["doc-1", {"id": "doc-2", "score": 0.5, "text": "…"}],
            "error": None,
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            "latency_ms": 12.5,
            "conversation_id": "c1",
            "id": "r1",
            "trace_id": "t1",
        },
    )
    assert reply.tools_used == ("query_database", "query_database")
    assert [source.id for source in reply.sources] == ["doc-1", "doc-2"]
    assert reply.sources[1].rank == 2
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (10, 5, 15)
    assert reply.timings.latency_ms == 12.5
    assert (reply.conversation_id, reply.response_id, reply.trace_id) == ("c1", "r1", "t1")
    assert reply.evidence.tools_observed
    assert reply.evidence.sources_observed


def test_in_a_recorded_reply_the_id_is_the_questions() -> None:
    row = {"id": "q1", "answer": "x", "response_id": "r7"}
    assert (
        reply_from_payload({"id": "q1", "answer": "x"}, context=QuestionContext(recorded=True)).response_id
        is None
    )
    assert reply_from_payload(row, context=QuestionContext(recorded=True)).response_id == "r7"


def test_an_empty_list_of_tools_is_an_observation_and_no_list_is_none() -> None:
    assert reply_from_payload({"answer": "x", "tools_used": []}).evidence.tools_observed
    assert not reply_from_payload({"answer": "x"}).evidence.tools_observed
    assert not reply_from_payload({"answer": "x", "tools_used": None}).evidence.tools_observed


@pytest.mark.parametrize(
    "call",
    [
        {"name": "query_database", "arguments": {"sql": "select 1"}},
        {"tool": "query_database", "args": {"sql": "select 1"}},
        {"function": "query_database", "input": {"sql": "select 1"}},
        {"function": {"name": "query_database", "arguments": '{"sql": "select 1"}'}},
        {"tool_name": "query_database", "parameters": '{"sql": "select 1"}'},
    ],
)
def test_dialects_of_a_call(call: dict[str, Any]) -> None:
    (read,) = reply_from_payload({"answer": "x", "tool_calls": [call]}).tool_calls
    assert (read.name, read.arguments) == ("query_database", {"sql": "select 1"})


def test_a_calls_result_error_and_duration() -> None:
    call = {
        "name": "a",
        "arguments": "not json",
        "result": [1],
        "error": {"type": "ToolError", "message": "no"},
        "duration_ms": 3,
    }
    (read,) = reply_from_payload({"answer": "x", "tool_calls": [call]}).tool_calls
    assert read == ToolCall(
        name="a",
        arguments_text="not json",
        result=[1],
        result_seen=True,
        error="ToolError: no",
        duration_ms=3.0,
    )


def test_objects_tell_more_than_names_but_an_empty_list_of_them_nothing() -> None:
    both = {"answer": "x", "tools_used": ["a"], "tool_calls": [{"name": "a", "args": {"n": 1}}]}
    assert reply_from_payload(both).tool_calls[0].arguments == {"n": 1}
    assert reply_from_payload({**both, "tool_calls": []}).tools_used == ("a",)


def test_the_legacy_agents_intermediate_steps() -> None:
    steps = [[{"tool": "search", "tool_input": {"q": "x"}, "log": "…"}, "found"]]
    (call,) = reply_from_payload({"input": "?", "output": "x", "intermediate_steps": steps}).tool_calls
    assert (call.name, call.arguments, call.result) == ("search", {"q": "x"}, "found")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("DatabaseError: Connection refused", "connection"),
        ({"kind": "tool", "message": "Document not found"}, "tool"),
        ({"type": "ToolExecutionError", "message": "Document not found"}, "tool"),
        ({"code": 429, "message": "slow down"}, "rate_limit"),
        ({"message": "boom"}, "exception"),
        (True, "exception"),
        (503, "http"),
    ],
)
def test_errors_are_classified(error: Any, kind: str) -> None:
    reply = reply_from_payload({"answer": None, "error": error})
    assert reply.failure is not None
    assert reply.failure.kind == kind
    assert reply.text is None


@pytest.mark.parametrize("error", [None, "", False, {}, [], 0, "  "])
def test_an_empty_error_is_none(error: Any) -> None:
    assert reply_from_payload({"answer": "fine", "error": error}).failure is None


def test_promptfoos_python_provider() -> None:
    reply = reply_from_payload(
        {
            "output": "hello",
            "tokenUsage": {"total": 7, "prompt": 3, "completion": 4},
            "cost": 0.01,
            "latencyMs": 20,
        },
    )
    assert reply.text == "hello"
    assert reply.usage is not None
    assert (reply.usage.total_tokens, reply.usage.input_tokens, reply.usage.cost) == (7, 3, 0.01)
    assert reply.timings.latency_ms == 20
    failed = reply_from_payload({"error": "TimeoutError: too slow"})
    assert failed.failure is not None
    assert failed.failure.kind == "timeout"


def test_plain_values() -> None:
    assert reply_from_payload(None) == Reply()
    assert reply_from_payload("hi").text == "hi"
    assert reply_from_payload(42).text == "42"
    assert reply_from_payload(Reply(text="x")) == Reply(text="x")
    assert reply_from_payload(b"caf\xc3\xa9").text == "café"
    broken = reply_from_payload(b"\xff\xfe\xff")
    assert broken.failure is not None
    assert broken.failure.kind == "malformed"


def test_a_reply_inside_a_reply() -> None:
    inner = {"answer": "x", "tools_used": ["a"]}
    for payload in ({"output": inner}, {"data": inner}, {"result": inner}, {"response": {"output": inner}}):
        reply = reply_from_payload(payload)
        assert (reply.text, reply.tools_used) == ("x", ("a",)), payload


def test_nothing_that_can_be_read_is_malformed_and_says_what_is_there() -> None:
    reply = reply_from_payload({"respnse": "x", "ok": True})
    assert reply.failure is not None
    assert reply.failure.kind == "malformed"
    assert "respnse, ok" in reply.failure.message


def test_an_object_is_never_written_out_as_the_answer() -> None:
    for payload in (
        {"answer": {"total": 3}},
        {"answer": [1, 2]},
        [1, 2],
        {"messages": [], "answer": {"a": 1}},
    ):
        reply = reply_from_payload(payload)
        assert reply.text is None
        assert reply.failure is not None
        assert reply.failure.kind == "malformed"
    failure = reply_from_payload({"answer": {"total": 3}}).failure
    assert failure is not None
    assert failure.message.startswith("the reply's answer is an object, not text; return its text, ")


def test_numbers_and_content_parts_are_texts() -> None:
    assert reply_from_payload({"answer": 12.5}).text == "12.5"
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert reply_from_payload({"answer": parts}).text == "ab"


def test_python_objects() -> None:
    @dataclasses.dataclass
    class Answer:
        answer: str
        tools_used: list[str]

    class Dumps:
        def model_dump(self) -> dict[str, Any]:
            return {"answer": "m"}

    assert reply_from_object(Answer("x", ["a"])).tools_used == ("a",)
    assert reply_from_object(Dumps()).text == "m"
    assert reply_from_object(SimpleNamespace(answer="n")).text == "n"
    odd = reply_from_object(object())
    assert odd.failure is not None
    assert odd.failure.kind == "malformed"
    assert "object" in odd.failure.message


def test_what_a_python_callable_returns_can_always_be_kept() -> None:
    call = {"name": "a", "arguments": {"when": object(), "big": 2**80, "nan": float("nan")}, "result": {1, 2}}
    reply = reply_from_object({"answer": "half \ud800 pair", "tool_calls": [call]})
    assert reply.tools_used == ("a",)
    msgspec.json.decode(msgspec.json.encode(reply), type=Reply)


def test_names_beside_a_transcript_do_not_hide_the_arguments_of_its_calls() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "lease"}'}}
    messages = [
        {"role": "user", "content": "Who pays?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": "The tenant."},
    ]
    for names in (["search"], ["search", "list"]):
        reply = reply_from_payload({"tools_used": names, "messages": messages})
        assert [*reply.tools_used] == names
        assert reply.tool_calls[0].arguments == {"q": "lease"}


@pytest.mark.parametrize("roles", [("User", "Assistant"), ("customer", "agent"), ("HUMAN", "AI")])
def test_roles_as_people_write_them(roles: tuple[str, str]) -> None:
    said = [{"role": role, "content": text} for role, text in zip(roles, ("Who?", "Me."), strict=True)]
    reply = reply_from_payload({"messages": said})
    assert (reply.text, reply.evidence.unread) == ("Me.", ())


def test_messages_whose_text_is_under_text() -> None:
    said = [{"role": "user", "text": "Who pays?"}, {"role": "assistant", "text": "The tenant."}]
    for messages in (said, [{"role": "user", "content": "Who pays?"}, said[1]]):
        reply = reply_from_payload({"messages": messages})
        assert (reply.text, reply.evidence.tools_observed) == ("The tenant.", False)


def test_several_messages_in_a_list_are_not_one_word() -> None:
    reply = reply_from_payload(
        [{"recipient_id": "u", "text": "You owe 900"}, {"recipient_id": "u", "text": "50 more"}]
    )
    assert reply.text == "You owe 900\n50 more"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (["12", "00"], "12\n00"),
        (["the rent is 1200", "", "net 30"], "the rent is 1200\nnet 30"),
        (["one"], "one"),
        ([" 12", "00 "], " 12\n00 "),
        # Pieces of a stream, and content parts.
        (["The rent", " is 12", "00"], "The rent is 1200"),
        (["The rent is ", "1200"], "The rent is 1200"),
        ([{"type": "text", "text": "12"}, {"type": "text", "text": "00"}], "1200"),
        (["12", {"type": "text", "text": "00"}], "1200"),
    ],
)
def test_whole_texts_in_a_list_are_a_line_each(said: list[Any], text: str) -> None:
    for payload in (
        said,
        {"answer": said},
        {"answer": said, "tools_used": ["a"]},
        {"data": {"output": said}},
    ):
        for read in (reply_from_payload, reply_from_object):
            assert read(payload).text == text
    asked = [{"role": "user", "content": "Rent?"}, {"role": "assistant", "content": "See below."}]
    assert reply_from_object({"answer": tuple(said)}).text == text
    assert reply_from_object({"answer": said, "messages": asked}).text == text
    if all(isinstance(item, str) for item in said):
        assert reply_from_object(Streamed(said)).text == "".join(said)
    assert reply_from_payload({"messages": [{"role": "assistant", "content": said}]}).text == "".join(
        item if isinstance(item, str) else item["text"] for item in said
    )


@pytest.mark.parametrize(
    "nothing", ["none", "None", " null ", "NaN", "false", "no error", "OK", "0", False, 0, [], {}]
)
def test_what_programs_write_for_no_error_is_none(nothing: Any) -> None:
    assert reply_from_payload({"answer": "x", "error": nothing}).failure is None


def test_tools_in_camel_case() -> None:
    reply = reply_from_payload({"answer": "x", "toolsUsed": ["search"]})
    assert (reply.tools_used, reply.evidence.tools_observed) == (("search",), True)


def test_a_text_of_another_class_is_what_it_is_and_not_how_it_writes_itself() -> None:
    class Shown(str):
        def __str__(self) -> str:
            return "shown"

    assert reply_from_object(Shown("what it is")).text == "what it is"
    assert reply_from_object({"answer": Shown("what it is")}).text == "what it is"


def test_objects_within_objects_and_within_themselves() -> None:
    class Message:
        def __init__(self, **fields: Any) -> None:
            self.fields = fields

        def model_dump(self) -> dict[str, Any]:
            return self.fields

    state = {
        "output": {
            "messages": [Message(type="human", content="?"), Message(type="ai", content="x", tool_calls=[])]
        }
    }
    assert reply_from_object(state).text == "x"
    endless: list[Any] = ["a"]
    endless += [endless, endless]
    reply = reply_from_object({"answer": "x", "tool_calls": [{"name": "a", "result": endless}]})
    msgspec.json.encode(reply)
    assert reply.tools_used == ("a",)
    web: list[Any] = []
    for _ in range(40):
        web = [web, web]
    assert reply_from_object({"answer": "x", "tool_calls": [{"name": "a", "result": web}]}).tools_used == (
        "a",
    )


def test_expressions_from_the_configuration() -> None:
    mapping = ReplyMapping(
        text="data.final.text",
        tool_calls="data.steps[?kind=='tool'].{name: tool, arguments: input}",
        sources="data.hits[].doc",
        error="data.problem",
        usage="meta.tokens",
        latency_ms="meta.ms",
        response_id="meta.id",
    )
    payload = {
        "data": {
            "final": {"text": "yes"},
            "steps": [{"kind": "tool", "tool": "a", "input": {"x": 1}}, {"kind": "think"}],
            "hits": [{"doc": "d1"}, {"doc": "d2"}],
        },
        "meta": {"tokens": {"input": 3, "output": 4}, "ms": 9, "id": "r"},
    }
    reply = reply_from_payload(payload, mapping=mapping)
    assert reply.text == "yes"
    assert reply.tool_calls == (ToolCall(name="a", arguments={"x": 1}),)
    assert [source.id for source in reply.sources] == ["d1", "d2"]
    assert reply.failure is None
    assert reply.timings.latency_ms == 9
    assert reply.response_id == "r"
    failed = reply_from_payload({"data": {"problem": "Connection refused"}}, mapping=mapping)
    assert failed.failure is not None
    assert failed.failure.kind == "connection"
    assert not failed.evidence.tools_observed


def test_a_part_without_an_expression_is_found_by_its_usual_name() -> None:
    reply = reply_from_payload({"a": "x", "tools_used": ["t"]}, mapping=ReplyMapping(text="a"))
    assert (reply.text, reply.tools_used, reply.failure) == ("x", ("t",), None)


def test_a_bad_expression_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"reply\.tool_calls = 'data\.\[' .*position \d+"):
        ReplyMapping(tool_calls="data.[")


def test_an_expression_that_cannot_be_applied_is_a_failure_of_the_reply() -> None:
    reply = reply_from_payload({"answer": 5}, mapping=ReplyMapping(text="length(answer)"))
    assert reply.failure is not None
    assert reply.failure.kind == "malformed"
    assert "reply.text" in reply.failure.message


_NAMES = st.sampled_from(
    [
        "answer",
        "response",
        "text",
        "output",
        "message",
        "content",
        "role",
        "parts",
        "type",
        "tool_calls",
        "tools_used",
        "sources",
        "error",
        "usage",
        "choices",
        "candidates",
        "messages",
        "steps",
        "toolCalls",
        "toolInvocations",
        "done",
        "finishReason",
        "run_type",
        "outputs",
        "inputs",
        "child_runs",
        "lc",
        "id",
        "kwargs",
        "data",
        "samples",
        "epoch",
        "conversation",
        "final_response",
        "intermediate_data",
        "jsonrpc",
        "result",
        "isError",
        "structuredContent",
        "object",
        "name",
        "function",
        "arguments",
        "args",
        "metadata",
        "events",
        "model_usage",
        "latency_ms",
        "kind",
        "part_kind",
        "tasks_output",
        "raw",
        "contextId",
        "status",
        "values",
        "toolUse",
        "functionResponse",
        "tool_call_id",
        "step_number",
        "gen_ai.output.messages",
        "automatic_function_calling_history",
        "total_cost_usd",
        "$type",
    ],
)
_WORDS = st.sampled_from(
    [
        "ai",
        "human",
        "tool",
        "message",
        "text",
        "tool_use",
        "tool_result",
        "assistant",
        "user",
        "function_call",
        "tool-x",
        "request",
        "result",
        "ToolCallRequestEvent",
        "file_search_call",
        "response",
        "ROLE_AGENT",
        "task",
    ],
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | _WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_NAMES | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=25,
)


@settings(max_examples=600, deadline=None)
@given(_JSON)
def test_no_json_whatsoever_crashes(payload: Any) -> None:
    reply = reply_from_object(payload)
    assert isinstance(reply, Reply)
    assert reply.text is None or isinstance(reply.text, str)
    msgspec.json.decode(msgspec.json.encode(reply), type=Reply)
    assert isinstance(reply_from_payload(payload, context=QuestionContext(recorded=True)), Reply)
    mapping = ReplyMapping(text="answer", tool_calls="messages[].tool_calls[]", sources="data")
    assert isinstance(reply_from_payload(payload, mapping=mapping), Reply)
