"""The measures of a comparison as tables with drawn intervals: of the dashboard, reports and comparison files."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from answerkey.model.comparison import Comparison, Measure
from answerkey.report.view import component_words
from answerkey.report.wording import (
    change_text,
    count,
    metric_text,
    milliseconds,
    milliseconds_change,
    money,
    name_words,
    p_text,
    percent,
    points_change,
    score_percent,
    tone_of,
)
from answerkey.stats.paired import Difference
from answerkey.text.normalise import one_line

_NAME = 50
# The scale of a chart is at least two points.
_LEAST_REACH = 0.02
# Width of the mark of a mean, and minimum width of an interval, in percent of the chart.
_STROKE = 1.2
_LEAST_WIDTH = 0.6


class IntervalMarks(msgspec.Struct, frozen=True):
    """The position of an interval in a chart that is 100 wide with zero in the middle."""

    low: float
    width: float
    # The left edge of its mark.
    mean: float


class MeasureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A measure in both runs."""

    name: str
    # The whole name of a category.
    category: str = ""
    # Under the name.
    verdict: str = ""
    p: str = ""
    # The colour of its change.
    tone: str = ""
    change: str
    # The likely range of the change.
    likely: str = ""
    base: str
    candidate: str
    # None: not drawn.
    marks: IntervalMarks | None = None


class MeasureTable(msgspec.Struct, frozen=True):
    """Measures of one kind."""

    id: str
    title: str
    # The unit of a change, in the column's header.
    unit: str
    rows: tuple[MeasureRow, ...]
    note: str = ""
    # Whether the intervals are drawn.
    drawn: bool = False


def measure_tables(comparison: Comparison) -> tuple[MeasureTable, ...]:
    """The tables below the verdict that are not empty."""
    components = _scored(comparison.components, component_words)
    categories = tuple(
        msgspec.structs.replace(row, category=part.name)
        for row, part in zip(
            _scored(comparison.categories, lambda name: one_line(name, _NAME)),
            comparison.categories,
            strict=True,
        )
    )
    metrics = tuple(
        _measured(
            one_line(name_words(part.name), _NAME), part, metric_text, change_text, verdict=part.verdict
        )
        for part in comparison.metrics
    )
    notes = [
        f"Each interval (95%) and its p-value are of one measure alone. The verdict is corrected for {words}, so it "
        "may be unclear although an interval excludes zero."
        for words in (
            count(len(components), "component"),
            count(len(categories), "category", "categories"),
            count(len(metrics), "metric"),
        )
    ]
    tables = (
        MeasureTable("scored-title", "What was scored", "Points", components, notes[0], drawn=True),
        MeasureTable("rest-title", "Passed, speed, cost and errors", "Change", tuple(_rest(comparison))),
        MeasureTable("changed-categories-title", "By category", "Points", categories, notes[1], drawn=True),
        MeasureTable("changed-metrics-title", "Other metrics", "Change", metrics, notes[2]),
    )
    return tuple(table for table in tables if table.rows)


def _scored(parts: Sequence[Measure], name_of: Callable[[str], str]) -> tuple[MeasureRow, ...]:
    """Components or categories: scores whose changes are points, drawn on one scale."""
    ends = [abs(end) for part in parts if (known := part.difference) for end in (known.low, known.high)]
    reach = max([*ends, _LEAST_REACH]) * 1.05
    return tuple(
        _measured(
            name_of(part.name),
            part,
            score_percent,
            points_change,
            verdict=part.verdict,
            marks=None if part.difference is None else _marks(part.difference, reach),
        )
        for part in parts
    )


def _measured(
    name: str,
    part: Measure,
    in_words: Callable[[float], str],
    change_in_words: Callable[[float], str],
    *,
    verdict: str = "",
    marks: IntervalMarks | None = None,
) -> MeasureRow:
    known = part.difference
    return MeasureRow(
        name=name,
        verdict=verdict,
        p="" if known is None else _p(known.p_value),
        tone=tone_of(part.verdict),
        change=change_in_words(part.candidate - part.base if known is None else known.mean),
        likely=""
        if known is None or known.low == known.high
        else _range(known.low, known.high, change_in_words),
        base=in_words(part.base),
        candidate=in_words(part.candidate),
        marks=marks,
    )


def _rest(comparison: Comparison) -> Iterator[MeasureRow]:
    """Pass rate, speed, cost and errors."""
    rate, base, candidate = comparison.pass_rate, comparison.base, comparison.candidate
    yield MeasureRow(
        name="Passed",
        p=_p(rate["p_value"]),
        change=points_change(rate["difference"]),
        likely="" if rate["low"] is None else _range(rate["low"], rate["high"], points_change),
        base=percent(rate["base"]),
        candidate=percent(rate["candidate"]),
    )
    if comparison.latency is not None:
        yield _measured("Mean time", comparison.latency, milliseconds, milliseconds_change)
    if base.latency_ms and candidate.latency_ms:
        slow, slow_now = base.latency_ms["p95"], candidate.latency_ms["p95"]
        yield MeasureRow(
            name="Slow (p95)",
            change=milliseconds_change(slow_now - slow),
            base=milliseconds(slow),
            candidate=milliseconds(slow_now),
        )
    if comparison.cost is not None:
        yield _measured("Cost of a question", comparison.cost, money, lambda change: change_text(change, 4))
    if comparison.error_rate is not None:
        yield _measured("Errors", comparison.error_rate, percent, points_change)


def _range(low: float, high: float, in_words: Callable[[float], str]) -> str:
    return f"{in_words(low)} to {in_words(high)}"


def _marks(difference: Difference, reach: float) -> IntervalMarks:
    return IntervalMarks(
        low=round(50 + 50 * difference.low / reach, 2),
        width=round(max(50 * (difference.high - difference.low) / reach, _LEAST_WIDTH), 2),
        mean=round(50 - _STROKE / 2 + 50 * difference.mean / reach, 2),
    )


def _p(value: float | None) -> str:
    return "" if value is None else p_text(value)
