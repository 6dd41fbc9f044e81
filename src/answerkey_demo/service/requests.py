"""What the service accepts: JSON objects of a sane size with the right types; anything else is refused with a reason."""

import json
from typing import Any

from starlette.requests import Request

__all__ = ["BadRequest", "read_chat", "read_feedback", "read_json"]

MAX_BODY = 64 * 1024
_MAX_ID = 200
_MAX_COMMENT = 4_000


class BadRequest(Exception):  # noqa: N818 (the name of the HTTP status)
    """A request that is refused: the status and why."""

    def __init__(self, reason: str, status: int = 400) -> None:
        self.reason = reason
        self.status = status
        super().__init__(reason)


async def read_json(request: Request) -> dict[str, Any]:
    """The body as a JSON object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise BadRequest("send the request as application/json", 415)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise BadRequest(f"the body is larger than {MAX_BODY:,} bytes", 413)
    try:
        document = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadRequest("the body is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise BadRequest(f"the body is not valid JSON {where}") from None
    except RecursionError:
        raise BadRequest("the body is not valid JSON: it is nested too deeply") from None
    if not isinstance(document, dict):
        raise BadRequest('the body must be a JSON object like {"question": "…"}')
    return document


def read_chat(document: dict[str, Any]) -> tuple[str, str | None]:
    """The question and the conversation's id."""
    question = _text(document, "question")
    if question is None:
        raise BadRequest('the field "question" is missing')
    return question, _text(document, "conversation_id", _MAX_ID)


def read_feedback(document: dict[str, Any]) -> dict[str, Any]:
    """A verdict on a reply."""
    if document.get("value") not in ("up", "down"):
        raise BadRequest('"value" must be "up" or "down"')
    limits = {"value": _MAX_ID, "response_id": _MAX_ID, "conversation_id": _MAX_ID}
    limits |= {"comment": _MAX_COMMENT, "idempotency_key": _MAX_ID}
    verdict = {name: _text(document, name, limit) for name, limit in limits.items()}
    if verdict["response_id"] is None and verdict["conversation_id"] is None:
        raise BadRequest('"response_id" or "conversation_id" must say which reply is meant')
    return verdict


def _text(document: dict[str, Any], name: str, limit: int = MAX_BODY) -> str | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadRequest(f'"{name}" must be a string')
    if len(value) > limit:
        raise BadRequest(f'"{name}" is longer than {limit:,} characters')
    if any(0xD800 <= ord(c) < 0xE000 for c in value):
        raise BadRequest(f'"{name}" contains half of a surrogate pair')
    return value
