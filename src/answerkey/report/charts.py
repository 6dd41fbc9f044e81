"""Charts as inline SVG. Horizontal positions are shares of the width, so that text keeps its size on a phone."""

import itertools
import re
from collections.abc import Callable, Sequence
from math import floor, log10

import msgspec

from answerkey.report.wording import milliseconds, money, name_words, score_percent
from answerkey.store.sql import Figures, RunRow
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

# Top and axis in pixels; first and last value in per cent of the width.
_TOP = 14.0
_AXIS = 176.0
_LEFT, _RIGHT = 7.0, 97.0
_STEPS = 4
_LABELS = 12
# Colours of the series, in order.
_TINTS = ("accent", "A", "D", "violet", "C", "F")
_WORDS: dict[str, Callable[[float], str]] = {
    "percent": score_percent,
    "ms": milliseconds,
    "money": money,
    "count": "{:,.0f}".format,
}


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a series; `low` and `high` are the ends of its interval, if it has one."""

    x: float
    y: float
    # Description, for tooltips and screen readers.
    words: str
    address: str | None = None
    low: float | None = None
    high: float | None = None


class Stroke(msgspec.Struct, frozen=True):
    """A line segment between two values."""

    x1: float
    y1: float
    x2: float
    y2: float


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """A line."""

    name: str
    tint: str
    dots: tuple[Dot, ...]
    strokes: tuple[Stroke, ...]


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar, or a part of one."""

    x: float
    y: float
    width: float
    height: float
    tint: str
    words: str
    address: str | None = None


class Rule(msgspec.Struct, frozen=True):
    """A horizontal line: a gate or a baseline. `at` is a value of the scale."""

    at: float
    words: str
    kind: str


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A drawn chart."""

    # (y, words) of the scale.
    scale: tuple[tuple[float, str], ...]
    # (x, words, whether it is shown on a phone) below the axis.
    labels: tuple[tuple[float, str, bool], ...]
    series: tuple[Series, ...] = ()
    bars: tuple[Bar, ...] = ()
    # (y, words, kind) of horizontal lines.
    rules: tuple[tuple[float, str, str], ...] = ()
    # (x, words) of changes.
    changes: tuple[tuple[float, str], ...] = ()
    axis: float = _AXIS


def line_chart(
    series: Sequence[tuple[str, Sequence[float | None]]],
    labels: Sequence[str],
    *,
    names: Sequence[str] = (),
    addresses: Sequence[str | None] = (),
    intervals: Sequence[tuple[float, float] | None] = (),
    rules: Sequence[Rule] = (),
    changes: Sequence[tuple[int, str]] = (),
    unit: str = "percent",
    top: float | None = None,
) -> Chart:
    """Lines over the same positions. Names, addresses and intervals are the first series'; a change precedes its position."""
    words = _WORDS[unit]
    known = [value for _, values in series for value in values if value is not None]
    height = top or _round_up(max([*known, *(rule.at for rule in rules)], default=1.0))
    places = [_place(index, len(labels)) for index in range(len(labels))]
    drawn = []
    for number, (name, values) in enumerate(series):
        dots = []
        for index, value in enumerate(values):
            if value is None:
                continue
            likely = intervals[index] if intervals and not number else None
            dots.append(
                Dot(
                    x=places[index],
                    y=_y(value, height),
                    words=f"{names[index] if names else labels[index]}: {name} {words(value)}",
                    address=addresses[index] if addresses and not number else None,
                    low=None if likely is None else _y(likely[0], height),
                    high=None if likely is None else _y(likely[1], height),
                )
            )
        strokes = [Stroke(one.x, one.y, two.x, two.y) for one, two in itertools.pairwise(dots)]
        tint = _TINTS[number % len(_TINTS)]
        drawn.append(Series(name=name, tint=tint, dots=tuple(dots), strokes=tuple(strokes)))
    return Chart(
        scale=_scale(height, words),
        labels=_labels(places, labels),
        series=tuple(drawn),
        rules=tuple((_y(rule.at, height), rule.words, rule.kind) for rule in rules),
        changes=tuple((round((places[at - 1] + places[at]) / 2, 2), text) for at, text in changes if at),
    )


def bar_chart(
    bars: Sequence[Sequence[tuple[float, str, str, str | None]]],
    labels: Sequence[str],
    *,
    unit: str = "count",
) -> Chart:
    """Stacked bars: for each position the parts, as value, colour, words and address."""
    words = _WORDS[unit]
    height = _round_up(max((sum(part[0] for part in parts) for parts in bars), default=1.0))
    room = (_RIGHT - _LEFT) / max(1, len(bars))
    drawn: list[Bar] = []
    for index, parts in enumerate(bars):
        below = 0.0
        for value, tint, text, address in parts:
            if not value:
                continue
            y = _y(below + value, height)
            drawn.append(
                Bar(
                    x=round(_LEFT + room * (index + 0.12), 2),
                    y=y,
                    width=round(room * 0.76, 2),
                    height=round(_y(below, height) - y, 2),
                    tint=tint,
                    words=text,
                    address=address,
                )
            )
            below += value
    middles = [round(_LEFT + room * (index + 0.5), 2) for index in range(len(bars))]
    return Chart(scale=_scale(height, words), labels=_labels(middles, labels), bars=tuple(drawn))


def _place(index: int, number: int) -> float:
    return round((_LEFT + _RIGHT) / 2 if number < 2 else _LEFT + (_RIGHT - _LEFT) * index / (number - 1), 2)


