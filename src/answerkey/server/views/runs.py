"""The home page (experiments, what needs attention, runs) and the Run page."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated
from urllib.parse import quote

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.model.comparison import WorseSlice
from answerkey.model.run import Run, RunInfo, Slice, Summary
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.report.charts import Chart, TrendPoint, bar_chart, trend_charts
from answerkey.report.sheets import Sheet
from answerkey.report.tables import Table
from answerkey.report.view import ComponentView, QuestionView, build_view, row_view, story_sentences
from answerkey.report.wording import count, score_percent
from answerkey.runs.fault_results import FaultGroup, fault_result
from answerkey.runs.stored import run_warnings
from answerkey.server.rendering import (
    causes_stored,
    compare_in_turn,
)
from answerkey.server.views.experiments import (
    LARGE,
    Decision,
    Experiment,
    Need,
    baselines_by_set,
    decide,
    load_experiments,
    needs_of,
)
from answerkey.server.views.tables import (
    EXCERPT,
    NoQuery,
    PageNumber,
    Paging,
    TableView,
    cause_items,
    question_table,
    run_table,
    table_of_run,
)
from answerkey.store.questions import Facets, QuestionFilter
from answerkey.store.sql import Figures, Progress, RunFilter, RunRow, RunTable, SqlStore
from answerkey.text.normalise import one_line

# The Run page


_PAGE = 50
_REFERENCES = 3
# Slices that are named.
_WORSE = 5


class RunQuery(QuestionFilter, frozen=True, kw_only=True):
    """Which of the run's questions to show."""

    page: PageNumber = 1


class RunView(TableView, frozen=True, kw_only=True):
    """What the page shows."""

    info: RunInfo
    query: RunQuery
    # None until the run is finished.
    summary: Summary | None
    progress: Progress | None
    # None until the run is finished.
    decision: Decision | None
    story: tuple[str, ...]
    warnings: tuple[str, ...]
    components: tuple[ComponentView, ...]
    # The weakest first.
    categories: tuple[Slice, ...]
    slices: dict[str, tuple[Slice, ...]]
    # Questions by score, in ten equal steps.
    distribution: tuple[int, ...]
    facets: Facets
    # Its baseline names.
    baselines: tuple[str, ...]
    # Other baselines to compare with: name → run id.
    references: dict[str, str]
    # Slices that are clearly worse than the rest.
    worse: tuple[WorseSlice, ...]
    # What is known of the answer key, in sentences.
    key: tuple[str, ...]
    paging: Paging
    rows: tuple[QuestionView, ...]

    @property
    def chart(self) -> Chart:
        """Questions by score; each bar links to its questions."""
        address = f"/runs/{quote(self.info.id, safe='')}?range=score:"
        bars = []
        for step, number in enumerate(self.distribution):
            low, high = step / 10, (step + 1) / 10
            # A step ends just below the next one; the last includes its end.
            end = high if step == 9 else round_score(high - 1e-9)
            words = f"{step * 10}–{step * 10 + 10}%: {count(number, 'question')}"
            bars.append([(float(number), letter_grade(low), words, f"{address}{low:g}..{end:.9g}#questions")])
        return bar_chart(bars, [f"{step * 10}%" for step in range(10)])

    @property
    def table(self) -> Table:
        """The table of rows."""
        metrics = () if self.summary is None else self.summary.metrics
        return question_table(self.info, self.query, metrics, self.rows, self.paging.offset)


