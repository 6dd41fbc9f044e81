"""Whatever a reply or a scorecard holds comes out of its columns as it went in, and every text is kept once."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.model.reply import Evidence, Failure, Reply, Source, Timings, ToolCall, Usage
from answerkey.model.scorecard import Score, Scorecard, ToolFacts
from answerkey.store.run_rows import fold, pack_card, pack_replies, unpack_card, unpack_replies

TEXTS = st.none() | st.text() | st.sampled_from(["", "\0", "\x1e", "a\x1eb", "Straße", "plain"])


@given(st.lists(TEXTS, max_size=4))
def test_texts_come_out_as_they_went_in(texts: list[str | None]) -> None:
    replies = tuple(Reply(text=text, timings=Timings(latency_ms=1.5)) for text in texts)
    _, text, _, payload = pack_replies(replies)
    assert text is None or "\0" not in text
    assert unpack_replies(text, payload) == replies


def test_a_text_is_kept_once() -> None:
    _, text, folded, payload = pack_replies((Reply(text="Only here – once."), Reply(text="And here.")))
    assert text == "Only here – once.\x1eAnd here."
    assert folded is None
    assert "here" not in payload


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("ALL of ASCII", None),
        ("typographic “quotes” – and €", None),
        ("GROSSE Straße", "grosse strasse"),
        ("Ölberg", "ölberg"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
    ],
)
def test_a_text_without_case_is_kept_only_where_the_database_could_not_tell(
    text: str, kept: str | None
) -> None:
    assert fold(text) == kept


def test_everything_else_of_a_reply_comes_out_as_it_went_in() -> None:
    reply = Reply(
        text="said",
        tool_calls=(
            ToolCall(name="t", arguments={"n": 10**30, "x": [None, "ü"]}, result={"a": 1}, error="no"),
        ),
        sources=(Source(id="d", score=0.5, metadata={"k": 1}),),
        failure=Failure("timeout", "slow"),
        usage=Usage(cost=0.25),
        evidence=Evidence(kind="otel", completeness="partial", tools_observed=True),
        response_id="r",
    )
    _, text, _, payload = pack_replies((reply,))
    assert unpack_replies(text, payload) == (reply,)


def packed_and_unpacked(card: Scorecard) -> Scorecard:
    packed = pack_card(card)
    kind = None if card.error is None else card.error.kind
    return unpack_card(card.total, card.grade, int(card.passed), kind, *packed)


def test_a_scorecard_comes_out_as_it_went_in() -> None:
    # Every field is set: one that the columns forget would come out at its default.
    turn = Scorecard(
        components={
            "tool_usage": Score("tool_usage", 0.5, "half", 0.4, {"odd": ["a"]}, ToolFacts(missing=("a",)))
        },
        total=0.5,
        grade="F",
        passed=False,
        metrics={"tool_f1": 0.25, "groundedness": None},
        findings={"claims": [{"text": "it is", "supported": True}]},
        error=Failure("timeout", "no reply in 60 s"),
    )
    card = Scorecard(
        components={**turn.components, "own": Score("own", None, "could not be scored", 0.6)},
        total=0.5,
        grade="F",
        passed=True,
        metrics=turn.metrics,
        findings=turn.findings,
        error=Failure("empty", ""),
        turns=(turn, turn),
    )
    for each in (turn, card):
        assert packed_and_unpacked(each) == each
    # A new field needs a place in the store: give it one, and a value above.
    assert Score.__struct_fields__ == ("name", "value", "reason", "weight", "details", "facts")
    assert Scorecard.__struct_fields__ == (
        *("components", "total", "grade", "passed", "metrics", "findings", "error", "turns"),
    )


def test_a_value_that_is_no_number_is_a_missing_one() -> None:
    card = Scorecard(
        components={"own": Score("own", math.inf)},
        total=None,
        grade=None,
        passed=False,
        metrics={"m": math.nan},
    )
    found = packed_and_unpacked(card)
    assert (found.components["own"].value, found.metrics) == (None, {"m": None})
