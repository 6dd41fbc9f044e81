"""Fields of golden sets in every file format: planned names, cells, operations of tools, and names that score nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.datasets.golden_sets import (
    QUESTION_FIELDS,
    TURN_FIELDS,
    question_row,
    question_schema,
    read_questions,
)
from answerkey.errors import InputError
from answerkey.model.question import CHECK_KINDS
from workbook_files import write_workbook

ROW = {
    "id": "rent",
    "question": "What is due?",
    "expected_keywords": ["rent", {"number": "3,960", "tolerance": "1%", "must": True}, ["land", "plot"]],
    "expected_numbers": [{"range": ["3900", "4000"]}, "12.5%"],
    "expected_dates": ["2025-03-31"],
    "expected_entities": ["Ann Lee"],
    "accept_regex": r"\bCO\b",
    "expected_sources": ["lease.pdf"],
    "answerable": True,
    "severity": "critical",
}
CELLS = {
    "id": "rent",
    "Question": "What is due?",
    "Expected keywords": "rent; must: 3,960 ± 1%; land || plot",
    "Expected numbers": "3900..4000; 12.5%",
    "Expected dates": "2025-03-31",
    "expected_entities": "Ann Lee",
    "Accept regex": r"\bCO\b",
    "expected_sources": "lease.pdf",
    "answerable": "TRUE",
    "Severity": "critical",
}
YAML = r"""
- id: rent
  question: What is due?
  expected_keywords: [rent, {number: "3,960", tolerance: 1%, must: true}, [land, plot]]
  expected_numbers: [{range: [3900, 4000]}, 12.5%]
  expected_dates: [2025-03-31]
  expected_entities: [Ann Lee]
  accept_regex: \bCO\b
  expected_sources: [lease.pdf]
  answerable: yes
  severity: critical
"""


def write(kind: str, folder: Path) -> Path:
    path = folder / f"golden.{kind}"
    if kind == "jsonl":
        path.write_text(json.dumps(ROW))
    elif kind == "yaml":
        path.write_text(YAML)
    elif kind == "csv":
        path.write_text("|".join(CELLS) + "\n" + "|".join(f'"{cell}"' for cell in CELLS.values()) + "\n")
    else:
        write_workbook(path, {"Golden": [list(CELLS), list(CELLS.values())]})
    return path


@pytest.mark.parametrize("kind", ["jsonl", "yaml", "csv", "xlsx"])
def test_every_format_has_every_field(kind: str, tmp_path: Path) -> None:
    [question] = read_questions(write(kind, tmp_path))
    assert question_row(question) == {
        "id": "rent",
        "question": "What is due?",
        "expected_keywords": [
            "rent",
            {"number": 3960.0, "tolerance": "1%", "must": True},
            ["land", "plot"],
            {"range": [3900.0, 4000.0]},
            {"number": "12.5%"},
            {"date": "2025-03-31"},
            "Ann Lee",
            {"regex": r"\bCO\b"},
        ],
        "relevant_documents": {"lease.pdf": 1.0},
        "severity": "critical",
    }


def test_an_unanswerable_question_in_a_cell(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("question,answerable\nWho?,no\nWhy?,\n")
    assert [question.answerable for question in read_questions(tmp_path / "g.csv")] == [False, True]


@pytest.mark.parametrize(
    "name",
    [
        "expected_answer_type",
        "validation_type",
        "validation_params",
        "accept_list",
        "expectedFigure",
        "expects_x",
    ],
)
def test_a_field_that_looks_like_an_expectation_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps({"question": "Who?", name: "x"}))
    with pytest.raises(
        InputError, match=f"unknown field '{name}' looks like an expectation.*rename it if it is a note"
    ):
        read_questions(path)


def test_a_mapped_field_and_a_note_are_read(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(
        json.dumps({"question": "Who?", "expected_figures": ["900"], "acceptance": 1, "validated": True})
    )
    [question] = read_questions(path, fields={"expected_keywords": "expected_figures"})
    assert question.expected_keywords == ("900",)
    assert question.metadata == {"acceptance": 1, "validated": True}


BOT = """
def answer(question):
    calls = {
        "argument": {"name": "query_database", "arguments": {"operation": "sum", "limit": 5}},
        "name": {"name": "query_database:sum"},
        "dotted": {"name": "query_database.sum"},
        "other": {"name": "query_database", "arguments": {"operation": "list"}},
        "bare": {"name": "query_database"},
    }
    return {"answer": "It is 900.", "tool_calls": [calls[question]]}
"""


def test_an_operation_of_a_tool_is_expected(
    command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    names = ("argument", "name", "dotted", "other", "bare")
    rows = [{"id": name, "question": name, "expected_tools": ["query_database:sum"]} for name in names]
    write_rows("golden.jsonl", *rows, {"id": "both", "question": "argument",
               "expected_tools": ["query_database:sum", "query_database"]},
               {"id": "forbidden", "question": "argument", "forbidden_tools": ["query_database:sum"]})  # fmt: skip
    (tmp_path / "bot.py").write_text(BOT)
    document = json.loads(command("run", "golden.jsonl", "--target", "bot.py:answer", "--json").out)
    scores = {one["id"]: one["components"]["tool_usage"]["score"] for one in document["results"]}
    assert scores == {"argument": 1, "name": 1, "dotted": 1, "other": 0, "bare": 0, "both": 1, "forbidden": 0}
    assert document["results"][0]["components"]["tool_usage"]["extra"] == []


def test_the_schema_has_every_field_and_every_kind_of_check() -> None:
    schema = question_schema()
    assert list(schema["properties"]) == list(QUESTION_FIELDS)
    assert list(schema["$defs"]["turn"]["properties"]) == list(TURN_FIELDS)
    described = schema["$defs"]["check"]["anyOf"][1]["description"]
    assert all(kind in described for kind in CHECK_KINDS)
