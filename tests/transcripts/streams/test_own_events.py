"""Streams without a known protocol, as people write them: what is the answer, what is a call, what is neither."""

import json
from typing import Any

import pytest

from answerkey.model.reply import Reply
from answerkey.transcripts.formats import streamed
from answerkey.transcripts.payloads import reply_from_payload
from answerkey.transcripts.streams import EventReader, assemble


def read(events: list[Any]) -> Reply:
    """The reply in server-sent events; a text is sent as it is."""
    reader = EventReader("sse")
    lines = [f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events]
    data = reader.feed("".join(lines).encode(), last=True)
    payload, whole = assemble("sse", data, done=reader.done, names=reader.names)
    return streamed(reply_from_payload(payload), whole)


def token(text: str) -> dict[str, str]:
    return {"type": "token", "content": text}


@pytest.mark.parametrize(
    "events",
    [
        ["It ", "costs ", "20", " EUR"],
        [token("It costs "), token("20 EUR"), {"type": "done"}],
        [token("It costs "), token("20 EUR"), {"type": "final", "content": "It costs 20 EUR"}],
        [token("It costs "), token("20 EUR"), {"type": "final", "answer": "It costs 20 EUR"}],
        [{"data": {"content": "It costs "}}, {"data": {"content": "20 EUR"}}],
        [{"delta": {"content": "It costs "}}, {"delta": {"content": "20 EUR"}}],
        [{"token": {"text": "It costs "}}, {"token": {"text": "20 EUR"}}],
        [{"type": "thinking", "content": "Let me see."}, {"type": "text", "content": "It costs 20 EUR"}],
        [{"type": "status", "content": "Searching"}, token("It costs 20 EUR")],
        [{"event": "message", "answer": "It costs "}, {"event": "message", "answer": "20 EUR"}],
        [{"role": "assistant", "content": "It costs "}, {"role": "assistant", "content": "20 EUR"}],
        [{"type": "AIMessageChunk", "content": "It costs "}, {"type": "AIMessageChunk", "content": "20 EUR"}],
        [
            {"object": "thread.message.delta", "delta": {"content": [{"text": {"value": "It costs "}}]}},
            {"object": "thread.message.delta", "delta": {"content": [{"text": {"value": "20 EUR"}}]}},
        ],
    ],
)
def test_the_answer_is_all_that_was_said_and_nothing_else(events: list[Any]) -> None:
    reply = read(events)
    assert (reply.text, reply.failure) == ("It costs 20 EUR", None)
    assert not reply.evidence.tools_observed


@pytest.mark.parametrize(
    "events",
    [
        [
            {"type": "tool_start", "tool": "price", "input": {"id": 3}},
            {"type": "tool_end", "tool": "price", "output": "20"},
        ],
        [
            {"type": "tool_call", "name": "price", "arguments": {"id": 3}},
            {"type": "tool_output", "content": "20"},
        ],
        [{"type": "function_call", "function": {"name": "price", "arguments": '{"id": 3}'}, "result": "20"}],
    ],
)
def test_what_a_tool_brought_belongs_to_its_call_and_not_to_the_answer(events: list[Any]) -> None:
    reply = read([*events, token("It costs 20 EUR")])
    assert reply.text == "It costs 20 EUR"
    assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [
        ("price", {"id": 3}, "20")
    ]


def test_results_of_calls_at_the_same_time_go_by_id() -> None:
    calls = [{"type": "tool_start", "tool": "price", "id": name, "input": {"id": name}} for name in "ab"]
    results = [{"type": "tool_end", "tool": "price", "id": name, "output": name} for name in "ba"]
    reply = read([*calls, *results, token("Done")])
    assert [(call.arguments, call.result) for call in reply.tool_calls] == [
        ({"id": "a"}, "a"),
        ({"id": "b"}, "b"),
    ]


def test_an_error_event_is_an_error() -> None:
    reply = read([token("It costs"), {"type": "error", "message": "Connection refused"}])
    assert reply.text == "It costs"
    assert reply.failure is not None
    assert reply.failure.kind == "connection"


def test_the_name_that_every_event_has_does_not_hide_what_it_is() -> None:
    events = [{"type": "thinking", "content": "Hm."}, token("20 EUR"), {"type": "error", "content": "boom"}]
    payload, _ = assemble("sse", [json.dumps(event) for event in events], done=True, names=["message"] * 3)
    reply = reply_from_payload(payload)
    assert (reply.text, reply.failure and reply.failure.message) == ("20 EUR", "boom")


def test_words_that_repeat_are_no_final_answer() -> None:
    assert read([token("ha"), token("ha")]).text == "haha"
