"""The OpenAPI description of the service."""

from typing import Any

from answerkey.demo.chatbot import MAX_QUESTION

__all__ = ["describe"]


def describe(company: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    text = {"type": "string"}
    nullable = {"type": ["string", "null"]}
    problem = {
        "description": "Refused, with a reason",
        "content": _json({"$ref": "#/components/schemas/Problem"}),
    }
    failed = {"description": "The assistant failed", "content": _json({"$ref": "#/components/schemas/Reply"})}
    schemas: dict[str, Any] = {
        "Question": {
            "type": "object",
            "required": ["question"],
            "properties": {
                "question": {**text, "description": f"At most {MAX_QUESTION:,} characters are answered."},
                "conversation_id": {"type": ["string", "null"], "maxLength": 200},
            },
        },
        "Reply": {
            "type": "object",
            "required": ["answer", "tools_used", "tool_calls", "sources", "error"],
            "properties": {
                "answer": nullable,
                "tools_used": {"type": "array", "items": text},
                "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}},
                "sources": {"type": "array", "items": {"$ref": "#/components/schemas/Source"}},
                "error": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Error"}]},
                "usage": {"type": "object", "additionalProperties": {"type": "integer"}},
                "latency_ms": {"type": "number"},
                "conversation_id": nullable,
                "response_id": nullable,
            },
        },
        "ToolCall": {
            "type": "object",
            "properties": {
                "id": text,
                "name": text,
                "arguments": {"type": "object"},
                "result": {},
                "error": nullable,
                "duration_ms": {"type": "number"},
            },
        },
        "Source": {
            "type": "object",
            "properties": {
                "id": text,
                "rank": {"type": "integer"},
                "score": {"type": "number"},
                "text": text,
                "title": text,
            },
        },
        "Error": {"type": "object", "properties": {"kind": text, "message": text}},
        "Problem": {"type": "object", "properties": {"error": {"$ref": "#/components/schemas/Error"}}},
        "Feedback": {
            "type": "object",
            "required": ["value"],
            # one of the two must say which reply is meant
            "anyOf": [
                {"required": [name], "properties": {name: {"type": "string"}}}
                for name in ("response_id", "conversation_id")
            ],
            "properties": {
                "value": {"enum": ["up", "down"]},
                "response_id": {"type": ["string", "null"], "maxLength": 200},
                "conversation_id": {"type": ["string", "null"], "maxLength": 200},
                "comment": {"type": ["string", "null"], "maxLength": 4000},
                "idempotency_key": {"type": ["string", "null"], "maxLength": 200},
            },
        },
    }
    refused = {"400": problem, "403": problem, "413": problem, "415": problem}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Assistant of {company}",
            "version": "1",
            "description": "The reference chatbot of answerkey: a fictional company, real tools.",
        },
        "paths": {
            "/chat": {
                "post": {
                    "summary": "Ask a question",
                    "requestBody": {
                        "required": True,
                        "content": _json({"$ref": "#/components/schemas/Question"}),
                    },
                    "responses": {
                        "200": {
                            "description": "The reply",
                            "content": _json({"$ref": "#/components/schemas/Reply"}),
                        },
                        **refused,
                        "500": failed,
                        "503": failed,
                        "504": failed,
                    },
                }
            },
            "/feedback": {
                "post": {
                    "summary": "Judge a reply",
                    "requestBody": {
                        "required": True,
                        "content": _json({"$ref": "#/components/schemas/Feedback"}),
                    },
                    "responses": {
                        "201": {"description": "Kept"},
                        "200": {"description": "Was kept before"},
                        **refused,
                    },
                },
                "get": {"summary": "The newest verdicts", "responses": {"200": {"description": "A list"}}},
            },
            "/health": {
                "get": {"summary": "Whether it runs", "responses": {"200": {"description": "It does"}}}
            },
        },
        "components": {"schemas": schemas},
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
