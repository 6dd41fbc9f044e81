import json
from pathlib import Path
from typing import Any

import pytest

from answerkey.datasets.golden_sets import parse_question, read_questions
from answerkey.errors import InputError
from answerkey.model.question import (
    Alternatives,
    ExpectedTool,
    NumberExpectation,
    PatternExpectation,
    QuestionSet,
)

ROW = {
    "id": "basis",
    "question": "What is the basis – total?",
    "category": "finance",
    "expected_tools": ["query_database", {"name": "search", "arguments": {"year": [2023, 2024]}}],
    "expected_content": ["442300", ["land", "ground"], {"number": 5, "tolerance": 0.5}, {"regex": "9th"}],
    "relevant_documents": {"lease": 2, "deed": 1},
    "tags": ["money"],
    "owner": "Ana",
}


def test_a_full_row(write_rows: Any) -> None:
    (question,) = read_questions(write_rows("g.jsonl", ROW))
    assert question.expected_tools == (
        ExpectedTool("query_database"),
        ExpectedTool("search", {"year": [2023, 2024]}),
    )
    assert question.expected_keywords == (
        "442300",
        Alternatives(("land", "ground")),
        NumberExpectation(5, 0.5),
        PatternExpectation("9th"),
    )
    assert question.relevant_documents == {"lease": 2.0, "deed": 1.0}
    assert question.metadata == {"owner": "Ana"}
    assert question.line == 1


def test_all_formats_give_the_same_set(tmp_path: Path) -> None:
    import pyarrow
    import yaml
    from pyarrow import parquet

    rows = [
        {
            "id": "a",
            "question": "Größe?",
            "category": "y",
            "expected_keywords": ["1", "zwei"],
            "expected_tools": ["t"],
        },
        {"id": "b", "question": "B?", "category": "x", "expected_keywords": ["drei"]},
    ]
    (tmp_path / "g.jsonl").write_text(
        "\ufeff" + "\n\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8"
    )
    (tmp_path / "g.json").write_text(json.dumps({"questions": rows}), encoding="utf-8-sig")
    (tmp_path / "g.yaml").write_text(yaml.safe_dump(rows, allow_unicode=True), encoding="utf-8")
    (tmp_path / "g.csv").write_text(
        'id,question,category,expected_keywords,expected_tools\na,Größe?,y,1;zwei,t\nb,B?,x,"[""drei""]",\n',
        encoding="utf-8-sig",
    )
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "g.parquet")
    sets = {
        ending: read_questions(tmp_path / f"g.{ending}")
        for ending in ("jsonl", "json", "yaml", "csv", "parquet")
    }
    assert len({found.hash for found in sets.values()}) == 1
    assert [question.id for question in sets["csv"]] == ["a", "b"]
    assert [question.line for question in sets["yaml"]] == [1, 9]


def test_an_id_is_made_from_the_wording(write_rows: Any) -> None:
    first = read_questions(write_rows("a.jsonl", {"question": "Who?"}, {"question": "Where?"}))
    again = read_questions(write_rows("b.jsonl", {"question": "Where?"}))
    assert first.questions[1].id == again.questions[0].id
    assert first.questions[0].id != first.questions[1].id


