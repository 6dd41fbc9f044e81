"""Every row of the scoring standard's tables, through the library and through the command line."""

from typing import Any

import pytest

import answerkey as ak
from answerkey.model.scorecard import details, letter_grade, total

TOOL_ROWS = [
    ("What is our property address?", ["query_database"], ["query_database"], 1.0),
    ("What's in our operating agreement?", ["search_document_content"], [], 0.0),
    ("List all our documents", ["list_business_documents"], ["query_database"], 0.0),
    (
        "What properties do we own and what documents mention them?",
        ["query_database", "search_document_content"],
        ["query_database", "search_document_content"],
        1.0,
    ),
    ("No tool expected, some used", [], ["query_database"], 1.0),
    ("Extra tools, repeats and order do not matter", ["b", "a"], ["a", "x", "a", "b"], 1.0),
    ("Names compare exactly", ["Query_Database"], ["query_database"], 0.0),
]
QUALITY_ROWS = [
    (
        ["900", "9th", "Montrose", "CO"],
        "Your property is located at 900 S 9th St, Montrose, CO 81401",
        1.0,
        [],
    ),
    (
        ["basis", "depreciation", "442300", "land", "building"],
        "The total basis for your property is $442,300, which includes the land and building components.",
        0.8,
        ["depreciation"],
    ),
    (
        ["August", "2024", "rental", "income", "16144"],
        "I found some transaction data for you.",
        0.0,
        ["August", "2024", "rental", "income", "16144"],
    ),
    ([], "anything at all", 1.0, []),
    (["anything"], None, 0.0, ["anything"]),
]
ESSENTIAL_ROWS: list[tuple[list[Any], str, float]] = [
    (["August", {"number": 16144, "must": True}], "In August 2024 you took in $16,144.", 1.0),
    (["August", {"number": 16144, "must": True}], "In August 2024 you took in $16,100.", 0.0),
    ([{"number": 3960, "tolerance": "1%"}], "about $3,930", 1.0),
    ([{"date": "2025-03-31"}], "it is due on 31/03/2025", 1.0),
]
# An unanswerable question: keywords, reply, response quality, reason.
UNANSWERABLE_ROWS = [
    ([], "That is not known.", 1.0, "says that it is not known"),
    ([], "It is not on record.", 1.0, "says that it is not known"),
    ([], "This is not documented in the files.", 1.0, "says that it is not known"),
    ([], "Sorry, that is not possible to say.", 1.0, "says that it is not known"),
    ([], "It was $4,210 in May.", 0.0, "does not decline, although there is no answer"),
    ([], "Which year do you mean?", 0.0, "does not decline, although there is no answer"),
    ([], None, 0.0, "there is no reply"),
    ([], "Sorry, something went wrong.", 0.0, "does not decline, although there is no answer"),
    ([], "Error 500: database not available", 0.0, "does not decline, although there is no answer"),
    (
        ["2023"],
        "Not on record: the books begin in 2023.",
        1.0,
        "says that it is not known; 1 of 1 keywords found",
    ),
    (
        ["2023"],
        "There is no record of that.",
        0.5,
        "says that it is not known; 0 of 1 keywords found; missing 2023",
    ),
]
ERROR_ROWS = [
    ("Your property is located at 900 S 9th St...", None, 1.0, None),
    (None, "DatabaseError: Connection refused", 0.0, "connection"),
    ("I encountered an error while searching...", "ToolExecutionError: Document not found", 0.0, "tool"),
    ("I encountered an error while searching...", None, 0.0, "error_text"),
    ("The most common error on Form 1065 is a missing EIN.", None, 1.0, None),
    ("There are currently no business documents available in the system.", None, 1.0, None),
    ("reply to question number 0 please", None, 1.0, None),
    ("Op maandag zijn we gesloten", None, 1.0, None),
    ("🎈 Doors open at 6", None, 1.0, None),
    ("Your balance is undefined EUR as of NaN.", None, 0.0, "malformed"),
    ("Dear {{customer_name}},", None, 0.0, "malformed"),
]
GRADES = [
    (0.90, "A"),
    (1.0, "A"),
    (0.899999, "B"),
    (0.80, "B"),
    (0.70, "C"),
    (0.60, "D"),
    (0.599999, "F"),
    (0.0, "F"),
]


def through_library(row: dict[str, Any]) -> dict[str, Any]:
    expected = {name: value for name, value in row.items() if name.startswith("expected")}
    card = ak.score(
        {"question": row["question"], **expected}, {name: row[name] for name in row if name not in expected}
    )
    components = {name: {"score": score.value, **details(score)} for name, score in card.components.items()}
    error = None if card.error is None else card.error.kind
    return {"components": components, "error": error, "score": card.total, "grade": card.grade}


