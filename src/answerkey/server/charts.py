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

_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
# Labels under a chart that still can be read side by side.
_LABELS = 7


@lru_cache(maxsize=256)
def lines(
    series: tuple[tuple[str, tuple[float | None, ...]], ...],
    labels: tuple[str, ...],
    theme: str,
    *,
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
        top=top,
        unit=unit,
        dots_size=3.2 if len(labels) < 30 else 2,
        stroke_style={"width": 2.4},
        show_legend=len(series) > 1,
    )


@lru_cache(maxsize=256)
def bars(
    values: tuple[float, ...],
    labels: tuple[str, ...],
    theme: str,
    *,
    tints: tuple[str, ...],
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
    return _draw(pygal.Bar, series, labels, theme, unit=unit, show_legend=False, every_label=True)


@lru_cache(maxsize=256)
def stacked(
    series: tuple[tuple[str, tuple[float, ...]], ...],
    labels: tuple[str, ...],
    theme: str,
    *,
    tints: tuple[str, ...],
) -> bytes:
    """Counts on top of each other, for each label."""
    import pygal

    palette = colours(theme)
    return _draw(
        pygal.StackedBar, series, labels, theme, unit="count", tints=tuple(palette[tint] for tint in tints)
    )


def _draw(
    kind: Any,
    series: Sequence[tuple[str, Sequence[Any]]],
    labels: Sequence[str],
    theme: str,
    *,
    unit: str,
    top: float | None = None,
    tints: Sequence[str] | None = None,
    every_label: bool = False,
    **options: Any,
) -> bytes:
    tokens = colours(theme)
    chart: Graph = kind(
        style=_style(tokens, tints),
        js=(),
        width=860,
        height=250,
        margin=8,
        spacing=8,
        legend_at_bottom=True,
        legend_at_bottom_columns=4,
        legend_box_size=11,
        show_minor_x_labels=False,
        truncate_label=14,
        truncate_legend=24,
        tooltip_border_radius=4,
        disable_xml_declaration=True,
        range=None if top is None else (0.0, top),
        min_scale=3,
        max_scale=5,
        value_formatter=_FORMATS[unit],
        **options,
    )
    chart.x_labels = [one_line(label, 40) for label in labels]
    if not every_label and len(labels) > _LABELS:
        # By position, not by text: two runs may have the same label.
        step = -(-len(labels) // _LABELS)
        chart.x_labels = [label if index % step == 0 else "" for index, label in enumerate(chart.x_labels)]
        chart.show_minor_x_labels = True
    for name, values in series:
        chart.add(one_line(name, 40), list(values))
    root = chart.render_tree()
    _without_scripts(root)
    return bytes(tostring(root, encoding="utf-8"))


def _without_scripts(element: Element) -> None:
    for child in list(element):
        if str(child.tag).endswith("script"):
            element.remove(child)
        else:
            _without_scripts(child)


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
        colors=tuple(tints) if tints else tuple(tokens[name] for name in ("accent", "A", "D", "C", "F", "B")),
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
