"""A keyword is what the author typed or sees in the cell; what is probably a mistake is reported with its line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import InputError, InputErrors
from workbook_files import Shown, number, write_workbook

Command = Callable[..., Any]


def keywords_of(path: Path) -> list[Any]:
    return [question.expected_keywords for question in read_questions(path)]


@pytest.mark.parametrize(
    "typed",
    [
        "5:45",
        "12:30:45",
        "1.10",
        "007",
        "0x1F",
        ".nan",
        "yes",
        "no",
        "on",
        "true",
        "2024-08-01",
        "1e5",
        "01401",
        "5%",
    ],
)
def test_a_yaml_keyword_is_the_text_that_was_typed(typed: str, tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text(f"- id: {typed}\n  question: When?\n  expected_keywords: [{typed}, [{typed}, other]]\n")
    [question] = read_questions(path)
    assert question.id == typed
    assert question.expected_keywords[0] == typed
    assert question.expected_keywords[1].options == (typed, "other")  # type: ignore[union-attr]


def test_numbers_are_numbers_where_a_field_wants_one(tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text(
        "- question: How much?\n  weight: 1.50\n  expected_keywords: [{number: 1.10, tolerance: 0.05}]\n"
        "  expected_tools: [{name: pay, arguments: {amount: 1.10, code: '007'}}]\n  checks: [{max_words: 0x10}]\n"
    )
    [question] = read_questions(path)
    assert question.weight == 1.5
    assert question.expected_keywords[0].number == 1.1  # type: ignore[union-attr]
    assert question.expected_tools[0].arguments == {"amount": 1.1, "code": "007"}
    assert question.checks[0].expected == 16


def test_a_mapped_field_is_text_as_well(tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text("- ask: When?\n  must: {have: [5:45, 1.10]}\n")
    [question] = read_questions(path, fields={"question": "ask", "expected_keywords": "must.have"})
    assert question.expected_keywords == ("5:45", "1.10")


@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [
        ("expected_keywords: [$16,144]", "split-number", "“$16” and “144”"),
        ("expected_keywords: [1,000]", "split-number", "“1” and “000”"),
        ("context: What is rule #4 about?", "comment-cut", "“What is rule” ends before “#4 about?”"),
        ("expected_keywords: [“Montrose”]", "smart-quotes", "“Montrose”"),
    ],
)
def test_what_yaml_reads_differently_is_a_finding(
    typed: str, code: str, message: str, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "golden.yaml").write_text(f"- question: What?\n  id: a\n  {typed}\n")
    done = command("lint", "golden.yaml", "--json")
    assert done.code == 0
    [finding] = [one for one in json.loads(done.out)["findings"] if one["code"] == code]
    assert finding["severity"] == "warning"
    assert finding["id"] == "a"
    assert finding["line"] == (3 if code != "smart-quotes" else 1)
    assert message in finding["message"]
    assert "quotes" in finding["remedy"] or "[" in finding["remedy"]


def test_lists_and_comments_as_people_write_them_are_no_finding(command: Command, tmp_path: Path) -> None:
    (tmp_path / "golden.yaml").write_text(
        "# a set\n- question: What?  # asked often\n  id: a\n  expected_keywords: [2023,2024, 16, 144, x]  # years\n"
    )
    codes = {one["code"] for one in json.loads(command("lint", "golden.yaml", "--json").out)["findings"]}
    assert not codes & {"split-number", "comment-cut"}


def test_a_run_warns_of_such_values(command: Command, tmp_path: Path) -> None:
    (tmp_path / "golden.yaml").write_text("- question: What?\n  expected_keywords: [$16,144]\n")
    (tmp_path / "bot.py").write_text("def answer(question): return '$16,144'\n")
    done = command("run", "golden.yaml", "--target", "bot.py:answer", "--json")
    assert any("line 2: [$16,144] is a list of two values" in one for one in json.loads(done.out)["warnings"])


@pytest.mark.parametrize(
    ("written", "line", "message"),
    [
        ("- question: Note: what is the rent?\n", 1, "contains a colon and a space .* put the value in quotes"),
        ("- question: What?\n\texpected_keywords: [a]\n", 2, "a tab .* indent with spaces"),
        ("- question: What?\n  expected_keywords: [`a`]\n", 2, "cannot begin with '`'; put the value in quotes"),
        ("- question: What?\n  expected_keywords: [%a]\n", 2, "cannot begin with '%'; put the value in quotes"),
        ("- question: *bold* text\n", 1, "put the value in quotes"),
        ("- question: !important\n", 1, "'!important' is a YAML tag .* put the value in quotes"),
        ("- question: 'It's here'\n", 1, "text after a closing quote; put the whole value in quotes"),
        ('- question: "a\\q"\n', 1, "unknown escape in double quotes; use single quotes"),
        ("- question: What?\n  expected_keywords: [rule #4, b]\n", 2, "put the value in quotes if it contains ' #'"),
        ("- question: What?\n   id: a\n", 2, "colon|does not fit"),
        ("- question: a\n---\n- question: b\n", 2, "second document begins with '---'; keep one"),
        ("- question: What?\n  expected_keywords:\n    - a\n    -\n", 4, "item 2 must be text, not null; put it in quotes"),
        ("- question: One?\n  id: a\n  question: Two?\n", 3, "'question' is given twice, here and on line 1; remove one"),
    ],
)  # fmt: skip
def test_a_mistake_in_yaml_has_its_line_and_remedy(
    written: str, line: int, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text(written)
    with pytest.raises(InputError, match=message) as caught:
        read_questions(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_a_question_in_braces_is_read(tmp_path: Path) -> None:
    path = tmp_path / "golden.yaml"
    path.write_text("- {question: What is our address?, expected_keywords: [900]}\n")
    assert [question.question for question in read_questions(path)] == ["What is our address?"]


MISTAKES = """\
- question: Note: what is the rent?
- question: Good?
  expected_keywords: [the]
