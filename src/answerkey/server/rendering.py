"""How the dashboard answers: data as JSON, pages from templates with what every page knows, and refusals."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response

from answerkey.report.markup import make_environment
from answerkey.server.theme import THEME_AFTER, THEME_SIGNS, THEMES
from answerkey.text.moments import zone_name

if TYPE_CHECKING:
    from jinja2 import Environment

# The pages that every page leads to.
_NAVIGATION = (
    ("/", "Runs"),
    ("/compare", "Compare"),
    ("/review", "Review"),
    ("/replies", "Replies"),
    ("/feedback", "Feedback"),
)

_TITLES = {
    400: "That does not work",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    409: "Something else is there already",
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


def render(template: str, scope: Any, **context: Any) -> str:
    """A page as text."""
    state = scope.get("state") or {}
    path = scope["path"]
    query = scope.get("query_string", b"").decode("latin-1")
    return (
        _environment()
        .get_template(template)
        .render(
            who=state.get("who"),
            signed_in=bool(state.get("needs_token")),
            theme=_theme(scope),
            navigation=[(address, name, _is_here(address, path)) for address, name in _NAVIGATION],
            path=path,
            here=path + (f"?{query}" if query else ""),
            link=_Linker(path, query),
            zone=zone_name(),
            # For examples that work when they are copied.
            address=state.get("address", "http://127.0.0.1:8765"),
            **context,
        )
    )


def refuse(scope: Any, status: int, code: str, message: str) -> Response:
    """How the dashboard says no: one clear sentence, as JSON under /api/ and as a page with a way back elsewhere."""
    if scope["path"].startswith("/api/"):
        return JsonResponse({"error": {"code": code, "message": message}}, status_code=status)
    title = _TITLES.get(status, "Something went wrong")
    page = render("error.html.j2", scope, title=title, message=message, status=status)
    return HTMLResponse(page, status_code=status)


def _is_here(address: str, path: str) -> bool:
    """Whether a path belongs to a page of the navigation; runs are found under the first."""
    return path == "/" or path.startswith("/runs") if address == "/" else path.startswith(address)


def _theme(scope: Any) -> str:
    chosen = HTTPConnection(scope).cookies.get("theme")
    return chosen if chosen in THEMES else "auto"


class _Linker:
    """The address of this page with some parameters changed: `link(page=2)`; None takes one away."""

    def __init__(self, path: str, query: str) -> None:
        self._path = path
        self._query = [(name, value) for name, value in parse_qsl(query) if name != "theme"]

    def fields(self, *without: str) -> list[tuple[str, str]]:
        """What this page's address says, for a form that changes something else."""
        return [(name, value) for name, value in self._query if name not in without]

    def __call__(self, **changes: Any) -> str:
        unchanged = [(name, value) for name, value in self._query if name not in changes]
        given = [(name, value) for name, value in changes.items() if value not in (None, "")]
        query = urlencode(unchanged + given, doseq=True)
        return f"{quote(self._path)}?{query}" if query else quote(self._path)


@cache
def _environment() -> "Environment":
    environment = make_environment(_source)
    environment.globals.update(theme_after=THEME_AFTER, theme_signs=THEME_SIGNS)
    return environment


@cache
def _source(name: str) -> str | None:
    path = files("answerkey.server") / "templates" / name
    return path.read_text("utf-8") if path.is_file() else None