def test_editing_expectations_keeps_the_ask_hash(write_rows: Any) -> None:
    (before,) = read_questions(
        write_rows("a.jsonl", {"id": "q", "question": "Who?", "expected_keywords": ["x"]})
    )
    (after,) = read_questions(
        write_rows("b.jsonl", "", {"id": "q", "question": "Who?", "expected_keywords": ["y"]})
    )
    (other,) = read_questions(write_rows("c.jsonl", {"id": "q", "question": "Who now?"}))
    assert before.ask_hash == after.ask_hash != other.ask_hash
    assert before.content_hash != after.content_hash


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('{"question": "x"', "not valid JSON"),
        ("[1]", "expected an object, got a list"),
        ({}, "has no 'question'"),
        ({"question": 5}, "'question' must be text, not a number"),
        ({"question": "  "}, "'question' is empty"),
        ({"question": "x", "expected_tools": "t"}, "'expected_tools' must be a list, not text"),
        ({"question": "x", "expected_tools": [5]}, "item 1 must be a tool's name"),
        ({"question": "x", "expected_tools": [{"nome": "t"}]}, "has no 'name'"),
        ({"question": "x", "expected_keywords": "abc"}, "'expected_keywords' must be a list"),
        ({"question": "x", "expected_keywords": [""]}, "item 1 is empty"),
        ({"question": "x", "expected_keywords": [True]}, "must be text, not true/false"),
        ({"question": "x", "expected_keywords": [[]]}, "empty list of alternatives"),
        ({"question": "x", "expected_keywords": [{"regex": "("}]}, "regular expression '\\(' is not valid"),
        (
            {"question": "x", "expected_keywords": [{"regex": "a(?=b)"}]},
            "look-around is not supported; write out",
        ),
        (
            {"question": "x", "expected_tools": [{"name": "t", "arguments": {"q": {"regex": "(.)\\1"}}}]},
            "argument 'q' has a bad regular expression: .* back-references are not supported",
        ),
        (
            {"question": "x", "expected_keywords": [{"number": "five"}]},
            "'number' must be a number such as 3960",
        ),
        (
            {"question": "x", "expected_keywords": [{"number": 5, "tolerance": -1}]},
            "must be a number from 0 up",
        ),
        ({"question": "x", "expected_keywords": ["a"], "expected_content": ["b"]}, "keep one"),
        ({"question": "x", "tools": "all"}, "can only be"),
        ({"question": "x", "relevant_documents": {"d": -1}}, "grade of 'd'"),
        ({"question": "x", "id": ""}, "'id' must be non-empty text"),
        ({"question": "x", "turns": []}, "'turns' must be a list of objects"),
        ({"turns": [{"question": "x"}, {"expected_keywords": ["y"]}]}, "turn 2: has no 'question'"),
        ({"question": "x", "weight": -1}, "'weight'"),
        ({"id": "first", "question": "x"}, "duplicate id 'first' .first on line 1"),
    ],
)
def test_a_bad_line_is_named(write_rows: Any, row: Any, says: str) -> None:
    path = write_rows(
        "g.jsonl", {"id": "first", "question": "fine"}, {"question": "fine too"}, row, {"question": "z"}
    )
    with pytest.raises(InputError, match=says) as caught:
        read_questions(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.jsonl", None, "no such file"),
        ("g.txt", b"", "has no questions"),
        ("g.jsonl", b"", "has no questions"),
        ("g.jsonl", b'{"question": "\xff"}', "1: "),
        ("g.json", b'{"a": 1}', "list"),
        ("g.json", b"[1,]", "not valid JSON"),
        ("g.yaml", b"- question: [", "not valid YAML"),
        ("g.csv", b"question,question\n", "same name"),
        ("g.csv", b"question,id\nx\n", "1 cells where the header has 2"),
        ("g.parquet", b"no", "not valid Parquet"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        read_questions(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("expected_keyword", "expected_keywords"),
        ("expectedKeywords", "expected_keywords"),
        ("keywords_expected", "expected_keywords"),
        ("required_keywords", "expected_keywords"),
        ("tools_expected", "expected_tools"),
        ("expected_output", "reference_answer"),
        ("keywords", "expected_keywords"),
        ("Expected Tools", "expected_tools"),
        ("reference_answers", "reference_answer"),
        ("ground_truth", "reference_answer"),
        ("catgory", "category"),
    ],
)
def test_a_field_that_is_nearly_a_known_one_is_refused(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        parse_question({"question": "What?", name: "x"})


def test_other_fields_are_kept_and_named_once() -> None:
    question = parse_question(
        {"question": "What?", "owner": "tax", "contexts": [], "template": "t", "group": 3}
    )
    assert question.group == "3"
    assert QuestionSet(questions=(question,)).unknown_fields == ("contexts", "owner")
