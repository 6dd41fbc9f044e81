"""A run as columns: one entry per question, trials averaged, in a few flat arrays whatever the run's size.

What grows with a run is about 100 bytes a question: 16 of its content's hash, its id, four of its category, and eight for
the score, the latency, the cost and each component and metric. Replies, reasons and questions are never read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerkey.comparison.texts import Texts, TextsBuilder
from answerkey.model.run import Run, RunInfo
from answerkey.model.score_batch import ScoreBatch
from answerkey.model.trial import Trial

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = [
    "CLUSTER_FIELDS",
    "Columns",
    "Floats",
    "Ints",
    "by_name",
    "columns_from_run",
    "columns_from_store",
    "locate",
    "read_scorecards",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Content hashes, two halves a row.
Hashes = npt.NDArray[np.uint64]

# Fields of a golden set that say which questions belong together.
CLUSTER_FIELDS = ("cluster", "template", "conversation", "conversation_id")

_BATCH = 1000


class Columns(NamedTuple):
    """What a comparison knows of a run, question by question. A missing value is NaN."""

    info: RunInfo
    ids: Texts
    hashes: Hashes
    # Which of the category names.
    categories: npt.NDArray[np.int32]
    category_names: list[str]
    scores: Floats
    latencies: Floats
    costs: Floats
    components: dict[str, Floats]
    metrics: dict[str, Floats]
    # Replies by the kind of their error.
    errors: Counter[str]
    replies: int
    # Which of the cluster names, -1 for a question that belongs to none; None if none does.
    clusters: Ints | None
    cluster_names: list[str]
    # Of a run with repeats, every trial's score, and where each question's begin.
    trial_scores: Floats | None
    trial_starts: Ints | None

    def trials(self) -> Iterator[tuple[str, list[float]]]:
        """Each question's scored trials; a question without any is left out."""
        scores, starts = self.trial_scores, self.trial_starts
        if scores is None or starts is None:
            known = np.flatnonzero(~np.isnan(self.scores)).tolist()
            yield from ((self.ids[i], [float(self.scores[i])]) for i in known)
            return
        for position, values in enumerate(np.split(scores, starts[1:])):
            kept = values[~np.isnan(values)].tolist()
            if kept:
                yield self.ids[position], kept


class _Growing:
    """Columns by name that grow batch by batch; where a name is missing, NaN is filled in."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[Floats]] = {}
        self._lengths: dict[str, int] = {}

    def add(self, values: Mapping[str, Sequence[float | None]], before: int) -> None:
        for name, column in values.items():
            chunks = self._chunks.setdefault(name, [])
            gap = before - self._lengths.get(name, 0)
            if gap:
                chunks.append(np.full(gap, np.nan))
            chunks.append(_floats(column))
            self._lengths[name] = before + len(column)

    def finish(self, length: int, starts: Ints | None) -> dict[str, Floats]:
        self.add({name: () for name, known in self._lengths.items() if known < length}, length)
        found = {}
        for name in list(self._chunks):
            found[name] = _means(np.concatenate(self._chunks.pop(name)), starts)
        return found


class _Builder:
    """Takes batches, gives columns."""

    def __init__(self, info: RunInfo) -> None:
        self._info = info
        self._ids = TextsBuilder()
        self._hashes: list[Hashes] = []
        self._categories: list[npt.NDArray[np.int32]] = []
        self._category_numbers: dict[str, int] = {}
        self._plain = _Growing()
        self._components = _Growing()
        self._metrics = _Growing()
        self._errors: Counter[str] = Counter()
        self._count = 0

    def add(self, batch: ScoreBatch) -> None:
        count = len(batch.ids)
        self._ids.add(batch.ids)
        self._hashes.append(_halves(batch.content_hashes))
        numbers = self._category_numbers
        for name in dict.fromkeys(batch.categories):
            numbers.setdefault(name, len(numbers))
        self._categories.append(np.fromiter(map(numbers.__getitem__, batch.categories), np.int32, count))
        plain = {"score": batch.scores, "latency": batch.latencies_ms, "cost": batch.costs}
        self._plain.add(plain, self._count)
        self._components.add(batch.components, self._count)
        self._metrics.add(batch.metrics, self._count)
        self._errors.update(kind for kind in batch.error_kinds if kind is not None)
        self._count += count

    def columns(self, clusters: Mapping[bytes, str]) -> Columns:
        """All of it; `clusters` says which content hash belongs to which cluster."""
        hashes = np.concatenate([np.empty((0, 2), np.uint64), *self._hashes])
        categories = np.concatenate([np.empty(0, np.int32), *self._categories])
        ids = self._ids.texts()
        starts = None
        trial_scores = None
        if self._info.repeat > 1 and self._count:
            # Trials of one question stand beside each other.
            starts = np.flatnonzero(np.r_[True, (hashes[1:] != hashes[:-1]).any(axis=1)])
            trial_scores = np.concatenate(self._plain._chunks["score"])
            hashes, categories, ids = hashes[starts], categories[starts], ids.chosen(starts)
        plain = self._plain.finish(self._count, starts)
        none = np.empty(0)
        numbers, names = _clusters(hashes, clusters)
        return Columns(
            info=self._info,
            ids=ids,
            hashes=hashes,
            categories=categories,
            category_names=list(self._category_numbers),
            scores=plain.get("score", none),
            latencies=plain.get("latency", none),
            costs=plain.get("cost", none),
            components=self._components.finish(self._count, starts),
            metrics=self._metrics.finish(self._count, starts),
            errors=self._errors,
            replies=self._count,
            clusters=numbers,
            cluster_names=names,
            trial_scores=trial_scores,
            trial_starts=starts,
        )


def columns_from_store(
    store: "SqlStore", infos: Iterable[RunInfo], *, cluster_fields: tuple[str, ...] = CLUSTER_FIELDS
) -> list[Columns]:
    """Read stored runs' columns, and nothing else of them."""
    # Runs over the same golden set share its clusters.
    clusters: dict[str, dict[bytes, str]] = {}
    found = []
    for info in infos:
        if info.question_set_hash not in clusters:
            clusters[info.question_set_hash] = dict(
                store.question_clusters(info.question_set_hash, cluster_fields)
            )
        found.append(read_scorecards(store, info, clusters[info.question_set_hash]))
    return found


