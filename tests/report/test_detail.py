"""One trial in full: marks where they belong, nothing lost but what is said to be cut."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from answerkey.model.question import ExpectedTool, Question
from answerkey.model.reply import Evidence, Reply, Source, ToolCall
from answerkey.model.run import Run
from answerkey.model.scorecard import Score, Scorecard, Trial
from answerkey.report.detail import Limits, TurnDetail, trial_detail


def detail(
    text: str | None, matches: list[dict[str, Any]] | None = None, limits: Limits | None = None, **reply: Any
) -> TurnDetail:
    question = Question(
        id="q", question="What?", expected_tools=(ExpectedTool("db"),), relevant_documents={"d1": 1}
    )
    card = Scorecard(
        components={"response_quality": Score("response_quality", 1.0, "", 1.0, {"matches": matches or []})},
        total=1.0,
        grade="A",
        passed=True,
    )
    result = Trial(question=question, number=1, replies=(Reply(text=text, **reply),), scorecard=card)
    (turn,) = trial_detail(result, limits).turns
    return turn


def span(start: Any, end: Any, keyword: str = "k") -> dict[str, Any]:
    return {"keyword": keyword, "found": True, "start": start, "end": end}


def marked(turn: TurnDetail) -> list[tuple[str, tuple[str, ...]]]:
    assert turn.reply is not None
    return [(segment.text, segment.marks) for segment in turn.reply]


def test_marks() -> None:
    turn = detail("It is 900 there", [span(6, 9, "900")])
    assert marked(turn) == [("It is ", ()), ("900", ("keyword",)), (" there", ())]


def test_marks_may_overlap() -> None:
    turn = detail("abcdef", [span(0, 4), span(2, 6, "other")])
    assert [text for text, _ in marked(turn)] == ["ab", "cd", "ef"]
    assert turn.reply is not None
    assert turn.reply[1].note == "keyword: k; keyword: other"


numbers = st.one_of(st.none(), st.integers(-5, 60))


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126)),
    st.lists(st.tuples(numbers, numbers), max_size=8),
)
def test_whatever_the_spans_the_text_stays_whole(text: str, spans: list[tuple[Any, Any]]) -> None:
    assert "".join(part for part, _ in marked(detail(text, [span(*ends) for ends in spans]))) == text


def test_what_is_cut_is_said() -> None:
    limits = Limits(reply=10, tool_text=5, calls=1, sources=1)
    calls = (ToolCall(name="db", arguments={"sql": "select everything"}), ToolCall(name="other"))
    turn = detail("x" * 30, limits=limits, tool_calls=calls, sources=(Source(id="d1"), Source(id="d2")))
    assert (turn.cut, turn.calls_cut, turn.sources_cut) == (20, 1, 1)
    assert turn.tools[0].arguments.endswith("more characters)")
    assert turn.tools[0].expected
    assert turn.sources[0].relevant


def test_null_is_not_empty() -> None:
    assert detail(None).reply is None
    assert detail("").reply == ()


def test_observed_and_unobserved_tools_differ() -> None:
    assert not detail("x").tools_observed
    assert detail("x", evidence=Evidence(tools_observed=True)).tools_observed


def test_a_pattern_is_shown_by_what_it_matched(golden_run: Run) -> None:
    card = Scorecard(
        components={
            "response_quality": Score(
                "response_quality",
                1.0,
                "",
                1.0,
                {
                    "found": ["/co\\b/"],
                    "matches": [{"keyword": "/co\\b/", "rule": "pattern", "text": "CO", "found": True}],
                },
            )
        },
        total=1.0,
        grade="A",
        passed=True,
    )
    result = Trial(
        question=Question(id="q", question="?"), number=1, replies=(Reply(text="CO"),), scorecard=card
    )
    assert trial_detail(result).turns[0].found == ("CO",)
