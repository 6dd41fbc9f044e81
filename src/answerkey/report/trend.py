"""The trend of an experiment: its runs one after the other, and the charts that are drawn of them."""

import re
from collections.abc import Callable, Sequence

import msgspec

from answerkey.report.charts import Chart, Rule, line_chart, moment_labels
from answerkey.report.value_wording import name_words
from answerkey.store.run_list import Figures, RunRow
from answerkey.text.moments import local_time
from answerkey.text.sanitise import one_line

# A gate on the score, which can be drawn.
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
    # Versions of what was asked and of who was asked.
    set_hash: str
    target_hash: str
    # The latter in words; empty: nothing is known of it.
    version: str
    tags: tuple[str, ...]


def trend_charts(
    points: Sequence[TrendPoint], address: Callable[[str], str], gates: Sequence[str] = ()
) -> tuple[tuple[str, Chart], ...]:
    """Score, time and cost of an experiment's runs; each dot leads to its run, whose `address` is made of its id."""
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
    drawn = [("Score, likely between the ends of its line, and its components", score)]
    if any(point.latency_p95 is not None for point in points):
        slow = [
            ("slow (p95)", [p.latency_p95 for p in points]),
            ("typical (p50)", [p.latency_p50 for p in points]),
        ]
        drawn.append(
            ("How long replies take", line_chart(slow, labels, names=names, addresses=addresses, unit="ms"))
        )
    if any(point.cost for point in points):
        cost = [("cost", [point.cost for point in points])]
        drawn.append(
            ("What a run costs", line_chart(cost, labels, names=names, addresses=addresses, unit="money"))
        )
    return tuple(drawn)


def _in_words(point: TrendPoint) -> str:
    tags = f" ({', '.join(one_line(tag, 30) for tag in point.tags[:3])})" if point.tags else ""
    version = f", {one_line(point.version, 80)}" if point.version else ""
    return f"{one_line(point.name, 60)}{tags}{version}, {local_time(point.created_at)}"


def _changes_in_words(before: TrendPoint, after: TrendPoint) -> str:
    """What is marked between two runs: another golden set, or another version of the chatbot."""
    changed = []
    if before.set_hash != after.set_hash:
        changed.append("The golden set was changed here")
    if before.version and after.version and before.version != after.version:
        changed.append(f"{one_line(before.version, 80)} → {one_line(after.version, 80)}")
    elif before.target_hash != after.target_hash:
        changed.append("The chatbot’s settings were changed here")
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
