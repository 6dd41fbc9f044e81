from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import answerkey as ak
from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import ConfigError
from answerkey.model.reply import Failure, Reply, ToolCall
from answerkey.model.scorecard import Score, Trial, details, reason
from answerkey.scorers.grader import make_grader

TEXTS = st.one_of(st.none(), st.text(max_size=200))
WORDS = st.lists(st.text(min_size=1, max_size=12).filter(str.strip), max_size=5)


def component(card: ak.Scorecard, name: str) -> float | None:
    return card.components[name].value


@given(TEXTS, WORDS)
def test_scores_stay_within_bounds_on_any_text(text: str | None, keywords: list[str]) -> None:
    card = ak.score({"expected_keywords": keywords}, ak.Reply(text=text))
    assert card.total is not None
    assert 0.0 <= card.total <= 1.0
    assert card.grade in "ABCDF"


@given(st.text(max_size=200), WORDS, st.text(max_size=40))
def test_saying_more_never_loses_a_keyword(text: str, keywords: list[str], more: str) -> None:
    less = ak.score({"expected_keywords": keywords}, ak.Reply(text=text), ak.Scoring(match="literal"))
    # A character that lower-cases with its neighbour (Σ at a word's end) may change when text follows: keep them apart.
    longer = ak.score(
        {"expected_keywords": keywords}, ak.Reply(text=f"{text} | {more}"), ak.Scoring(match="literal")
    )
    assert component(longer, "response_quality") >= component(less, "response_quality")


@given(WORDS.flatmap(lambda words: st.tuples(st.just(words), st.permutations(words))), st.text(max_size=100))
def test_the_order_of_keywords_does_not_matter(orders: tuple[list[str], list[str]], text: str) -> None:
    first, second = (ak.score({"expected_keywords": words}, ak.Reply(text=text)) for words in orders)
    assert component(first, "response_quality") == component(second, "response_quality")


def qualities(text: str, keywords: list[str]) -> list[float | None]:
    """Response quality in the modes literal and standard."""
    cards = (
        ak.score({"expected_keywords": keywords}, ak.Reply(text=text), ak.Scoring(match=mode))
        for mode in ("literal", "standard")
    )
    return [component(card, "response_quality") for card in cards]


# Texts without numbers that are displayed as they are written: no marks of Markdown, and one space at a time.
AS_DISPLAYED = st.text("abcXYZäéñøЖя漢字 .,;:!?'\"-", max_size=60).map(lambda text: " ".join(text.split()))


@given(AS_DISPLAYED, st.lists(AS_DISPLAYED.filter(bool), max_size=5))
def test_literal_equals_standard_where_there_is_no_digit(text: str, keywords: list[str]) -> None:
    literal, standard = qualities(text, keywords)
    assert literal == standard


@given(st.text(max_size=200), WORDS)
def test_standard_finds_what_literal_finds(text: str, keywords: list[str]) -> None:
    literal, standard = qualities(text, keywords)
    assert literal is not None
    assert standard is not None
    assert standard >= literal


def test_repeated_keywords_count_each_time() -> None:
    card = ak.score({"expected_keywords": ["yes", "yes", "no"]}, {"answer": "yes"})
    assert component(card, "response_quality") == pytest.approx(2 / 3)


def test_a_forbidden_keyword_or_tool_costs_the_component() -> None:
    card = ak.score(
        {"expected_keywords": ["42"], "forbidden_keywords": ["guess"], "forbidden_tools": ["delete"]},
        {"answer": "My guess is 42.", "tools_used": ["delete"]},
    )
    assert component(card, "response_quality") == 0.0
    assert component(card, "tool_usage") == 0.0
    assert details(card.components["response_quality"])["forbidden"] == ["guess"]
    assert details(card.components["tool_usage"])["forbidden"] == ["delete"]


def test_a_question_that_wants_no_tool() -> None:
    assert component(ak.score({"tools": "none"}, {"answer": "Hello.", "tools_used": []}), "tool_usage") == 1.0
    assert (
        component(ak.score({"tools": "none"}, {"answer": "Hello.", "tools_used": ["x"]}), "tool_usage") == 0.0
    )