def _y(value: float, height: float) -> float:
    return round(_AXIS - (_AXIS - _TOP) * min(max(value / height, 0.0), 1.0), 2)


def _scale(height: float, words: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
    values = [height * step / _STEPS for step in range(_STEPS + 1)]
    return tuple((_y(value, height), words(value)) for value in values)


def _labels(places: Sequence[float], labels: Sequence[str]) -> tuple[tuple[float, str, bool], ...]:
    """As many labels as fit, including the first; a phone shows every third of them."""
    step = -(-len(labels) // _LABELS)
    kept = [
        (place, label)
        for index, (place, label) in enumerate(zip(places, labels, strict=True))
        if index % step == 0
    ]
    return tuple((place, label, number % 3 == 0) for number, (place, label) in enumerate(kept))


def _round_up(value: float) -> float:
    """Round up to one significant digit that can be divided into quarters."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    return next(step * unit for step in (1, 2, 4, 6, 8, 10) if step * unit >= value * (1 - 1e-9))


def moment_labels(moments: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Short distinct labels for runs: the day, the hour if all are of one day, or their names."""
    local = [local_time(moment, zone=False) for moment in moments]
    days = tuple(moment[5:10] for moment in local)
    hours = tuple(moment[11:16] for moment in local)
    if len(set(days)) == len(days):
        return days
    return hours if len(set(days)) == 1 and len(set(hours)) == len(hours) else tuple(names)


# A gate on the score, which is drawn as a line.
_GATE = re.compile(r"score\s*>=?\s*(0?\.\d+|[01](?:\.0*)?)$")


class TrendPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run in the trend."""

    id: str
    name: str
    created_at: str
    score: float
    grade: str | None
    components: dict[str, float | None]
    latency_p50: float | None
    latency_p95: float | None
    cost: float | None
    baselines: tuple[str, ...]
    interval: tuple[float, float] | None
    # Versions of the golden set and of the chatbot.
    set_hash: str
    target_hash: str
    # The chatbot's version in words; empty if unknown.
    version: str
    tags: tuple[str, ...]


def trend_charts(
    points: Sequence[TrendPoint], address: Callable[[str], str], gates: Sequence[str] = ()
) -> tuple[tuple[str, Chart], ...]:
    """Score, latency and cost of an experiment's runs; each dot links to its run at `address(id)`."""
    if len(points) < 2:
        return ()
    labels = moment_labels([point.created_at for point in points], [point.name for point in points])
    names = [_in_words(point) for point in points]
    addresses = [address(point.id) for point in points]
    rules = [Rule(float(at[1]), text, "gate") for text in gates if (at := _GATE.match(text))]
    parts = dict.fromkeys(name for point in points for name in point.components)
    baselines = {name: point.score for point in points for name in point.baselines}
    changes = [
        (index, words)
        for index in range(1, len(points))
        if (words := _changes_in_words(points[index - 1], points[index]))
    ]
    score = line_chart(
        [
            ("score", [point.score for point in points]),
            *((name_words(name), [point.components.get(name) for point in points]) for name in parts),
        ],
        labels,
        names=names,
        addresses=addresses,
        intervals=[point.interval for point in points],
        rules=[
            *rules,
            *(Rule(at, f"baseline {one_line(name, 30)}", "baseline") for name, at in baselines.items()),
        ],
        changes=changes,
        top=1.0,
    )
    drawn = [("Score with its 95% interval, and components", score)]
    if any(point.latency_p95 is not None for point in points):
        slow = [
            ("slow (p95)", [p.latency_p95 for p in points]),
            ("typical (p50)", [p.latency_p50 for p in points]),
        ]
        drawn.append(("Latency", line_chart(slow, labels, names=names, addresses=addresses, unit="ms")))
    if any(point.cost for point in points):
        cost = [("cost", [point.cost for point in points])]
        drawn.append(
            ("Cost of a run", line_chart(cost, labels, names=names, addresses=addresses, unit="money"))
        )
    return tuple(drawn)


def _in_words(point: TrendPoint) -> str:
    tags = f" ({', '.join(one_line(tag, 30) for tag in point.tags[:3])})" if point.tags else ""
    version = f", {one_line(point.version, 80)}" if point.version else ""
    return f"{one_line(point.name, 60)}{tags}{version}, {local_time(point.created_at)}"


def _changes_in_words(before: TrendPoint, after: TrendPoint) -> str:
    """What changed between two runs: the golden set, or the chatbot's version."""
    changed = []
    if before.set_hash != after.set_hash:
        changed.append("The golden set changed")
    if before.version and after.version and before.version != after.version:
        changed.append(f"{one_line(before.version, 80)} → {one_line(after.version, 80)}")
    elif before.target_hash != after.target_hash:
        changed.append("The chatbot’s settings changed")
    return "; ".join(changed)


def trend_point(row: RunRow, figures: Figures) -> TrendPoint:
    """A finished run in the trend."""
    latency = figures.latency_ms
    return TrendPoint(
        id=row.info.id,
        name=row.info.name,
        created_at=row.info.created_at,
        score=figures.score or 0.0,
        grade=figures.grade,
        components=figures.components,
        latency_p50=None if latency is None else latency.p50,
        latency_p95=None if latency is None else latency.p95,
        cost=figures.usage.get("cost"),
        baselines=row.baselines,
        interval=None if figures.interval is None else (figures.interval.low, figures.interval.high),
        set_hash=row.info.question_set_hash,
        target_hash=row.info.target_hash,
        version=row.info.target_version.words,
        tags=row.info.tags,
    )
