"""The home page (experiments, whether the newest run can be released, what needs attention, runs) and the Run page."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from itertools import pairwise
from math import sqrt
from typing import Annotated, Literal
from urllib.parse import quote, urlencode

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.comparison import Comparison, WorseSlice
from answerkey.model.run import GateResult, Run, RunInfo, Slice, Summary
from answerkey.model.scorecard import letter_grade, round_score
from answerkey.report.markup import Chart, TrendPoint, bar_chart, trend_charts
from answerkey.report.result_files import Table
from answerkey.report.sheets import Sheet
from answerkey.report.view import ComponentView, QuestionView, build_view, row_view, story_sentences
from answerkey.report.wording import count, gate_value, percent, points_change, score_percent
from answerkey.runs.fault_results import FaultGroup, fault_result
from answerkey.runs.stored import run_warnings
from answerkey.server.rendering import (
    causes_stored,
    compare_in_turn,
    compare_stored,
    decide_stored,
    feedback_figures,
    waiting_reviews,
)
from answerkey.server.tables import (
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
from answerkey.store.production import ProductionFilter, ProductionReplies, feedback_state
from answerkey.store.questions import Facets, QuestionFilter
from answerkey.store.sql import Figures, Progress, RunFilter, RunRow, RunTable, SqlStore
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

# Runs with more questions are not compared.
LARGE = 20_000
_WEEK = 7
# Verdicts, or replies, of a week below which nothing is said of it.
FEWEST_VERDICTS = 20
# Runs of a sparkline, and the difference of scores that fills its height at least.
_SPARK_RUNS = 10
_SPARK_REACH = 0.1
# Failed gates that are named.
_NAMED_GATES = 3


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a run with a baseline or the previous run."""

    id: str
    # "the baseline production" or "the previous run".
    words: str
    verdict: str
    # The reason of a verdict that the mean does not give, e.g. `3 questions confirmed broken`.
    because: str = ""
    mean: float
    low: float
    high: float


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a run can be released: its gates, as `answerkey show` evaluates them, and verdicts against other runs."""

    gates: tuple[GateResult, ...] = ()
    # The run's own baseline or else those of its golden set, then the previous run.
    against: tuple[Against, ...] = ()
    # Whether the run is too large to be compared here.
    too_large: bool = False


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """A golden set and a chatbot, with the newest of its runs that ended, or else its newest run."""

    question_set: str
    target: str
    runs: int
    last: RunInfo
    # None: no run has ended.
    figures: Figures | None
    # The first comparison; None: nothing to compare with.
    against: Against | None
    decision: Decision = Decision()
    # A newer run that is running or was interrupted.
    unfinished: Progress | None = None
    # Whether its tools were broken on purpose.
    faulted: bool = False
    # Scores of its newest runs that ended, oldest first.
    scores: tuple[float, ...] = ()

    @property
    def spark(self) -> str:
        """The scores as points of a line, 100 wide and 20 high; empty for a single one."""
        if len(self.scores) < 2:
            return ""
        low, high = min(self.scores), max(self.scores)
        reach, step = max(high - low, _SPARK_REACH), 100 / (len(self.scores) - 1)
        return " ".join(
            f"{number * step:.1f},{19 - 18 * (score - low) / reach:.1f}"
            for number, score in enumerate(self.scores)
        )

    @property
    def address(self) -> str:
        """The page with its trend and runs."""
        return "/?" + urlencode({"set": self.question_set, "target": self.target})

    @property
    def compare_address(self) -> str:
        """The page that compares its newest run."""
        return compare_address(self.last, self.against)


def compare_address(info: RunInfo, against: Against | None) -> str:
    base = "" if against is None else f"base={quote(against.id, safe='')}&"
    return f"/compare?{base}run={quote(info.id, safe='')}"


NeedKind = Literal["gate", "regression", "interrupted", "satisfaction", "errors", "review"]


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs attention."""

    kind: NeedKind
    words: str
    address: str


