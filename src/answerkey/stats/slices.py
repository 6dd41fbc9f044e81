"""Slices that are worse than the rest: a permutation test of the largest deviation, corrected for all slices looked at.

Each slice's mean is compared with the mean of the rest, in standard errors. The values are permuted; a slice's p-value is
how often the worst slice of a permutation deviates as much, so that overlapping slices need no further correction. Once a
slice is found its deviation is removed and the others are looked at again: a part of a slice is not reported beside it.
"""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from answerkey.stats.distributions import normal_cdf

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Probability that anything at all is reported where no slice is worse.
ALPHA = 0.025
_PERMUTATIONS = 999
_MOST_FOUND = 5
# With more values the mean of a slice is normally distributed, and nothing is permuted.
_MOST_PERMUTED = 5_000
_SMALLEST = 1e-12
# Standard errors by which a part must deviate more than the slice that it belongs to.
_CLEARLY = 1.0


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
    permuted = source.permuted(np.tile(centred, (_PERMUTATIONS, 1)), axis=1)
    lowest = ((members @ permuted.T) / _errors(values, sizes)[:, None]).min(axis=0)
    return float((1 + np.count_nonzero(lowest <= worst + 1e-6)) / (_PERMUTATIONS + 1))
