"""The Compare page: runs side by side, with a verdict that says how sure it is, and what changed in the replies."""

from collections import OrderedDict
from math import fsum
from threading import Lock
from typing import Annotated

import msgspec

from answerkey.comparison.columns import CLUSTER_FIELDS
from answerkey.errors import UsageError
from answerkey.run import RunInfo
from answerkey.scorecard import grade, round_score
from answerkey.server.views.paging import PageNumber, Paging, ShortText
from answerkey.stats.paired import Difference, Verdict, paired_difference, verdict_of
from answerkey.stats.power import detectable_difference
from answerkey.store.pairs import PairRow, Pairs, PairSort, Show
from answerkey.store.score_rows import cluster_rows
from answerkey.store.sql import SqlStore
from answerkey.text.differences import Piece, word_diff

__all__ = ["CompareQuery", "CompareRow", "CompareView", "Side", "Versus", "load_compare"]

_PAGE = 20
_MOST_RUNS = 6
_REPLY = 4_000


class CompareQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs: the first is the base unless `base` names another."""

    run: Annotated[tuple[ShortText, ...], msgspec.Meta(max_length=_MOST_RUNS)] = ()
    base: ShortText | None = None
    show: Show = "all"
    sort: PairSort = "worst"
    text: ShortText | None = None
    page: PageNumber = 1


class Side(msgspec.Struct, frozen=True):
    """A run over the questions that all runs have."""

    info: RunInfo
    score: float | None
    grade: str | None


class Versus(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate against the base."""

    id: str
    pairs: int
    # None without a single pair.
    difference: Difference | None
    verdict: Verdict
    # The smallest true difference that this many questions would probably show.
    detectable: float | None
    better: int
    worse: int
    fixed: int
    broken: int


class CompareRow(msgspec.Struct, frozen=True, kw_only=True):
    """A question in all runs."""

    id: str
    category: str
    question: str
    scores: tuple[float | None, ...]
    grades: tuple[str | None, ...]
    # Candidate minus base, for each candidate.
    changes: tuple[float | None, ...]
    # Each reply as it differs from the base's; the base's own is whole. None: a null reply.
    replies: tuple[tuple[Piece, ...] | None, ...]
    same_text: bool


class CompareView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    query: CompareQuery
    sides: tuple[Side, ...]
    versus: tuple[Versus, ...]
    paging: Paging
    rows: tuple[CompareRow, ...]


def load_compare(store: SqlStore, query: CompareQuery) -> CompareView:
    """Read the page."""
    infos = _runs(store, query)
    if len(infos) < 2:
        sides = tuple(Side(info, None, None) for info in infos)
        return CompareView(query=query, sides=sides, versus=(), paging=Paging(1, _PAGE, 0), rows=())
    pairs = Pairs(store, infos[0], infos[1:])
    rows, total = pairs.page(
        show=query.show, sort=query.sort, text=query.text, limit=_PAGE, offset=(query.page - 1) * _PAGE
    )
    sides, versus = _verdicts.of(store, infos, pairs)
    return CompareView(
        query=query,
        sides=sides,
        versus=versus,
        paging=Paging(query.page, _PAGE, total),
        rows=tuple(_row(row) for row in rows),
    )


def _runs(store: SqlStore, query: CompareQuery) -> list[RunInfo]:
    names = ([query.base] if query.base else []) + list(query.run)
    infos = list({info.id: info for info in map(store.find_run, names)}.values())
    if len(infos) > _MOST_RUNS:
        raise UsageError(f"at most {_MOST_RUNS} runs can be compared at once")
    # Without a named base the oldest run is it.
    return infos if query.base else sorted(infos, key=lambda info: info.created_at)


class _Verdicts:
    """Verdicts on finished runs do not change: they are worked out once."""

    def __init__(self, most: int = 200) -> None:
        self._known: OrderedDict[tuple[str, ...], tuple[tuple[Side, ...], tuple[Versus, ...]]] = OrderedDict()
        self._most = most
        self._lock = Lock()

    def of(
        self, store: SqlStore, infos: list[RunInfo], pairs: Pairs
    ) -> tuple[tuple[Side, ...], tuple[Versus, ...]]:
        key = tuple(f"{info.id}:{info.scoring_hash}:{info.finished_at}" for info in infos)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = _compare(store, infos, pairs)
        if all(info.status == "complete" for info in infos):
            with self._lock:
                self._known[key] = found
                if len(self._known) > self._most:
                    self._known.popitem(last=False)
        return found


_verdicts = _Verdicts()


def _compare(
    store: SqlStore, infos: list[RunInfo], pairs: Pairs
) -> tuple[tuple[Side, ...], tuple[Versus, ...]]:
    scores = pairs.scores()
    means: list[float | None] = [None] * len(infos)
    if scores:
        means = [round_score(fsum(column) / len(scores)) for column in zip(*scores, strict=True)]
    sides = tuple(
        Side(info, mean, None if mean is None else grade(mean))
        for info, mean in zip(infos, means, strict=True)
    )
    # Questions that belong together (one template, one conversation) count as one, as in `answerkey compare`.
    belonging = dict(cluster_rows(store, infos[0], CLUSTER_FIELDS))
    clusters = [belonging.get(content, content) for content in pairs.content_hashes()] if belonging else None
    return sides, tuple(
        _versus(info, index, scores, infos[0].pass_mark, clusters)
        for index, info in enumerate(infos[1:], start=1)
    )


def _versus(
    info: RunInfo, index: int, scores: list[tuple[float, ...]], mark: float, clusters: list[str] | None
) -> Versus:
    changes = [row[index] - row[0] for row in scores]
    difference = paired_difference(changes, clusters=clusters)
    return Versus(
        id=info.id,
        pairs=len(changes),
        difference=difference,
        verdict="no clear difference" if difference is None else verdict_of(difference),
        detectable=None
        if difference is None
        else detectable_difference(difference.error, difference.clusters - 1),
        better=sum(change > 5e-10 for change in changes),
        worse=sum(change < -5e-10 for change in changes),
        fixed=sum(row[0] < mark <= row[index] for row in scores),
        broken=sum(row[index] < mark <= row[0] for row in scores),
    )


def _row(row: PairRow) -> CompareRow:
    base = row.replies[0]
    shown: list[tuple[Piece, ...] | None] = [None if base is None else (Piece("same", base[:_REPLY]),)]
    for reply in row.replies[1:]:
        shown.append(None if reply is None else tuple(word_diff(base or "", reply, most=_REPLY)))
    first = row.scores[0]
    return CompareRow(
        id=row.id,
        category=row.category,
        question=row.question,
        scores=row.scores,
        grades=tuple(None if score is None else grade(score) for score in row.scores),
        changes=tuple(None if score is None or first is None else score - first for score in row.scores[1:]),
        replies=tuple(shown),
        same_text=all(reply == base for reply in row.replies[1:]),
    )
