"""The JSON Schema of the run document: what every version under the same `schema` number has."""

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.run_document import SCHEMA

_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": ["number", "null"]}
_COUNT: Json = {"type": "integer", "minimum": 0}
_GRADE: Json = {"enum": ["A", "B", "C", "D", "F", None]}


def _object(fields: JsonObject, *optional: str) -> JsonObject:
    """An object with these fields; a later version may have more."""
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in fields if name not in optional],
    }


def _list_of(items: Json) -> JsonObject:
    return {"type": "array", "items": items}


def run_schema() -> JsonObject:
    """The schema of `run --json`, `show --json` and `report -o x.json`."""
    document: JsonObject = {
        "schema": {"const": SCHEMA},
        "run": _RUN,
        "summary": _object(
            {"score": _NUMBER, "grade": _GRADE, "questions": _COUNT, "replies": _COUNT, "coverage": _NUMBER}
        ),
        "categories": _list_of(_object({"category": _TEXT, "score": _NUMBER})),
        "gates": _list_of(_object({"gate": _TEXT, "passed": {"type": "boolean"}, "value": True})),
        "warnings": _list_of(_TEXT),
        "results": _list_of(_result()),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of answerkey",
        **_object(document),
    }


def _result() -> JsonObject:
    component = _object({"score": _NUMBER, "weight": _NUMBER, "reason": _TEXT})
    graded: JsonObject = {
        "score": _NUMBER,
        "grade": _GRADE,
        "passed": {"type": ["boolean", "null"]},
        "components": {"type": "object", "additionalProperties": component},
    }
    return _object(
        {
            "id": _TEXT,
            "trial": _COUNT,
            "question": _TEXT,
            "category": _TEXT,
            **graded,
            "reply": _REPLY,
            "metrics": {"type": "object"},
            "error": _ERROR,
            "turns": _list_of(_object({"question": _TEXT, **graded, "reply": _REPLY})),
        },
        "error",
        "turns",
    )


_ERROR: Json = {"anyOf": [{"type": "null"}, _object({"kind": _TEXT, "message": _TEXT})]}
_REPLY = _object(
    {
        "text": {"type": ["string", "null"]},
        "tools_used": _list_of(_TEXT),
        "tool_calls": _list_of({"type": "object"}),
        "sources": _list_of({"type": "object"}),
        "error": _ERROR,
        "latency_ms": _NUMBER,
    }
)
_RUN = _object(
    {
        "id": _TEXT,
        "name": _TEXT,
        "status": {"enum": ["running", "interrupted", "partial", "complete"]},
        "created_at": _TEXT,
        "target": _TEXT,
        "question_set": _TEXT,
        "question_set_hash": _TEXT,
        "repeat": _COUNT,
        "match": _TEXT,
        "weights": {"type": "object", "additionalProperties": {"type": "number"}},
    }
)
