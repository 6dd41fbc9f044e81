"""Rendering: Jinja2 with escaping always on, and every text made harmless on its way into a page."""

from functools import cache
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers

from answerkey.report.story import component_words
from answerkey.report.wording import (
    GRADE_MEANINGS,
    count,
    metric_text,
    milliseconds,
    money,
    name_words,
    percent,
    range_text,
    score_percent,
)
from answerkey.server.theme import THEMES
from answerkey.text.sanitise import for_terminal, one_line

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render", "warm_up"]


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
            **context,
        )
    )


def warm_up() -> None:
    """Do what the first page would otherwise wait for: read the templates and load the chart library."""
    for name in ("runs", "run", "question", "compare", "review", "feedback", "error"):
        _environment().get_template(f"{name}.html.j2")
    import pygal  # noqa: F401
    import rapidfuzz.distance  # noqa: F401


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
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        brief=lambda text, width=120: one_line(str(text), width),
        component=component_words,
        day=lambda moment: str(moment)[:10],
        delta=_delta,
        metric=metric_text,
        money=money,
        ms=milliseconds,
        points=_points,
        rate=percent,
        score=score_percent,
        seg=lambda text: quote(str(text), safe=""),
        span=range_text,
        when=lambda moment: str(moment)[:16].replace("T", " "),
        width=lambda share: f"{max(0.0, min(100.0, 100 * (share or 0))):.2f}%",
        words=name_words,
    )
    environment.globals.update(count=count, meanings=GRADE_MEANINGS)
    return environment


@cache
def _source(name: str) -> str:
    return (files("answerkey.server") / "templates" / name).read_text("utf-8")


def _harmless(value: Any) -> Any:
    """Every text on its way into a page, except the page's own markup."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return for_terminal(value)
    return value


def _delta(change: float | None) -> str:
    """A difference of scores as +3.2 or −0.5 points of a hundred."""
    if change is None:
        return "–"
    points = change * 100
    if abs(points) < 0.05:
        return "±0"
    return f"{'+' if points > 0 else '−'}{abs(points):.1f}"


def _points(lost: float | None) -> str:
    """Lost points of a hundred: −8."""
    if lost is None:
        return ""
    value = lost * 100
    return f"−{value:.0f}" if value >= 9.95 or abs(value - round(value)) < 0.05 else f"−{value:.1f}"
