"""Mappings for replies of shapes that nobody told answerkey of: each is proposed and then read by itself."""

from typing import Any

import pytest

from answerkey.transcripts.payloads import ReplyMapping, reply_from_payload
from answerkey.transcripts.recorded_rows import propose_mapping

ANSWER = "The rent in August was 16,144 dollars, all told."
SHAPES: list[tuple[Any, list[str]]] = [
    ({"payload": {"body": ANSWER, "tools": ["query_database"]}, "request": {"prompt": "a long prompt " * 9}}, ["query_database"]),
    ({"code": 0, "msg": "success", "data": {"reply_text": ANSWER, "session": "8f14e45f-ceea-467f"}}, []),
    ({"chat": {"events": [{"kind": "tool", "tool": "search", "args": {}}, {"kind": "final", "say": ANSWER}]}}, ["search"]),
    ({"messages_out": [{"author": "bot", "body": ANSWER}], "plugin_calls": [{"plugin": "db", "params": {"a": 1}}]}, ["db"]),
    ({"message": "ok", "result": {"completion": ANSWER}, "trace": {"tool_invocations": []}}, []),
    ([{"generated_text": ANSWER}], []),
    ({"out": {"body": ANSWER}, "meta": {"invoked": [{"fn": "db", "args": {"sql": "SELECT 1"}}]}}, ["db"]),
    ({"out": {"body": ANSWER}, "trace": {"executed": [{"fn": "db", "args": {}}]}, "used": ["memory"]}, ["db"]),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "tools"), SHAPES)
def test_the_answer_and_the_tools_are_found(payload: Any, tools: list[str]) -> None:
    proposed = propose_mapping(payload, "What was the rent?")
    reply = (
        reply_from_payload(payload, mapping=ReplyMapping(**proposed))
        if proposed
        else reply_from_payload(payload)
    )
    assert reply.text == ANSWER
    assert list(reply.tools_used) == tools


@pytest.mark.parametrize(
    "payload",
    [
        {"answer": ANSWER, "tools_used": [], "sources": []},
        {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]},
        ANSWER,
        None,
        {},
    ],
)
def test_nothing_is_proposed_where_the_usual_names_do_or_nothing_is_there(payload: Any) -> None:
    assert propose_mapping(payload, "What was the rent?") == {}


def test_an_echo_of_the_question_is_not_the_answer() -> None:
    question = "Which of our tenants has paid late more than once in the last twelve months, and how late?"
    proposed = propose_mapping({"q": {"text": question}, "a": {"text": "Hattie."}}, question)
    assert proposed["text"] == "a.text"
