"""A run as columns: one entry per question, trials averaged, in a few flat arrays whatever the run's size.

What grows with a run is about 200 bytes a question: its content's hash, its id and its category, and eight for the score,
the latency, the cost and each component and metric. Replies, reasons and questions are never read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerkey.model.question import GROUP_FIELDS, group_of
from answerkey.model.run import LoggedResults, Run, RunInfo
from answerkey.model.trial import ScoreBatch, Trial
from answerkey.protocols import Store

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BATCH = 1000


class Columns(NamedTuple):
    """What a comparison knows of a run, question by question. A missing value is NaN."""

    info: RunInfo
    ids: list[str]
    # Of the questions' content.
    hashes: list[bytes]
    # Which of the category names.
    categories: npt.NDArray[np.int32]
    category_names: list[str]
    scores: Floats
    latencies: Floats
    costs: Floats
    # The share of its trials that ended in an error.
    failures: Floats
    components: dict[str, Floats]
    metrics: dict[str, Floats]
    # Replies by the kind of their error.
    errors: Counter[str]
    replies: int
    # The name of each question's group, None for one that is a unit of its own; None if all are.
    groups: list[str | None] | None
    # Where a question has several trials, every trial's score, and where each question's begin.
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


def columns_from_store(
    store: Store, infos: Iterable[RunInfo], *, group_fields: tuple[str, ...] = GROUP_FIELDS
) -> list[Columns]:
    """Read stored runs' columns, and nothing else of them."""
    # Runs over the same golden set share its groups.
    groups: dict[str, dict[bytes, str]] = {}
    found = []
    for info in infos:
        if info.question_set_hash not in groups:
            groups[info.question_set_hash] = dict(store.question_groups(info.question_set_hash, group_fields))
        found.append(_columns(info, store.score_batches(info), groups[info.question_set_hash]))
    return found


def columns_from_run(run: Run, *, group_fields: tuple[str, ...] = GROUP_FIELDS) -> Columns:
    """The same from a run at hand."""
    groups: dict[bytes, str] = {}

    def batches() -> Iterator[ScoreBatch]:
        results = iter(run.results)
        while batch := list(islice(results, _BATCH)):
            for trial in batch:
                if (group := group_of(trial.question, group_fields)) is not None:
                    groups[bytes.fromhex(trial.question.content_hash)] = group
            yield _batch(batch)

    return _columns(run.info, batches(), groups, in_order=not isinstance(run.results, LoggedResults))


def _columns(
    info: RunInfo, batches: Iterable[ScoreBatch], groups: Mapping[bytes, str], *, in_order: bool = True
) -> Columns:
    """Join batches; `groups` says which content hash belongs to which group, once all batches are read.

    Unless they are `in_order`, trials of one question may stand anywhere.
    """
    ids: list[str] = []
    hashes: list[bytes] = []
    all_categories = [np.empty(0, np.int32)]
    category_numbers: dict[str, int] = {}
    # Kind and name of a column → its parts, and where they begin.
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
    """Which of a run's trials are of one question, as the trials themselves say it: whoever made the run may not have known."""

    def __init__(self, questions: Sequence[str] | Sequence[bytes], *, in_order: bool) -> None:
        # The trials in the order of their questions; None: they are in it.
        self._order: Ints | None = None
        count = len(questions)
        if not in_order:
            places: dict[str | bytes, int] = {}
            of_trial = np.array(
                [places.setdefault(question, len(places)) for question in questions], np.int64
            )
            self._order = np.argsort(of_trial, kind="stable")
            begins = np.flatnonzero(np.diff(of_trial[self._order], prepend=-1))
        else:
            changes = (i for i in range(count) if not i or questions[i] != questions[i - 1])
            begins = np.fromiter(changes, np.int64)
        # Where each question's begin; None: each has one, and the order in which they came.
        self.starts: Ints | None = begins if len(begins) < count else None

    def sorted(self, values: Floats) -> Floats:
        """Values of all trials, question by question."""
        return values if self._order is None else values[self._order]

    def firsts(self, starts: Ints) -> list[int]:
        """The first trial of each question, as they came."""
        return [int(first) for first in (starts if self._order is None else self._order[starts])]

    def means(self, values: Floats) -> Floats:
        """The mean of each question's trials that have a value."""
        if self.starts is None:
            return values
        values = self.sorted(values)
        known = ~np.isnan(values)
        sums = np.add.reduceat(np.where(known, values, 0.0), self.starts)
        with np.errstate(invalid="ignore"):
            return sums / np.add.reduceat(known.astype(np.float64), self.starts)


def _joined(parts: Iterable[tuple[int, Floats]], length: int) -> Floats:
    """One column of its parts, NaN in between."""
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
    """Rows of named values as one column for each name."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
