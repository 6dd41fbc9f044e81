"""The Compare page, and the page of a judge against people's verdicts."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import msgspec

from answerkey.comparison.run_ranking import Ranking
from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.comparison import Comparison, Group
from answerkey.model.judgement import RubricVersion
from answerkey.model.run import RunInfo, Summary
from answerkey.model.scorecard import letter_grade
from answerkey.report.result_files import Table
from answerkey.report.sheets import MeasureTable, Sheet, SheetTable, measure_tables, ranking_sheet
from answerkey.report.wording import changes_between, percent, score_percent, tone_of
from answerkey.server.rendering import explained_stored, rank_stored
from answerkey.server.runs import comparable, facets_of
from answerkey.server.tables import (
    EXCERPT,
    CompareRow,
    ExportedTable,
    NoQuery,
    PageNumber,
    Paging,
    TableView,
    cause_items,
    ids_of_cause,
    pair_layout,
    pair_table,
)
from answerkey.store.questions import Facets, PairFilter, PairRow, PairTable
from answerkey.store.sql import RunFilter, RunTable, SqlStore
from answerkey.store.table_query import ShortText
from answerkey.text.dates import local_time
from answerkey.text.normalise import Piece, alike, one_line, word_diff


class AlignmentView(msgspec.Struct, frozen=True, kw_only=True):
    """How a run's judge agrees with people, where it does not, and which rubrics were tried."""

    info: RunInfo
    judge: str
    rubric: str
    # The whole rubric as JSON, to be edited; empty if it was not stored.
    rubric_text: str
    # Why nothing can be compared yet; empty if it can.
    problem: str
    warnings: tuple[str, ...]
    tables: tuple[SheetTable, ...]


def load_alignment(store: SqlStore, query: NoQuery, run: str) -> AlignmentView:
    """Read the page of a judged run; half of the labels are held out, and their disagreements never shown."""
    # Statistics take a while to import, and few pages need them.
    from answerkey.report.command_results import alignment_sheet
    from answerkey.runs.judging import align_stored

    info = store.find_run(run)
    judge = info.judge
    if judge is None:
        raise UnknownNameError(
            f"run {info.id} has no judge; `answerkey rescore {info.id} --judge MODEL` adds one"
        )
    sheet, problem = Sheet("", (), (), ()), ""
    try:
        alignment, _ = align_stored(store, info, None)
        sheet = alignment_sheet(alignment, judge, None, run=info.name)
    except UsageError as error:
        problem = str(error)
    tried = [_versions_table(judge.rubric_versions)] if judge.rubric_versions else []
    rubric = judge.rubric
    return AlignmentView(
        info=info,
        judge=judge.model,
        rubric=f"{one_line(rubric.name, 60)} ({rubric.hash[:8]})",
        rubric_text=""
        if rubric.content is None
        else json.dumps(rubric.content, indent=2, ensure_ascii=False),
        problem=problem,
        warnings=sheet.warnings,
        tables=(*sheet.tables, *tried),
    )


def _versions_table(versions: tuple[RubricVersion, ...]) -> SheetTable:
    """Edited rubrics, newest first, with the agreement on held-out labels before and after."""
    rows = []
    for tried in reversed(versions):
        difference, after = tried.held_out.difference, tried.held_out.after or tried.held_out.before
        points = "" if difference is None else f"{100 * difference.low:+.1f} to {100 * difference.high:+.1f}"
        rubric = f"{one_line(tried.rubric.name, 40)} ({tried.rubric.hash[:8]})"
        change = f"{percent(tried.held_out.before.share)} → {percent(after.share)}"
        rows.append((rubric, local_time(tried.at), change, points))
    heads = ("rubric", "tried", "agreement on held-out labels", "change in points, 95% interval")
    return SheetTable("Rubrics that were tried", heads, tuple(rows))


# The page


_PAGE = 20
_MOST_RUNS = 6
_RECENT = 50
_REPLY = 4_000
_ALIKE = 0.3
# Categories and metrics beyond these are in `answerkey compare --json`.
_MOST_MEASURES = 50
_MOST_LISTED = 10


class CompareQuery(PairFilter, frozen=True, kw_only=True):
    """The runs to compare; the oldest is the base unless `base` names another."""

    not_filters = (*PairFilter.not_filters, "base", "find")

    run: Annotated[tuple[ShortText, ...], msgspec.Meta(max_length=_MOST_RUNS)] = ()
    base: ShortText | None = None
    # A part of the name of a run to choose.
    find: ShortText | None = None
    # Empty: the largest changes in the direction of the verdict.
    sort: ShortText = ""
    page: PageNumber = 1