def read_scorecards(store: "SqlStore", info: RunInfo, clusters: Mapping[bytes, str]) -> Columns:
    """The columns as the scorecards have them; `clusters` says which content hash belongs to which cluster."""
    builder = _Builder(info)
    for batch in store.score_batches(info):
        builder.add(batch)
    return builder.columns(clusters)


def columns_from_run(run: Run, *, cluster_fields: tuple[str, ...] = CLUSTER_FIELDS) -> Columns:
    """The same from a run at hand."""
    builder = _Builder(run.info)
    clusters: dict[bytes, str] = {}
    results = iter(run.results)
    while batch := list(islice(results, _BATCH)):
        builder.add(_batch(batch))
        clusters.update(_belonging(batch, cluster_fields))
    return builder.columns(clusters)


def _batch(results: Sequence[Trial]) -> ScoreBatch:
    questions = [result.question for result in results]
    cards = [result.scorecard for result in results]
    components = [{name: score.value for name, score in card.components.items()} for card in cards]
    return ScoreBatch(
        ids=[question.id for question in questions],
        content_hashes=[bytes.fromhex(question.content_hash) for question in questions],
        categories=[question.category for question in questions],
        scores=[card.total for card in cards],
        error_kinds=[None if card.error is None else card.error.kind for card in cards],
        latencies_ms=[result.latency_ms for result in results],
        costs=[_cost(result) for result in results],
        components=by_name(components),
        metrics=by_name([card.metrics for card in cards]),
    )


def _cost(result: Trial) -> float | None:
    known = [r.usage.cost for r in result.replies if r.usage is not None and r.usage.cost is not None]
    return sum(known) if known else None


def _belonging(results: Iterable[Trial], fields: tuple[str, ...]) -> Iterator[tuple[bytes, str]]:
    for result in results:
        for field in fields:
            value = result.question.metadata.get(field)
            if isinstance(value, str | int) and not isinstance(value, bool):
                yield bytes.fromhex(result.question.content_hash), f"{field}={value}"
                break


def by_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows of named values as one column for each name."""
    if len(set(map(tuple, rows))) == 1:
        return {name: [row[name] for row in rows] for name in rows[0]}
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def locate(known: Hashes, wanted: Hashes) -> Ints:
    """Where each of the wanted hashes is among the known ones; -1 if it is not."""
    if not len(known):
        return np.full(len(wanted), -1)
    # Half of a hash tells questions apart; the other half makes sure.
    order = np.argsort(known[:, 0], kind="stable")
    places = np.searchsorted(known[order, 0], wanted[:, 0])
    found = order[np.minimum(places, len(known) - 1)]
    return np.where((known[found] == wanted).all(axis=1), found, -1)


def _clusters(hashes: Hashes, belonging: Mapping[bytes, str]) -> tuple[Ints | None, list[str]]:
    if not belonging:
        return None, []
    numbers: dict[str, int] = {}
    for name in belonging.values():
        numbers.setdefault(name, len(numbers))
    place = locate(_halves(list(belonging)), hashes)
    labels = np.array([numbers[name] for name in belonging.values()])
    return np.where(place < 0, -1, labels[place]), list(numbers)


def _floats(values: Sequence[float | None]) -> Floats:
    """None becomes NaN."""
    return np.array(values, dtype=np.float64)


def _halves(hashes: Sequence[bytes]) -> Hashes:
    return np.frombuffer(b"".join(hashes), np.uint64).reshape(-1, 2)


def _means(values: Floats, starts: Ints | None) -> Floats:
    """The mean of each question's trials, those without a value aside."""
    if starts is None:
        return values
    known = ~np.isnan(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts)
    with np.errstate(invalid="ignore"):
        return sums / np.add.reduceat(known.astype(np.float64), starts)
