"""The home page: what needs somebody, every experiment with its verdict and trend, and every run with its grade."""

from collections.abc import Callable
from urllib.parse import quote

import msgspec

from answerkey.report.charts import Chart
from answerkey.report.table import Table
from answerkey.report.trend import TrendPoint, trend_charts, trend_point
from answerkey.server.views.experiments import Experiment, Need, load_experiments, needs_of
from answerkey.server.views.run_table import run_table
from answerkey.server.views.table_choice import PageNumber, Paging, conditions_in_words
from answerkey.store.run_list import RunFilter, RunList, RunRow
from answerkey.store.sql import SqlStore

_PAGE = 25
# Runs in a trend: more cannot be told apart in a chart.
_TREND = 60


class RunsQuery(RunFilter, frozen=True, kw_only=True):
    """Which runs, how they are shown, and which page of them."""

    page: PageNumber = 1


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
        return conditions_in_words(self.query, link, "runs")

    @property
    def versions(self) -> int:
        """How many versions of the chatbot the trend is over."""
        return len({(point.target_hash, point.version) for point in self.trend})

    @property
    def charts(self) -> tuple[tuple[str, Chart], ...]:
        """The trend drawn: title and chart."""
        gates = () if self.chosen is None else self.chosen.last.options.gates
        return trend_charts(self.trend, lambda run: f"/runs/{quote(run, safe='')}", gates)


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
        trend_point(row, row.figures)
        for row in reversed(rows)
        if row.figures is not None and row.figures.score is not None
    )
