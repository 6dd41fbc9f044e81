"""The Runs page: every run with its grade, and how score, components, latency and cost went over time."""

import msgspec

from answerkey.server.views.paging import PageNumber, Paging, ShortText
from answerkey.store.run_list import Figures, RunList, RunRow
from answerkey.store.sql import SqlStore

__all__ = ["RunsQuery", "RunsView", "TrendPoint", "load_runs", "load_trend"]

_PAGE = 25
# Runs in a trend: more cannot be told apart in a chart.
_TREND = 60


class RunsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs."""

    page: PageNumber = 1
    # A part of a run's name or target, or the beginning of its id.
    text: ShortText | None = None
    # Only runs of this golden set.
    set: ShortText | None = None


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


class SetItem(msgspec.Struct, frozen=True):
    """A golden set and how many runs asked it."""

    name: str
    runs: int


class RunsView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    query: RunsQuery
    paging: Paging
    rows: tuple[RunRow, ...]
    sets: tuple[SetItem, ...]
    # The golden set whose runs the trend is over: only runs of one set can be compared.
    trend_set: str | None
    trend: tuple[TrendPoint, ...]


def load_runs(store: SqlStore, query: RunsQuery) -> RunsView:
    """Read the page."""
    listed = RunList(store)
    sets = listed.question_sets()
    rows, total = listed.page(
        text=query.text, question_set=query.set, limit=_PAGE, offset=(query.page - 1) * _PAGE
    )
    chosen = query.set or (sets[0][0] if sets else None)
    return RunsView(
        query=query,
        paging=Paging(query.page, _PAGE, total),
        rows=tuple(rows),
        sets=tuple(SetItem(*item) for item in sets),
        trend_set=chosen,
        trend=() if chosen is None else load_trend(store, chosen),
    )


def load_trend(store: SqlStore, question_set: str) -> tuple[TrendPoint, ...]:
    """The newest finished runs of a golden set, oldest first."""
    rows, _ = RunList(store).page(question_set=question_set, limit=_TREND)
    return tuple(
        _point(row, row.figures)
        for row in reversed(rows)
        if row.figures is not None and row.figures.score is not None
    )


def _point(row: RunRow, figures: Figures) -> TrendPoint:
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
    )
