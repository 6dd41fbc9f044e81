"""Charts: SVG drawn by pygal on the server in the theme's colours. A chart is a picture: nothing in it can run."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, tostring  # only writes what pygal made; reads nothing

import msgspec

from answerkey.report.value_wording import money
from answerkey.server.theme import colours
from answerkey.text.sanitise import one_line

if TYPE_CHECKING:
    from pygal.graph.graph import Graph

__all__ = ["Chart", "draw_chart"]

# Width and height: beside other things, over the whole page, and on a phone. Text keeps its size in all of them.
SIZES = {"wide": (960, 260), "half": (540, 260), "small": (400, 260)}
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """What a chart shows."""

    # As pygal calls it: Line, Bar or StackedBar.
    kind: str = "Line"
    # Name → a value for each label.
    series: tuple[tuple[str, tuple[float | None, ...]], ...]
    labels: tuple[str, ...]
    unit: str = "percent"
    # The end of the scale; None: what the values need.
    top: float | None = None
    # The theme's names of the colours of the series, or of each value where there is one series of bars.
    tints: tuple[str, ...] = ("accent", "A", "D", "violet", "C", "F")


@lru_cache(maxsize=256)
def draw_chart(drawn: Chart, theme: str, size: str) -> bytes:
    """The picture in the theme's colours, in one of the sizes."""
    import pygal

    tokens = colours(theme)
    tints = [tokens[name] for name in drawn.tints]
    series: Sequence[tuple[str, Sequence[Any]]] = drawn.series
    if drawn.kind == "Bar":
        ((name, bars),) = drawn.series
        series = [(name, [{"value": value, "color": tint} for value, tint in zip(bars, tints, strict=True)])]
    width, height = SIZES[size]
    chart: Graph = getattr(pygal, drawn.kind)(
        style=_style(tokens, tints),
        js=(),
        width=width,
        height=height,
        margin=8,
        margin_right=26,
        spacing=8,
        dots_size=3.2 if len(drawn.labels) < 30 else 2,
        show_legend=len(series) > 1,
        legend_at_bottom=True,
        legend_at_bottom_columns=min(4 if width > 600 else 2, len(series)),
        legend_box_size=11,
        truncate_label=14,
        truncate_legend=34,
        tooltip_border_radius=4,
        disable_xml_declaration=True,
        range=None if drawn.top is None else (0.0, drawn.top),
        # A line that seems to fall to nothing must be near nothing.
        include_x_axis=True,
        min_scale=3,
        max_scale=5,
        value_formatter=lambda value: "" if value is None else _FORMATS[drawn.unit](value),
    )
    chart.x_labels = [one_line(label, 40) for label in drawn.labels]
    room = width // 75
    if len(drawn.labels) > room:
        # By position, not by text: two runs may have the same label.
        step = -(-len(drawn.labels) // room)
        chart.x_labels = [label if index % step == 0 else "" for index, label in enumerate(chart.x_labels)]
    for name, values in series:
        chart.add(one_line(name, 40), list(values))
    root = chart.render_tree()
    _tidy(root)
    return bytes(tostring(root, encoding="utf-8"))


def _tidy(element: Element, inside: str = "") -> None:
    """Without scripts, titles that only name the library, and the vertical lines."""
    for child in list(element):
        kind = str(child.tag).rpartition("}")[2]
        role = child.get("class", "")
        if kind in ("script", "title") or (kind == "path" and "axis x" in inside):
            element.remove(child)
            continue
        if kind == "path" and "line" in role.split() and "series" in inside:
            # The first series is what the chart is about.
            width = "3.2" if "serie-0" in inside else "1.8"
            child.set("style", f"stroke-width: {width}; stroke-linejoin: round")
        _tidy(child, f"{inside} {role}")


def _style(tokens: dict[str, str], tints: Sequence[str]) -> Any:
    from pygal.style import Style

    return Style(
        background="transparent",
        plot_background="transparent",
        foreground=tokens["soft"],
        foreground_strong=tokens["ink"],
        foreground_subtle=tokens["line"],
        guide_stroke_color=tokens["line"],
        major_guide_stroke_color=tokens["line"],
        guide_stroke_dasharray="0",
        major_guide_stroke_dasharray="0",
        opacity=".95",
        opacity_hover="1",
        transition="0s",
        colors=tuple(tints),
        font_family=_FONT,
        label_font_size=12,
        major_label_font_size=12,
        legend_font_size=13,
        no_data_font_size=16,
    )


_FORMATS: dict[str, Callable[[float], str]] = {
    "percent": "{:.0%}".format,
    "ms": lambda taken: f"{taken / 1000:.1f} s" if taken >= 1000 else f"{taken:.0f} ms",
    "count": "{:,.0f}".format,
    "money": money,
}
