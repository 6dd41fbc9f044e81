"""Which question of one run is which of the other: by content, then by id; what is left over is named."""

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, Ints
from answerkey.model.comparison import Unpaired


class Pairing(msgspec.Struct, frozen=True):
    """Which question of the base is which of the candidate."""

    # Positions in base and candidate.
    base: Ints
    candidate: Ints
    # Questions with the same id whose wording or expectations were edited in between.
    edited: tuple[str, ...]
    # Questions that take no part, and why.
    unpaired: tuple[Unpaired, ...]


def pair(base: Columns, candidate: Columns) -> Pairing:
    """Pair two runs."""
    # Of equal questions the first.
    by_hash = {known: place for place, known in reversed(list(enumerate(candidate.hashes)))}
    others = np.array([by_hash.get(known, -1) for known in base.hashes], dtype=np.int64)
    unused = np.ones(len(candidate.ids), bool)
    unused[others[others >= 0]] = False
    leftover = np.flatnonzero(others < 0).tolist()
    edited: list[str] = []
    only_base: list[str] = []
    if leftover:
        by_id = {candidate.ids[i]: i for i in np.flatnonzero(unused).tolist()}
        for position in leftover:
            identity = base.ids[position]
            other = by_id.pop(identity, None)
            if other is None:
                only_base.append(identity)
            else:
                edited.append(identity)
                others[position] = other
                unused[other] = False
    first = np.flatnonzero(others >= 0)
    second = others[first]
    scored = ~(np.isnan(base.scores[first]) | np.isnan(candidate.scores[second]))
    return Pairing(
        base=first[scored],
        candidate=second[scored],
        edited=tuple(edited),
        unpaired=(
            *(Unpaired(identity, "only in base") for identity in only_base),
            *(Unpaired(candidate.ids[i], "only in candidate") for i in np.flatnonzero(unused).tolist()),
            *(Unpaired(base.ids[i], "not scored") for i in first[~scored].tolist()),
        ),
    )


def joint_units(*runs: tuple[Columns, Ints]) -> Ints | None:
    """A number for each question at the same place of these positions in the runs, equal for those that belong together.

    None if each is on its own.
    """
    if all(columns.groups is None for columns, _ in runs):
        return None
    named = [
        [columns.groups[place] for place in positions.tolist()]
        for columns, positions in runs
        if columns.groups is not None
    ]
    numbers: dict[str | int, int] = {}
    labels = [
        # A question that belongs to no group is a unit of its own.
        numbers.setdefault(next((name for name in names if name is not None), place), len(numbers))
        for place, names in enumerate(zip(*named, strict=True))
    ]
    return np.array(labels)
