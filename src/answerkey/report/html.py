"""The HTML report: one file that opens anywhere, loads nothing, and in which no chatbot's text can run.

Every value is escaped and stripped of controls on its way into the page, and a content security policy allows only the
page's own style and script, by their hashes. Failures come first; a large run shows a bounded number of questions and
says so.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, BinaryIO

from answerkey.report.detail import Limits
from answerkey.report.judge_line import judge_line
from answerkey.report.story import component_words, tell
from answerkey.report.view import ReportView, build_view
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
from answerkey.run import Run
from answerkey.text.sanitise import for_terminal, one_line

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["MOST_ROWS", "write_html"]

# Questions shown one by one; beyond, the row formats are the place to look.
MOST_ROWS = 500
# With more questions than this, less of each is shown, so that the file stays small enough to mail.
_MANY = 100
_SHORT = Limits(reply=3_000, tool_text=400, source_text=300, calls=8, sources=6, turns=8, spans=100)


def write_html(run: Run, file: BinaryIO, *, rows: int = MOST_ROWS) -> None:
    """Write the report of a run."""
    limits = _SHORT if run.summary.questions > _MANY else Limits()
    view = build_view(run, worst=0, rows=rows, limits=limits)
    for part in _template().generate(**_context(view)):
        file.write(part.encode("utf-8"))


def _context(view: ReportView) -> dict[str, Any]:
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src 'none'; base-uri 'none'; form-action 'none'"
    )
    return {
        "view": view,
        "story": tell(view),
        "style": style,
        "script": script,
        "policy": policy,
        "categories": sorted({row.category for row in view.rows}),
        "errors": sorted({row.error for row in view.rows if row.error}),
        "shown_failures": sum(not row.passed for row in view.rows),
        "meanings": GRADE_MEANINGS,
    }


@cache
def _asset(name: str) -> str:
    return (files("answerkey.report") / "templates" / name).read_text("utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _template() -> "Template":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        brief=lambda text, width=120: one_line(text, width),
        component=component_words,
        metric=metric_text,
        ms=milliseconds,
        money=money,
        points=_points,
        rate=percent,
        score=score_percent,
        span=range_text,
        width=lambda share: f"{100 * (share or 0):.2f}%",
        words=name_words,
    )
    environment.globals.update(count=count, judge_line=judge_line)
    return environment.get_template("report.html.j2")


def _harmless(value: Any) -> Any:
    """Every text on its way into the page, except the page's own markup."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return for_terminal(value)
    return value


def _points(lost: float | None) -> str:
    """Lost points of a hundred: −8."""
    if lost is None:
        return ""
    value = lost * 100
    return f"−{value:.0f}" if value >= 9.95 or abs(value - round(value)) < 0.05 else f"−{value:.1f}"
