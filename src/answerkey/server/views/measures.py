"""The tables of a comparison as texts: each measure in both runs, its change, and where the likely range of it stands."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from answerkey.model.comparison import Comparison, Measure
from answerkey.report.story import component_words
from answerkey.report.value_wording import (
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
)
from answerkey.stats.paired import Difference
from answerkey.text.sanitise import one_line

_NAME = 50
# Differences of less than two points do not fill the picture.
_LEAST_REACH = 0.02
# How wide the stroke of a mean is, and an interval at least, in the hundredths of the picture.
_STROKE = 1.2
_LEAST_WIDTH = 0.6


class IntervalMarks(msgspec.Struct, frozen=True):
    """Where an interval stands in a picture that is 100 wide and has no difference in its middle."""

    low: float
    width: float
    # The left edge of the stroke that marks it.
    mean: float


class MeasureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A measure in both runs."""

    name: str
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
    # None: nothing to draw.
    marks: IntervalMarks | None = None


class MeasureTable(msgspec.Struct, frozen=True):
    """Measures of one kind."""

    id: str
    title: str
    # What a change is counted in, at the head of its column.
    unit: str
    rows: tuple[MeasureRow, ...]
    note: str = ""
    # Whether the likely ranges are drawn.
    drawn: bool = False


def measure_tables(found: Comparison) -> tuple[MeasureTable, ...]:
    """What the page shows below the verdict, as far as there is something of it."""
    components = _scored(found.components, component_words)
    categories = _scored(found.categories, lambda name: one_line(name, _NAME))
    metrics = tuple(
        _measured(
            one_line(name_words(part.name), _NAME), part, metric_text, change_text, verdict=part.verdict
        )
        for part in found.metrics
    )
    looked_at = [
        f"Each interval (95%) and its p-value are of one measure alone. The verdict is corrected for looking at {words}: "
        "it may be unclear where an interval excludes zero."
        for words in (
            count(len(components), "component"),
            count(len(categories), "category", "categories"),
            count(len(metrics), "metric"),
        )
    ]
    tables = (
        MeasureTable("components-title", "What was scored", "Points", components, looked_at[0], drawn=True),
        MeasureTable("rest-title", "Passed, speed, cost and errors", "Change", tuple(_rest(found))),
        MeasureTable("categories-title", "By category", "Points", categories, looked_at[1], drawn=True),
        MeasureTable("metrics-title", "Beside the score", "Change", metrics, looked_at[2]),
    )
    return tuple(table for table in tables if table.rows)


def tone_of(verdict: str) -> str:
    """The colour of a verdict."""
    return {"better": "is-up", "worse": "is-down"}.get(verdict, "is-same")


def _scored(parts: Sequence[Measure], named: Callable[[str], str]) -> tuple[MeasureRow, ...]:
    """Components or categories: scores whose changes are points, drawn on one scale."""
    ends = [abs(end) for part in parts if (known := part.difference) for end in (known.low, known.high)]
    reach = max([*ends, _LEAST_REACH]) * 1.05
    return tuple(
        _measured(
            named(part.name),
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
        change="–" if known is None else change_in_words(known.mean),
        likely="" if known is None else _range(known.low, known.high, change_in_words),
        base=in_words(part.base),
        candidate=in_words(part.candidate),
        marks=marks,
    )


def _rest(found: Comparison) -> Iterator[MeasureRow]:
    """What a run is judged by besides its score."""
    rate, base, candidate = found.pass_rate, found.base, found.candidate
    yield MeasureRow(
        name="Passed",
        p=_p(rate["p_value"]),
        change=points_change(rate["difference"]),
        likely="" if rate["low"] is None else _range(rate["low"], rate["high"], points_change),
        base=percent(rate["base"]),
        candidate=percent(rate["candidate"]),
    )
    if found.latency is not None:
        yield _measured("Mean time", found.latency, milliseconds, milliseconds_change)
    if base.latency_ms and candidate.latency_ms:
        slow, slow_now = base.latency_ms["p95"], candidate.latency_ms["p95"]
        yield MeasureRow(
            name="Slow (p95)",
            change=milliseconds_change(slow_now - slow),
            base=milliseconds(slow),
            candidate=milliseconds(slow_now),
        )
    if found.cost is not None:
        yield _measured("Cost of a question", found.cost, money, lambda change: change_text(change, 4))
    if found.error_rate is not None:
        yield _measured("Errors", found.error_rate, percent, points_change)


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