- question: Twice?
  expected_tools: query_database
  expected_keywords:
    - a
    - {nmber: 3}
    -
- question: Bold?
  expected_keywords: [`a`]
- question: Once?
  question: Again?
- id: empty
  expected_keywrds: [x]
"""


@pytest.mark.parametrize("verb", ["lint", "run", "audit"])
def test_all_problems_of_a_file_come_at_once(verb: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "golden.yaml").write_text(MISTAKES)
    (tmp_path / "bot.py").write_text("def answer(question): raise SystemExit\n")
    target = ("--target", "bot.py:answer") if verb == "run" else ()
    done = command(verb, "golden.yaml", *target)
    assert done.code == 2
    printed = done.out + done.err
    for line in (1, 5, 8, 9, 11, 13, 14):
        assert f"golden.yaml:{line}: " in printed, line
    assert not (tmp_path / ".answerkey").exists()


def test_lint_checks_the_rows_that_can_be_read(command: Command, tmp_path: Path) -> None:
    (tmp_path / "golden.yaml").write_text(MISTAKES)
    done = command("lint", "golden.yaml", "--json")
    findings = json.loads(done.out)["findings"]
    assert done.code == 2
    assert len([one for one in findings if one["code"] == "unreadable"]) >= 7
    assert all(one["remedy"] and one["id"] is None for one in findings if one["code"] == "unreadable")
    assert [one["line"] for one in findings if one["code"] == "common-word"] == [2]


def test_a_thousand_problems_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(f'{{"question": "A?", "expected_{number}": 1}}\n' for number in range(1000)))
    with pytest.raises(InputErrors) as caught:
        read_questions(path)
    assert len(caught.value.problems) == 1000
    assert caught.value.lines[-1] == "and 950 more problems"
    assert len(caught.value.lines) == 51


def test_a_problem_of_many_lines_is_listed_once(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text(
        '{"question": "A?"}\n' + '{"question": 5}\n' * 1000 + '{"question": "B?", "weight": -1}\n'
    )
    with pytest.raises(InputErrors) as caught:
        read_questions(path)
    first, last = caught.value.lines
    assert first.endswith("golden.jsonl:2: 'question' must be text, not a number (and on 999 more lines)")
    assert "golden.jsonl:1002: 'weight'" in last


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("g.jsonl", '{"question": "a", "question": "b"}\n', ":1: 'question' is given twice; remove one"),
        ("g.jsonl", '{"question": "a", "turns": [{"question": "x", "question": "y"}]}\n', "given twice"),
        ("g.json", '[\n{"question": "a",\n "id": "",\n "question": "b"}\n]', ":4: .question. is given twice, here and on line 2"),
    ],
)  # fmt: skip
def test_a_repeated_key_in_json_is_refused(name: str, written: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(written)
    with pytest.raises(InputError, match=message):
        read_questions(tmp_path / name)


def test_a_question_of_a_json_document_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(
        '{"about": [{"x": {"y": [1]}}],\n "questions": [\n  {"question": "a"},\n  {"question": "{b"}]}'
    )
    assert [question.line for question in read_questions(path)] == [3, 4]


# Excel.

HEADER = ["Question", "Keywords", "Category"]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (number(45505, "dd.mm.yyyy"), "01.08.2024"),
        (number(0.2395833333333333, "20"), "5:45"),
        (number(0.7395833333333334, "h:mm AM/PM"), "5:45 PM"),
        (number(0.05, "9"), "5%"),
        (number(1401, "00000"), "01401"),
        (number(16144, '"$"#,##0.00'), "$16,144.00"),
        (number(-3100, "#,##0;(#,##0)"), "(3,100)"),
        (number(1.1, "0.00"), "1.10"),
        (number(0.1), "0.1"),
        (number(16144), "16144"),
        (Shown("<v>1</v>", kind="b"), "TRUE"),
        (Shown("<v>12345678901234567</v>", kind="str"), "12345678901234567"),
        ("007", "007"),
    ],
)
def test_a_cell_is_read_as_it_is_displayed(cell: str, shown: str, tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "g.xlsx", {"Golden": [HEADER, ["When?", cell, "a"]]})
    assert keywords_of(path) == [(shown,)]


@pytest.mark.parametrize(
    ("cell", "code", "message"),
    [
        (
            number(45505, "14"),
            "system-date",
            "cell B2 has the computer's own date format; it is read as 2024-08-01",
        ),
        (
            Shown("<v>1.2345678901234568E16</v>"),
            "rounded-number",
            "cell B2 has a number of more than 15 digits",
        ),
    ],
)
def test_a_cell_that_cannot_be_read_as_displayed_is_a_finding(
    cell: str, code: str, message: str, command: Command, tmp_path: Path
) -> None:
    write_workbook(tmp_path / "g.xlsx", {"Golden": [HEADER, ["When?", cell, "a"]]})
    findings = json.loads(command("lint", "g.xlsx", "--json").out)["findings"]
    [finding] = [one for one in findings if one["code"] == code]
    assert finding["line"] == 2
    assert message in finding["message"]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (Shown("<f>A1+1</f>"), "cell B2 has a formula without a stored value; open the file .* and save it"),
        (Shown("<v>#REF!</v>", kind="e"), "cell B2 shows the error #REF!; correct its formula"),
    ],
)
def test_a_cell_without_a_value_is_refused(cell: str, message: str, tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "g.xlsx", {"Golden": [HEADER, ["When?", cell, "a"]]})
    with pytest.raises(InputError, match=message):
        read_questions(path)


def test_titles_above_the_header_are_skipped(tmp_path: Path) -> None:
    rows = [["Our questions"], [], ["Version", "2"], HEADER, ["When?", "900", "a"]]
    golden = read_questions(write_workbook(tmp_path / "g.xlsx", {"Golden": rows}))
    assert [question.line for question in golden] == [5]
    assert "the header in row 4" in golden.read_as
    (tmp_path / "g.csv").write_text("Our questions,,\n,,\nQuestion,Keywords,Category\nWhen?,900,a\n")
    assert keywords_of(tmp_path / "g.csv") == [("900",)]


def test_the_sheet_with_questions_is_found(tmp_path: Path, command: Command) -> None:
    notes, questions = [["Notes"], ["Ask Ann"]], [HEADER, ["When?", "900", "a"]]
    path = write_workbook(
        tmp_path / "g.xlsx", {"Read me": notes, "Set": questions, "Old": [HEADER, ["Who?", "1"]]}
    )
    assert keywords_of(path) == [("900",)]
    assert keywords_of(tmp_path / "g.xlsx#Old") == [("1",)]
    done = command("lint", "g.xlsx#old")
    assert done.code == 0
    assert "the sheet 'Old'" in done.err
    wrong = command("lint", "g.xlsx#Nosuch")
    assert wrong.code == 2
    assert "has no sheet 'Nosuch'; it has Read me, Set, Old" in wrong.err


def test_a_workbook_without_questions_says_what_to_name(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "g.xlsx", {"One": [["a", "b"], ["c", "d"]], "Two": [["e"], ["f"]]})
    with pytest.raises(
        InputError,
        match=r"no sheet has a column 'question' \(sheets: One, Two\); name the sheet as g.xlsx#SHEET",
    ):
        read_questions(path)


def test_merged_cells_hold_for_every_row(tmp_path: Path) -> None:
    rows = [HEADER, ["When?", "1", "money"], ["Who?", "2", None], ["Why?", "3", None], ["How?", "4", "other"]]
    path = write_workbook(tmp_path / "g.xlsx", {"Golden": rows}, merged={"Golden": ["C2:C4"]})
    assert [question.category for question in read_questions(path)] == ["money", "money", "money", "other"]