def load_experiments(store: SqlStore) -> tuple[Experiment, ...]:
    """All experiments, most recently run first."""
    listed = RunTable(store)
    baselines = baselines_by_set(store)
    experiments = []
    for one in listed.experiments(newest=_SPARK_RUNS):
        newest = (one.ended or one.unfinished)[0]
        # An interrupted run has figures, but of the few questions that it asked.
        figures = newest.figures if one.ended else None
        previous = one.ended[1] if len(one.ended) > 1 else None
        decision = Decision() if figures is None else decide(store, newest, previous, baselines)
        unfinished = one.unfinished[0].info if one.unfinished else None
        if unfinished is not None and unfinished.created_at < newest.info.created_at:
            unfinished = None
        experiments.append(
            Experiment(
                question_set=one.question_set,
                target=one.target,
                runs=one.total,
                last=newest.info,
                figures=figures,
                against=decision.against[0] if decision.against else None,
                decision=decision,
                unfinished=None if unfinished is None else listed.progress(unfinished),
                faulted=is_faulted(newest.info),
                scores=tuple(
                    row.figures.score
                    for row in reversed(one.ended)
                    if row.figures is not None and row.figures.score is not None
                ),
            )
        )
    return tuple(experiments)


def baselines_by_set(store: SqlStore) -> dict[str, list[tuple[str, RunInfo]]]:
    """Golden set → its baselines with their names, by name."""
    found: dict[str, list[tuple[str, RunInfo]]] = {}
    for name, run_id in sorted(store.baselines().items()):
        info = store.find_run(run_id)
        found.setdefault(info.question_set, []).append((name, info))
    return found


def decide(
    store: SqlStore,
    row: RunRow,
    previous: RunRow | None,
    baselines: Mapping[str, Sequence[tuple[str, RunInfo]]],
) -> Decision:
    """The gates of a finished run, and its comparisons with baselines and the previous run."""
    info = row.info
    if is_faulted(info):
        # Worse than without faults on purpose.
        return Decision()
    if row.figures is None or row.figures.questions > LARGE:
        return Decision(too_large=row.figures is not None)
    run = decide_stored(store, info)
    against: dict[str, Against] = {}
    known = baselines.get(info.question_set, ())
    if run.comparison is not None:
        # A baseline's name says more than the id that is stored with the run.
        names = [name for name, base in known if base.id == run.comparison.base.id]
        words = f"the baseline {one_line((names or [run.comparison.base.name])[0], 40)}"
        against[run.comparison.base.id] = _verdict(run.comparison, words)
    else:
        for name, base in known:
            compare_into(store, base, info, f"the baseline {one_line(name, 40)}", against)
    if previous is not None:
        compare_into(store, previous.info, info, "the previous run", against)
    return Decision(gates=run.gates, against=tuple(against.values()))


def is_faulted(info: RunInfo) -> bool:
    """Whether tools of the chatbot were broken in this run on purpose."""
    return info.experiment is not None and info.experiment.is_faulted(info.id)


def compare_into(
    store: SqlStore, base: RunInfo, info: RunInfo, words: str, against: dict[str, Against]
) -> None:
    if base.id == info.id or base.id in against:
        return
    # Without common questions, the golden set was replaced.
    with suppress(UsageError):
        against[base.id] = _verdict(compare_stored(store, base, info), words)


def _verdict(comparison: Comparison, words: str) -> Against:
    return Against(
        id=comparison.base.id,
        words=words,
        verdict=comparison.verdict,
        because=comparison.because,
        mean=comparison.difference.mean,
        low=comparison.difference.low,
        high=comparison.difference.high,
    )


def needs_of(store: SqlStore, experiments: tuple[Experiment, ...]) -> tuple[Need, ...]:
    """What needs attention in all experiments, most serious first."""
    return (
        *(need for one in experiments for need in _gates(one)),
        *_regressions(experiments),
        *(need for one in experiments for need in _unfinished(one)),
        *production_needs(store),
        *_reviews(store, experiments),
    )


def _gate_finding(result: GateResult) -> str:
    """The gate's value or, without one, why it failed."""
    if result.value is None:
        return one_line(result.reason, 120) or "it has no value"
    return f"it is {gate_value(result.value)}"


def _gates(one: Experiment) -> Iterator[Need]:
    name, address = one_line(one.last.name, 60), f"/runs/{quote(one.last.id, safe='')}"
    failed = [result for result in one.decision.gates if not result.passed]
    if failed:
        words = ", ".join(
            f"{one_line(result.gate, 60)} ({_gate_finding(result)})" for result in failed[:_NAMED_GATES]
        )
        more = f" and {len(failed) - _NAMED_GATES} more" if len(failed) > _NAMED_GATES else ""
        yield Need(
            kind="gate",
            words=f"“{name}” fails {count(len(failed), 'gate')}: {words}{more}",
            address=f"{address}?result=failed",
        )


