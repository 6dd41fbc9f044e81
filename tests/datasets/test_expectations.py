"""Expectations as golden sets write them: every kind is read, written back, and refused with a clear message."""

import datetime
from typing import Any

import jsonschema_rs
import pytest

from answerkey.datasets.expectations import expectation_value, parse_expectation
from answerkey.datasets.golden_sets import parse_question, question_row, question_schema
from answerkey.model.question import (
    Alternatives,
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    PatternExpectation,
    RangeExpectation,
    TextExpectation,
    describe_expectation,
    is_essential,
)

# A value, what it is read as, and how reports name it.
KINDS: list[tuple[Any, Expectation, str]] = [
    ("net 30", "net 30", "net 30"),
    ({"text": "net 30"}, "net 30", "net 30"),
    ({"text": "net 30", "must": True}, TextExpectation("net 30", must=True), "net 30"),
    (["land", "plot"], Alternatives(("land", "plot")), "land | plot"),
    ({"any": ["land", {"number": 5}]}, Alternatives(("land", NumberExpectation(5))), "land | 5"),
    ({"any": ["land"], "must": True}, Alternatives(("land",), must=True), "land"),
    ({"number": 16144, "must": True}, NumberExpectation(16144, must=True), "16144"),
    ({"number": 3960, "tolerance": "1%"}, NumberExpectation(3960, "1%"), "3960 ± 1%"),
    ({"number": "$3,960.50", "tolerance": 0.5}, NumberExpectation(3960.5, 0.5), "3960.5 ± 0.5"),
    ({"number": "12.5%"}, NumberExpectation(12.5, percent=True), "12.5%"),
    ({"range": [3900, 4000]}, RangeExpectation(3900, 4000), "3900 to 4000"),
    ({"range": ["5%", "10%"]}, RangeExpectation(5, 10, percent=True), "5% to 10%"),
    ({"date": "2025-03-31"}, DateExpectation("2025-03-31"), "2025-03-31"),
    ({"date": "18:15"}, DateExpectation("18:15"), "18:15"),
    ({"date": "29 February"}, DateExpectation("29 February"), "29 February"),
    ({"regex": r"\bCO\b"}, PatternExpectation(r"\bCO\b"), r"/\bCO\b/"),
    (
        {"sql": "SELECT 1", "from": "books", "params": {"month": "2025-07"}, "as": "any", "tolerance": "1%"},
        ComputedExpectation(
            method="sql",
            expression="SELECT 1",
            source="books",
            arguments={"month": "2025-07"},
            several="any",
            tolerance="1%",
        ),
        "SELECT 1",
    ),
    (
        {"fact": "entity.formed", "from": "facts", "on_empty": "abstain"},
        ComputedExpectation(method="fact", expression="entity.formed", source="facts", on_empty="abstain"),
        "entity.formed",
    ),
    (
        {"python": "monthly_income", "args": {"month": 7}, "must": True},
        ComputedExpectation(method="python", expression="monthly_income", arguments={"month": 7}, must=True),
        "monthly_income",
    ),
]


