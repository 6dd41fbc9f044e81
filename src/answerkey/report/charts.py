"""Charts as inline SVG. Horizontal positions are shares of the width, so that text keeps its size on a phone."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil, floor, log10

import msgspec

from answerkey.model.run import RunInfo
from answerkey.report.wording import milliseconds, money, name_words, score_percent
from answerkey.store.sql import Figures, RunRow, figure_of
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

# Top and axis in pixels; first and last value in per cent of the width.
_TOP = 14.0
_AXIS = 176.0
_LEFT, _RIGHT = 7.0, 97.0
_STEPS = 4
_LABELS = 12
# Labels of a time axis, each as wide as a date.
_TIMES = 8
# Colours of the series, in order.
_TINTS = ("accent", "A", "D", "violet", "C", "F")
_WORDS: dict[str, Callable[[float], str]] = {
    "percent": score_percent,
    "ms": lambda value: milliseconds(value) if value else "0",
    "money": money,
    "count": "{:,.0f}".format,
}
# The least range of a scale of shares: differences below are noise in most runs.
_LEAST_SHARE = 0.05


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a series; `low` and `high` are the ends of its interval, if it has one."""

    x: float
    y: float
    # Description, for tooltips and screen readers.
    words: str
    address: str | None = None
    low: float | None = None
    high: float | None = None
    # A verdict on it: better or worse.
    tone: str = ""


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


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a series, one for each moment; None: unknown."""

    name: str
    values: Sequence[float | None]
    # Low and high ends; empty: none are known.
    intervals: Sequence[tuple[float, float] | None] = ()


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A position on a time axis, with what is said of its values."""

    # ISO 8601.
    at: str
    name: str
    address: str | None = None
    # The verdict on its first value: better or worse.
    tone: str = ""
    # What changed since the moment before.
    change: str = ""


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
    lines: Sequence[Line],
    moments: Sequence[Moment],
    *,
    rules: Sequence[Rule] = (),
    unit: str = "percent",
) -> Chart:
    """Lines over time, on a scale that fits their values and intervals. Moments are in order."""
    words = _WORDS[unit]
    ends = [end for line in lines for pair in line.intervals if pair is not None for end in pair]
    known = [value for line in lines for value in line.values if value is not None]
    scale = _Scale.fitting([*known, *ends, *(rule.at for rule in rules)], shares=unit == "percent")
    places, labels = _time_axis([moment.at for moment in moments])
    drawn = []
    for number, line in enumerate(lines):
        dots = []
        for index, (moment, value) in enumerate(zip(moments, line.values, strict=True)):
            if value is None:
                continue
            likely = line.intervals[index] if line.intervals else None
            interval = "" if likely is None else f", likely {words(likely[0])} to {words(likely[1])}"
            dots.append(
                Dot(
                    x=places[index],
                    y=scale.y(value),
                    words=f"{moment.name}: {line.name} {words(value)}{interval}",
                    address=None if number else moment.address,
                    low=None if likely is None else scale.y(likely[0]),
                    high=None if likely is None else scale.y(likely[1]),
                    tone="" if number else moment.tone,
                )
            )
        strokes = [Stroke(one.x, one.y, two.x, two.y) for one, two in itertools.pairwise(dots)]
        tint = _TINTS[number % len(_TINTS)]
        drawn.append(Series(name=line.name, tint=tint, dots=tuple(dots), strokes=tuple(strokes)))
    changed = [
        (round((places[index - 1] + places[index]) / 2, 2), moment.change)
        for index, moment in enumerate(moments)
        if index and moment.change
    ]
    return Chart(
        scale=scale.labels(unit),
        labels=labels,
        series=tuple(drawn),
        rules=tuple((scale.y(rule.at), rule.words, rule.kind) for rule in rules),
        changes=tuple(changed),
    )


