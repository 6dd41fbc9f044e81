"""Rendering: a page's template with what every page knows: who looks, the theme, and where it is."""

from functools import cache
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers

from answerkey.report.markup import make_environment
from answerkey.server.theme import THEMES

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render"]


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
            path=path,
            here=path + (f"?{query}" if query else ""),
            link=_Linker(path, query),
            # For examples that work when they are copied.
            address=f"{scope.get('scheme', 'http')}://{Headers(scope=scope).get('host', '127.0.0.1:8765')}",
            **context,
        )
    )


def _theme(scope: Any) -> str:
    try:
        cookies: SimpleCookie = SimpleCookie(Headers(scope=scope).get("cookie", ""))
    except CookieError:
        return "auto"
    chosen = cookies["theme"].value if "theme" in cookies else "auto"
    return chosen if chosen in THEMES else "auto"


class _Linker:
    """The address of this page with some parameters changed: `link(page=2)`; None takes one away."""

    def __init__(self, path: str, query: str) -> None:
        self._path = path
        self._query = [(name, value) for name, value in parse_qsl(query) if name != "theme"]

    def __call__(self, **changes: Any) -> str:
        kept = [(name, value) for name, value in self._query if name not in changes]
        given = [(name, value) for name, value in changes.items() if value not in (None, "")]
        query = urlencode(kept + given)
        return f"{quote(self._path)}?{query}" if query else quote(self._path)


@cache
def _environment() -> "Environment":
    return make_environment(_source)


@cache
def _source(name: str) -> str | None:
    path = files("answerkey.server") / "templates" / name
    return path.read_text("utf-8") if path.is_file() else None
