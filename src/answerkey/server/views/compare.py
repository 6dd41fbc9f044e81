"""The tables of a comparison as texts: each measure in both runs, its change, and where the likely range of it stands."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import msgspec

from answerkey.comparison.run_ranking import Ranking
from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison, Measure
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import letter_grade
from answerkey.model.summary import Summary
from answerkey.report.tables import Table
from answerkey.report.view import component_words
from answerkey.report.wording import (
    change_text,
    changes_between,
    count,
    metric_text,
    milliseconds,
    milliseconds_change,
    money,
    name_words,
    p_text,
    percent,
    points_change,
    score_percent,
)
from answerkey.server.rendering import compare_stored, rank_stored
from answerkey.server.views.runs import facets_of
from answerkey.server.views.tables import (
    CompareRow,
    ExportedTable,
    PageNumber,
    Paging,
    describe_conditions,
    pair_layout,
    pair_table,
)
from answerkey.stats.paired import Difference
from answerkey.store.questions import Facets, PairFilter, PairRow, PairTable
from answerkey.store.sql import SqlStore
from answerkey.store.table_query import ShortText
from answerkey.text.differences import Piece, alike, word_diff
from answerkey.text.normalise import one_line

_NAME = 50
# Differences of less than two points do not fill the picture.
_LEAST_REACH = 0.02
# How wide the stroke of a mean is, and an interval at least, in the hundredths of the picture.
_STROKE = 1.2
_LEAST_WIDTH = 0.6


class IntervalMarks(msgspec.Struct, frozen=True):
    """Where an interval stands in a picture that is 100 wide and has no difference in its middle."""

    low: float
    width: float
    # The left edge of the stroke that marks it.
    mean: float


class MeasureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A measure in both runs."""

    name: str
    # Under the name.
    verdict: str = ""
    p: str = ""
    # The colour of its change.
    tone: str = ""
    change: str
    # The likely range of the change.
    likely: str = ""
    base: str
    candidate: str
    # None: nothing to draw.
    marks: IntervalMarks | None = None


class MeasureTable(msgspec.Struct, frozen=True):
    """Measures of one kind."""

    id: str
    title: str
    # What a change is counted in, at the head of its column.
    unit: str
    rows: tuple[MeasureRow, ...]
    note: str = ""
    # Whether the likely ranges are drawn.
    drawn: bool = False


def measure_tables(found: Comparison) -> tuple[MeasureTable, ...]:
    """What the page shows below the verdict, as far as there is something of it."""
    components = _scored(found.components, component_words)
    categories = _scored(found.categories, lambda name: one_line(name, _NAME))
    metrics = tuple(
        _measured(
            one_line(name_words(part.name), _NAME), part, metric_text, change_text, verdict=part.verdict
        )
        for part in found.metrics
    )
    looked_at = [
        f"Each interval (95%) and its p-value are of one measure alone. The verdict is corrected for looking at {words}: "
        "it may be unclear where an interval excludes zero."
        for words in (
            count(len(components), "component"),
            count(len(categories), "category", "categories"),
            count(len(metrics), "metric"),
        )
    ]
    tables = (
        MeasureTable("components-title", "What was scored", "Points", components, looked_at[0], drawn=True),
        MeasureTable("rest-title", "Passed, speed, cost and errors", "Change", tuple(_rest(found))),
        MeasureTable("categories-title", "By category", "Points", categories, looked_at[1], drawn=True),
        MeasureTable("metrics-title", "Beside the score", "Change", metrics, looked_at[2]),
    )
    return tuple(table for table in tables if table.rows)


def tone_of(verdict: str) -> str:
    """The colour of a verdict."""
    return {"better": "is-up", "worse": "is-down"}.get(verdict, "is-same")


def _scored(parts: Sequence[Measure], named: Callable[[str], str]) -> tuple[MeasureRow, ...]:
    """Components or categories: scores whose changes are points, drawn on one scale."""
    ends = [abs(end) for part in parts if (known := part.difference) for end in (known.low, known.high)]
    reach = max([*ends, _LEAST_REACH]) * 1.05
    return tuple(
        _measured(
            named(part.name),
            part,
            score_percent,
            points_change,
            verdict=part.verdict,
            marks=None if part.difference is None else _marks(part.difference, reach),
        )
        for part in parts
    )


