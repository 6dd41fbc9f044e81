from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import answerkey as ak
from answerkey.config import load_settings
from answerkey.errors import ConfigError
from answerkey.model.question import ExpectedTool
from answerkey.model.reply import ToolCall
from answerkey.model.scorecard import details, reason
from answerkey.scorers.components import argument_credit, fit_tools

NAMES = st.sampled_from(["a", "b", "c"])
ARGUMENTS = st.dictionaries(st.sampled_from("xy"), st.integers(0, 2), max_size=2)
EXPECTED = st.lists(st.builds(ExpectedTool, NAMES, ARGUMENTS), max_size=4)
CALLS = st.lists(st.builds(lambda n, a: ToolCall(name=n, arguments=a), NAMES, ARGUMENTS), max_size=5)


def tools(*names: str) -> list[ExpectedTool]:
    return [ExpectedTool(name) for name in names]


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(name=name) for name in names]


def test_partial_credit_counts_each_expected_call_once() -> None:
    fit = fit_tools(tools("a", "a", "b"), calls("a", "c"))
    assert fit.partial == pytest.approx(1 / 3)
    assert fit.precision == pytest.approx(1 / 2)
    assert fit.f1 == pytest.approx(2 * 1 / (3 + 2))


def test_order_counts_only_in_the_ordered_value() -> None:
    fit = fit_tools(tools("a", "b", "c"), calls("c", "a", "b"))
    assert fit.partial == 1.0
    assert fit.ordered == pytest.approx(2 / 3)


def test_extra_calls_cost_precision_but_not_order() -> None:
    fit = fit_tools(tools("a", "b"), calls("a", "x", "b"))
    assert (fit.ordered, fit.partial) == (1.0, 1.0)
    assert fit.precision == pytest.approx(2 / 3)


def test_arguments_are_assigned_for_the_most_credit_not_greedily() -> None:
    # A greedy pairing gives the first expectation the only call that the second one fits.
    expected = [ExpectedTool("q", {"x": {"ignore": True}}), ExpectedTool("q", {"x": 1})]
    made = [ToolCall(name="q", arguments={"x": 1}), ToolCall(name="q", arguments={"x": 2})]
    assert fit_tools(expected, made).arguments == 1.0


@given(EXPECTED, CALLS)
def test_writing_the_expectations_in_another_order_changes_no_order_free_value(
    expected: list[ExpectedTool], made: list[ToolCall]
) -> None:
    fits = {
        (fit.partial, fit.precision, fit.f1, round(fit.arguments, 9))
        for order in permutations(expected)
        for fit in [fit_tools(order, made)]
    }
    assert len(fits) == 1


@given(EXPECTED, CALLS)
def test_values_stay_within_bounds_and_arguments_never_beat_names(
    expected: list[ExpectedTool], made: list[ToolCall]
) -> None:
    fit = fit_tools(expected, made)
    for value in (fit.partial, fit.f1, fit.ordered, fit.arguments):
        assert 0.0 <= value <= 1.0
    assert fit.ordered <= fit.partial + 1e-12
    assert fit.arguments <= fit.partial + 1e-12


@given(EXPECTED, CALLS, NAMES)
def test_another_call_never_lowers_partial_credit(
    expected: list[ExpectedTool], made: list[ToolCall], name: str
) -> None:
    more = [*made, ToolCall(name=name)]
    assert fit_tools(expected, more).partial >= fit_tools(expected, made).partial
    assert fit_tools(expected, more).arguments >= fit_tools(expected, made).arguments - 1e-12


@pytest.mark.parametrize(
    ("expected", "actual", "credit"),
    [
        ({"year": 2024}, {"year": 2024, "extra": 1}, 1.0),
        ({"year": 2024}, {"year": 2023}, 0.0),
        ({"year": [2023, 2024]}, {"year": 2024}, 1.0),
        ({"ids": [1, 2]}, {"ids": [1, 2]}, 1.0),
        ({"note": ["", "x"]}, {}, 1.0),
        ({"sql": {"regex": "from\\s+transactions"}}, {"sql": "SELECT 1 FROM transactions"}, 1.0),
        ({"sql": {"regex": "from properties"}}, {"sql": "SELECT 1 FROM transactions"}, 0.0),
        ({"sql": {"ignore": True}}, {}, 1.0),
        ({"flag": True}, {"flag": 1}, 0.0),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, 0.5),
        ({"a": 1}, None, 0.0),
        (None, None, 1.0),
    ],
)
def test_argument_matchers(expected: dict | None, actual: dict | None, credit: float) -> None:
    assert argument_credit(expected, actual) == credit


@pytest.mark.parametrize(
    "reported",
    ["mcp__books__query_database", "books__query_database", "books.query_database", "Books-query_database"],
)
def test_a_name_with_the_prefix_of_its_server_or_plug_in_counts_and_is_said(reported: str) -> None:
    card = ak.score({"expected_tools": ["query_database"]}, {"answer": "x", "tools_used": [reported]})
    score = card.components["tool_usage"]
    assert score.value == 1.0
    assert reason(score) == f"called every expected tool ({reported} counts as query_database)"
    assert details(score)["extra"] == []
    forbidden = ak.score({"forbidden_tools": ["query_database"]}, {"answer": "x", "tools_used": [reported]})
    assert forbidden.components["tool_usage"].value == 0.0


@pytest.mark.parametrize("reported", ["soft-delete", "delete_all", "undelete", "deleted"])
def test_a_name_that_only_ends_alike_is_another_tool(reported: str) -> None:
    card = ak.score({"forbidden_tools": ["delete", "all"]}, {"answer": "x", "tools_used": [reported]})
    assert card.components["tool_usage"].value == 1.0


def test_the_exact_name_goes_first() -> None:
    question = {"expected_tools": ["mcp__books__query"], "forbidden_tools": ["query"]}
    card = ak.score(question, {"answer": "x", "tools_used": ["mcp__books__query"]})
    assert card.components["tool_usage"].value == 1.0


def test_aliases_of_tools_are_configured(tmp_path: Path) -> None:
    path = tmp_path / "answerkey.toml"
    path.write_text('[tools.aliases]\nlookup_v2 = "query_database"\n')
    scoring = load_settings(tmp_path).scoring
    question = {"expected_tools": ["query_database"]}
    score = ak.score(question, {"answer": "x", "tools_used": ["lookup_v2"]}, scoring).components["tool_usage"]
    assert (score.value, reason(score)) == (
        1.0,
        "called every expected tool (lookup_v2 counts as query_database)",
    )
    path.write_text('[tools]\nalias = { a = "b" }\n')
    with pytest.raises(ConfigError, match="unknown setting 'alias' in \\[tools\\]; did you mean 'aliases'"):
        load_settings(tmp_path)
