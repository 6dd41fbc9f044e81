"""Charts: where lines and bars stand in an inline SVG. Across in shares of the width, so that text keeps its size on a phone."""

import itertools
from collections.abc import Callable, Sequence
from math import floor, log10

import msgspec

from answerkey.report.value_wording import milliseconds, money, score_percent
from answerkey.text.moments import local_time

# From the top of the picture to the axis, and from its sides to the first and last value, in per cent.
_TOP = 14.0
_AXIS = 176.0
_LEFT, _RIGHT = 7.0, 97.0
_STEPS = 4
_LABELS = 12
# The order of the series' colours.
_TINTS = ("accent", "A", "D", "violet", "C", "F")
_WORDS: dict[str, Callable[[float], str]] = {
    "percent": score_percent,
    "ms": milliseconds,
    "money": money,
    "count": "{:,.0f}".format,
}


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a series; `low` and `high` are the ends of its interval, where it has one."""

    x: float
    y: float
    # What it is, for readers who point at it or hear the page.
    words: str
    address: str | None = None
    low: float | None = None
    high: float | None = None


class Stroke(msgspec.Struct, frozen=True):
    """A piece of a line between two values."""

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
    """A line across the whole chart: a gate, a baseline. `at` is a value of the scale."""

    at: float
    words: str
    kind: str


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A drawn chart."""

    # (y, words) of the scale.
    scale: tuple[tuple[float, str], ...]
    # (x, words, whether a phone has room for it) below the axis.
    labels: tuple[tuple[float, str, bool], ...]
    series: tuple[Series, ...] = ()
    bars: tuple[Bar, ...] = ()
    # (y, words, kind) across.
    rules: tuple[tuple[float, str, str], ...] = ()
    # (x, words): where something changed.
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
    """Series over the same places. Names, addresses and intervals are the first series'; changes are before a place."""
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
    """For each place the parts that stand on each other: value, colour, words and address."""
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
    """As many as there is room for, the first among them; a phone shows every third of those."""
    step = -(-len(labels) // _LABELS)
    kept = [
        (place, label)
        for index, (place, label) in enumerate(zip(places, labels, strict=True))
        if index % step == 0
    ]
    return tuple((place, label, number % 3 == 0) for number, (place, label) in enumerate(kept))


def _round_up(value: float) -> float:
    """The next number with one digit that counts, of which there are quarters."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    return next(step * unit for step in (1, 2, 4, 6, 8, 10) if step * unit >= value * (1 - 1e-9))


def moment_labels(moments: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """What tells runs apart in the least space: the day, the hour of one day, or else their names."""
    local = [local_time(moment, zone=False) for moment in moments]
    days = tuple(moment[5:10] for moment in local)
    hours = tuple(moment[11:16] for moment in local)
    if len(set(days)) == len(days):
        return days
    return hours if len(set(days)) == 1 and len(set(hours)) == len(hours) else tuple(names)
