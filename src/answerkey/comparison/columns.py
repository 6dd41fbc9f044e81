"""Flat columns of a run's scores: what comparisons and plans need of it, in little memory.

A run takes about 200 bytes of memory per question: content hash, id and category, and 8 bytes for the score, latency, cost,
and each component and metric. Replies and reasons are never read; questions only if their values were computed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerkey.model.question import GROUP_FIELDS, Question, group_of
from answerkey.model.run import LoggedResults, Run, RunInfo
from answerkey.model.scorecard import ScoreBatch, Trial
from answerkey.protocols import ScoreSource

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BATCH = 1000


class ComputedTruth(NamedTuple):
    """What was computed for a question."""

    # Hash of the question without its values.
    definition: str
    values: str


def _computed_truth(info: RunInfo, questions: Iterable[Question]) -> dict[str, ComputedTruth]:
    if info.truth is None or not info.truth.computed:
        return {}
    return {
        question.id: ComputedTruth(
            question.definition_hash, "; ".join(", ".join(one) for one in values.values())
        )
        for question in questions
        if (values := question.computed_values)
    }


class Columns(NamedTuple):
    """A run's values by question, trials averaged. A missing value is NaN."""

    info: RunInfo
    ids: list[str]
    # Content hashes of the questions.
    hashes: list[bytes]
    # Index into category_names.
    categories: npt.NDArray[np.int32]
    category_names: list[str]
    scores: Floats
    latencies: Floats
    costs: Floats
    # Share of a question's trials that ended in an error.
    failures: Floats
    components: dict[str, Floats]
    metrics: dict[str, Floats]
    # Kind of error → replies.
    errors: Counter[str]
    replies: int
    # Each question's group; None for a question without one. None if no question has a group.
    groups: list[str | None] | None
    # Scores of all trials, and the index of each question's first; None if each question has one trial.
    trial_scores: Floats | None
    trial_starts: Ints | None
    # Id of a question with computed expectations → what was computed; empty if nothing was.
    truth: Mapping[str, "ComputedTruth"] = {}

    def trials(self) -> Iterator[tuple[str, list[float]]]:
        """Yield each question's scored trials; questions without any are omitted."""
        scores, starts = self.trial_scores, self.trial_starts
        if scores is None or starts is None:
            known = np.flatnonzero(~np.isnan(self.scores)).tolist()
            yield from ((self.ids[i], [float(self.scores[i])]) for i in known)
            return
        for position, values in enumerate(np.split(scores, starts[1:])):
            scored = values[~np.isnan(values)].tolist()
            if scored:
                yield self.ids[position], scored


def columns_from_store(
    store: ScoreSource, infos: Iterable[RunInfo], *, group_fields: tuple[str, ...] = GROUP_FIELDS
) -> list[Columns]:
    """Read the columns of stored runs."""
    # By golden set: runs may share one.
    groups: dict[str, dict[bytes, str]] = {}
    found = []
    for info in infos:
        if info.question_set_hash not in groups:
            groups[info.question_set_hash] = dict(store.question_groups(info.question_set_hash, group_fields))
        columns = _columns(info, store.score_batches(info), groups[info.question_set_hash])
        truth = _computed_truth(info, store.questions(info.question_set_hash))
        found.append(columns._replace(truth=truth))
    return found


def columns_from_run(run: Run, *, group_fields: tuple[str, ...] = GROUP_FIELDS) -> Columns:
    """Return the columns of a run in memory."""
    groups: dict[bytes, str] = {}

    def batches() -> Iterator[ScoreBatch]:
        results = iter(run.results)
        while batch := list(islice(results, _BATCH)):
            for trial in batch:
                if (group := group_of(trial.question, group_fields)) is not None:
                    groups[bytes.fromhex(trial.question.content_hash)] = group
            yield _batch(batch)

    columns = _columns(run.info, batches(), groups, in_order=not isinstance(run.results, LoggedResults))
    return columns._replace(truth=_computed_truth(run.info, (trial.question for trial in run.results)))


