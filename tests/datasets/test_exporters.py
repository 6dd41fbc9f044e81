"""A golden set exported and read again: what a form can hold comes back, and what it cannot is listed."""

import json
from pathlib import Path

import pytest

from answerkey.datasets.evals_and_trec import export_beir, export_trec, import_beir, import_trec
from answerkey.datasets.golden_sets import parse_question, read_questions
from answerkey.datasets.table_formats import export_csv, export_jsonl
from answerkey.errors import UsageError
from answerkey.model.question import QuestionSet
from answerkey.protocols import Exported

ROWS = [
    {
        "id": "basis",
        "question": "What is the basis?",
        "category": "tax",
        "expected_tools": ["query", {"name": "sum", "arguments": {"of": ["rent", "fees"]}}],
        "forbidden_tools": ["delete"],
        "expected_keywords": [
            "depreciation",
            ["9th", "ninth"],
            {"number": 442300, "tolerance": 0.5},
            {"regex": "a+"},
        ],
        "forbidden_keywords": ["I don't know"],
        "reference_answer": 'It is 442,300, "more or less"\nand no more.',
        "tags": ["a", "b; c"],
        "weight": 2,
        "context": "é",
        "checks": [{"contains": "please", "name": "polite", "weight": 2}, {"max_words": 50}],
        "ticket": "T-1",
    },
    {"id": "none", "question": "Hello?", "tools": "none"},
    {
        "id": "talk",
        "turns": [{"question": "Hi"}, {"question": "And?", "expected_keywords": ["yes", ["a", {"regex": "b"}]]}],
    },
    {"id": "find", "question": "Which lease?", "relevant_documents": {"lease-1": 2, "lease 2": 1, "lease-3": 0.5}},
    {"question": "Without an id"},
]  # fmt: skip


def golden(*rows: dict[str, object]) -> QuestionSet:
    return QuestionSet(questions=tuple(parse_question(row) for row in rows or ROWS))


def written(exported: Exported, folder: Path) -> Path:
    for name, content in exported.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"".join(content))
    return folder


def test_json_lines_read_back_as_the_same_set(tmp_path: Path) -> None:
    exported = export_jsonl(golden())
    again = read_questions(written(exported, tmp_path) / "questions.jsonl")
    assert again.hash == golden().hash
    assert exported.notes == ()


def test_csv_reads_back_as_the_same_set(tmp_path: Path) -> None:
    exported = export_csv(golden())
    assert read_questions(written(exported, tmp_path) / "questions.csv").hash == golden().hash
    assert exported.notes == ()


def test_csv_says_what_its_cells_cannot_hold() -> None:
    exported = export_csv(
        golden({"id": "a", "question": "=1+1"}, {"id": "b", "question": "Q", "priority": 5, "context": ""})
    )
    assert [note.split(" reads")[0] for note in exported.notes] == [
        "'question' of 1 question(s)",
        "'context' of 1 question(s)",
        "'priority' of 1 question(s)",
    ]
    assert b"'=1+1" in b"".join(exported.files["questions.csv"])


def test_trec_and_beir_carry_the_judgements(tmp_path: Path) -> None:
    for export, read, files in (
        (export_trec, import_trec, ("qrels.txt", "queries.tsv")),
        (export_beir, import_beir, ("",)),
    ):
        exported = export(golden())
        folder = written(exported, tmp_path / export.__name__)
        imported = read([folder / name for name in files])
        assert list(imported.rows) == [
            {"id": "find", "question": "Which lease?", "relevant_documents": {"lease-1": 2}}
        ]
        assert exported.count == 1
        without, spaces, grades = exported.notes[:3]
        assert without.startswith("not carried over: questions without relevant_documents (questions ")
        assert without.count(",") == 3
        assert spaces == "not carried over: judgements of documents whose ids have spaces (question find)"
        assert grades == "not carried over: judgements that are not whole grades up to 1000 (question find)"


def test_what_qrels_do_not_carry_is_listed() -> None:
    row = {
        "id": "1",
        "question": "Q",
        "relevant_documents": ["d"],
        "expected_keywords": ["k"],
        "category": "c",
    }
    assert export_trec(golden(row)).notes == (
        "not carried over: 'category' (question 1)",
        "not carried over: 'expected_keywords' (question 1)",
    )
    with pytest.raises(UsageError, match="no question has relevant_documents"):
        export_trec(golden({"id": "a b", "question": "Q", "relevant_documents": ["d"]}))


def test_the_canonical_form_leaves_out_what_is_not_said() -> None:
    [line] = export_jsonl(golden({"question": "Hi", "category": "uncategorised"})).files["questions.jsonl"]
    assert json.loads(line).keys() == {"id", "question"}
