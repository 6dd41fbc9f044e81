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

import msgspec
import numpy as np
import numpy.typing as npt

from answerkey.model.question import UNCATEGORISED, Question, group_of
from answerkey.model.why import WorseSlice
from answerkey.stats.distributions import normal_cdf
from answerkey.text.language import detect_language

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
# Standard errors by which a part must deviate more than the slice that it belongs to.
_CLEARLY = 1.0


class _SliceKey(NamedTuple):
    field: str
    value: str


def question_fields(question: Question, *, detected: bool = True) -> Iterator[tuple[str, str]]:
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
            {_SliceKey(*pair) for pair in question_fields(questions[index], detected=detected)}
            for index in members
        ]
        for key in set.intersection(*fields):
            singles[key].append(unit)
    families = _candidates(singles, len(means))
    slices = [one for family in families for one in family]
    found = worse_slices(means, [[members for _, members in family] for family in families])
    sizes = np.array([len(members) for members in units.values()])
    return tuple(
        WorseSlice(
            where={key.field: key.value for key in slices[one.index][0]},
            questions=int(sizes[slices[one.index][1]].sum()),
            difference=one.difference,
            p_value=one.p_value,
        )
        for one in found
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


class FoundSlice(msgspec.Struct, frozen=True):
    """A slice that is worse than the rest."""

    # Index in the given slices.
    index: int
    # Its mean minus that of the rest.
    difference: float
    p_value: float


def worse_slices(
    values: Sequence[float] | Floats,
    families: Sequence[Sequence[Ints]],
    *,
    least: float = 0.05,
    seed: int = 0,
) -> list[FoundSlice]:
    """Return the slices whose mean is lower than that of the rest, in the order in which they were found.

    Args:
        values: One value for each unit.
        families: Slices as indices of their units: those of one field, then those of two. Each family has the same chance
            of a false alarm, so that the many slices of two fields do not hide one of a single field.
        least: Smaller differences are not reported.
        seed: Of the permutations.
    """
    rest = np.array(values, dtype=np.float64)
    slices = [members for family in families for members in family]
    starts = np.cumsum([0, *map(len, families)]).tolist()
    found: list[FoundSlice] = []
    while slices and len(found) < _MOST_FOUND and rest.std() > _SMALLEST:
        deviations = _deviations(rest, slices)
        candidates = []
        for start, end in pairwise(starts):
            if start < end:
                worst = start + int(np.argmin(deviations[start:end]))
                p_value = _p_value(rest, slices[start:end], float(deviations[worst]), seed)
                candidates.append((min(1.0, p_value * len(families)), worst))
        p_value, worst = min(candidates)
        index = _part(slices, worst, deviations)
        members = slices[index]
        difference = float(rest[members].mean() - np.delete(rest, members).mean())
        if p_value > ALPHA or difference > -least:
            break
        found.append(FoundSlice(index, round(difference, 9), round(p_value, 6)))
        rest[members] -= difference
    return found


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


def _p_value(values: Floats, slices: Sequence[Ints], worst: float, seed: int) -> float:
    n = len(values)
    if n > _MOST_PERMUTED:
        return min(1.0, len(slices) * normal_cdf(worst))
    source = np.random.default_rng(seed)
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
