"""Checks in golden sets are read strictly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import InputError


@pytest.mark.parametrize(
    ("checks", "says"),
    [
        ([{"contans": "x"}], "unknown kind of check 'contans'; did you mean 'contains'?"),
        ([{"qqqq": {}}], "unknown kind of check 'qqqq'; there are contains, equals"),
        ([{"contains": "x", "regex": "y"}], "has 'contains' and 'regex'; give it exactly one kind"),
        ([{"name": "x"}], "does not say what to check"),
        ([{"contains": ""}], "'contains' must be text or a list of texts"),
        ([{"regex": "("}], "is not a valid regular expression"),
        ([{"is_json": "yes"}], "'is_json' must be true or false"),
        ([{"json_schema": 3}], "must be a JSON Schema, which is an object"),
        ([{"json_schema": {"type": "strin"}}], "is not a valid JSON Schema"),
        ([{"max_words": -1}], "'max_words' must be a number from 0 up"),
        ([{"max_cost": True}], "'max_cost' must be a number from 0 up"),
        ([{"language": "klingon"}], "is not a supported language; use one of ar, da"),
        ([{"python": "kind"}], "must name a function, as in file.py:function"),
        ([{"rubric": 1}], "must be text (the criterion for the judge)"),
        ([{"contains": "x", "weight": 0}], "'weight' must be a number above 0"),
        ([{"contains": "x", "name": ""}], "'name' must be non-empty text"),
        ([{"groundedness": 3}], "the arguments of the scorer 'groundedness' must be an object"),
        ([3], "must be an object such as"),
        ("x", "'checks' must be a list of checks"),
    ],
)
def test_a_slip_is_refused_with_file_and_line(
    checks: Any, says: str, write_rows: Callable[..., Path]
) -> None:
    path = write_rows("golden.jsonl", {"question": "a?"}, {"question": "b?", "checks": checks})
    with pytest.raises(InputError) as caught:
        read_questions(path)
    assert str(caught.value).startswith(f"{path}:2: 'checks'")
    assert says in str(caught.value)


def test_checks_of_turns_and_of_csv_cells(tmp_path: Path, write_rows: Callable[..., Path]) -> None:
    turns = [
        {"question": "a?", "checks": [{"contains": "x"}]},
        {"question": "b?", "checks": ["groundedness"]},
    ]
    (conversation,) = read_questions(write_rows("golden.jsonl", {"turns": turns}))
    assert [turn.checks[0].kind for turn in conversation.turns] == ["contains", "groundedness"]
    table = tmp_path / "golden.csv"
    table.write_text('question,checks\na?,"[{""max_words"": 3, ""name"": ""short""}]"\n')
    (question,) = read_questions(table)
    assert (question.checks[0].name, question.checks[0].expected) == ("short", 3)
