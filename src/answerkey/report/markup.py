"""How report and dashboard make pages: Jinja2 with escaping always on, every text made harmless, numbers in our words."""

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from answerkey.model.scorecard import grade
from answerkey.report.formatted_text import formatted
from answerkey.report.story import component_words
from answerkey.report.table import cell_text
from answerkey.report.value_wording import (
    GRADE_MEANINGS,
    change_text,
    cost_line,
    count,
    gate_value,
    judge_line,
    metric_range_text,
    metric_text,
    milliseconds,
    money,
    name_words,
    p_text,
    percent,
    points_change,
    score_percent,
    time_range_text,
    used_text,
)
from answerkey.text.moments import local_time
from answerkey.text.sanitise import for_terminal, one_line

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markupsafe import Markup

# A later one overrides those before it.
_SHEETS = ("tokens.css", "page.css", "lists.css", "trial.css", "formatted.css", "media.css")
# Before markup, where it means nothing: a page of many rows would be an eighth larger with it.
_INDENT = re.compile(r"^[ \t]+(?=[<{])", re.MULTILINE)


def make_environment(own: Callable[[str], str | None]) -> "Environment":
    """Templates that `own` reads by name, and the report's, with the filters that all of them use."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: _INDENT.sub("", own(name) or report_asset(name))),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        brief=lambda text, width=120: one_line(str(text), width),
        cell=cell_text,
        change=change_text,
        component=component_words,
        delta=points_change,
        direction=_direction,
        first_up=lambda text: text[:1].upper() + text[1:],
        formatted=formatted,
        json_value=_json_value,
        grade=lambda share: None if share is None else grade(share),
        metric=metric_text,
        gate_value=gate_value,
        money=money,
        ms=milliseconds,
        ms_range=time_range_text,
        number="{:,}".format,
        p=p_text,
        points=_points,
        rate=percent,
        score=score_percent,
        seg=lambda text: quote(str(text), safe=""),
        ticks=_ticks,
        used=used_text,
        when=lambda moment: local_time(str(moment)),
        width=lambda share: f"{max(0.0, min(100.0, 100 * (share or 0))):.2f}%",
        words=name_words,
        zip=lambda first, second: zip(first, second, strict=True),
    )
    environment.globals.update(
        cost_line=cost_line,
        count=count,
        judge_line=judge_line,
        meanings=GRADE_MEANINGS,
        metric_range=metric_range_text,
    )
    return environment


@cache
def report_template(name: str) -> "Template":
    """One of the report's own pages."""
    return make_environment(lambda _: None).get_template(name)


def policy_hash(text: str) -> str:
    """What a content security policy calls a style or a script that the page may use."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def report_asset(name: str) -> str:
    """A template, style sheet or script of the report."""
    return (files("answerkey.report") / "templates" / name).read_text("utf-8").strip()


@cache
def report_style() -> str:
    """The style sheet of the report, on which the dashboard builds."""
    return compact_css("\n".join(map(report_asset, _SHEETS)))


def compact_css(sheet: str) -> str:
    """A style sheet as it is delivered: without its comments and its layout."""
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)).strip()


def _harmless(value: object) -> object:
    """Every text on its way into a page, except the page's own markup."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return for_terminal(value)
    return value


def _ticks(text: str) -> "Markup":
    """A sentence of ours whose `commands` stand between backticks; everything in it is escaped."""
    from markupsafe import Markup

    parts = for_terminal(text).split("`")
    # An odd one out is no command.
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def _json_value(text: str) -> object:
    """What a text says in JSON, where that is an object or a list; None for anything else, and for what was cut."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _direction(change: float | None) -> str:
    """Where a score went: up, down, or flat where the difference would not show."""
    if change is None or abs(change) <= 0.0005:
        return "flat"
    return "up" if change > 0 else "down"


def _points(lost: float | None) -> str:
    """Lost points of a hundred: −8."""
    if lost is None:
        return ""
    value = lost * 100
    return f"−{value:.0f}" if value >= 9.95 or abs(value - round(value)) < 0.05 else f"−{value:.1f}"
