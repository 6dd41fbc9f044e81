"""How the dashboard says no: one clear sentence, as JSON under /api/ and as a page with a way back elsewhere."""

from typing import Any

import msgspec
from starlette.responses import HTMLResponse, Response

__all__ = ["JsonResponse", "refuse"]

_TITLES = {
    400: "That does not work",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    413: "Too large",
    421: "Wrong address",
    429: "Too many requests",
    500: "Something went wrong here",
    503: "The store cannot be used right now",
}


class JsonResponse(Response):
    """Data as JSON, written by the same encoder as everything else."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode; a number that JSON cannot write becomes null."""
        return msgspec.json.encode(content)


def refuse(scope: Any, status: int, code: str, message: str) -> Response:
    """An error as the caller can read it."""
    if scope["path"].startswith("/api/"):
        return JsonResponse({"error": {"code": code, "message": message}}, status_code=status)
    from answerkey.server.rendering import render

    page = render(
        "error.html.j2",
        scope,
        title=_TITLES.get(status, "Something went wrong"),
        message=message,
        status=status,
    )
    return HTMLResponse(page, status_code=status)
