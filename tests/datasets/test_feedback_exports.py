import json

import pytest

from answerkey.datasets.feedback_exports import Scale, read_feedback
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
