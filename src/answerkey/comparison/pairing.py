"""Which question of one run is which of the other: by content, then by id; what is left over is named."""

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, Ints, locate
from answerkey.model.comparison import Unpaired

__all__ = ["Pairing", "joint_clusters", "pair"]


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
    # Usually it is the same golden set in the same order.
    same = np.array_equal(base.hashes, candidate.hashes)
    others = np.arange(len(base.ids)) if same else locate(candidate.hashes, base.hashes)
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


def joint_clusters(*runs: tuple[Columns, Ints]) -> Ints | None:
    """A number for each question at the same place of these positions in the runs, equal for those that belong together.

    None if each is on its own.
    """
    if all(columns.clusters is None for columns, _ in runs):
        return None
    numbers: dict[str, int] = {}
    labels = np.full(len(runs[0][1]), -1)
    for columns, positions in runs:
        if columns.clusters is not None:
            names = np.array([numbers.setdefault(name, len(numbers)) for name in columns.cluster_names])
            own = columns.clusters[positions]
            labels = np.where((labels < 0) & (own >= 0), names[own], labels)
    # A question that belongs to no cluster is one of its own.
    alone = labels < 0
    labels[alone] = len(numbers) + np.arange(np.count_nonzero(alone))
    return labels