@pytest.fixture(params=["library", "command line"])
def graded(request: pytest.FixtureRequest, command: Any, write_rows: Any) -> Any:
    if request.param == "library":
        return through_library

    def through_command_line(row: dict[str, Any]) -> dict[str, Any]:
        outcome = command("score", write_rows("replies.jsonl", row), "--json")
        assert outcome.code == 0, outcome.err
        (result,) = outcome.document["results"]
        error = result["reply"]["error"]
        return {**result, "error": None if error is None else error["kind"]}

    return through_command_line


@pytest.mark.parametrize(("question", "expected", "used", "score"), TOOL_ROWS)
def test_tool_usage(graded: Any, question: str, expected: list[str], used: list[str], score: float) -> None:
    result = graded(
        {"question": question, "expected_tools": expected, "answer": "Here it is.", "tools_used": used}
    )
    assert result["components"]["tool_usage"]["score"] == score
    assert result["components"]["tool_usage"]["missing"] == [name for name in expected if name not in used]


@pytest.mark.parametrize(("keywords", "reply", "score", "missing"), QUALITY_ROWS)
def test_response_quality(
    graded: Any, keywords: list[str], reply: str | None, score: float, missing: list[str]
) -> None:
    result = graded({"question": "Q", "expected_keywords": keywords, "answer": reply, "tools_used": []})
    assert result["components"]["response_quality"]["score"] == score
    assert result["components"]["response_quality"]["missing"] == missing
    assert result["components"]["response_quality"]["found"] == [
        word for word in keywords if word not in missing
    ]


@pytest.mark.parametrize(("expected", "reply", "score"), ESSENTIAL_ROWS)
def test_essential_expectations(graded: Any, expected: list[Any], reply: str, score: float) -> None:
    result = graded(
        {
            "question": "Q",
            "expected_tools": ["query_database"],
            "expected_keywords": expected,
            "answer": reply,
            "tools_used": ["query_database"],
        }
    )
    assert result["components"]["response_quality"]["score"] == score
    # With the right tool and no error, a reply without an essential value is a D.
    assert (result["score"], result["grade"]) == ((1.0, "A") if score else (0.6, "D"))


@pytest.mark.parametrize(("keywords", "reply", "score", "reason"), UNANSWERABLE_ROWS)
def test_unanswerable_questions(
    command: Any, write_rows: Any, keywords: list[str], reply: str | None, score: float, reason: str
) -> None:
    golden = write_rows(
        "golden.jsonl",
        {"id": "rent", "question": "What was the rent?", "expected_keywords": keywords, "answerable": False},
    )
    replies = write_rows("replies.jsonl", {"id": "rent", "answer": reply, "tools_used": []})
    (result,) = command("score", replies, "--questions", golden, "--json").document["results"]
    quality = result["components"]["response_quality"]
    assert (quality["score"], quality["reason"]) == (score, reason)
    assert result["metrics"]["abstained"] == float(reason.startswith("says"))


def test_an_answerable_question_that_is_declined(command: Any, write_rows: Any) -> None:
    golden = write_rows(
        "golden.jsonl",
        {"id": "fees", "question": "Were there late fees in May?", "expected_keywords": ["no late fees"]},
        {"id": "rent", "question": "What was the rent in May?", "expected_keywords": ["900"]},
        {"id": "motto", "question": "What is our motto?", "answerable": False},
    )
    replies = write_rows(
        "replies.jsonl",
        {"id": "fees", "answer": "There is a record of May, and there were no late fees.", "tools_used": []},
        {"id": "rent", "answer": "I don't know, there is no record of that.", "tools_used": []},
        {"id": "motto", "answer": "I don't know, there is no record of that.", "tools_used": []},
    )
    outcome = command(
        "score",
        replies,
        "--questions",
        golden,
        "--gate",
        "abstained >= 1",
        "--gate",
        "over_refused <= 0.1",
        "--json",
    )
    assert outcome.code == 1
    metrics = [result["metrics"] for result in outcome.document["results"]]
    assert [(one.get("abstained"), one.get("over_refused")) for one in metrics] == [
        (None, 0.0),
        (None, 1.0),
        (1.0, None),
    ]
    means = outcome.document["summary"]["metrics"]
    assert (means["abstained"], means["over_refused"]) == (1.0, 0.5)
    assert [gate["passed"] for gate in outcome.document["gates"]] == [True, False]


def test_an_error_message_is_an_error_and_declines_nothing(command: Any, write_rows: Any) -> None:
    golden = write_rows(
        "golden.jsonl",
        {"id": "rent", "question": "What was the rent in May?", "expected_keywords": ["1420"]},
        {"id": "motto", "question": "What is the motto?", "answerable": False},
    )
    replies = write_rows(
        "replies.jsonl", {"id": "rent", "answer": "Something went wrong. Please try again later."}
    )
    [result] = command("score", replies, "--questions", golden, "--json").document["results"]
    assert (result["error"]["kind"], result["metrics"]["over_refused"]) == ("error_text", 0.0)


