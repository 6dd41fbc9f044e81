"""Comparisons of stored runs, worked out once: a run that has ended does not change, and readers page through it."""

from collections.abc import Sequence
from hashlib import blake2b

from answerkey.comparison.columns import Columns, columns_from_store
from answerkey.comparison.run_comparison import compare_runs
from answerkey.comparison.run_ranking import Ranking, rank_runs
from answerkey.model.comparison import Comparison
from answerkey.model.run import RunInfo
from answerkey.server.kept import Kept, Key
from answerkey.store.sql import SqlStore

__all__ = ["compare_stored", "rank_stored"]

# Some 200 bytes for each question.
_columns: Kept[Columns] = Kept(300_000, lambda columns: len(columns.scores))
# What a comparison keeps of single questions are those that flipped or stand alone.
_comparisons: Kept[Comparison] = Kept(
    300_000, lambda found: 100 + len(found.flips) + len(found.unpaired) + len(found.edited)
)
_rankings: Kept[Ranking] = Kept(200, lambda _: 1)


def compare_stored(store: SqlStore, base: RunInfo, candidate: RunInfo) -> Comparison:
    """As `answerkey compare` does; raises UsageError where the runs have no scored question in common."""
    infos = (base, candidate)
    return _comparisons.get(_key(store, infos), lambda: compare_runs(*_read(store, infos)))


def rank_stored(store: SqlStore, infos: Sequence[RunInfo]) -> Ranking:
    """As `answerkey compare` ranks more than two runs; raises UsageError where they share no scored question."""
    return _rankings.get(_key(store, infos), lambda: rank_runs(_read(store, infos)))


def _read(store: SqlStore, infos: Sequence[RunInfo]) -> list[Columns]:
    keys = {info.id: _key(store, (info,)) for info in infos}
    found = {name: known for name, key in keys.items() if (known := _columns.known(key)) is not None}
    # Together: runs of one golden set share its clusters.
    missing = [info for info in infos if info.id not in found]
    for info, columns in zip(missing, columns_from_store(store, missing), strict=True):
        _columns.keep(keys[info.id], columns)
        found[info.id] = columns
    return [found[info.id] for info in infos]


def _key(store: SqlStore, infos: Sequence[RunInfo]) -> Key | None:
    """Changes whenever one of the runs does; None while one of them is under way."""
    states = []
    for info in infos:
        state = store.finished_state(info.id)
        if state is None or info.status == "running":
            return None
        states.append(blake2b(f"{store.address}\n{state}".encode(), digest_size=16).hexdigest())
    return tuple(states)
