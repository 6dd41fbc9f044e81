"""The Compare page: runs side by side, with a verdict that says how sure it is, and what changed in the replies."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec

from answerkey.comparison.run_ranking import Ranking
from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import grade
from answerkey.model.summary import Summary
from answerkey.report.comparison_wording import changes_between
from answerkey.report.table import Column, Table
from answerkey.server.cached_figures import compare_stored, rank_stored
from answerkey.server.views.measures import MeasureTable, measure_tables, tone_of
from answerkey.server.views.pair_table import (
    CompareRow,
    exported_cells,
    pair_columns,
    pair_table,
    wanted_columns,
)
from answerkey.server.views.run import facets_of
from answerkey.server.views.table_choice import PageNumber, Paging, ShortText, conditions_in_words
from answerkey.store.pairs import PairFilter, PairRow, Pairs
from answerkey.store.question_list import Facets
from answerkey.store.sql import SqlStore
from answerkey.text.differences import Piece, alike, word_diff

_PAGE = 20
# With more than two runs a row is much longer.
_PAGE_OF_MANY = 10
_MOST_RUNS = 6
_RECENT = 50
_REPLY = 4_000
_ALIKE = 0.3
# Categories and metrics beyond these are in `answerkey compare --json`.
_MOST_MEASURES = 50
_MOST_LISTED = 10


class CompareQuery(PairFilter, frozen=True, kw_only=True):
    """Which runs: the oldest is the base unless `base` names another."""

    run: Annotated[tuple[ShortText, ...], msgspec.Meta(max_length=_MOST_RUNS)] = ()
    base: ShortText | None = None
    page: PageNumber = 1


class Side(msgspec.Struct, frozen=True):
    """A run over the questions that all runs have."""

    info: RunInfo
    score: float | None
    grade: str | None


class CompareView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    query: CompareQuery
    # The base first.
    sides: tuple[Side, ...]
    # Of two runs: what `answerkey compare` says, with only the beginning of its lists.
    versus: Comparison | None = None
    # Questions that take no part in it.
    unpaired: int = 0
    # Of more than two.
    ranking: Ranking | None = None
    # Why there is neither, though there are enough runs.
    problem: str | None = None
    # Runs to choose from, newest first, while there are not two.
    recent: tuple[RunInfo, ...] = ()
    paging: Paging
    rows: tuple[CompareRow, ...] = ()
    # Beside the score, in any of the runs.
    metrics: tuple[str, ...] = ()
    # What questions can be filtered by.
    facets: Facets = Facets({}, {})

    @property
    def table(self) -> Table | None:
        """The rows in the columns that were chosen; None unless there are two runs."""
        if len(self.sides) != 2:
            return None
        infos = [side.info for side in self.sides]
        return pair_table(self.query, pair_columns(infos, self.metrics), self.rows, infos[1])

    def conditions(self, link: Callable[..., str]) -> list[tuple[str, str]]:
        """What the rows are filtered by in words, each with the address of the page without it."""
        return conditions_in_words(self.query, link, "questions")

    @property
    def tone(self) -> str:
        """The colour of the verdict on two runs."""
        return "" if self.versus is None else tone_of(self.versus.verdict)

    @property
    def tables(self) -> tuple[MeasureTable, ...]:
        """What changed between two runs, in tables."""
        return () if self.versus is None else measure_tables(self.versus)

    @property
    def suggested(self) -> dict[str, str]:
        """Which runs the form proposes while there are not two: the one given, or the newest, and the one before it."""
        candidate = self.sides[0].info if self.sides else self.recent[0]
        others = [info for info in self.recent if comparable(info, candidate) and info.id != candidate.id]
        earlier = [info for info in others if info.created_at <= candidate.created_at]
        return {"base": (earlier or others)[0].id, "run": candidate.id}


def load_compare(store: SqlStore, query: CompareQuery) -> CompareView:
    """Read the page."""
    infos = _runs(store, query)
    if len(infos) < 2:
        sides = tuple(Side(info, None, None) for info in infos)
        recent = _offered(store.list_infos(limit=_RECENT), infos)
        return CompareView(query=query, sides=sides, recent=tuple(recent), paging=Paging(1, _PAGE, 0))
    size = _PAGE if len(infos) == 2 else _PAGE_OF_MANY
    # Before it is read: a column that there is none of is a wrong address.
    summaries = [summary for info in infos if (summary := store.summary_of(info.id)) is not None]
    metrics = _metrics(summaries)
    wanted_columns(query, pair_columns(infos, metrics))
    rows, total = Pairs(store, infos[0], infos[1:]).page(query, limit=size, offset=(query.page - 1) * size)
    versus = ranking = problem = None
    unpaired = 0
    scores: dict[str, float] = {}
    try:
        if len(infos) == 2:
            whole = compare_stored(store, infos[0], infos[1])
            versus, unpaired = _cut(whole), len(whole.unpaired)
            scores = {side.id: side.score for side in (versus.base, versus.candidate)}
        else:
            ranking = rank_stored(store, infos)
            scores = {run.id: run.score for run in ranking.runs}
    except UsageError as error:
        # Nothing in common: a fact about the runs, not a wrong address.
        problem = str(error)
    return CompareView(
        query=query,
        sides=tuple(_side(info, scores.get(info.id)) for info in infos),
        versus=versus,
        unpaired=unpaired,
        ranking=ranking,
        problem=problem,
        paging=Paging(query.page, size, total),
        rows=tuple(_row(row) for row in rows),
        metrics=metrics,
        facets=_facets(summaries),
    )


def comparable(first: RunInfo, second: RunInfo) -> bool:
    """Whether runs asked the same golden set, or versions of it."""
    return first.question_set_hash == second.question_set_hash or first.question_set == second.question_set


def _offered(recent: list[RunInfo], given: list[RunInfo]) -> list[RunInfo]:
    """Runs that can be compared with the one given, or with another of them; newest first."""
    known = {info.id for info in recent}
    recent += [info for info in given if info.id not in known]
    if given:
        return [info for info in recent if comparable(info, given[0])]
    return [info for info in recent if sum(comparable(info, other) for other in recent) > 1]


def exported_pairs(store: SqlStore, query: CompareQuery) -> tuple[tuple[Column, ...], Iterator[list[Any]]]:
    """The columns and every row of the table of two runs, for a file."""
    infos = _runs(store, query)
    if len(infos) != 2:
        raise UsageError("two runs are exported: name a base and a run")
    summaries = [summary for info in infos if (summary := store.summary_of(info.id)) is not None]
    offered = pair_columns(infos, _metrics(summaries))
    # A file's reader finds a question by its id, whether the page shows it or not.
    columns = tuple(dict.fromkeys((offered[1], *wanted_columns(query, offered))))
    rows = Pairs(store, infos[0], infos[1:]).every(query)
    return columns, (exported_cells(row, columns) for row in rows)


def _metrics(summaries: Sequence[Summary]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for summary in summaries for name in summary.metrics))


def _facets(summaries: Sequence[Summary]) -> Facets:
    """What the last of the runs has, and the errors of all of them."""
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
    # Without a named base the oldest run is it.
    return infos if query.base else sorted(infos, key=lambda info: info.created_at)


def _side(info: RunInfo, score: float | None) -> Side:
    return Side(info, score, None if score is None else grade(score))


def _cut(found: Comparison) -> Comparison:
    """Without what a page would not show: every question that flipped, stands alone or was edited."""
    # The largest loss first.
    categories = sorted(found.categories, key=lambda part: part.candidate - part.base)
    return msgspec.structs.replace(
        found,
        categories=tuple(categories[:_MOST_MEASURES]),
        metrics=found.metrics[:_MOST_MEASURES],
        flips=found.flips[:_MOST_LISTED],
        unpaired=found.unpaired[:_MOST_LISTED],
        edited=found.edited[:_MOST_LISTED],
    )


def _row(row: PairRow) -> CompareRow:
    base = row.replies[0]
    shown: list[tuple[Piece, ...] | None] = [
        None if base is None else (Piece("same", base[:_REPLY]),) if base else ()
    ]
    others = [False]
    for reply in row.replies[1:]:
        # Nothing is not a changed text.
        pieces = word_diff(base, reply, most=_REPLY) if base and reply else []
        others.append(bool(pieces) and alike(pieces) < _ALIKE)
        if reply is not None and (others[-1] or not pieces):
            pieces = [Piece("same", reply[:_REPLY])] if reply else []
        shown.append(None if reply is None else tuple(pieces))
    first = row.scores[0]
    return CompareRow(
        id=row.id,
        category=row.category,
        question=row.question,
        scores=row.scores,
        grades=tuple(None if score is None else grade(score) for score in row.scores),
        changes=tuple(None if score is None or first is None else score - first for score in row.scores[1:]),
        replies=tuple(shown),
        why=changes_between(*row.cards[:2]),
        measures=row.measures,
        same_text=all(reply == base for reply in row.replies[1:]),
        other_text=tuple(others),
    )
