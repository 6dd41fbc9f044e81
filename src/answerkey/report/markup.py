"""How report and dashboard make pages: Jinja2 with escaping always on, every text made harmless, numbers in our words."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

from answerkey.report.judge_line import judge_line
from answerkey.report.story import component_words
from answerkey.report.value_wording import (
    GRADE_MEANINGS,
    count,
    metric_text,
    milliseconds,
    money,
    name_words,
    p_text,
    percent,
    range_text,
    score_percent,
)
from answerkey.text.sanitise import for_terminal, one_line

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

__all__ = ["make_environment", "report_asset"]


def make_environment(own: Callable[[str], str | None]) -> "Environment":
    """Templates that `own` reads by name, and the report's, with the filters that all of them use."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: own(name) or report_asset(name)),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        brief=lambda text, width=120: one_line(str(text), width),
        change=_change,
        change_ms=_change_ms,
        component=component_words,
        day=lambda moment: str(moment)[:10],
        delta=_delta,
        first_up=lambda text: text[:1].upper() + text[1:],
        metric=metric_text,
        money=money,
        ms=milliseconds,
        p=p_text,
        points=_points,
        rate=percent,
        score=score_percent,
        seg=lambda text: quote(str(text), safe=""),
        span=range_text,
        ticks=_ticks,
        when=lambda moment: str(moment)[:16].replace("T", " "),
        width=lambda share: f"{max(0.0, min(100.0, 100 * (share or 0))):.2f}%",
        words=name_words,
        zip=lambda first, second: zip(first, second, strict=True),
    )
    environment.globals.update(count=count, judge_line=judge_line, meanings=GRADE_MEANINGS)
    return environment


@cache
def report_asset(name: str) -> str:
    """A template, style sheet or script of the report."""
    return (files("answerkey.report") / "templates" / name).read_text("utf-8").strip()


def _harmless(value: object) -> object:
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


def _change(value: float, digits: int = 3) -> str:
    """A difference of a metric as +0.203 or −0.048."""
    return f"{value:+.{digits}f}".replace("-", "−")


def _change_ms(change: float) -> str:
    """A difference of times as +120 ms or −1.20 s."""
    return f"{'+' if change > 0 else '−' if change < 0 else '±'}{milliseconds(abs(change))}"


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


def _points(lost: float | None) -> str:
    """Lost points of a hundred: −8."""
    if lost is None:
        return ""
    value = lost * 100
    return f"−{value:.0f}" if value >= 9.95 or abs(value - round(value)) < 0.05 else f"−{value:.1f}"