class Side(msgspec.Struct, frozen=True):
    """A run over the questions that all runs have."""

    info: RunInfo
    score: float | None
    grade: str | None


class CompareView(TableView, frozen=True, kw_only=True):
    """What the page shows."""

    query: CompareQuery
    # The base first.
    sides: tuple[Side, ...]
    # With two runs: the comparison, with shortened lists.
    versus: Comparison | None = None
    # Questions that are not in both runs.
    unpaired: int = 0
    # With more than two runs.
    ranking: Ranking | None = None
    # Why there is no comparison or ranking.
    problem: str | None = None
    # Runs to choose from, newest first, if fewer than two are chosen.
    recent: tuple[RunInfo, ...] = ()
    paging: Paging
    rows: tuple[CompareRow, ...] = ()
    # The metrics of the runs.
    metrics: tuple[str, ...] = ()
    # Values that questions can be filtered by.
    facets: Facets = Facets({}, {})

    @property
    def table(self) -> Table | None:
        """The table of questions; None unless there are two or more runs."""
        infos = [side.info for side in self.sides]
        if len(infos) < 2:
            return None
        return pair_table(self.query, pair_layout(infos, self.metrics), self.rows, infos[1])

    @property
    def sheet(self) -> Sheet | None:
        """Every figure of more than two runs, as `answerkey compare` shows them."""
        return None if self.ranking is None else ranking_sheet(self.ranking, score_percent)

    @property
    def tone(self) -> str:
        """The colour of the verdict on two runs."""
        if self.versus is None:
            return ""
        return tone_of(self.versus.verdict)

    @property
    def tables(self) -> tuple[MeasureTable, ...]:
        """The measures of two runs, in tables."""
        return () if self.versus is None else measure_tables(self.versus)

    @property
    def suggested(self) -> dict[str, str]:
        """The runs preselected in the form: the chosen or newest one, and the one before it."""
        candidate = self.sides[0].info if self.sides else self.recent[0]
        others = [info for info in self.recent if comparable(info, candidate) and info.id != candidate.id]
        earlier = [info for info in others if info.created_at <= candidate.created_at]
        return {"base": (earlier or others)[0].id, "run": candidate.id}


def load_compare(store: SqlStore, query: CompareQuery) -> CompareView:
    infos = _runs(store, query)
    if len(infos) < 2:
        sides = tuple(Side(info, None, None) for info in infos)
        recent = _comparable_runs(store, infos, query.find)
        return CompareView(query=query, sides=sides, recent=tuple(recent), paging=Paging(1, _PAGE, 0))
    summaries = [summary for info in infos if (summary := store.summary_of(info.id)) is not None]
    metrics = _metrics(summaries)
    versus = ranking = problem = None
    unpaired = 0
    groups: tuple[Group, ...] = ()
    scores: dict[str, float] = {}
    try:
        if len(infos) == 2:
            whole = explained_stored(store, infos[0], infos[1])
            versus, unpaired, groups = _shortened(whole), len(whole.unpaired), whole.causes
            scores = {side.id: side.score for side in (versus.base, versus.candidate)}
        else:
            ranking = rank_stored(store, infos)
            scores = {run.id: run.score for run in ranking.runs}
    except UsageError as error:
        # No common questions: not a bad request.
        problem = str(error)
    query = _sorted(query, better=versus is not None and versus.verdict == "better")
    pair_layout(infos, metrics).columns(query)
    only = None if query.cause is None else ids_of_cause(groups, query.cause)
    rows, total = PairTable(store, infos[0], infos[1:], only).page(
        query, limit=_PAGE, offset=(query.page - 1) * _PAGE
    )
    return CompareView(
        query=query,
        sides=tuple(_side(info, scores.get(info.id)) for info in infos),
        versus=versus,
        unpaired=unpaired,
        ranking=ranking,
        problem=problem,
        paging=Paging(query.page, _PAGE, total),
        rows=tuple(_row(row) for row in rows),
        metrics=metrics,
        facets=_facets(summaries),
        causes=cause_items(groups),
    )


def _sorted(query: CompareQuery, *, better: bool) -> CompareQuery:
    """The query with its order: what changed most in the direction of the verdict is read first."""
    return msgspec.structs.replace(query, sort=query.sort or ("-change" if better else "change"))