def _columns(
    info: RunInfo, batches: Iterable[ScoreBatch], groups: Mapping[bytes, str], *, in_order: bool = True
) -> Columns:
    """Join batches; `groups` maps content hash to group, and is complete once all batches are read.

    Without `in_order`, the trials of a question need not be adjacent.
    """
    ids: list[str] = []
    hashes: list[bytes] = []
    all_categories = [np.empty(0, np.int32)]
    category_numbers: dict[str, int] = {}
    # Kind and name of a column → (index of the first value, values) of its parts.
    parts: dict[tuple[str, str], list[tuple[int, Floats]]] = defaultdict(list)
    errors: Counter[str] = Counter()
    for batch in batches:
        failed = [kind is not None for kind in batch.error_kinds]
        plain = {"score": batch.scores, "latency": batch.latencies_ms, "cost": batch.costs, "failed": failed}
        for kind, named in (("plain", plain), ("component", batch.components), ("metric", batch.metrics)):
            for name, values in named.items():
                parts[kind, name].append((len(ids), np.array(values, dtype=np.float64)))
        ids += batch.ids
        hashes += batch.content_hashes
        for category in dict.fromkeys(batch.categories):
            category_numbers.setdefault(category, len(category_numbers))
        all_categories.append(np.array([category_numbers[name] for name in batch.categories], np.int32))
        errors.update(kind for kind in batch.error_kinds if kind is not None)
    replies, categories = len(ids), np.concatenate(all_categories)
    trials, trial_scores = _Trials(hashes if in_order else ids, in_order=in_order), None
    if trials.starts is not None:
        trial_scores = trials.sorted(_joined(parts["plain", "score"], replies))
        firsts = trials.firsts(trials.starts)
        ids, hashes = [ids[first] for first in firsts], [hashes[first] for first in firsts]
        categories = categories[firsts]
    scores, latencies, costs, failures = (
        trials.means(_joined(parts.pop(("plain", name), ()), replies))
        for name in ("score", "latency", "cost", "failed")
    )
    found: dict[str, dict[str, Floats]] = {"component": {}, "metric": {}}
    for kind, name in list(parts):
        found[kind][name] = trials.means(_joined(parts.pop((kind, name)), replies))
    return Columns(
        info=info,
        ids=ids,
        hashes=hashes,
        categories=categories,
        category_names=list(category_numbers),
        scores=scores,
        latencies=latencies,
        costs=costs,
        failures=failures,
        components=found["component"],
        metrics=found["metric"],
        errors=errors,
        replies=replies,
        groups=[groups.get(known) for known in hashes] if groups else None,
        trial_scores=trial_scores,
        trial_starts=trials.starts,
    )


class _Trials:
    """Groups a run's trials by question."""

    def __init__(self, questions: Sequence[str] | Sequence[bytes], *, in_order: bool) -> None:
        # Indices that sort the trials by question; None: they are sorted.
        self._order: Ints | None = None
        count = len(questions)
        if not in_order:
            numbers: dict[str | bytes, int] = {}
            of_trial = np.array(
                [numbers.setdefault(question, len(numbers)) for question in questions], np.int64
            )
            self._order = np.argsort(of_trial, kind="stable")
            begins = np.flatnonzero(np.diff(of_trial[self._order], prepend=-1))
        else:
            changes = (i for i in range(count) if not i or questions[i] != questions[i - 1])
            begins = np.fromiter(changes, np.int64)
        # Index of each question's first trial; None: each question has one trial.
        self.starts: Ints | None = begins if len(begins) < count else None

    def sorted(self, values: Floats) -> Floats:
        """Return the values of all trials, sorted by question."""
        return values if self._order is None else values[self._order]

    def firsts(self, starts: Ints) -> list[int]:
        """Return the index of each question's first trial in the original order."""
        return [int(first) for first in (starts if self._order is None else self._order[starts])]

    def means(self, values: Floats) -> Floats:
        """Return the mean of each question's known values."""
        if self.starts is None:
            return values
        values = self.sorted(values)
        known = ~np.isnan(values)
        sums = np.add.reduceat(np.where(known, values, 0.0), self.starts)
        with np.errstate(invalid="ignore"):
            return sums / np.add.reduceat(known.astype(np.float64), self.starts)


def _joined(parts: Iterable[tuple[int, Floats]], length: int) -> Floats:
    """Join the parts of a column; missing values are NaN."""
    values = np.full(length, np.nan)
    for begin, part in parts:
        values[begin : begin + len(part)] = part
    return values


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
        costs=[result.cost for result in results],
        components=by_name(components),
        metrics=by_name([card.metrics for card in cards]),
    )


def by_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Transpose rows of named values into columns."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