def _measured(
    name: str,
    part: Measure,
    in_words: Callable[[float], str],
    change_in_words: Callable[[float], str],
    *,
    verdict: str = "",
    marks: IntervalMarks | None = None,
) -> MeasureRow:
    known = part.difference
    return MeasureRow(
        name=name,
        verdict=verdict,
        p="" if known is None else _p(known.p_value),
        tone=tone_of(part.verdict),
        change="–" if known is None else change_in_words(known.mean),
        likely="" if known is None else _range(known.low, known.high, change_in_words),
        base=in_words(part.base),
        candidate=in_words(part.candidate),
        marks=marks,
    )


def _rest(found: Comparison) -> Iterator[MeasureRow]:
    """What a run is judged by besides its score."""
    rate, base, candidate = found.pass_rate, found.base, found.candidate
    yield MeasureRow(
        name="Passed",
        p=_p(rate["p_value"]),
        change=points_change(rate["difference"]),
        likely="" if rate["low"] is None else _range(rate["low"], rate["high"], points_change),
        base=percent(rate["base"]),
        candidate=percent(rate["candidate"]),
    )
    if found.latency is not None:
        yield _measured("Mean time", found.latency, milliseconds, milliseconds_change)
    if base.latency_ms and candidate.latency_ms:
        slow, slow_now = base.latency_ms["p95"], candidate.latency_ms["p95"]
        yield MeasureRow(
            name="Slow (p95)",
            change=milliseconds_change(slow_now - slow),
            base=milliseconds(slow),
            candidate=milliseconds(slow_now),
        )
    if found.cost is not None:
        yield _measured("Cost of a question", found.cost, money, lambda change: change_text(change, 4))
    if found.error_rate is not None:
        yield _measured("Errors", found.error_rate, percent, points_change)


def _range(low: float, high: float, in_words: Callable[[float], str]) -> str:
    return f"{in_words(low)} to {in_words(high)}"


def _marks(difference: Difference, reach: float) -> IntervalMarks:
    return IntervalMarks(
        low=round(50 + 50 * difference.low / reach, 2),
        width=round(max(50 * (difference.high - difference.low) / reach, _LEAST_WIDTH), 2),
        mean=round(50 - _STROKE / 2 + 50 * difference.mean / reach, 2),
    )


def _p(value: float | None) -> str:
    return "" if value is None else p_text(value)


# The Compare page: runs side by side, with a verdict that says how sure it is, and what changed in the replies.


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
        return pair_table(self.query, pair_layout(infos, self.metrics), self.rows, infos[1])

    def conditions(self, link: Callable[..., str]) -> list[tuple[str, str]]:
        """What the rows are filtered by in words, each with the address of the page without it."""
        return describe_conditions(self.query, link, "questions")

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
    # First, since an unknown column is a bad request.
    summaries = [summary for info in infos if (summary := store.summary_of(info.id)) is not None]
    metrics = _metrics(summaries)
    pair_layout(infos, metrics).columns(query)
    rows, total = PairTable(store, infos[0], infos[1:]).page(
        query, limit=size, offset=(query.page - 1) * size
    )
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


def export_pairs(store: SqlStore, query: CompareQuery) -> ExportedTable:
    """The table of two runs as a file."""
    infos = _runs(store, query)
    if len(infos) != 2:
        raise UsageError("export needs two runs: name a base and a run")
    summaries = [summary for info in infos if (summary := store.summary_of(info.id)) is not None]
    rows = PairTable(store, infos[0], infos[1:]).every(query)
    return pair_layout(infos, _metrics(summaries)).export(
        query, (_row(row, with_replies=False) for row in rows)
    )


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
    return Side(info, score, None if score is None else letter_grade(score))


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


def _row(row: PairRow, *, with_replies: bool = True) -> CompareRow:
    shown, rewritten = _reply_pieces(row.replies) if with_replies else ((), ())
    first = row.scores[0]
    return CompareRow(
        id=row.id,
        category=row.category,
        question=row.question,
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