class _Scale(msgspec.Struct, frozen=True):
    """A vertical scale from `low` to `high` with round steps."""

    low: float
    high: float
    step: float

    @classmethod
    def fitting(cls, values: Sequence[float], *, shares: bool) -> "_Scale":
        """A scale that holds the values; of shares it need not begin at zero, so that small changes are seen."""
        low, high = (min(values), max(values)) if values and shares else (0.0, max(values, default=1.0))
        if shares and high - low < _LEAST_SHARE:
            low, high = (low + high - _LEAST_SHARE) / 2, (low + high + _LEAST_SHARE) / 2
        if high <= low:
            high = low + 1.0
        unit = 10.0 ** floor(log10(high - low))
        step = next(
            size for times in (0.2, 0.5, 1, 2, 5, 10) if (size := times * unit) * (_STEPS + 1) >= high - low
        )
        low, high = floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step
        return cls(max(low, 0.0), min(high, 1.0) if shares else high, step)

    @property
    def ticks(self) -> list[float]:
        """The values with a line and a label."""
        return [
            self.low + index * self.step for index in range(round((self.high - self.low) / self.step) + 1)
        ]

    def labels(self, unit: str) -> tuple[tuple[float, str], ...]:
        """The lines with their values; amounts of money have the digits that distinguish them, and counts no fractions."""
        words = _WORDS[unit]
        if unit == "money":
            digits = 2 if self.step >= 0.01 else max(4, -floor(log10(self.step)))
            words = f"${{:,.{digits}f}}".format
        ticks = [tick for tick in self.ticks if unit != "count" or tick == round(tick)]
        return tuple((self.y(tick), words(tick)) for tick in ticks)

    def y(self, value: float) -> float:
        """The vertical position of a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(_AXIS - (_AXIS - _TOP) * min(max(share, 0.0), 1.0), 2)


# Steps of a time axis in hours; beyond them, months.
_HOURS = (1 / 60, 1 / 12, 1 / 4, 1 / 2, 1, 3, 6, 12, 24, 48, 7 * 24, 14 * 24)


def _time_axis(moments: Sequence[str]) -> tuple[list[float], tuple[tuple[float, str, bool], ...]]:
    """The place of each moment, and labels that do not run into each other."""
    times = [datetime.fromisoformat(moment).astimezone() for moment in moments]
    if not times:
        return [], ()
    first, span = times[0], (times[-1] - times[0]).total_seconds()
    if span <= 0:
        middle = (_LEFT + _RIGHT) / 2
        return [middle] * len(times), ((middle, f"{first:%Y-%m-%d}", True),)

    def position(time: datetime) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (time - first).total_seconds() / span, 2)

    marks = [(position(tick), words) for tick, words in _ticks(first, times[-1])]
    # Within a minute, no round time.
    marks = marks or [(_LEFT, f"{first:%H:%M:%S}"), (_RIGHT, f"{times[-1]:%H:%M:%S}")]
    labels = tuple((at, words, number % 3 == 0) for number, (at, words) in enumerate(marks))
    return [position(time) for time in times], labels


def _ticks(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Round times between two moments, in the time zone of this machine."""
    hours = (last - first).total_seconds() / 3600
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    step = next((step for step in _HOURS if hours / step <= _TIMES), None)
    if step is None:
        # The first of a month, every N months.
        months = ceil(hours / (_TIMES * 30.5 * 24))
        begin = midnight.year * 12 + midnight.month - 1
        days = [
            midnight.replace(year=month // 12, month=month % 12 + 1, day=1)
            for month in range(begin, last.year * 12 + last.month)
            if (month - begin) % months == 0
        ]
        return [(day, f"{day:%Y-%m}") for day in days if first <= day <= last]
    count = int(((last - midnight).total_seconds() / 3600) / step) + 1
    ticks = [midnight + timedelta(hours=step) * number for number in range(count)]
    return [
        (tick, f"{tick:%m-%d}" if step >= 24 or tick.hour == tick.minute == 0 else f"{tick:%H:%M}")
        for tick in ticks
        if tick >= first
    ]


def bar_chart(
    bars: Sequence[Sequence[tuple[float, str, str, str | None]]],
    labels: Sequence[str],
    *,
    unit: str = "count",
) -> Chart:
    """Stacked bars: for each position the parts, as value, colour, words and address."""
    scale = _Scale.fitting([sum(part[0] for part in parts) for parts in bars], shares=False)
    room = (_RIGHT - _LEFT) / max(1, len(bars))
    drawn: list[Bar] = []
    for index, parts in enumerate(bars):
        below = 0.0
        for value, tint, text, address in parts:
            if not value:
                continue
            y = scale.y(below + value)
            drawn.append(
                Bar(
                    x=round(_LEFT + room * (index + 0.12), 2),
                    y=y,
                    width=round(room * 0.76, 2),
                    height=round(scale.y(below) - y, 2),
                    tint=tint,
                    words=text,
                    address=address,
                )
            )
            below += value
    # As many labels as fit, including the first; a phone shows every third of them.
    every = -(-len(labels) // _LABELS)
    shown = [
        (round(_LEFT + room * (index + 0.5), 2), labels[index], index // every % 3 == 0)
        for index in range(0, len(bars), every or 1)
    ]
    return Chart(scale=scale.labels(unit), labels=tuple(shown), bars=tuple(drawn))


# A gate on the score, which is drawn as a line.
_GATE = re.compile(r"score\s*>=?\s*(0?\.\d+|[01](?:\.0*)?)$")


class TrendPoint(msgspec.Struct, frozen=True):
    """A finished run in the trend."""

    row: RunRow
    figures: Figures
    # Against the run before it; None: not compared.
    verdict: str | None = None

    @property
    def info(self) -> RunInfo:
        """The run."""
        return self.row.info


def trend_charts(
    points: Sequence[TrendPoint],
    address: Callable[[str], str],
    gates: Sequence[str] = (),
    baselines: Mapping[str, float] | None = None,
) -> tuple[tuple[str, Chart], ...]:
    """Score, components, latency and cost of an experiment's runs; each dot links to its run at `address(id)`.

    `baselines` are scores of baselines that are not among the points.
    """
    if len(points) < 2:
        return ()
    moments = [
        Moment(
            at=point.info.created_at,
            name=_in_words(point),
            address=address(point.info.id),
            tone=point.verdict if point.verdict in ("better", "worse") else "",
            change=_changes_in_words(before.info, point.info) if before is not None else "",
        )
        for before, point in zip((None, *points), points, strict=False)
    ]
    scores = [point.figures.score or 0.0 for point in points]
    rules = [Rule(float(at[1]), text, "gate") for text in gates if (at := _GATE.match(text))]
    named = {
        **(baselines or {}),
        **{name: score for point, score in zip(points, scores, strict=True) for name in point.row.baselines},
    }
    rules += [Rule(at, f"baseline {one_line(name, 30)}", "baseline") for name, at in named.items()]
    intervals = [
        None if (likely := point.figures.interval) is None else (likely.low, likely.high) for point in points
    ]
    score = Line(name="score", values=scores, intervals=intervals)
    drawn = [("Score with its 95% interval", line_chart([score], moments, rules=rules))]
    # What changed is marked once.
    plain = [msgspec.structs.replace(moment, tone="", change="") for moment in moments]

    def add(title: str, unit: str, **values: list[float | None]) -> None:
        lines = [Line(name=name_words(name), values=known) for name, known in values.items()]
        if any(value for line in lines for value in line.values):
            drawn.append((title, line_chart(lines, plain, unit=unit)))

    def values(name: str) -> list[float | None]:
        return [figure_of(point.figures, name) for point in points]

    parts = dict.fromkeys(name for point in points for name in point.figures.components)
    of_parts = {name: [point.figures.components.get(name) for point in points] for name in parts}
    add("Components", "percent", **of_parts)
    add("Latency", "ms", **{"slow (p95)": values("p95"), "typical (p50)": values("p50")})
    add("Cost of a run", "money", cost=values("cost"))
    return tuple(drawn)


def _in_words(point: TrendPoint) -> str:
    info, version = point.info, point.info.target_version.words
    tags = f" ({', '.join(one_line(tag, 30) for tag in info.tags[:3])})" if info.tags else ""
    version = f", {one_line(version, 80)}" if version else ""
    verdict = f", {point.verdict} than the run before" if point.verdict in ("better", "worse") else ""
    return f"{one_line(info.name, 60)}{tags}{version}, {local_time(info.created_at)}{verdict}"


def _changes_in_words(before: RunInfo, after: RunInfo) -> str:
    """What changed between two runs: the golden set, or the chatbot's version."""
    changed = []
    if before.question_set_hash != after.question_set_hash:
        changed.append("The golden set changed")
    versions = before.target_version.words, after.target_version.words
    if all(versions) and versions[0] != versions[1]:
        changed.append(" → ".join(one_line(version, 80) for version in versions))
    elif before.target_hash != after.target_hash:
        changed.append("The chatbot’s settings changed")
    return "; ".join(changed)