def _comparable_runs(store: SqlStore, chosen: list[RunInfo], text: str | None) -> list[RunInfo]:
    """Runs that can be compared with the chosen one, or with each other, newest first; `text` is in their names."""
    wanted = RunFilter(text=text, set=chosen[0].question_set if chosen else None)
    rows, _ = RunTable(store).page(wanted, limit=_RECENT)
    found = [row.info for row in rows]
    known = {info.id for info in found}
    found += [info for info in chosen if info.id not in known]
    if chosen:
        return found
    return [info for info in found if sum(comparable(info, other) for other in found) > 1]


def export_pairs(store: SqlStore, query: CompareQuery) -> ExportedTable:
    """The table of two or more runs as a file."""
    infos, query = _runs(store, query), _sorted(query, better=False)
    if len(infos) < 2:
        raise UsageError("export needs two runs or more: name a base and a run")
    summaries = [summary for info in infos if (summary := store.summary_of(info.id)) is not None]
    groups = explained_stored(store, infos[0], infos[1]).causes if query.cause else ()
    only = None if query.cause is None else ids_of_cause(groups, query.cause)
    rows = PairTable(store, infos[0], infos[1:], only).every(query)
    return pair_layout(infos, _metrics(summaries)).export(
        query, (_row(row, with_replies=False) for row in rows)
    )


def _metrics(summaries: Sequence[Summary]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for summary in summaries for name in summary.metrics))


def _facets(summaries: Sequence[Summary]) -> Facets:
    """The facets of the last run, and the errors of all runs."""
    if not summaries:
        return Facets({}, {})
    errors: Counter[str] = Counter()
    for summary in summaries:
        errors.update(summary.errors)
    return msgspec.structs.replace(facets_of(summaries[-1]), errors=dict(errors))


def _runs(store: SqlStore, query: CompareQuery) -> list[RunInfo]:
    names = ([query.base] if query.base else []) + list(query.run)
    infos = list({info.id: info for info in map(store.find_run, names)}.values())
    if len(infos) > _MOST_RUNS:
        raise UsageError(f"at most {_MOST_RUNS} runs can be compared at once")
    # The oldest run is the default base.
    return infos if query.base else sorted(infos, key=lambda info: info.created_at)


def _side(info: RunInfo, score: float | None) -> Side:
    return Side(info, score, None if score is None else letter_grade(score))


def _shortened(comparison: Comparison) -> Comparison:
    """The comparison with lists cut to what the page shows."""
    # Largest loss first.
    categories = sorted(comparison.categories, key=lambda part: part.candidate - part.base)
    return msgspec.structs.replace(
        comparison,
        categories=tuple(categories[:_MOST_MEASURES]),
        metrics=comparison.metrics[:_MOST_MEASURES],
        flips=comparison.flips[:_MOST_LISTED],
        # They have their own list, and their ids may be many.
        causes=(),
        unpaired=comparison.unpaired[:_MOST_LISTED],
        edited=comparison.edited[:_MOST_LISTED],
    )


def _row(row: PairRow, *, with_replies: bool = True) -> CompareRow:
    shown, rewritten = _reply_pieces(row.replies) if with_replies else ((), ())
    first = row.scores[0]
    return CompareRow(
        id=row.id,
        category=row.category,
        question=row.question[:EXCERPT] if with_replies else row.question,
        scores=row.scores,
        grades=tuple(None if score is None else letter_grade(score) for score in row.scores),
        changes=tuple(None if score is None or first is None else score - first for score in row.scores[1:]),
        replies=shown,
        why=changes_between(*row.cards[:2]),
        measures=row.measures,
        same_text=all(reply == row.replies[0] for reply in row.replies[1:]),
        other_text=rewritten,
    )


def _reply_pieces(
    replies: Sequence[str | None],
) -> tuple[tuple[tuple[Piece, ...] | None, ...], tuple[bool, ...]]:
    """Each reply with its differences from the base's marked, and whether it shares too little with it for that."""
    base = replies[0]
    shown: list[tuple[Piece, ...] | None] = [_unmarked(base)]
    rewritten = [False]
    for reply in replies[1:]:
        # An empty reply is shown as empty, not as a change.
        pieces = word_diff(base, reply, most=_REPLY) if base and reply else []
        rewritten.append(bool(pieces) and alike(pieces) < _ALIKE)
        shown.append(tuple(pieces) if pieces and not rewritten[-1] else _unmarked(reply))
    return tuple(shown), tuple(rewritten)


def _unmarked(reply: str | None) -> tuple[Piece, ...] | None:
    if reply is None:
        return None
    return (Piece("same", reply[:_REPLY]),) if reply else ()