def load_run(store: SqlStore, query: RunQuery, run: str) -> RunView:
    """Read the page."""
    info = store.find_run(run)
    questions = table_of_run(store, info, query)
    rows, total = questions.page(query, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    summary = store.summary_of(info.id)
    baselines = sorted(store.baselines().items())
    report = decision = found = None
    if summary is not None:
        previous = next(iter(RunTable(store).earlier(info, 1)), None)
        row = RunRow(info, msgspec.convert(summary, Figures, from_attributes=True))
        decision = None if info.status == "running" else decide(store, row, previous, baselines_by_set(store))
        if info.status != "running" and summary.questions <= LARGE:
            found = causes_stored(store, info)
        # The report's view without rows, which come from the query above.
        warnings = () if info.status == "running" else run_warnings(info, summary)
        report = build_view(Run(info=info, summary=summary, warnings=warnings))
    return RunView(
        info=info,
        query=query,
        summary=summary,
        progress=RunTable(store).progress(info)
        if summary is None or info.status in ("running", "interrupted")
        else None,
        decision=decision,
        story=() if report is None else story_sentences(report),
        warnings=() if report is None else report.warnings,
        components=() if report is None else report.components,
        categories=() if report is None else report.categories,
        slices={} if report is None else report.slices,
        distribution=tuple(questions.distribution()),
        facets=questions.facets() if summary is None else facets_of(summary),
        baselines=tuple(name for name, run_id in baselines if run_id == info.id),
        references=_references(store, info, baselines),
        causes=() if found is None else cause_items(found.groups),
        worse=() if found is None else found.slices[:_WORSE],
        key=() if report is None else report.key,
        paging=Paging(query.page, _PAGE, total),
        rows=tuple(
            msgspec.structs.replace(row_view(row), question=row.question[:EXCERPT], reply=row.reply[:EXCERPT])
            for row in rows
        ),
    )


def _references(store: SqlStore, info: RunInfo, baselines: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The baselines that the run can be compared with."""
    others = [(name, run_id) for name, run_id in baselines if run_id != info.id]
    fitting = [(name, run_id) for name, run_id in others if comparable(store.find_run(run_id), info)]
    return dict(fitting[:_REFERENCES])


def comparable(first: RunInfo, second: RunInfo) -> bool:
    """Whether runs asked the same golden set, or versions of it."""
    return first.question_set_hash == second.question_set_hash or first.question_set == second.question_set


class FaultsView(msgspec.Struct, frozen=True, kw_only=True):
    """A run of faults: what the chatbot made of broken tools."""

    clean: RunInfo
    faulted: RunInfo
    resilience: FaultGroup
    tools: tuple[FaultGroup, ...]
    kinds: tuple[FaultGroup, ...]
    sheet: Sheet


def load_faults(store: SqlStore, query: NoQuery, run: str) -> FaultsView:
    """Read the page of outcomes; either run of the pair may be named."""
    # Its tables are also drawn on terminals, which takes a tenth of a second to import.
    from answerkey.report.command_results import fault_sheet

    info = store.find_run(run)
    if info.experiment is None or info.experiment.faults is None:
        raise UnknownNameError(f"run {info.id} is not a run of faults; `answerkey faults` starts one")
    clean, faulted = (store.load_run(store.find_run(part)) for part in info.experiment.runs)
    result = fault_result(clean, faulted)
    return FaultsView(
        clean=clean.info,
        faulted=faulted.info,
        resilience=result.summary,
        tools=result.tools,
        kinds=result.kinds,
        sheet=fault_sheet(result, score_percent),
    )


def load_progress(store: SqlStore, query: NoQuery, run: str) -> Progress:
    """The progress of a run."""
    return RunTable(store).progress(store.find_run(run))


def facets_of(summary: Summary) -> Facets:
    """The facets of a finished run, from its summary."""
    categories = sorted((part.name, part.questions) for part in summary.categories)
    named = {
        kind: {part.name: part.questions for part in sorted(parts, key=lambda part: part.name)}
        for kind, parts in summary.slices.items()
    }
    return Facets(dict(categories), summary.errors, named.get("persona", {}), named.get("tag", {}))


# The home page


_PAGE_RUNS = 25


class RunsQuery(RunFilter, frozen=True, kw_only=True):
    """Which runs to show."""

    page: PageNumber = 1
    # The number of runs in the trend.
    last: Annotated[int, msgspec.Meta(ge=2, le=300)] = 60


class SetItem(msgspec.Struct, frozen=True):
    """A golden set and its number of runs."""

    name: str
    runs: int


class RunsView(TableView, frozen=True, kw_only=True):
    """What the page shows."""

    anchor = "runs"

    query: RunsQuery
    paging: Paging
    rows: tuple[RunRow, ...]
    sets: tuple[SetItem, ...]
    # What needs attention, and the experiments; only without a search.
    needs: tuple[Need, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    # Experiments whose newest run is too large to be compared here.
    not_compared: tuple[str, ...] = ()
    # The experiment of the trend.
    chosen: Experiment | None = None
    trend: tuple[TrendPoint, ...] = ()
    # Scores of baselines that are not in the trend.
    reference_scores: Mapping[str, float] = msgspec.field(default_factory=dict)

    @property
    def table(self) -> Table:
        """The table of rows."""
        return run_table(self.query, self.rows)

    @property
    def versions(self) -> int:
        """The number of chatbot versions in the trend."""
        return len({(point.info.target_hash, point.info.target_version.words) for point in self.trend})

    @property
    def charts(self) -> tuple[tuple[str, Chart], ...]:
        """The trend: (title, chart) pairs."""
        gates = () if self.chosen is None else self.chosen.last.options.gates
        address = lambda run: f"/runs/{quote(run, safe='')}"  # noqa: E731
        return trend_charts(self.trend, address, gates, self.reference_scores)


def load_runs(store: SqlStore, query: RunsQuery) -> RunsView:
    """Read the page."""
    listed = RunTable(store)
    sets = listed.question_sets()
    rows, total = listed.page(query, limit=_PAGE_RUNS, offset=(query.page - 1) * _PAGE_RUNS)
    view = RunsView(
        query=query,
        paging=Paging(query.page, _PAGE_RUNS, total),
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
    # The experiment with most runs, so that a single trial does not hide it.
    chosen = max(fitting, key=lambda one: one.runs, default=None)
    return msgspec.structs.replace(
        view,
        experiments=experiments,
        not_compared=tuple(one.last.name for one in experiments if one.decision.too_large),
        needs=() if query.set or query.target else needs_of(store, experiments),
        chosen=chosen,
        trend=() if chosen is None else load_trend(store, chosen, query),
        reference_scores={} if chosen is None else _reference_scores(store, chosen.question_set),
    )


def load_trend(store: SqlStore, chosen: Experiment, query: RunsQuery) -> tuple[TrendPoint, ...]:
    """The newest finished runs of an experiment within the wanted days, oldest first, with their verdicts."""
    wanted = RunFilter(set=chosen.question_set, target=chosen.target, since=query.since, until=query.until)
    found, _ = RunTable(store).page(wanted, limit=query.last)
    # An interrupted run has a score, but of the few questions that it asked.
    ended = [row for row in found if row.info.status in ("complete", "partial")]
    known = [(row, row.figures) for row in ended if row.figures and row.figures.score is not None]
    pairs = [
        (base.info, row.info) for (row, figures), (base, _) in pairwise(known) if figures.questions <= LARGE
    ]
    verdicts = {
        info.id: comparison.verdict
        for (_, info), comparison in zip(pairs, compare_in_turn(store, pairs), strict=True)
        if comparison is not None
    }
    return tuple(TrendPoint(row, figures, verdicts.get(row.info.id)) for row, figures in reversed(known))


def _reference_scores(store: SqlStore, question_set: str) -> dict[str, float]:
    """Baseline of a golden set → its score."""
    summaries = {
        name: store.summary_of(info.id) for name, info in baselines_by_set(store).get(question_set, ())
    }
    return {
        one_line(name, 40): summary.score
        for name, summary in summaries.items()
        if summary is not None and summary.score is not None
    }
