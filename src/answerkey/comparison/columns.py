"""A run as columns: one entry per question, trials averaged, in a few flat arrays whatever the run's size."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from answerkey.run import Run, RunInfo

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = [
    "CLUSTER_FIELDS",
    "Columns",
    "Pairing",
    "ScoreRow",
    "columns_from_run",
    "columns_from_store",
    "pair",
]

# Fields of a golden set that say which questions belong together.
CLUSTER_FIELDS = ("cluster", "template", "conversation", "conversation_id")

_NAN = math.nan


class ScoreRow(NamedTuple):
    """One trial of one question."""

    question_id: str
    content_hash: str
    category: str
    trial: int
    score: float | None
    error_kind: str | None
    latency_ms: float | None
    cost: float | None
    components: dict[str, float | None]
    metrics: dict[str, float | None]


class Columns:
    """What a comparison knows of a run. A missing value is NaN."""

    def __init__(self, info: RunInfo) -> None:
        self.info = info
        self.ids: list[str] = []
        self.hashes: list[str] = []
        self.categories: list[str] = []
        self.scores = array("d")
        self.latencies = array("d")
        self.costs = array("d")
        self.components: dict[str, array[float]] = {}
        self.metrics: dict[str, array[float]] = {}
        # Replies by the kind of their error.
        self.errors: Counter[str] = Counter()
        self.replies = 0
        # Content hash → the cluster of a question that belongs to one.
        self.clusters: dict[str, str] = {}
        # Question id → scores of its trials, only where they differ: the flaky ones.
        self.trials: dict[str, tuple[float, ...]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def fill(self, rows: Iterable[ScoreRow]) -> None:
        """Add trials, which must come grouped by question."""
        if self.info.repeat == 1:
            self._fill_single(rows)
            return
        for _, group in groupby(rows, key=lambda row: row.content_hash):
            self._add(list(group))

    def _fill_single(self, rows: Iterable[ScoreRow]) -> None:
        """The same for runs without repeats, three times as fast: most large runs are of this kind."""
        position = 0
        for identity, content, category, _, score, kind, latency, cost, components, metrics in rows:
            self.ids.append(identity)
            self.hashes.append(content)
            self.categories.append(category)
            self.scores.append(_NAN if score is None else score)
            self.latencies.append(_NAN if latency is None else latency)
            self.costs.append(_NAN if cost is None else cost)
            if kind is not None:
                self.errors[kind] += 1
            for columns, values in ((self.components, components), (self.metrics, metrics)):
                for name, value in values.items():
                    column = columns.get(name)
                    if column is None:
                        column = columns[name] = array("d")
                    if len(column) < position:
                        column.extend([_NAN] * (position - len(column)))
                    column.append(_NAN if value is None else value)
            position += 1
        self.replies += position

    def _add(self, trials: list[ScoreRow]) -> None:
        first = trials[0]
        position = len(self.ids)
        self.ids.append(first.question_id)
        self.hashes.append(first.content_hash)
        self.categories.append(first.category)
        self.scores.append(_mean([row.score for row in trials]))
        self.latencies.append(_mean([row.latency_ms for row in trials]))
        self.costs.append(_mean([row.cost for row in trials]))
        self.replies += len(trials)
        for row in trials:
            if row.error_kind is not None:
                self.errors[row.error_kind] += 1
        for columns, values in (
            (self.components, [row.components for row in trials]),
            (self.metrics, [row.metrics for row in trials]),
        ):
            names = values[0] if len(values) == 1 else dict.fromkeys(name for one in values for name in one)
            for name in names:
                column = columns.get(name)
                if column is None:
                    column = columns[name] = array("d")
                if len(column) < position:
                    column.extend([_NAN] * (position - len(column)))
                column.append(_mean([one.get(name) for one in values]))
        if len(trials) > 1:
            self.trials[first.question_id] = tuple(row.score for row in trials if row.score is not None)

    def finish(self) -> "Columns":
        """Make all columns equally long."""
        for columns in (self.components, self.metrics):
            for column in columns.values():
                column.extend([_NAN] * (len(self.ids) - len(column)))
        return self


def _mean(values: list[float | None]) -> float:
    if len(values) == 1:
        value = values[0]
        return _NAN if value is None else value
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else _NAN


def columns_from_store(
    store: "SqlStore", info: RunInfo, *, cluster_fields: tuple[str, ...] = CLUSTER_FIELDS
) -> Columns:
    """Read a stored run's columns, and nothing else of it."""
    from answerkey.store.score_rows import cluster_rows, score_rows

    columns = Columns(info)
    columns.fill(score_rows(store, info))
    columns.clusters = dict(cluster_rows(store, info, cluster_fields))
    return columns.finish()