def _regressions(experiments: tuple[Experiment, ...]) -> Iterator[Need]:
    for one in experiments:
        if one.against is not None and one.against.verdict == "worse":
            change = one.against
            because = f"{change.because}; mean " if change.because else ""
            likely = f"{points_change(change.low)} to {points_change(change.high)}"
            yield Need(
                kind="regression",
                words=f"“{one_line(one.last.name, 60)}” is worse than {one.against.words}: "
                f"{because}{points_change(change.mean)} points, likely {likely}",
                address=one.compare_address,
            )


def _unfinished(one: Experiment) -> Iterator[Need]:
    progress = one.unfinished
    if progress is not None and progress.status == "interrupted":
        replies = f"{progress.done:,} of {count(progress.planned, 'reply', 'replies')}"
        yield Need(
            kind="interrupted",
            words=f"The newest run of {one_line(one.question_set, 40)} was interrupted after {replies}; "
            f"continue with: answerkey resume {progress.id}",
            address=f"/runs/{quote(progress.id, safe='')}",
        )


def production_needs(store: SqlStore, today: date | None = None) -> list[Need]:
    """What got significantly worse in production in a week, from the week before.

    Without `today`, the week ends with the newest verdict, or reply.
    """
    return [*_satisfaction(store, today), *_production_errors(store, today)]


def _satisfaction(store: SqlStore, today: date | None) -> Iterator[Need]:
    days = feedback_figures(store).days
    if not days:
        return
    weeks = _weeks(today or date.fromisoformat(days[-1].day))
    parts = [[day for day in days if since <= day.day <= until] for since, until in weeks]
    before, now = ((sum(day.positive for day in part), sum(day.feedback for day in part)) for part in parts)
    if _fell(*before, *now):
        since = weeks[1][0]
        rates = f"from {percent(before[0] / before[1], 0)} to {percent(now[0] / now[1], 0)}"
        yield Need(
            kind="satisfaction",
            words=f"Satisfaction fell {rates} in the week from {since}",
            address=f"/feedback?since={since}&value=down",
        )


def _production_errors(store: SqlStore, today: date | None) -> Iterator[Need]:
    replies = ProductionReplies(store)
    newest, _ = replies.page(ProductionFilter(), limit=1)
    if not newest:
        return
    weeks = _weeks(today or date.fromisoformat(local_time(newest[0].created_at, zone=False)[:10]))
    facets = [replies.facets(ProductionFilter(since=since, until=until)) for since, until in weeks]
    before, now = ((part.replies - sum(part.errors.values()), part.replies) for part in facets)
    if _fell(*before, *now):
        since = weeks[1][0]
        rates = f"from {percent(1 - before[0] / before[1])} to {percent(1 - now[0] / now[1])}"
        yield Need(
            kind="errors",
            words=f"Errors in production rose {rates} of the replies in the week from {since}",
            address=f"/replies?result=error&since={since}",
        )


def _weeks(last: date) -> list[tuple[str, str]]:
    """The first and the last day of the week before, and of the week that ends on a day."""
    ends = (last - timedelta(days=_WEEK), last)
    return [(str(end - timedelta(days=_WEEK - 1)), str(end)) for end in ends]


def _fell(good_before: int, before: int, good_now: int, now: int) -> bool:
    """Whether a share fell from one week to the next more than by chance."""
    if min(before, now) < FEWEST_VERDICTS:
        return False
    pooled = (good_before + good_now) / (before + now)
    error = sqrt(pooled * (1 - pooled) * (1 / before + 1 / now))
    return error > 0 and (good_before / before - good_now / now) / error > 1.96


def _reviews(store: SqlStore, experiments: tuple[Experiment, ...]) -> Iterator[Need]:
    state = feedback_state(store)
    for one in experiments:
        unreviewed = one.figures is None or one.faulted
        waiting = 0 if unreviewed else waiting_reviews(store, one.last, state)
        if waiting:
            verb = "waits" if waiting == 1 else "wait"
            name = one_line(one.last.name, 60)
            words = f"{count(waiting, 'reply', 'replies')} of “{name}” {verb} for a review"
            yield Need(kind="review", words=words, address=f"/review?run={quote(one.last.id, safe='')}")


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
        metrics = () if self.summary is None else self.summary.metrics
        return question_table(self.info, self.query, metrics, self.rows, self.paging.offset)


def load_run(store: SqlStore, query: RunQuery, run: str) -> RunView:
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
