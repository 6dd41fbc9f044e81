"""Slices of questions that are worse than the rest.

A permutation test of the largest deviation, corrected for all slices looked at: each slice's mean is compared with the mean of
the rest, in standard errors. The values are permuted; a slice's p-value is how often the worst slice of a permutation deviates
as much, so that overlapping slices need no further correction. Once a slice is found its deviation is removed and the others
are looked at again: a part of a slice is not reported beside it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from answerkey.model.comparison import WorseSlice
from answerkey.model.question import UNCATEGORISED, Question, group_of
from answerkey.stats.intervals import normal_cdf
from answerkey.text.normalise import detect_language

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Fewest questions of a slice: absolute, and as a share of all.
_FEWEST, _FEWEST_SHARE = 10, 0.005
_MOST_SLICES = 2_000
_SHORT, _LONG = 8, 20
# Detecting the language of more questions takes too long.
_MOST_DETECTED = 20_000
# Probability that anything at all is reported where no slice is worse.
ALPHA = 0.025
_PERMUTATIONS, _BATCH = 999, 111
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
    for (first, ours), (second, theirs) in _pairs(known.items()):
        if first.field == second.field:
            continue
        both = np.intersect1d(ours, theirs, assume_unique=True)
        if len(both) >= fewest and both.tobytes() not in of_one:
            of_two.setdefault(both.tobytes(), ((first, second), both))
    largest = sorted(of_two.values(), key=lambda one: -len(one[1]))
    return list(of_one.values()), largest[:_MOST_SLICES]


def _pairs(
    items: Iterable[tuple[_SliceKey, Ints]],
) -> Iterable[tuple[tuple[_SliceKey, Ints], tuple[_SliceKey, Ints]]]:
    """All pairs; of very many slices, those of the largest."""
    largest = sorted(items, key=lambda item: -len(item[1]))[:200]
    return combinations(largest, 2)


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
        permuted = source.permuted(np.tile(centred, (_BATCH, 1)), axis=1)
        lowest = ((members @ permuted.T) / errors).min(axis=0)
        extreme += int(np.count_nonzero(lowest <= worst + 1e-6))
        done += _BATCH
    return (1 + extreme) / (done + 1)
