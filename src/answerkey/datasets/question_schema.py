"""The JSON Schema of a golden set's line, for editors: what `parse_question` accepts, field by field."""

from typing import Any

from answerkey.model.question import CHECK_KINDS


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _list_of(items: Any, description: str) -> dict[str, Any]:
    return {"type": "array", "items": items, "description": description}


def _only(required: str, **properties: Any) -> dict[str, Any]:
    """An object that has these fields and no others."""
    more = {"required": [required], "additionalProperties": False}
    return {"type": "object", "properties": properties, **more}


_NAMES = {"type": "string", "minLength": 1}
_PATTERN = _only("regex", regex={"type": "string"})
_NUMBER = _only("number", number={"type": "number"}, tolerance={"type": "number", "minimum": 0})
_ONE_KEYWORD = [{"type": ["string", "number"], "minLength": 1}, _NUMBER, _PATTERN]
_KEYWORD = {"anyOf": [*_ONE_KEYWORD, {"type": "array", "minItems": 1, "items": {"anyOf": _ONE_KEYWORD}}]}
_TOOL = {
    "anyOf": [
        _NAMES,
        _only(
            "name",
            name=_NAMES,
            arguments={
                "type": ["object", "null"],
                "description": 'Argument → a value, a list of acceptable values, {"regex"} or {"ignore": true}.',
            },
        ),
    ]
}
_CHECK = {
    "anyOf": [
        _NAMES,
        {
            "type": "object",
            "description": f"One of {', '.join(CHECK_KINDS)} or a scorer's name, with what it expects.",
            "properties": {"weight": {"type": "number", "exclusiveMinimum": 0}, "name": _NAMES},
            "minProperties": 1,
        },
    ]
}
_EXPECTATIONS: dict[str, Any] = {
    "expected_tools": _list_of(_TOOL, "Tools that a good reply calls."),
    "forbidden_tools": _list_of(_NAMES, "Tools that it must not call."),
    "tools": {"enum": ["none", None], "description": '"none": it must call no tool.'},
    "expected_keywords": _list_of(_KEYWORD, "What a good reply says; a list is alternatives."),
    "expected_content": _list_of(_KEYWORD, "Another name of expected_keywords."),
    "forbidden_keywords": _list_of(_KEYWORD, "What it must not say."),
    "reference_answer": {"type": ["string", "null"], "description": "A full answer."},
    "relevant_documents": {
        "description": "Ids of documents, or id → grade.",
        "anyOf": [
            {"type": "array", "items": _NAMES},
            {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
        ],
    },
    "checks": _list_of(_CHECK, "Further conditions."),
}


def question_schema() -> dict[str, Any]:
    """The schema of one question; fields that it does not name are notes."""
    asked: dict[str, Any] = {"type": "string", "pattern": r"\S", "description": "What the user asks."}
    turn: dict[str, Any] = {
        "type": "object",
        "properties": {"question": asked, **_EXPECTATIONS},
        "required": ["question"],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A question of an answerkey golden set",
        "type": "object",
        "properties": {
            "question": asked,
            "id": {"type": ["string", "integer"], "minLength": 1, "description": "A stable id."},
            "category": _text("The slice that it is reported in."),
            "group": {
                "type": ["string", "integer"],
                "description": "The template or family: the unit of analysis.",
            },
            "context": _text("A note."),
            "persona": _text("Who asks."),
            "tags": _list_of(_NAMES, "Further slices."),
            "weight": {
                "type": ["number", "string"],
                "description": "A note; the means weigh every question alike.",
            },
            "turns": {"type": "array", "minItems": 1, "items": turn, "description": "A conversation."},
            **_EXPECTATIONS,
        },
        "anyOf": [{"required": ["question"]}, {"required": ["turns"]}],
    }
