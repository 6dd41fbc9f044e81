"""Every kind of finding, on the smallest set that has it, and silence on sets that are well written."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.datasets.golden_sets import parse_question
from answerkey.golden.lint import Finding, lint_questions, worst_severity
from answerkey.model.question import QuestionSet


def lint(*rows: dict[str, Any]) -> list[Finding]:
    questions = [
        parse_question({"id": f"q{index}", **row}, line=index) for index, row in enumerate(rows, start=1)
    ]
    return lint_questions(QuestionSet(questions=tuple(questions)))


def codes(*rows: dict[str, Any]) -> set[str]:
    return {finding.code for finding in lint(*rows)}


GOOD = {
    "question": "What is the EIN?",
    "expected_tools": ["query_database"],
    "expected_keywords": ["83-4567890"],
}


def test_a_good_question_has_no_finding() -> None:
    assert lint(GOOD) == []


@pytest.mark.parametrize(
    ("keyword", "code", "severity"),
    [
        ("the", "common-word", "warning"),
        ("And", "common-word", "warning"),
        ("property", "generic-term", "warning"),
        ("LLC", "generic-term", "warning"),
        ("x", "one-letter", "warning"),
        ("CO", "inside-words", "warning"),
        ("12", "short-number", "warning"),
        (" Montrose", "keyword-spaces", "warning"),
        ("The company was formed in Colorado to hold and rent real estate", "long-keyword", "warning"),
        ("EIN", "echo", "warning"),
        ({"regex": ".*"}, "pattern-matches-anything", "error"),
        (["the", "83-4567890"], "common-word", "warning"),
    ],
)
def test_keywords_to_avoid(keyword: Any, code: str, severity: str) -> None:
    findings = lint({**GOOD, "expected_keywords": [keyword]})
    assert (code, severity) in {(finding.code, finding.severity) for finding in findings}


@pytest.mark.parametrize(
    "keyword", ["442300", "83-4567890", "900", "depreciation", "Montrose", "August", "rental income"]
)
def test_the_standards_good_keywords(keyword: str) -> None:
    assert lint({**GOOD, "expected_keywords": [keyword]}) == []


def test_co_is_found_inside_income() -> None:
    (finding,) = lint({**GOOD, "expected_keywords": ["CO"]})
    assert "income" in finding.message
    assert r"\\bCO\\b" in finding.remedy


def test_words_of_the_set_itself_count() -> None:
    (finding,) = lint({**GOOD, "question": "Who is Mr Zyxwin?", "expected_keywords": ["zyx"]})[:1]
    assert finding.code in {"inside-words", "echo"}


def test_echoes_are_numbers_too() -> None:
    essential = {"text": "depreciation", "must": True}
    (finding,) = lint(
        {**GOOD, "question": "Is the basis $442,300?", "expected_keywords": ["442300", essential]}
    )
    assert finding.code == "echo"
    assert "442300" in finding.message
    assert "depreciation" not in finding.message


def test_a_turn_is_checked_against_its_own_question() -> None:
    row = {
        "question": "Where is Montrose?",
        "turns": [
            {"question": "Where is our house?", "expected_keywords": ["Montrose"]},
            {"question": "And the zip of Ouray?", "expected_keywords": ["Ouray"]},
        ],
    }
    (finding,) = lint(row)
    assert finding.code == "echo"
    assert finding.message.startswith("turn 2: ")


@pytest.mark.parametrize(
    ("changes", "code", "severity"),
    [
        ({"expected_keywords": ["Montrose", "montrose"]}, "repeated-keyword", "warning"),
        ({"expected_keywords": ["rental income", "rental"]}, "contained-keyword", "info"),
        ({"reference_answer": "It is 12-3456789."}, "not-in-reference", "warning"),
        (
            {"reference_answer": "83-4567890, not 99", "forbidden_keywords": ["99"]},
            "forbidden-in-reference",
            "error",
        ),
        ({"forbidden_keywords": ["4567"]}, "forbidden-expected", "error"),
        (
            {"expected_keywords": [["Montrose", "Ouray"]], "forbidden_keywords": ["Ouray"]},
            "forbidden-alternative",
            "warning",
        ),
        ({"forbidden_keywords": ["EIN"]}, "forbidden-in-question", "info"),
        ({"forbidden_tools": ["query_database"]}, "forbidden-tool-expected", "error"),
        ({"expected_tools": [], "expected_keywords": []}, "expects-nothing", "warning"),
    ],
)
def test_expectations_against_each_other(changes: dict[str, Any], code: str, severity: str) -> None:
    findings = lint({**GOOD, **changes})
    assert [(finding.code, finding.severity) for finding in findings] == [(code, severity)]


def test_checks_alone_change_no_score_unless_they_have_a_weight() -> None:
    (found,) = lint({"question": "Hello there", "checks": [{"contains": "hi"}]})
    assert found.code == "expects-nothing"
    assert "checks alone do not change the score" in found.message
    assert "where [scoring.weights] gives them a weight" in found.message


def test_a_rubric_says_that_it_needs_a_judge() -> None:
    (found,) = lint({**GOOD, "checks": [{"rubric": "Is it kind?"}]})
    assert (found.code, found.severity) == ("rubric-needs-judge", "info")


def test_must_use_no_tool_is_an_expectation() -> None:
    assert lint({"question": "Hello there", "tools": "none"}) == []


def test_the_same_question_twice() -> None:
    (finding,) = lint(GOOD, {**GOOD, "question": "what is the  EIN"})
    assert (finding.code, finding.line, finding.id) == ("duplicate-question", 2, "q2")
    assert "line 1" in finding.message
    assert lint(GOOD, {**GOOD, "persona": "tenant"}) == []


def test_a_tool_that_looks_mistyped() -> None:
    mistyped = {**GOOD, "question": "Other?", "expected_tools": ["query_databse"]}
    (finding,) = lint(GOOD, {**GOOD, "question": "More?"}, mistyped)
    assert (finding.code, finding.id) == ("tool-typo", "q3")
    assert "query_database" in finding.message


def test_a_tool_written_another_way() -> None:
    other = {**GOOD, "question": "Other?", "expected_tools": ["QueryDatabase"]}
    assert codes(GOOD, {**GOOD, "question": "More?"}, other) == {"tool-typo"}


def test_tools_that_differ_in_a_number_are_different_tools() -> None:
    rows = [
        {**GOOD, "question": f"Question {number}?", "expected_tools": ["search_v1"]} for number in range(3)
    ]
    assert codes(*rows, {**GOOD, "expected_tools": ["search_v2"]}) == set()


def test_names_that_many_questions_use_are_no_slips() -> None:
    rows = [
        {**GOOD, "question": f"{name} {number}?", "expected_tools": [name]}
        for name in ("read_file", "read_files")
        for number in range(4)
    ]
    assert codes(*rows) == set()


def test_a_tool_that_nobody_else_uses() -> None:
    rows = [{**GOOD, "question": f"Question {number}?"} for number in range(6)]
    rows.append({**GOOD, "question": "Other?", "expected_tools": ["send_letter"]})
    assert codes(*rows) == {"lone-tool"}


def test_thin_and_mistyped_categories() -> None:
    rows = [{**GOOD, "question": f"Question {number}?", "category": "taxation"} for number in range(3)]
    assert codes(*rows) == set()
    # In the beginning of a set, every category is small.
    assert codes(*rows, {**GOOD, "category": "leases"}) == set()
    more = [{**GOOD, "question": f"More {number}?", "category": "taxation"} for number in range(9)]
    unknown = {"question": "Who knows?", "category": "taxation", "answerable": False}
    assert codes(*rows, *more, unknown, {**GOOD, "category": "leases"}) == {"thin-category"}
    assert codes(*rows, {**GOOD, "category": "Taxation"}) == {"category-typo"}
    assert codes(*rows, GOOD) == {"uncategorised"}


def test_a_question_without_an_id() -> None:
    question = parse_question({key: value for key, value in GOOD.items() if key != "id"})
    (finding,) = lint_questions(QuestionSet(questions=(question,)))
    assert finding.code == "no-id"


def test_findings_are_complete_and_in_the_files_order() -> None:
    findings = lint(
        {**GOOD, "expected_keywords": ["LLC"]}, {**GOOD, "question": "B?", "forbidden_keywords": ["4567"]}
    )
    assert [finding.line for finding in findings] == [1, 2]
    assert worst_severity(findings) == "error"
    (first, _) = msgspec.to_builtins(findings)
    assert set(first) == {"code", "severity", "line", "id", "message", "remedy"}
    assert all(first[name] for name in ("code", "message", "remedy"))


def test_hostile_keywords_are_shown_harmless() -> None:
    (finding,) = lint({**GOOD, "question": "\x1b[31m?", "expected_keywords": ["\x1b[31m"]})
    assert "\x1b" not in finding.message


@given(st.text(min_size=1), st.lists(st.text(min_size=1), max_size=4), st.text())
def test_any_text_can_be_checked(question: str, keywords: list[str], answer: str) -> None:
    row = {
        "question": question + "?",
        "reference_answer": answer,
        "expected_keywords": [f"{word}k" for word in keywords],
    }
    for finding in lint(row, {**row, "forbidden_keywords": [f"{word}k" for word in keywords]}):
        finding.message.encode("utf-8")
        assert finding.remedy


def codes_of(*rows: dict[str, Any]) -> list[str]:
    questions = [parse_question({"id": f"q{number}", **row}) for number, row in enumerate(rows)]
    return [finding.code for finding in lint_questions(QuestionSet(questions=tuple(questions)))]


ADDRESS = {"question": "Where?", "expected_keywords": ["Montrose", "81401"], "expected_tools": ["query"]}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (ADDRESS, "passes-without-answer"),
        ({"question": "How much?", "expected_keywords": ["310"], "reference_answer": "310 of 1,310"}, "number-inside-number"),
        ({"question": "How much?", "expected_keywords": ["5%"]}, "number-inside-number"),
        ({"question": "How much is a coffee?", "expected_keywords": ["4.90"]}, "number-inside-number"),
        ({"question": "What does it cost?", "expected_keywords": ["1200"]}, "number-inside-number"),
        ({"question": "How many seats?", "expected_keywords": ["1200"]}, "number-inside-number"),
        ({"question": "When?", "expected_keywords": ["5:45"]}, "number-inside-number"),
        ({"question": "How long?", "expected_keywords": ["3 working days"]}, "count-inside-number"),
        ({"question": "How far?", "expected_keywords": ["60 cm"]}, "count-inside-number"),
        ({"question": "When?", "expected_dates": ["03/04/2025"]}, "ambiguous-date"),
        ({"question": "When?", "expected_keywords": ["03/04"]}, "ambiguous-date"),
        ({"question": "When?", "expected_keywords": ["“Ann”"]}, "smart-quotes"),
        ({"question": "Who?", "gold_label": "Ann"}, "unscored-field"),
        ({"question": "Who?"}, "expects-nothing"),
    ],
)  # fmt: skip
def test_weak_keys_are_found(row: dict[str, Any], code: str) -> None:
    assert code in codes_of(row)


@pytest.mark.parametrize(
    "row",
    [
        {**ADDRESS, "expected_keywords": ["Montrose", {"text": "81401", "must": True}]},
        {**ADDRESS, "expected_keywords": ["81401"]},
        {"question": "How much?", "expected_keywords": ["442300"], "reference_answer": "$442,300 in 2024"},
        {"question": "What does it cost?", "expected_keywords": [{"number": 1200}, "442300"]},
        {"question": "What is the number of the EIN?", "expected_keywords": ["900"]},
        {"question": "When?", "expected_dates": ["31/03/2025", "2025-03-04"]},
        {"question": "Who?", "expected_keywords": ["Vasquez"], "split": "test"},
    ],
)
def test_strong_keys_are_not(row: dict[str, Any]) -> None:
    weak = {
        "passes-without-answer",
        "number-inside-number",
        "ambiguous-date",
        "smart-quotes",
        "unscored-field",
    }
    assert not weak & set(codes_of(row))


def test_a_version_is_not_an_ambiguous_date() -> None:
    assert "ambiguous-date" not in codes_of({"question": "Which version?", "expected_keywords": ["1.10"]})


def test_with_whole_numbers_no_number_is_inside_another() -> None:
    row = {"question": "What does it cost?", "expected_keywords": ["4.90", "1200", "12"], "id": "q1"}
    questions = QuestionSet(questions=(parse_question(row),))
    findings = lint_questions(questions)
    assert {finding.code for finding in findings} == {"number-inside-number", "short-number"}
    price, cost = [finding for finding in findings if finding.code == "number-inside-number"]
    assert "such as 14.90" in price.message
    assert price.remedy == 'write {"number": 4.9}, or set whole_numbers = true under [scoring]'
    assert "such as 1200.50" in cost.message
    assert lint_questions(questions, whole_numbers=True) == []


def test_a_month_beside_the_essential_figure_is_no_echo() -> None:
    question, month = "What was the rent in May?", {"text": "May", "must": True}
    figure = {"number": 13069, "must": True}
    assert "echo" in codes_of({"question": question, "expected_keywords": [month]})
    assert "echo" not in codes_of({"question": question, "expected_keywords": [figure, month]})


def test_a_code_of_most_questions_is_reported_once() -> None:
    rows = [
        {**ADDRESS, "question": f"Where is {number}?", "expected_keywords": ["Ann", "442300"]}
        for number in range(20)
    ]
    codes = codes_of(*rows)
    assert codes.count("passes-without-answer") == codes.count("could-be-computed") == 1
    assert codes.count("no-unanswerable") == 1
    assert "no-unanswerable" not in codes_of(*rows, {"question": "Who?", "answerable": False})
    assert "could-be-computed" not in codes_of(
        *rows, {"question": "Sum?", "expected_keywords": [{"sql": "SELECT 1"}]}
    )


@pytest.mark.parametrize(
    ("keyword", "typed"),
    [
        ("21.11.2026", '{"date": "2026-11-21"}'),
        ("6 October", '{"date": "6 October"}'),
        ("11:00", '{"date": "11:00"}'),
        ("03/04/2026", '{"date": "03/04/2026"}'),
    ],
)
def test_a_date_as_a_text_is_named_with_the_form_that_meets_every_way_to_write_it(
    keyword: str, typed: str
) -> None:
    (finding,) = [
        one
        for one in lint({"question": "When?", "expected_keywords": [keyword]})
        if one.code == "date-as-text"
    ]
    assert finding.severity == "info"
    assert finding.remedy == f"write {typed}, which is met by every usual form"


@pytest.mark.parametrize(
    "keyword",
    ["2026", "1/2", "1.10", "September 14, 2022", "Montrose", ["6 October", "Oct 6"], {"date": "6 October"}],
)
def test_other_keywords_are_not_dates_as_texts(keyword: object) -> None:
    assert "date-as-text" not in codes({"question": "When?", "expected_keywords": [keyword]})


def test_the_remedy_for_a_count_ends_the_finding() -> None:
    question = {"question": "How long can I return it?", "expected_keywords": ["14 days"]}
    [finding] = [one for one in lint(question) if one.code == "count-inside-number"]
    assert "“114 days”" in finding.message
    assert '{"regex": "\\\\b14 days\\\\b"}' in finding.remedy
    for keyword in ({"regex": r"\b14 days\b"}, {"date": "14 March"}, "14 March", "1400"):
        assert "count-inside-number" not in codes_of({**question, "expected_keywords": [keyword]})