@pytest.mark.parametrize("rule", [{"tools": "none"}, {"forbidden_tools": ["delete"]}])
def test_that_no_forbidden_tool_was_called_must_have_been_observed(rule: dict[str, object]) -> None:
    unseen = ak.score(rule, {"answer": "Hello."})
    assert (unseen.total, component(unseen, "tool_usage")) == (None, None)
    assert reason(unseen.components["tool_usage"]).startswith("tool calls were not observed")
    failed = ak.score(rule, {"answer": None, "error": "TimeoutError: too slow"})
    assert (failed.total, component(failed, "tool_usage")) == (0.4, 0.0), "failing does not pay"
    called = ak.score(rule, {"answer": "Hello.", "tools_used": ["delete"]})
    assert component(called, "tool_usage") == 0.0


def test_a_missing_tool_counts_beside_a_forbidden_one_that_could_not_be_observed() -> None:
    card = ak.score({"expected_tools": ["query"], "forbidden_tools": ["delete"]}, {"answer": "Hello."})
    assert component(card, "tool_usage") == 0.0
    assert reason(card.components["tool_usage"]) == "did not call query (tool calls were not observed)"


def test_keywords_may_be_alternatives_numbers_and_patterns() -> None:
    keywords = [["real estate", "property"], {"number": 100, "tolerance": 1}, {"regex": r"9th\s+st(reet)?"}]
    reply = {"answer": "The property on 9th  Street costs 100.6 a day."}
    assert component(ak.score({"expected_keywords": keywords}, reply), "response_quality") == 1.0
    assert (
        component(ak.score({"expected_keywords": keywords}, {"answer": "It costs 98."}), "response_quality")
        == 0.0
    )


def test_a_pattern_that_would_backtrack_for_ever_does_not() -> None:
    card = ak.score({"expected_keywords": [{"regex": "(a+)+$"}]}, {"answer": "a" * 50_000 + "b"})
    assert component(card, "response_quality") == 0.0


def test_every_tool_mode_is_recorded_as_a_metric_whichever_is_the_component() -> None:
    question = {"expected_tools": ["a", {"name": "b", "arguments": {"x": 1}}]}
    reply = ak.Reply(text="ok", tool_calls=(ToolCall(name="b", arguments={"x": 2}), ToolCall(name="a")))
    card = ak.score(question, reply)
    assert component(card, "tool_usage") == 1.0
    recorded = {
        name: card.metrics[name] for name in ("tool_partial", "tool_f1", "tool_ordered", "tool_arguments")
    }
    assert recorded == {"tool_partial": 1.0, "tool_f1": 1.0, "tool_ordered": 0.5, "tool_arguments": 0.5}
    for mode in ("partial", "f1", "ordered", "arguments"):
        by_mode = ak.score(question, reply, ak.Scoring(tool_mode=mode))
        assert component(by_mode, "tool_usage") == recorded[f"tool_{mode}"]


def test_a_tool_that_failed_was_still_used_and_only_costs_if_the_reply_is_no_answer() -> None:
    failed = ToolCall(name="search", error="ToolExecutionError: index missing")
    answered = ak.score(
        {"expected_tools": ["search"]}, ak.Reply(text="It is in the lease.", tool_calls=(failed,))
    )
    assert (component(answered, "tool_usage"), component(answered, "error_handling")) == (1.0, 1.0)
    gave_up = ak.score(
        {"expected_tools": ["search"]},
        ak.Reply(text="I encountered an error while searching.", tool_calls=(failed,)),
    )
    assert component(gave_up, "error_handling") == 0.0
    assert gave_up.error == Failure("tool", "search: ToolExecutionError: index missing")


def test_a_conversation_scores_the_mean_of_its_turns() -> None:
    question = ak.Question(
        id="c",
        question="hi",
        turns=(
            ak.Question(id="c#1", question="hi", expected_keywords=("hello",)),
            ak.Question(id="c#2", question="address?", expected_keywords=("900",)),
        ),
    )
    card = make_grader().grade(question, (Reply(text="hello"), Reply(text="no idea")))
    assert [turn.total for turn in card.turns] == [1.0, 0.6]
    assert card.total == 0.8
    assert "turn 2" in reason(card.components["response_quality"])


def test_a_turn_that_was_never_reached_scores_as_a_null_reply() -> None:
    turns = tuple(ak.Question(id=f"c#{n}", question="?", expected_keywords=("x",)) for n in (1, 2))
    card = make_grader().grade(ak.Question(id="c", question="?", turns=turns), (Reply(text="x"),))
    assert [turn.total for turn in card.turns] == [1.0, 0.4]


class Broken:
    name = "broken"
    version = "1"

    def score(self, question: ak.Question, reply: ak.Reply) -> Score:
        raise RuntimeError("no model")


