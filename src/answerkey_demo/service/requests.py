"""What the service accepts: JSON objects of a sane size with the right types; anything else is refused with a reason."""

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

__all__ = ["read_chat", "read_feedback"]

_MAX_BODY = 64 * 1024
# Fields of a verdict and how long each may be.
_VERDICT = {
    "value": 200,
    "response_id": 200,
    "conversation_id": 200,
    "comment": 4_000,
    "idempotency_key": 200,
}


async def read_chat(request: Request) -> tuple[str, str | None]:
    """The question and the conversation's id."""
    document = await _read_json(request)
    question = _text(document, "question", _MAX_BODY)
    if question is None:
        raise HTTPException(400, 'the field "question" is missing')
    return question, _text(document, "conversation_id", 200)


async def read_feedback(request: Request) -> dict[str, Any]:
    """A verdict on a reply."""
    document = await _read_json(request)
    if document.get("value") not in ("up", "down"):
        raise HTTPException(400, '"value" must be "up" or "down"')
    verdict = {name: _text(document, name, limit) for name, limit in _VERDICT.items()}
    if verdict["response_id"] is None and verdict["conversation_id"] is None:
        raise HTTPException(400, '"response_id" or "conversation_id" must say which reply is meant')
    return verdict


async def _read_json(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send the request as application/json")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise HTTPException(413, f"the body is larger than {_MAX_BODY:,} bytes")
    try:
        document = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise HTTPException(400, "the body is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise HTTPException(400, f"the body is not valid JSON {where}") from None
    except RecursionError:
        raise HTTPException(400, "the body is not valid JSON: it is nested too deeply") from None
    if not isinstance(document, dict):
        raise HTTPException(400, 'the body must be a JSON object like {"question": "…"}')
    return document


def _text(document: dict[str, Any], name: str, limit: int) -> str | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise HTTPException(400, f'"{name}" must be a string')
    if len(value) > limit:
        raise HTTPException(400, f'"{name}" is longer than {limit:,} characters')
    if any(0xD800 <= ord(c) < 0xE000 for c in value):
        raise HTTPException(400, f'"{name}" contains half of a surrogate pair')
    return value