def test_answerable_questions_alone_are_not_measured(command: Any, write_rows: Any) -> None:
    row = {"question": "What was the rent in May?", "answer": "I don't know.", "tools_used": []}
    metrics = command("score", write_rows("replies.jsonl", row), "--json").document["summary"]["metrics"]
    assert not {"abstained", "over_refused"} & metrics.keys()


@pytest.mark.parametrize(("reply", "error", "score", "kind"), ERROR_ROWS)
def test_error_handling(
    graded: Any, reply: str | None, error: str | None, score: float, kind: str | None
) -> None:
    result = graded({"question": "Q", "answer": reply, "error": error, "tools_used": []})
    assert result["components"]["error_handling"]["score"] == score
    assert result["error"] == kind


def test_worked_example(graded: Any) -> None:
    result = graded(
        {
            "question": "What is our property's total depreciable basis?",
            "expected_tools": ["query_database"],
            "expected_keywords": ["basis", "depreciation", "442300", "land", "building"],
            "answer": "The total basis for your property is $442,300, which includes the land and building components.",
            "tools_used": ["query_database"],
        }
    )
    assert (result["score"], result["grade"]) == (0.92, "A")


@pytest.mark.parametrize(("score", "letter"), GRADES)
def test_grades(score: float, letter: str) -> None:
    assert letter_grade(score) == letter


def test_a_score_is_rounded_before_it_is_compared() -> None:
    parts = {"tool_usage": 1.0, "response_quality": 0.75, "error_handling": 1.0}
    weights = {"tool_usage": 0.4, "response_quality": 0.4, "error_handling": 0.2}
    assert 0.4 + 0.3 + 0.2 != 0.9
    assert total(parts, weights) == 0.9
    assert letter_grade(0.4 + 0.3 + 0.2) == "A"


@pytest.mark.parametrize("mode", ["literal", "standard", "smart"])
def test_keyword_rows_hold_in_every_mode_that_promises_them(mode: str) -> None:
    for keywords, reply, score, _ in QUALITY_ROWS:
        card = ak.score({"expected_keywords": keywords}, {"answer": reply}, ak.Scoring(match=mode))
        # Literal is the one mode that cannot read $442,300.
        wanted = 0.6 if mode == "literal" and "442300" in keywords else score
        assert card.components["response_quality"].value == wanted


def test_a_component_without_a_value_never_leaves_the_weights() -> None:
    weights = {"tool_usage": 0.4, "response_quality": 0.4, "error_handling": 0.2}
    assert total({"tool_usage": 1.0, "response_quality": None, "error_handling": 1.0}, weights) is None
    assert total({"tool_usage": None, "response_quality": None, "error_handling": None}, weights) is None
    # A component that weighs nothing is no part of the score.
    assert total({"a": 1.0, "b": None}, {"a": 1.0, "b": 0.0}) == 1.0


def test_means_are_over_questions_not_over_replies(command: Any, write_rows: Any) -> None:
    good, bad = {"answer": "yes", "tools_used": []}, {"answer": "no", "tools_used": []}
    rows = [
        {"id": "a", "question": "A?", "expected_keywords": ["yes"], "category": "x", **good} for _ in range(3)
    ]
    rows.append({"id": "b", "question": "B?", "expected_keywords": ["yes"], "category": "x", **bad})
    document = command("score", write_rows("r.jsonl", *rows), "--json").document
    assert document["summary"]["score"] == pytest.approx((1.0 + 0.6) / 2)
    assert document["summary"]["questions"] == 2
    assert document["summary"]["replies"] == 4
    assert document["categories"][0]["score"] == pytest.approx(0.8)


def test_what_was_not_asked_shows_in_coverage(command: Any, write_rows: Any) -> None:
    golden = write_rows("g.jsonl", {"id": "a", "question": "A?"}, {"id": "b", "question": "B?"})
    replies = write_rows("r.jsonl", {"id": "a", "answer": "yes", "tools_used": []})
    outcome = command("score", replies, "--questions", golden, "--json")
    assert outcome.document["summary"]["coverage"] == 0.5
    assert any("coverage" in line for line in outcome.document["warnings"])


def test_tools_that_were_not_observed_are_reported(command: Any, write_rows: Any) -> None:
    rows = write_rows("r.jsonl", {"question": "A?", "expected_tools": ["t"], "answer": "yes"})
    outcome = command("score", rows, "--json")
    assert outcome.document["results"][0]["components"]["tool_usage"]["score"] == 0.0
    assert any("not observed" in line and "tools_used" in line for line in outcome.document["warnings"])
