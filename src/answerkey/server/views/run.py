"""The Run page: score with interval, components, categories, distribution, latency, errors, and its questions."""

from collections.abc import Callable
from urllib.parse import quote

import msgspec

from answerkey.evaluation.stored import run_warnings
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import grade
from answerkey.model.summary import Slice, Summary
from answerkey.report.charts import Chart, bar_chart
from answerkey.report.story import story_sentences
from answerkey.report.table import Table
from answerkey.report.value_wording import count
from answerkey.report.view import ComponentView, QuestionView, build_view, row_view
from answerkey.server.views.question_table import question_table
from answerkey.server.views.table_choice import NoQuery, PageNumber, Paging, conditions_in_words
from answerkey.store.question_list import Facets, QuestionList
from answerkey.store.row_filter import RowFilter
from answerkey.store.run_list import Progress, RunList
from answerkey.store.sql import SqlStore

_PAGE = 50
_REFERENCES = 3


class RunQuery(RowFilter, frozen=True, kw_only=True):
    """Which of the run's questions, how they are shown, and which page of them."""

    page: PageNumber = 1


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    info: RunInfo
    query: RunQuery
    # None while the run is under way.
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
    # The names under which it is a baseline.
    baselines: tuple[str, ...]
    # Other baselines, by name: what it can be compared with.
    references: dict[str, str]
    paging: Paging
    rows: tuple[QuestionView, ...]

    @property
    def chart(self) -> Chart:
        """Questions by score; each bar leads to its questions."""
        address = f"/runs/{quote(self.info.id, safe='')}?range=score:"
        bars = []
        for step, number in enumerate(self.distribution):
            low, high = step / 10, (step + 1) / 10
            # The end of a step belongs to the next one; the last has both.
            end = high if step == 9 else high - 1e-6
            words = f"{step * 10}–{step * 10 + 10}%: {count(number, 'question')}"
            bars.append([(float(number), grade(low), words, f"{address}{low:g}..{end:g}#questions")])
        return bar_chart(bars, [f"{step * 10}%" for step in range(10)])

    @property
    def table(self) -> Table:
        """The rows in the columns that were chosen."""
        metrics = () if self.summary is None else self.summary.metrics
        return question_table(self.info, self.query, metrics, self.rows, self.paging.offset)

    def conditions(self, link: Callable[..., str]) -> list[tuple[str, str]]:
        """What the rows are filtered by in words, each with the address of the page without it."""
        return conditions_in_words(self.query, link, "questions")


def load_run(store: SqlStore, query: RunQuery, run: str) -> RunView:
    """Read the page."""
    info = store.find_run(run)
    questions = QuestionList(store)
    rows, total = questions.rows(info, query, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    summary = store.summary_of(info.id)
    baselines = sorted(store.baselines().items())
    report = None
    if summary is not None:
        # The report's view of a run without its rows: those come from the query above.
        warnings = () if info.status == "running" else run_warnings(info, summary)
        report = build_view(Run(info=info, summary=summary, warnings=warnings))
    return RunView(
        info=info,
        query=query,
        summary=summary,
        progress=RunList(store).progress(info) if summary is None or info.status == "running" else None,
        story=() if report is None else story_sentences(report),
        warnings=() if report is None else report.warnings,
        components=() if report is None else report.components,
        categories=() if report is None else report.categories,
        slices={} if report is None else report.slices,
        distribution=tuple(questions.distribution(info)),
        facets=questions.facets(info) if summary is None else facets_of(summary),
        baselines=tuple(name for name, run_id in baselines if run_id == info.id),
        references=dict([item for item in baselines if item[1] != info.id][:_REFERENCES]),
        paging=Paging(query.page, _PAGE, total),
        rows=tuple(row_view(row) for row in rows),
    )


def load_progress(store: SqlStore, query: NoQuery, run: str) -> Progress:
    """How far a run is."""
    return RunList(store).progress(store.find_run(run))


def facets_of(summary: Summary) -> Facets:
    """A finished run's summary has them already."""
    categories = sorted((part.name, part.questions) for part in summary.categories)
    named = {
        kind: {part.name: part.questions for part in sorted(parts, key=lambda part: part.name)}
        for kind, parts in summary.slices.items()
    }
    return Facets(dict(categories), summary.errors, named.get("persona", {}), named.get("tag", {}))
