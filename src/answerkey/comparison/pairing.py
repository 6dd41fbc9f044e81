"""Which question of one run is which of the other: by content, then by id; what is left over is named."""

import msgspec
import numpy as np

from answerkey.comparison.columns import Columns, Ints, locate

__all__ = ["Pairing", "pair", "paired_clusters"]


class Pairing(msgspec.Struct, frozen=True):
    """Which question of the base is which of the candidate."""

    # Positions in base and candidate.
    base: Ints
    candidate: Ints
    only_base: tuple[str, ...]
    only_candidate: tuple[str, ...]
    # Questions with the same id whose wording or expectations were edited in between.
    edited: tuple[str, ...]
    # Questions that one of the runs could not score.
    unscored: tuple[str, ...]


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
        only_base=tuple(only_base),
        only_candidate=tuple(candidate.ids[i] for i in np.flatnonzero(unused).tolist()),
        edited=tuple(edited),
        unscored=tuple(base.ids[i] for i in first[~scored].tolist()),
    )


def paired_clusters(base: Columns, candidate: Columns, pairing: Pairing) -> Ints | None:
    """A number for each pair, equal for pairs that belong together; None if each is on its own."""
    if base.clusters is None and candidate.clusters is None:
        return None
    numbers: dict[str, int] = {}
    labels = np.full(len(pairing.base), -1)
    for columns, positions in ((base, pairing.base), (candidate, pairing.candidate)):
        if columns.clusters is None:
            continue
        names = np.array([numbers.setdefault(name, len(numbers)) for name in columns.cluster_names])
        own = columns.clusters[positions]
        labels = np.where((labels < 0) & (own >= 0), names[own], labels)
    # A question that belongs to no cluster is one of its own.
    alone = labels < 0
    labels[alone] = len(numbers) + np.arange(np.count_nonzero(alone))
    return labels
