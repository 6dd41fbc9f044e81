import json

import pytest

from answerkey.datasets.conversion import Scale, read_feedback
from answerkey.errors import InputError

LANGFUSE = {
    "data": [
        {
            "id": "s1",
            "name": "user-feedback",
            "value": 1,
            "dataType": "BOOLEAN",
            "traceId": "t1",
            "source": "API",
            "comment": "good",
            "timestamp": "2026-10-01T10:00:00Z",
        },
        {"id": "s2", "value": 0.3, "dataType": "NUMERIC", "sessionId": "c1", "source": "ANNOTATION"},
        {"id": "s3", "stringValue": "down", "value": 0, "dataType": "CATEGORICAL", "observationId": "o1"},
        {"id": "s4", "value": 0.9, "dataType": "NUMERIC", "traceId": "t1", "source": "EVAL"},
    ]
}
LANGSMITH = [
    {
        "id": "f1",
        "run_id": "run-1",
        "trace_id": "t1",
        "key": "user_score",
        "score": 0,
        "comment": "bad",
        "feedback_source": {"type": "app", "user_id": "u1"},
    },
    {"id": "f2", "run_id": "run-2", "key": "auto", "score": 1, "feedback_source": {"type": "model"}},
]
PHOENIX = {
    "data": [
        {
            "name": "correct",
            "annotator_kind": "HUMAN",
            "span_id": "sp1",
            "result": {"label": "up", "score": None, "explanation": "fine"},
            "identifier": "i1",
        },
        {"name": "hallucination", "annotator_kind": "LLM", "span_id": "sp1", "result": {"score": 0.1}},
    ]
}


def write(tmp_path, value, name="export.json"):
    path = tmp_path / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_langfuse_scores_of_people_are_read_and_evaluators_left_out(tmp_path):
    read = list(read_feedback(write(tmp_path, LANGFUSE), "langfuse"))
    assert [None if item is None else item.value for item in read] == [1.0, 0.3, 0.0, None]
    assert (read[0].trace_id, read[0].comment, read[0].idempotency_key) == ("t1", "good", "langfuse:s1")
    assert read[0].created_at.startswith("2026-10-01T10:00:00")
    assert (read[1].conversation_id, read[2].response_id) == ("c1", "o1")


def test_langsmith_feedback_names_the_run(tmp_path):
    read = list(read_feedback(write(tmp_path, LANGSMITH), "langsmith"))
    assert (read[0].response_id, read[0].value, read[0].author, read[1]) == ("run-1", 0.0, "u1", None)


def test_phoenix_annotations_of_people(tmp_path):
    read = list(read_feedback(write(tmp_path, PHOENIX), "phoenix"))
    assert (read[0].response_id, read[0].value, read[0].comment, read[1]) == ("sp1", 1.0, "fine", None)


def test_stars_become_scores(tmp_path):
    path = write(tmp_path, "response_id,rating\nr1,5\nr2,1\nr3,2\n", "stars.csv")
    assert [item.value for item in read_feedback(path, "jsonl", Scale(low=1, high=5))] == [1.0, 0.0, 0.25]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"response_id": "r", "value": "so-so"}', "e.jsonl:2: value 'so-so'"),
        ('{"response_id": "r", "value": 4}', "--scale 1-5"),
        ('{"response_id": "r"}', 'there is no "value"'),
        ('{"value": "up"}', "nothing says which reply"),
        ('{"response_id": "r", "value": "up", "created_at": "yesterday"}', "not a time"),
        ('{"response_id": "r", "value": "up", "comment": "' + "x" * 20_001 + '"}', "20,001 characters"),
        ('{"response_id": {"a": 1}, "value": "up"}', "expected text"),
        ("{", "not valid JSON"),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path, line, message):
    path = write(tmp_path, '{"response_id": "r0", "value": "up"}\n' + line + "\n", "e.jsonl")
    with pytest.raises(InputError) as caught:
        list(read_feedback(path, "jsonl"))
    assert message in str(caught.value)
    assert "e.jsonl:2" in str(caught.value)


STARS_AND_THUMBS = {
    "data": [
        {"id": "1", "name": "stars", "value": 5, "dataType": "NUMERIC", "traceId": "t1"},
        {"id": "2", "name": "thumb", "value": 1, "dataType": "NUMERIC", "traceId": "t2"},
        {"id": "3", "name": "thumb", "value": 0, "dataType": "NUMERIC", "traceId": "t3"},
        {"id": "4", "name": "solved", "value": 1, "dataType": "BOOLEAN", "traceId": "t4"},
    ]
}


def values(read):
    return [None if item is None else item.value for item in read]


def test_thumbs_beside_stars_are_refused_until_each_has_its_scale(tmp_path):
    path = write(tmp_path, STARS_AND_THUMBS)
    with pytest.raises(
        InputError, match="there are scores 'stars' and 'thumb'; say which counts with --score"
    ):
        list(read_feedback(path, "langfuse", Scale(low=1, high=5, stated=True)))
    wanted = Scale(scores={"stars": (1.0, 5.0), "thumb": (0.0, 1.0)})
    assert values(read_feedback(path, "langfuse", wanted)) == [1.0, 1.0, 0.0, None]
    assert values(read_feedback(path, "langfuse", Scale(scores={"thumb": None}))) == [None, 1.0, 0.0, None]
    # A yes is a yes on every scale.
    solved = Scale(low=1, high=5, stated=True, scores={"solved": None})
    assert values(read_feedback(path, "langfuse", solved)) == [None, None, None, 1.0]


def test_nothing_but_ones_may_be_thumbs_or_stars(tmp_path):
    path = write(tmp_path, "response_id,rating\nr1,1\nr2,1\n", "ratings.csv")
    with pytest.raises(InputError, match="every number is 1: thumbs up, or the lowest of several stars"):
        list(read_feedback(path, "jsonl"))
    assert values(read_feedback(path, "jsonl", Scale(stated=True))) == [1.0, 1.0]
    assert values(read_feedback(path, "jsonl", Scale(low=1, high=5, stated=True))) == [0.0, 0.0]
    words = write(tmp_path, "response_id,rating\nr1,up\nr2,up\n", "words.csv")
    assert values(read_feedback(words, "jsonl")) == [1.0, 1.0]


def test_two_columns_with_a_verdict_are_refused_until_one_is_named(tmp_path):
    path = write(tmp_path, "response_id,rating,thumb\nr1,5,down\nr2,1,up\n", "both.csv")
    with pytest.raises(InputError, match=r"both.csv:2: thumb and rating both hold a verdict.*--score thumb"):
        list(read_feedback(path, "jsonl"))
    assert values(read_feedback(path, "jsonl", Scale(scores={"rating": (1.0, 5.0)}))) == [1.0, 0.0]
    assert values(read_feedback(path, "jsonl", Scale(scores={"thumb": None}))) == [0.0, 1.0]
    mixed = write(
        tmp_path, '{"response_id": "a", "rating": 0.5}\n{"response_id": "b", "thumb": "up"}\n', "mixed.jsonl"
    )
    with pytest.raises(InputError, match="there are scores 'rating' and 'thumb'"):
        list(read_feedback(mixed, "jsonl"))


def test_a_column_of_any_name_can_be_a_score(tmp_path):
    path = write(tmp_path, "response_id,name,helpfulness\nr1,Ann,4\nr2,Bob,0\n", "own.csv")
    assert values(read_feedback(path, "jsonl", Scale(scores={"helpfulness": (0.0, 4.0)}))) == [1.0, 0.0]
