"""The home page (experiments, what needs attention, runs) and the Run page."""

from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from urllib.parse import quote, urlencode

import msgspec

from answerkey.errors import AnswerkeyError, UsageError
from answerkey.gates import parse_gate
from answerkey.model.comparison import Comparison
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.model.summary import Slice, Summary
from answerkey.report.charts import Chart, TrendPoint, bar_chart, trend_charts, trend_point
from answerkey.report.tables import Table
from answerkey.report.view import ComponentView, QuestionView, build_view, row_view, story_sentences
from answerkey.report.wording import count, percent, points_change
from answerkey.runs.stored import run_warnings
from answerkey.runs.verdicts import gates_of_stored
from answerkey.server.rendering import compare_stored, feedback_figures
from answerkey.server.views.tables import (
    NoQuery,
    PageNumber,
    Paging,
    describe_conditions,
    question_table,
    run_table,
)
from answerkey.store.questions import Facets, QuestionFilter, QuestionTable
from answerkey.store.review import ReviewQueue
from answerkey.store.run_list import Figures, Progress, RunFilter, RunRow, RunTable
from answerkey.store.sql import SqlStore
from answerkey.text.normalise import one_line

_LISTED = 12
# Limits of the comparison with the previous run: experiments, and questions of a run.
_JUDGED = 6
_LARGE = 20_000
_WEEK = 7
_FEWEST_VERDICTS = 20


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of the newest run with its baseline or the previous run."""

    id: str
    # "the baseline production" or "the previous run".
    words: str
    verdict: str
    mean: float
    low: float
    high: float


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """A golden set and a chatbot, with the newest of its runs."""

    question_set: str
    target: str
    runs: int
    last: RunInfo
    figures: Figures | None
    # None: nothing to compare with.
    against: Against | None

    @property
    def address(self) -> str:
        """The page with its trend and runs."""
        return "/?" + urlencode({"set": self.question_set, "target": self.target})

    @property
    def compare_address(self) -> str:
        """The page that compares its newest run."""
        base = "" if self.against is None else f"base={quote(self.against.id, safe='')}&"
        return f"/compare?{base}run={quote(self.last.id, safe='')}"


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs attention."""

    kind: str
    words: str
    address: str


def load_experiments(store: SqlStore) -> tuple[Experiment, ...]:
    """The most recent experiments."""
    listed, baselines = RunTable(store), store.baselines()
    found = []
    for number, (question_set, target, runs) in enumerate(listed.experiments(_LISTED)):
        rows, _ = listed.page(RunFilter(set=question_set, target=target), limit=3)
        # A running run has no figures yet.
        rows = [row for row in rows if row.figures is not None] or rows
        against = _against(store, rows, baselines) if number < _JUDGED else None
        found.append(
            Experiment(
                question_set=question_set,
                target=target,
                runs=runs,
                last=rows[0].info,
                figures=rows[0].figures,
                against=against,
            )
        )
    return tuple(found)


def _against(store: SqlStore, rows: list[RunRow], baselines: Mapping[str, str]) -> Against | None:
    """Compare the newest run with its set's baseline, or else with the previous run."""
    last = rows[0]
    if last.figures is None or last.figures.questions > _LARGE:
        return None
    known = {}
    for name, run_id in sorted(baselines.items()):
        base = store.find_run(run_id)
        if base.question_set == last.info.question_set and base.id != last.info.id:
            known[base.id] = (base, f"the baseline {one_line(name, 40)}")
    if not known and len(rows) > 1 and rows[1].figures is not None:
        known = {rows[1].info.id: (rows[1].info, "the previous run")}
    for base, words in known.values():
        try:
            found = compare_stored(store, base, last.info)
        except UsageError:
            # No common questions: the set was replaced.
            continue
        return Against(
            id=base.id,
            words=words,
            verdict=found.verdict,
            mean=found.difference.mean,
            low=found.difference.low,
            high=found.difference.high,
        )
    return None


def needs_of(store: SqlStore, experiments: tuple[Experiment, ...]) -> tuple[Need, ...]:
    """What needs attention, most serious first."""
    return (
        *(need for one in experiments[:_JUDGED] for need in _gates(store, one)),
        *_regressions(experiments),
        *_satisfaction(store),
        *_reviews(store, experiments),
    )


def _gates(store: SqlStore, one: Experiment) -> Iterator[Need]:
    if one.figures is None or not one.last.options.gates:
        return
    comparison: Comparison | None = None
    try:
        if one.against is not None:
            comparison = compare_stored(store, store.find_run(one.against.id), one.last)
        results = gates_of_stored(
            store, one.last, [parse_gate(text) for text in one.last.options.gates], comparison
        )
    except AnswerkeyError:
        # The gate refers to a deleted run, or cannot be parsed by this version.
        return
    failed = [result for result in results if not result.passed]
    if failed:
        words = ", ".join(one_line(result.gate, 60) for result in failed[:3])
        yield Need(
            kind="gate",
            words=f"“{one_line(one.last.name, 60)}” fails {count(len(failed), 'gate')}: {words}",
            address=f"/runs/{quote(one.last.id, safe='')}?result=failed",
        )


def _regressions(experiments: tuple[Experiment, ...]) -> Iterator[Need]:
    for one in experiments:
        if one.against is not None and one.against.verdict == "worse":
            likely = f"{points_change(one.against.low)} to {points_change(one.against.high)}"
            yield Need(
                kind="regression",
                words=f"“{one_line(one.last.name, 60)}” is worse than {one.against.words}: "
                f"{points_change(one.against.mean)} points, likely {likely}",
                address=one.compare_address,
            )


