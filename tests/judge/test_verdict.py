import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.judge.prompt import UnjudgedError, load_rubric, parse_pair, parse_verdict, verdict_schema

RUBRIC = load_rubric("standard")
NAMES = list(RUBRIC.weights)


def verdict(score: object = 4) -> str:
    return json.dumps({name: {"reason": "So.", "score": score} for name in NAMES})


def test_a_verdict_is_read_from_the_whole_answer_or_one_fence() -> None:
    for text in (
        verdict(),
        f"  {verdict()}\n",
        f"```json\n{verdict()}\n```",
        f"```\n{verdict()}```",
        f"<think>a </think> {{}} b</think>\n{verdict()}",
    ):
        assert {graded.score for graded in parse_verdict(text, RUBRIC).values()} == {4}


@pytest.mark.parametrize("score", [0, 6, 3.5, 4.0, "4", True, None, [4], -1])
def test_a_grade_is_a_whole_number_from_1_to_5(score: object) -> None:
    with pytest.raises(UnjudgedError, match="whole number from 1 to 5"):
        parse_verdict(verdict(score), RUBRIC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4",
        "[]",
        "null",
        "{}",
        verdict()[:-1],
        f"Here it is: {verdict()}",
        f"{verdict()} Hope this helps.",
        f"{verdict()}{verdict()}",
        verdict()[:-1] + ', "accuracy": {"reason": "x", "score": 5}}',
        f"<think>the verdict is {verdict()}",
        f"<think>hm</think> I say {verdict()}",
        "{" * 5000,
        "[" * 100_000,
        "\ud800",
    ],
)
def test_anything_else_is_no_verdict(text: str) -> None:
    with pytest.raises(UnjudgedError):
        parse_verdict(text, RUBRIC)


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    for read in (lambda: parse_verdict(text, RUBRIC), lambda: parse_pair(text)):
        with pytest.raises(UnjudgedError) as raised:
            read()
        # What is quoted is one harmless line.
        assert "\n" not in str(raised.value)
        assert "\x1b" not in str(raised.value)


def test_the_schema_asks_for_what_the_reader_reads() -> None:
    schema = verdict_schema(RUBRIC)
    assert schema["required"] == NAMES
    for name in NAMES:
        part = schema["properties"][name]
        assert part["required"] == ["reason", "score"]
        assert part["properties"]["score"]["enum"] == [1, 2, 3, 4, 5]


def test_a_pair_is_one_two_or_a_tie() -> None:
    assert parse_pair('{"reason": "x", "better": "2"}') == ("2", "x")
    with pytest.raises(UnjudgedError, match="not 1, 2 or tie"):
        parse_pair('{"reason": "x", "better": "both"}')
