"""Whatever has passed the boundary is accepted by both stores, and comes back as it was."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from answerkey.datasets.golden_sets import parse_question
from answerkey.model.judgement import ProductionReply
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Evidence, Failure, Reply, Source, ToolCall
from answerkey.store import open_store
from answerkey.store.production import ProductionReplies
from answerkey.transcripts.json_values import DEEPEST, admit_reply
from answerkey.transcripts.payloads import reply_from_object

from .filling import add_run

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "answer": ANY_TEXT | ANY_VALUE,
        "id": ANY_TEXT,
        "conversation_id": ANY_TEXT,
        "trace_id": ANY_TEXT,
        "error": ANY_TEXT | ANY_VALUE,
        "tool_calls": st.lists(
            st.fixed_dictionaries({"name": ANY_TEXT}, optional={"arguments": ANY_VALUE, "result": ANY_VALUE}),
            max_size=2,
        ),
        "sources": st.lists(
            st.fixed_dictionaries({"id": ANY_TEXT, "text": ANY_TEXT}) | ANY_VALUE, max_size=2
        ),
        "usage": ANY_VALUE,
        "latency_ms": ANY_VALUE,
    },
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payloads=st.lists(REPLIES, min_size=1, max_size=5), ids=st.lists(st.text(), min_size=5, max_size=5))
def test_what_has_passed_is_kept_as_it_is(store_url: str, payloads: list[object], ids: list[str]) -> None:
    replies = [reply_from_object(payload) for payload in payloads]
    assert [admit_reply(reply) for reply in replies] == replies, "once is enough"
    questions = [
        parse_question({"id": f"{number} {identity}", "question": f"what {identity}"})
        for number, identity in enumerate(ids[: len(replies)])
    ]
    by_id = {question.id: reply for question, reply in zip(questions, replies, strict=True)}
    with open_store(store_url) as store:
        info = add_run(
            store,
            os.urandom(8).hex(),
            lambda question, trial: by_id[question.id],
            questions=QuestionSet(questions=tuple(questions), name="any"),
        )
        assert [trial.reply for trial in store.results(info)] == replies
        production = [
            ProductionReply(id=reply.response_id or "x", created_at="2026-11-17", question="q", reply=reply)
            for reply in replies
        ]
        ProductionReplies(store).add(production)


@pytest.mark.parametrize("depth", [1, 20, 200, 20_000])
def test_depth(depth: int) -> None:
    value: object = "end"
    for _ in range(depth):
        value = [{"a": value}]
    reply = Reply(tool_calls=(ToolCall(name="t", result=value, arguments={"a": value}),))
    admitted = admit_reply(reply)
    assert (admitted == reply) == (depth <= 20)
    levels, inside = 0, admitted.tool_calls[0].result
    while isinstance(inside, (list, dict)):
        inside = inside[0] if isinstance(inside, list) else inside["a"]
        levels += 1
    assert levels <= DEEPEST
    assert inside == ("end" if depth <= 20 else "…")


def test_a_reply_of_a_target_of_ones_own_passes_too() -> None:
    reply = Reply(
        text="a \ud800",
        tool_calls=(ToolCall(name="t", arguments={"when": object, "n": 2**70}, result={1: float("nan")}),),
        sources=(Source(id="\0", metadata={"raw": b"x"}),),
        failure=Failure("tool", "\udfff"),
        evidence=Evidence(tools_observed=True),
    )
    admitted = admit_reply(reply)
    assert admitted.text == "a \ufffd"
    assert admitted.tool_calls[0].arguments == {"when": str(object), "n": str(2**70)}
    assert admitted.tool_calls[0].result == {"1": None}
    assert admitted.sources[0].id == "\ufffd"
    assert admitted.evidence == reply.evidence


def test_a_reply_that_is_too_large_is_a_failure_of_its_own() -> None:
    reply = Reply(text="x" * 3_000_000)
    assert admit_reply(reply) is reply
    failure = admit_reply(reply, 2.0).failure
    assert failure is not None
    assert failure == Failure(
        "malformed", "the reply is larger than 2 MB; raise max_reply_mb if that is right"
    )
