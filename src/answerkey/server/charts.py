"""Charts: SVG drawn by pygal on the server in the theme's colours. A chart is a picture: nothing in it can run."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, tostring  # only writes what pygal made; reads nothing

from answerkey.server.theme import colours
from answerkey.text.sanitise import one_line

if TYPE_CHECKING:
    from pygal.graph.graph import Graph

__all__ = ["bars", "lines", "stacked"]

# Width and height: beside other things, over the whole page, and on a phone. Text keeps its size in all of them.
SIZES = {"wide": (960, 260), "half": (540, 260), "small": (400, 260)}
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"


@lru_cache(maxsize=256)
def lines(
    series: tuple[tuple[str, tuple[float | None, ...]], ...],
    labels: tuple[str, ...],
    theme: str,
    *,
    size: str = "half",
    top: float | None = None,
    unit: str = "percent",
) -> bytes:
    """Values over runs or days, one line for each series."""
    import pygal

    return _draw(
        pygal.Line,
        series,
        labels,
        theme,
        size=size,
        top=top,
        unit=unit,
        dots_size=3.2 if len(labels) < 30 else 2,
        show_legend=len(series) > 1,
    )


@lru_cache(maxsize=256)
def bars(
    values: tuple[float, ...],
    labels: tuple[str, ...],
    theme: str,
    *,
    tints: tuple[str, ...],
    size: str = "half",
    unit: str = "count",
) -> bytes:
    """One bar for each label, in the colours that `tints` name."""
    import pygal

    palette = colours(theme)
    series = (
        (
            "",
            tuple(
                {"value": value, "color": palette[tint]} for value, tint in zip(values, tints, strict=True)
            ),
        ),
    )
    return _draw(pygal.Bar, series, labels, theme, unit=unit, size=size, show_legend=False)


@lru_cache(maxsize=256)
def stacked(
    series: tuple[tuple[str, tuple[float, ...]], ...],
    labels: tuple[str, ...],
    theme: str,
    *,
    tints: tuple[str, ...],
    size: str = "half",
) -> bytes:
    """Counts on top of each other, for each label."""
    import pygal

    palette = colours(theme)
    return _draw(
        pygal.StackedBar,
        series,
        labels,
        theme,
        unit="count",
        size=size,
        tints=tuple(palette[tint] for tint in tints),
    )


def _draw(
    kind: Any,
    series: Sequence[tuple[str, Sequence[Any]]],
    labels: Sequence[str],
    theme: str,
    *,
    unit: str,
    size: str,
    top: float | None = None,
    tints: Sequence[str] | None = None,
    **options: Any,
) -> bytes:
    tokens = colours(theme)
    width, height = SIZES[size]
    chart: Graph = kind(
        style=_style(tokens, tints),
        js=(),
        width=width,
        height=height,
        margin=8,
        margin_right=26,
        spacing=8,
        legend_at_bottom=True,
        legend_at_bottom_columns=min(4 if width > 600 else 2, len(series)),
        legend_box_size=11,
        truncate_label=14,
        truncate_legend=34,
        tooltip_border_radius=4,
        disable_xml_declaration=True,
        range=None if top is None else (0.0, top),
        # A line that seems to fall to nothing must be near nothing.
        include_x_axis=True,
        min_scale=3,
        max_scale=5,
        value_formatter=_FORMATS[unit],
        **options,
    )
    chart.x_labels = [one_line(label, 40) for label in labels]
    room = width // 75
    if len(labels) > room:
        # By position, not by text: two runs may have the same label.
        step = -(-len(labels) // room)
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


def _style(tokens: dict[str, str], tints: Sequence[str] | None) -> Any:
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
        colors=tuple(tints)
        if tints
        else tuple(tokens[name] for name in ("accent", "A", "D", "violet", "C", "F")),
        font_family=_FONT,
        label_font_size=12,
        major_label_font_size=12,
        legend_font_size=13,
        no_data_font_size=16,
    )


def _percent(value: Any) -> str:
    return "" if value is None else f"{value * 100:.0f}%"


def _milliseconds(value: Any) -> str:
    if value is None:
        return ""
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms"


def _count(value: Any) -> str:
    return "" if value is None else f"{value:,.0f}"


def _money(value: Any) -> str:
    return "" if value is None else f"${value:.2f}" if value >= 1 else f"${value:.4f}"


_FORMATS = {"percent": _percent, "ms": _milliseconds, "count": _count, "money": _money}