def test_a_scorer_that_fails_gives_a_score_without_a_value() -> None:
    card = make_grader(scorers=[Broken()]).grade_turn(ak.Question(id="q", question="?"), Reply(text="x"))
    assert card.metrics["broken"] is None
    assert card.findings["broken"] == {"unscored": "raised RuntimeError: no model", "harness": "scorer"}
    assert card.total == 1.0


def test_a_weighted_component_without_a_value_leaves_the_reply_unscored() -> None:
    scoring = ak.Scoring(weights={"tool_usage": 0.5, "broken": 0.5})
    card = make_grader(scoring, scorers=[Broken()]).grade_turn(
        ak.Question(id="q", question="?"), Reply(text="x")
    )
    assert (card.total, card.grade, card.passed) == (None, None, False)
    assert card.components["tool_usage"].value == 1.0
    assert reason(card.components["broken"]) == "raised RuntimeError: no model"


class Picky:
    name = "picky"
    version = "1"

    def score(self, question: ak.Question, reply: ak.Reply) -> Score:
        if reply.text and "7" in reply.text:
            raise ValueError("seven")
        return Score(self.name, 0.5)


REPLIES = (
    Reply(text="The basis is $442,300.", tool_calls=(ToolCall(name="a"),)),
    Reply(text="I said 7."),
    Reply(text=None),
    Reply(text="Traceback (most recent call last):\n  File 'a'\nKeyError: 'x'"),
    Reply(failure=Failure("timeout", "late")),
    Reply(failure=Failure("request", "never sent")),
)
EXPECTED: tuple[dict[str, Any], ...] = (
    {"expected_keywords": ["442300", "basis", "land"], "expected_tools": ["a"]},
    {"expected_keywords": ["land", {"number": 442300, "must": True}]},
    {"forbidden_keywords": ["basis"], "tools": "none"},
    {"answerable": False},
    {"reference_answer": "The basis is 442300"},
    {"checks": [{"contains": "basis"}]},
    {"turns": [{"question": "a", "expected_keywords": ["442300"]}, {"question": "b"}]},
)


@pytest.mark.parametrize(
    "weights",
    [None, {"response_quality": 0.5, "picky": 0.5}, {"tool_usage": 0.5, "error_handling": 0.5}],
)
def test_many_trials_are_graded_as_each_of_them_is(weights: dict[str, float] | None) -> None:
    scoring = ak.Scoring() if weights is None else ak.Scoring(weights=weights)
    grader = make_grader(scoring, scorers=[Picky()])
    trials = [
        Trial(parse_question({"question": "What is the basis?", **expected}), replies=(reply,))
        for expected in EXPECTED
        for reply in REPLIES
    ]
    one_by_one = [grader.grade(trial.question, trial.replies) for trial in trials]
    assert grader.grade_many(trials) == one_by_one
    # A second time, cards of equal values are shared.
    for _ in range(2):
        cards = grader.grade_many(trials, facts=False)
        assert [
            grader.explained(trial.scored(card)) for trial, card in zip(trials, cards, strict=True)
        ] == one_by_one


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"tool_usage": 0.4, "response_quality": 0.4, "error_handling": 0.1}, "add up to 0.9"),
        ({"tool_usage": -0.2, "response_quality": 1.0, "error_handling": 0.2}, "must not be negative"),
    ],
)
def test_weights_that_make_no_mean_are_refused(weights: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ak.Scoring(weights=weights)


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(ConfigError, match="no such component"):
        make_grader(ak.Scoring(weights={"tool_usage": 0.5, "vibes": 0.5}))


class Sometimes:
    name = "sometimes"
    version = "1"

    def score(self, question: ak.Question, reply: ak.Reply) -> tuple[Score, ...]:
        return (Score(self.name, 0.5, "half"),) if reply.text == "yes" else ()


def test_a_turn_without_a_weighted_component_leaves_the_conversation_unscored() -> None:
    turns = tuple(ak.Question(id=f"c#{n}", question="?") for n in (1, 2))
    scoring = ak.Scoring(weights={"tool_usage": 0.5, "sometimes": 0.5})
    card = make_grader(scoring, scorers=[Sometimes()]).grade(
        ak.Question(id="c", question="?", turns=turns), (Reply(text="no"), Reply(text="yes"))
    )
    assert [turn.total for turn in card.turns] == [None, 0.75]
    assert card.components["sometimes"].value is None
    assert card.total is None