def columns_from_run(run: Run, *, cluster_fields: tuple[str, ...] = CLUSTER_FIELDS) -> Columns:
    """The same from a run at hand."""
    columns = Columns(run.info)
    columns.fill(_rows(run, columns, cluster_fields))
    return columns.finish()


def _rows(run: Run, columns: Columns, cluster_fields: tuple[str, ...]) -> Iterator[ScoreRow]:
    for result in run.results:
        question, card = result.question, result.scorecard
        content = question.content_hash
        for field in cluster_fields:
            value = question.metadata.get(field)
            if isinstance(value, str | int) and not isinstance(value, bool):
                columns.clusters[content] = f"{field}={value}"
                break
        costs = [r.usage.cost for r in result.replies if r.usage is not None and r.usage.cost is not None]
        yield ScoreRow(
            question.id,
            content,
            question.category,
            result.trial,
            card.total,
            None if card.error is None else card.error.kind,
            result.latency_ms,
            math.fsum(costs) if costs else None,
            {name: score.value for name, score in card.components.items()},
            dict(card.metrics),
        )


class Pairing(msgspec.Struct, frozen=True):
    """Which question of the base is which of the candidate."""

    # Positions in base and candidate.
    base: "array[int]"
    candidate: "array[int]"
    only_base: tuple[str, ...]
    only_candidate: tuple[str, ...]
    # Questions with the same id whose wording or expectations were edited in between.
    edited: tuple[str, ...]
    # Questions that one of the runs could not score.
    unscored: tuple[str, ...]


def pair(base: Columns, candidate: Columns) -> Pairing:
    """Pair by content, then by id; what is left over is named."""
    if base.hashes == candidate.hashes and not math.isnan(sum(base.scores) + sum(candidate.scores)):
        # The usual case: the same golden set in the same order, all of it scored.
        places = array("q", range(len(base)))
        return Pairing(places, places, (), (), (), ())
    by_hash = {content: position for position, content in enumerate(candidate.hashes)}
    by_id = {identity: position for position, identity in enumerate(candidate.ids)}
    used = bytearray(len(candidate))
    first, second = array("q"), array("q")
    leftover: list[int] = []
    unscored: list[str] = []

    def link(position: int, other: int) -> None:
        used[other] = 1
        if math.isnan(base.scores[position]) or math.isnan(candidate.scores[other]):
            unscored.append(base.ids[position])
            return
        first.append(position)
        second.append(other)

    for position, content in enumerate(base.hashes):
        other = by_hash.get(content)
        if other is None:
            leftover.append(position)
        else:
            link(position, other)
    edited: list[str] = []
    only_base: list[str] = []
    for position in leftover:
        other = by_id.get(base.ids[position])
        if other is None or used[other]:
            only_base.append(base.ids[position])
        else:
            edited.append(base.ids[position])
            link(position, other)
    only_candidate = tuple(candidate.ids[i] for i in range(len(candidate)) if not used[i])
    return Pairing(first, second, tuple(only_base), only_candidate, tuple(edited), tuple(unscored))