def _satisfaction(store: SqlStore) -> Iterator[Need]:
    """Whether satisfaction fell significantly in the last seven days with feedback, compared to the seven before."""
    days = feedback_figures(store).days
    late, early = days[-_WEEK:], days[-2 * _WEEK : -_WEEK]
    sizes = [sum(day.feedback for day in part) for part in (early, late)]
    if min(sizes) < _FEWEST_VERDICTS:
        return
    before, now = (
        sum(day.positive for day in part) / size for part, size in zip((early, late), sizes, strict=True)
    )
    pooled = (before * sizes[0] + now * sizes[1]) / sum(sizes)
    error = sqrt(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1]))
    if error and (before - now) / error > 1.96:
        yield Need(
            kind="satisfaction",
            words=f"Satisfaction fell from {percent(before, 0)} to {percent(now, 0)}",
            address=f"/feedback?since={late[0].day}&value=down",
        )


def _reviews(store: SqlStore, experiments: tuple[Experiment, ...]) -> Iterator[Need]:
    for one in experiments[:1]:
        waiting, _ = ReviewQueue(store, one.last).counts()
        if waiting:
            verb = "waits" if waiting == 1 else "wait"
            name = one_line(one.last.name, 60)
            words = f"{count(waiting, 'reply', 'replies')} of “{name}” {verb} for a review"
            yield Need(kind="review", words=words, address=f"/review?run={quote(one.last.id, safe='')}")


# The Run page


_PAGE = 50
_REFERENCES = 3


class RunQuery(QuestionFilter, frozen=True, kw_only=True):
    """Which of the run's questions to show."""

    page: PageNumber = 1


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    info: RunInfo
    query: RunQuery
    # None until the run is finished.
    summary: Summary | None
    progress: Progress | None
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

    def conditions(self, link: Callable[..., str]) -> list[tuple[str, str]]:
        """The filters in words, each with the address of the page without it."""
        return describe_conditions(self.query, link, "questions")


def load_run(store: SqlStore, query: RunQuery, run: str) -> RunView:
    """Read the page."""
    info = store.find_run(run)
    questions = QuestionTable(store, info)
    rows, total = questions.page(query, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    summary = store.summary_of(info.id)
    baselines = sorted(store.baselines().items())
    report = None
    if summary is not None:
        # The report's view without rows, which come from the query above.
        warnings = () if info.status == "running" else run_warnings(info, summary)
        report = build_view(Run(info=info, summary=summary, warnings=warnings))
    return RunView(
        info=info,
        query=query,
        summary=summary,
        progress=RunTable(store).progress(info) if summary is None or info.status == "running" else None,
        story=() if report is None else story_sentences(report),
        warnings=() if report is None else report.warnings,
        components=() if report is None else report.components,
        categories=() if report is None else report.categories,
        slices={} if report is None else report.slices,
        distribution=tuple(questions.distribution()),
        facets=questions.facets() if summary is None else facets_of(summary),
        baselines=tuple(name for name, run_id in baselines if run_id == info.id),
        references=dict([item for item in baselines if item[1] != info.id][:_REFERENCES]),
        paging=Paging(query.page, _PAGE, total),
        rows=tuple(row_view(row) for row in rows),
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
# Maximum number of runs in a trend chart.
_TREND = 60


class RunsQuery(RunFilter, frozen=True, kw_only=True):
    """Which runs to show."""

    page: PageNumber = 1


class SetItem(msgspec.Struct, frozen=True):
    """A golden set and its number of runs."""

    name: str
    runs: int


class RunsView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    query: RunsQuery
    paging: Paging
    rows: tuple[RunRow, ...]
    sets: tuple[SetItem, ...]
    # What needs attention, and the experiments; only without a search.
    needs: tuple[Need, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    # The experiment of the trend.
    chosen: Experiment | None = None
    trend: tuple[TrendPoint, ...] = ()

    @property
    def table(self) -> Table:
        """The table of rows."""
        return run_table(self.query, self.rows)

    def conditions(self, link: Callable[..., str]) -> list[tuple[str, str]]:
        """The filters in words, each with the address of the page without it."""
        return describe_conditions(self.query, link, "runs")

    @property
    def versions(self) -> int:
        """The number of chatbot versions in the trend."""
        return len({(point.target_hash, point.version) for point in self.trend})

    @property
    def charts(self) -> tuple[tuple[str, Chart], ...]:
        """The trend: (title, chart) pairs."""
        gates = () if self.chosen is None else self.chosen.last.options.gates
        return trend_charts(self.trend, lambda run: f"/runs/{quote(run, safe='')}", gates)


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
        needs=() if query.set or query.target else needs_of(store, experiments),
        chosen=chosen,
        trend=() if chosen is None else load_trend(store, chosen.question_set, chosen.target),
    )


def load_trend(store: SqlStore, question_set: str, target: str) -> tuple[TrendPoint, ...]:
    """The newest finished runs of an experiment, oldest first."""
    rows, _ = RunTable(store).page(RunFilter(set=question_set, target=target), limit=_TREND)
    return tuple(
        trend_point(row, row.figures)
        for row in reversed(rows)
        if row.figures is not None and row.figures.score is not None
    )
