"""Flat columns of a run's scores, and slices of questions in them that are worse than the rest.

Columns are what comparisons and plans need of a run, in little memory: about 200 bytes per question, for content hash, id and
category, and 8 bytes for the score, latency, cost, and each component and metric. Replies and reasons are never read; questions
only if their values were computed.

Slices are found by a permutation test of the largest deviation, corrected for all slices looked at: each slice's mean is compared
with the mean of the rest, in standard errors. The values are permuted; a slice's p-value is how often the worst slice of a
permutation deviates as much, so that overlapping slices need no further correction. Once a slice is found its deviation is
removed and the others are looked at again: a part of a slice is not reported beside it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerkey.model.comparison import WorseSlice
from answerkey.model.question import GROUP_FIELDS, UNCATEGORISED, Question, group_of
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import ScoreBatch, Trial
from answerkey.protocols import ScoreSource
from answerkey.stats.intervals import normal_cdf
from answerkey.text.normalise import detect_language

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

    columns = _columns(run.info, batches(), groups)
    return columns._replace(truth=_computed_truth(run.info, (trial.question for trial in run.results)))


def _columns(info: RunInfo, batches: Iterable[ScoreBatch], groups: Mapping[bytes, str]) -> Columns:
    """Join batches; `groups` maps content hash to group, and is complete once all batches are read."""
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
    trials, trial_scores = _Trials(ids), None
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
    """Groups a run's trials by question; those of a question need not be adjacent."""

    def __init__(self, questions: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        of_trial = np.array([numbers.setdefault(question, len(numbers)) for question in questions], np.int64)
        # Indices that sort the trials by question.
        self._order = np.argsort(of_trial, kind="stable")
        begins = np.flatnonzero(np.diff(of_trial[self._order], prepend=-1))
        # Index of each question's first trial; None: each question has one trial.
        self.starts: Ints | None = begins if len(begins) < len(questions) else None

    def sorted(self, values: Floats) -> Floats:
        return values[self._order]

    def firsts(self, starts: Ints) -> list[int]:
        """Return the index of each question's first trial in the original order."""
        return list(self._order[starts].tolist())

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


# Fewest questions of a slice: absolute, and as a share of all.
_FEWEST, _FEWEST_SHARE = 10, 0.005
_MOST_SLICES = 2_000
# Slices of one field that pairs are made of, the largest ones.
_MOST_PAIRED = 200
_SHORT, _LONG = 8, 20
# Detecting the language of more questions takes too long.
_MOST_DETECTED = 20_000
# Probability that anything at all is reported where no slice is worse.
ALPHA = 0.025
_PERMUTATIONS, _PERMUTED_AT_ONCE = 999, 111
_MOST_FOUND = 5
# With more values the mean of a slice is normally distributed, and nothing is permuted.
_MOST_PERMUTED = 5_000
_SMALLEST = 1e-12
# Smaller differences are not reported.
_LEAST = 0.05
# Standard errors by which a part must deviate more than the slice that it belongs to.
_CLEARLY = 1.0


class _SliceKey(NamedTuple):
    field: str
    value: str


def _fields(question: Question, *, detected: bool) -> Iterator[tuple[str, str]]:
    """The fields of a question that slices are made of, with their values."""
    if question.category != UNCATEGORISED:
        yield "category", question.category
    if question.persona:
        yield "persona", question.persona
    yield from (("tag", tag) for tag in dict.fromkeys(question.tags))
    tools = dict.fromkeys(tool.name for turn in question.asks for tool in turn.expected_tools)
    yield from (("tool", tool) for tool in tools)
    words = len(question.question.split())
    yield (
        "length",
        f"up to {_SHORT} words"
        if words <= _SHORT
        else (f"more than {_LONG} words" if words > _LONG else f"{_SHORT + 1} to {_LONG} words"),
    )
    yield "turns", str(min(len(question.asks), 3)) + ("" if len(question.asks) < 3 else " or more")
    language = question.metadata.get("language") or question.metadata.get("lang")
    if not language and detected:
        language = detect_language(question.question)[0]
    if isinstance(language, str):
        yield "language", language


def find_slices(questions: Sequence[Question], values: Floats) -> tuple[WorseSlice, ...]:
    """Slices of one or two fields whose values are lower than those of the rest, corrected for how many were looked at.

    Questions of one group count once, with their mean; they are in a slice if all of them are.
    """
    if len(questions) < 2 * _FEWEST:
        return ()
    detected = len(questions) <= _MOST_DETECTED
    units: dict[str, list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        units[group_of(question) or f"\0{question.id}\0{index}"].append(index)
    means = np.array([float(values[members].mean()) for members in units.values()])
    singles: dict[_SliceKey, list[int]] = defaultdict(list)
    for unit, members in enumerate(units.values()):
        fields = [
            {_SliceKey(*pair) for pair in _fields(questions[index], detected=detected)} for index in members
        ]
        for key in set.intersection(*fields):
            singles[key].append(unit)
    sizes = np.array([len(members) for members in units.values()])
    return tuple(
        WorseSlice(
            where={key.field: key.value for key in keys},
            questions=int(sizes[members].sum()),
            difference=difference,
            p_value=p_value,
        )
        for (keys, members), difference, p_value in _worse_slices(means, _candidates(singles, len(means)))
    )


_Slice = tuple[tuple[_SliceKey, ...], Ints]


def _candidates(singles: dict[_SliceKey, list[int]], units: int) -> tuple[list[_Slice], list[_Slice]]:
    """Slices of one field, and of two, without those that are too small or nearly everything."""
    fewest = max(_FEWEST, int(_FEWEST_SHARE * units))
    known = {
        key: np.array(sorted(members))
        for key, members in sorted(singles.items())
        if fewest <= len(members) <= units - fewest
    }
    # The same questions under another name are looked at once.
    of_one: dict[bytes, _Slice] = {}
    for key, members in known.items():
        of_one.setdefault(members.tobytes(), ((key,), members))
    of_two: dict[bytes, _Slice] = {}
    largest_of_one = sorted(known.items(), key=lambda item: -len(item[1]))[:_MOST_PAIRED]
    for (first, ours), (second, theirs) in combinations(largest_of_one, 2):
        if first.field == second.field:
            continue
        both = np.intersect1d(ours, theirs, assume_unique=True)
        if len(both) >= fewest and both.tobytes() not in of_one:
            of_two.setdefault(both.tobytes(), ((first, second), both))
    largest = sorted(of_two.values(), key=lambda one: -len(one[1]))
    return list(of_one.values()), largest[:_MOST_SLICES]


def _worse_slices(values: Floats, families: Sequence[list[_Slice]]) -> Iterator[tuple[_Slice, float, float]]:
    """The slices whose mean is lower than that of the rest, each with the difference and its p-value, the worst first.

    Each family, slices of one field and of two, has the same chance of a false alarm, so that the many slices of two fields do
    not hide one of a single field.
    """
    rest = values.copy()
    found: set[int] = set()
    slices = [one for family in families for one in family]
    indices = [members for _, members in slices]
    starts = np.cumsum([0, *map(len, families)]).tolist()
    for _ in range(_MOST_FOUND if slices else 0):
        if rest.std() <= _SMALLEST:
            return
        deviations = _deviations(rest, indices)
        candidates = []
        for start, end in pairwise(starts):
            if start < end:
                worst = start + int(np.argmin(deviations[start:end]))
                p_value = _p_value(rest, indices[start:end], float(deviations[worst]))
                candidates.append((min(1.0, p_value * len(families)), worst))
        p_value, worst = min(candidates)
        index = _part(indices, worst, deviations)
        members = indices[index]
        difference = float(rest[members].mean() - np.delete(rest, members).mean())
        if p_value > ALPHA or difference > -_LEAST:
            return
        # Removing another slice moves the mean, so that a slice may be found again: it is one finding.
        if index not in found:
            yield slices[index], round(difference, 9), round(p_value, 6)
        found.add(index)
        rest[members] -= difference


def _part(slices: Sequence[Ints], worst: int, deviations: Floats) -> int:
    """The index of the part of a slice that deviates clearly more than all of it, otherwise of the slice itself."""
    inside = set(slices[worst].tolist())
    parts = [
        at
        for at in np.flatnonzero(deviations < deviations[worst] - _CLEARLY).tolist()
        if inside.issuperset(slices[at].tolist())
    ]
    return min(parts, key=deviations.__getitem__, default=worst)


def _deviations(values: Floats, slices: Sequence[Ints]) -> Floats:
    """Each slice's sum, minus its expectation, in standard errors of a random sample of its size."""
    sums = np.array([values[members].sum() for members in slices])
    return np.asarray((sums - _sizes(slices) * values.mean()) / _errors(values, _sizes(slices)))


def _sizes(slices: Sequence[Ints]) -> Floats:
    return np.array([len(members) for members in slices], dtype=np.float64)


def _errors(values: Floats, sizes: Floats) -> Floats:
    n = len(values)
    return np.asarray(np.sqrt(values.var(ddof=1) * sizes * (n - sizes) / n))


def _p_value(values: Floats, slices: Sequence[Ints], worst: float) -> float:
    n = len(values)
    if n > _MOST_PERMUTED:
        return min(1.0, len(slices) * normal_cdf(worst))
    source = np.random.default_rng(0)
    sizes = _sizes(slices)
    members = np.zeros((len(slices), n), dtype=np.float32)
    for row, indices in zip(members, slices, strict=True):
        row[indices] = 1.0
    centred = (values - values.mean()).astype(np.float32)
    errors = _errors(values, sizes)[:, None]
    extreme = done = 0
    # Once enough permutations deviate as much, the slice cannot be found any more.
    while done < _PERMUTATIONS and 1 + extreme <= ALPHA * (_PERMUTATIONS + 1):
        permuted = source.permuted(np.tile(centred, (_PERMUTED_AT_ONCE, 1)), axis=1)
        lowest = ((members @ permuted.T) / errors).min(axis=0)
        extreme += int(np.count_nonzero(lowest <= worst + 1e-6))
        done += _PERMUTED_AT_ONCE
    return (1 + extreme) / (done + 1)