@pytest.mark.parametrize(("value", "expectation", "name"), KINDS)
def test_every_kind_is_read_written_and_named(value: Any, expectation: Expectation, name: str) -> None:
    assert parse_expectation(value, "x") == expectation
    assert parse_expectation(expectation_value(expectation), "x") == expectation
    assert describe_expectation(expectation) == name
    assert is_essential(expectation) == (isinstance(value, dict) and "must" in value)
    definitions = question_schema()["$defs"]
    schema = jsonschema_rs.validator_for({"$ref": "#/$defs/expectation", "$defs": definitions})
    assert schema.is_valid(value)
    assert schema.is_valid(expectation_value(expectation))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"number": 1, "date": "2025-01-01"}, "has 'number' and 'date'; give it exactly one of text, any"),
        ({"must": True}, "has no kind; give it exactly one of"),
        ({"text": "a", "tolerance": 1}, "'tolerance' is not an option of 'text', which has must"),
        ({"number": 1, "must": "yes"}, "'must' must be false or true"),
        ({"number": 1, "must": 1}, "'must' must be false or true"),
        ({"number": True}, 'must be a number such as 3960, "12.5%" or "120 m²", not true/false'),
        ({"number": 1, "tolerance": "some"}, "'tolerance' must be a number from 0 up or a percentage"),
        ({"range": [2, 1]}, "2 is higher than 1; write the lower number first"),
        ({"range": [1]}, "must be a list of two numbers"),
        ({"date": "soon"}, "must be a date or time such as .*, not 'soon'"),
        ({"date": "31/02/2025"}, "there is no day '31/02/2025'"),
        ({"date": "February 29, 2025"}, "there is no day"),
        ({"regex": "("}, "the regular expression '\\(' is not valid"),
        ({"any": "land"}, "'any' must be a list of alternatives, not text"),
        (["a", ["b"]], "alternatives cannot be nested"),
        ([{"text": "a", "must": True}], "one alternative cannot be essential"),
        ([{"sql": "SELECT 1"}], "a computed value cannot be an alternative"),
        ({"sql": "SELECT 1", "args": {}}, "'args' is not an option of 'sql'"),
        ({"python": "f", "args": [1]}, "'args' must be an object, not a list"),
        ({"sql": "SELECT 1", "as": "one"}, '\'as\' must be "all" or "any"'),
        ({"sql": " "}, "'sql' must be text, not empty text"),
        ({"sql": "SELECT 1", "from": 5}, "'from' must name a source under"),
    ],
)
def test_a_wrong_expectation_is_refused_with_place_and_remedy(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        parse_expectation(value, "'expected_keywords' item 1")
    assert str(caught.value).startswith("'expected_keywords' item 1")


def test_fields_that_name_their_kind_are_further_expectations() -> None:
    question = parse_question(
        {
            "question": "What was the total?",
            "expected_keywords": ["August"],
            "expected_numbers": [3960, "12.5%", {"range": [1, 2]}],
            "expected_dates": "2025-03-31",
            "expected_entities": ["Montrose", ["CO", "Colorado"]],
            "accept_regex": r"\btotal\b",
        }
    )
    assert question.expected_keywords == (
        "August",
        NumberExpectation(3960),
        NumberExpectation(12.5, percent=True),
        RangeExpectation(1, 2),
        DateExpectation("2025-03-31"),
        "Montrose",
        Alternatives(("CO", "Colorado")),
        PatternExpectation(r"\btotal\b"),
    )
    assert parse_question(question_row(question)) == question


def test_dates_of_other_formats_are_read_as_such() -> None:
    day = datetime.date(2025, 3, 31)
    assert parse_expectation(day, "x", "date") == DateExpectation("2025-03-31")
    assert parse_expectation({"date": day}, "x") == DateExpectation("2025-03-31")


def test_unanswerable_and_critical_questions() -> None:
    question = parse_question(
        {
            "question": "Who is our insurer?",
            "answerable": False,
            "severity": "critical",
            "expected_sources": ["a.pdf"],
        }
    )
    assert not question.answerable
    assert question.severity == "critical"
    assert question.relevant_documents == {"a.pdf": 1.0}
    assert not question.expects_nothing
    assert parse_question(question_row(question)) == question
    with pytest.raises(ValueError, match="'answerable' must be true or false, not text"):
        parse_question({"question": "x", "answerable": "perhaps"})
    # As a cell of a table has it.
    assert not parse_question({"question": "x", "answerable": "no"}).answerable
    with pytest.raises(ValueError, match="'severity' can only be \"critical\""):
        parse_question({"question": "x", "severity": "high"})


def test_a_set_without_new_fields_keeps_its_content_hash() -> None:
    question = parse_question(
        {
            "id": "q",
            "question": "What is the basis?",
            "expected_tools": ["query_database"],
            "expected_keywords": [
                "442300",
                ["land", "plot"],
                {"number": 5},
                {"number": 5, "tolerance": 0.5},
                {"regex": "9th"},
                ["a", {"number": 1}],
            ],
            "forbidden_keywords": ["x"],
            "reference_answer": "r",
            "relevant_documents": ["d"],
        }
    )
    assert question.content_hash == "6673161900b655b661428226969b03af"
