"""The home page: what needs somebody, every experiment with its verdict and trend, and every run with its grade."""

import re
from collections.abc import Callable, Sequence
from urllib.parse import quote

import msgspec

from answerkey.report.table import Table
from answerkey.report.value_wording import name_words
from answerkey.server.charts import Chart, Rule, line_chart, moment_labels
from answerkey.server.views.experiments import Experiment, Need, load_experiments, needs_of
from answerkey.server.views.paging import PageNumber, Paging
from answerkey.server.views.run_table import RUN_CONDITIONS, RunsFilter, run_table
from answerkey.server.views.table_choice import conditions_in_words
from answerkey.store.run_list import Figures, RunFilter, RunList, RunRow
from answerkey.store.sql import SqlStore
from answerkey.text.moments import local_time
from answerkey.text.sanitise import one_line

__all__ = ["RunsQuery", "RunsView", "TrendPoint", "load_runs", "load_trend"]

_PAGE = 25
# Runs in a trend: more cannot be told apart in a chart.
_TREND = 60
# A gate on the score, which can be drawn.
_GATE = re.compile(r"score\s*>=?\s*(0?\.\d+|[01](?:\.0*)?)$")


class RunsQuery(RunsFilter, frozen=True, kw_only=True):
    """Which runs, how they are shown, and which page of them."""

    page: PageNumber = 1


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
    tags: tuple[str, ...]


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
    # What needs somebody, and every experiment; only where nothing is searched.
    needs: tuple[Need, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    # Whose runs the trend is over: only runs of one set and one chatbot make a line.
    chosen: Experiment | None = None
    trend: tuple[TrendPoint, ...] = ()

    @property
    def table(self) -> Table:
        """The rows in the columns that were chosen."""
        return run_table(self.query, self.rows)

    def conditions(self, link: Callable[..., str]) -> list[tuple[str, str]]:
        """What the rows are chosen by in words, each with the address of the page without it."""
        return conditions_in_words(self.query, RUN_CONDITIONS, link, "runs")

    @property
    def charts(self) -> tuple[tuple[str, Chart], ...]:
        """The trend drawn: title and chart."""
        gates = () if self.chosen is None else self.chosen.last.options.gates
        return trend_charts(
            self.trend, [Rule(float(at[1]), text, "gate") for text in gates if (at := _GATE.match(text))]
        )


def load_runs(store: SqlStore, query: RunsQuery) -> RunsView:
    """Read the page."""
    listed = RunList(store)
    sets = listed.question_sets()
    rows, total = listed.page(query, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    view = RunsView(
        query=query,
        paging=Paging(query.page, _PAGE, total),
        rows=tuple(rows),
        sets=tuple(SetItem(*item) for item in sets),
    )
    if query.text or query.tag or query.status or query.ranges or query.page > 1:
        return view
    experiments = load_experiments(store)
    fitting = [
        one
        for one in experiments
        if query.set in (None, one.question_set) and query.target in (None, one.target)
    ]
    # One run just tried must not hide what is measured every night.
    chosen = max(fitting, key=lambda one: one.runs, default=None)
    return msgspec.structs.replace(
        view,
        experiments=experiments,
        needs=() if query.set or query.target else needs_of(store, experiments),
        chosen=chosen,
        trend=() if chosen is None else load_trend(store, chosen.question_set, chosen.target),
    )


def load_trend(store: SqlStore, question_set: str, target: str) -> tuple[TrendPoint, ...]:
    """The newest finished runs of an experiment, oldest first."""
    rows, _ = RunList(store).page(RunFilter(set=question_set, target=target), limit=_TREND)
    return tuple(
        _point(row, row.figures)
        for row in reversed(rows)
        if row.figures is not None and row.figures.score is not None
    )


def trend_charts(points: tuple[TrendPoint, ...], rules: Sequence[Rule] = ()) -> tuple[tuple[str, Chart], ...]:
    """Score, time and cost of an experiment's runs; each dot leads to its run."""
    if len(points) < 2:
        return ()
    labels = moment_labels([point.created_at for point in points], [point.name for point in points])
    names = [_in_words(point) for point in points]
    addresses = [f"/runs/{quote(point.id, safe='')}" for point in points]
    parts = dict.fromkeys(name for point in points for name in point.components)
    baselines = {name: point.score for point in points for name in point.baselines}
    changes = [
        (index, "The golden set was changed here")
        for index in range(1, len(points))
        if points[index].set_hash != points[index - 1].set_hash
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
    return f"{one_line(point.name, 60)}{tags}, {local_time(point.created_at)}"


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
        interval=None if figures.interval is None else (figures.interval.low, figures.interval.high),
        set_hash=row.info.question_set_hash,
        target_hash=row.info.target_hash,
        tags=row.info.tags,
    )
