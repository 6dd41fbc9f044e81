"""One question edited in its file: everything else stays byte for byte, and what would change more is refused."""

import json
import subprocess
from pathlib import Path

import pytest

from answerkey.errors import UsageError
from answerkey.transcripts.yaml_documents import EditableRows

YAML = """\
# Golden set
questions:
  # first
  - id: q1   # the id
    question: "What's it?"
    expected_keywords: [a, '012']\u0020\u0020

    # why
    reference_answer: |
      Two
       lines

  # about q2
  - {id: q2, question: 'Is it?',
     expected_keywords: [x]}  # tail
  -
    id: q3
    question: >-
      a long
      text
    tags:
      - a
      - b # last

# the end
"""
JSON = """\
{"name": "set", "questions": [
    {"id": "q1",
     "question":  "What \u2028 is it?"},
    {"id": "q2", "question": "Is it?", "weight": 1.50}
]}
"""


def file_of(text, name="golden.yaml"):
    return EditableRows(text, Path(name))


def test_a_question_is_shown_as_its_author_wrote_it():
    shown = [file_of(YAML).text_of(row) for row in file_of(YAML).rows]
    assert shown[0].startswith('id: q1   # the id\nquestion: "What\'s it?"\n')
    assert shown[0].endswith("\n# why\nreference_answer: |\n  Two\n   lines")
    assert shown[1] == "{id: q2, question: 'Is it?',\n expected_keywords: [x]}  # tail"
    assert shown[2].endswith("tags:\n  - a\n  - b # last")
    assert [row.line for row in file_of(YAML).rows] == [4, 14, 17]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        (0, '"What\'s it?"', '"What else?"'),
        (0, "'012'", "'013'"),
        (0, "   lines", "   lines\n\n  and more"),
        (0, "id: q1   # the id", "id: q1   # the id\ncategory: tax  # new"),
        (1, "[x]", "[x, 'y: z']"),
        (2, "  - b # last", "  - b # last\n  - c"),
        (2, "  a long\n  text", "  a short text"),
    ],
)
def test_only_the_lines_that_were_edited_change(number, old, new, end):
    text = YAML.replace("\n", end)
    file = file_of(text)
    row = file.rows[number]
    edited = file.text_of(row).replace(old, new)
    assert edited != file.text_of(row)
    # A browser sends lines with \r\n.
    changed = file.replace(row, edited.replace("\n", "\r\n"))
    indentation = " " * (5 if number == 1 else 4)
    expected = [
        part if index == 0 or not part else indentation + part for index, part in enumerate(new.split("\n"))
    ]
    before = old.replace("\n", "\n" + indentation).replace("\n", end)
    assert changed.text == text.replace(before, end.join(expected), 1)


@pytest.mark.parametrize("text", [YAML, YAML.replace("\n", "\r\n"), "\ufeff" + YAML, YAML.rstrip()])
def test_what_is_not_edited_changes_nothing(text):
    file = file_of(text)
    for row in file.rows:
        assert file.replace(row, file.text_of(row)).text == text
        assert file.patch_to(file.replace(row, file.text_of(row))) == ""


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        ("id: q1\n\tquestion: x", "line 2: a tab"),
        ("id: q1\nquestion: [", "after it, the file cannot be read: the list or object in brackets"),
        ("id: q1\n- id: q9", "line 2: "),
        ("*other", "line 1: "),
        ("", "other questions"),
        ("id: q1\nid: q2", "'id' is given twice"),
    ],
)
def test_what_is_not_one_question_is_refused(edited, said):
    file = file_of(YAML)
    with pytest.raises(UsageError, match=said):
        file.replace(file.rows[0], edited)


def test_an_edit_that_changes_other_questions_is_refused():
    text = "- id: a\n  question: One?\n  tags: &shared [x]\n- id: b\n  question: Two?\n  tags: *shared\n"
    file = file_of(text)
    with pytest.raises(UsageError, match="other questions"):
        file.replace(file.rows[0], "id: a\nquestion: One?\ntags: &shared [y]")
    assert file.replace(file.rows[0], "id: a\nquestion: Other?\ntags: &shared [x]").rows[1].row["tags"] == [
        "x"
    ]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (YAML, "g.yaml", YAML.replace("- b # last\n", "- b # last\n  - id: new\n    question: 'On? Yes'\n")),
        (
            "- id: a\n  question: One?\n\n- id: b\n  question: Two?\n",
            "g.yml",
            "- id: a\n  question: One?\n\n- id: b\n  question: Two?\n\n- id: new\n  question: 'On? Yes'\n",
        ),
        (
            "-   id: a\n    question: One?",
            "g.yaml",
            "-   id: a\n    question: One?\n-   id: new\n    question: 'On? Yes'",
        ),
    ],
)
def test_a_question_is_added_in_the_style_of_a_yaml_list(text, name, expected):
    assert file_of(text, name).append("id: new\nquestion: 'On? Yes'").text == expected


def test_rows_of_json_keep_their_style():
    file = file_of(JSON, "golden.json")
    assert [row.row["id"] for row in file.rows] == ["q1", "q2"]
    edited = file.text_of(file.rows[1]).replace("Is it?", "Was it?")
    assert file.replace(file.rows[1], edited).text == JSON.replace("Is it?", "Was it?")
    spread = file.replace(file.rows[0], '{"id": "q1",\n "question": "x",\n "category": "y"}')
    assert '    {"id": "q1",\n     "question": "x",\n     "category": "y"},\n    {"id": "q2"' in spread.text
    added = file.append(file.encode({"id": "q3", "question": "Added?"}))
    assert added.text == JSON.replace("1.50}", '1.50},\n    {"id": "q3", "question": "Added?"}')
    for wrong, said in (("{", "Expecting"), ("[]", "other questions"), ('{"a": 1, "a": 2}', "given twice")):
        with pytest.raises(UsageError, match=said):
            file.replace(file.rows[0], wrong)


@pytest.mark.parametrize(("name", "text"), [("g.yaml", YAML), ("g.json", JSON), ("g.yaml", YAML.rstrip())])
def test_the_patch_does_the_same_to_the_file(tmp_path, name, text):
    file = file_of(text, name)
    new = file.append(file.encode({"id": "q9", "question": "New?"}))
    changed = new.replace(new.rows[0], new.encode({"id": "q1", "question": "Other?"}))
    (tmp_path / name).write_bytes(text.encode())
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=file.patch_to(changed).encode(), check=True)
    assert (tmp_path / name).read_bytes() == changed.text.encode()


def test_values_are_those_that_the_file_reader_gets():
    file = file_of("- id: 012\n  question: Is it?\n  expected_keywords: [012, yes, 1.50]\n")
    assert file.rows[0].row["expected_keywords"] == ["012", "yes", "1.50"]
    added = file.append(file.encode({"id": "new", "question": "no", "expected_keywords": ["1.50", "on"]}))
    assert added.rows[1].row == {"id": "new", "question": "no", "expected_keywords": ["1.50", "on"]}


@pytest.mark.parametrize("name", ["golden.csv", "golden.xlsx", "golden.parquet"])
def test_tables_are_left_to_their_own_programs(name):
    with pytest.raises(UsageError, match="answerkey export jsonl"):
        EditableRows("", Path(name))


def test_a_line_that_cannot_be_read_does_not_keep_others_from_being_edited():
    file = file_of('{"id": "a", "question": "?"}\nnot json\n', "g.jsonl")
    changed = file.replace(file.rows[0], json.dumps({"id": "a", "question": "!"}, indent=1))
    assert changed.text == '{"id": "a", "question": "!"}\nnot json\n'
