"""Comparisons of stored runs, worked out once: a run that has ended does not change, and readers page through it."""

from collections.abc import Sequence
from hashlib import blake2b

from sqlalchemy import select

from answerkey.comparison.columns import Columns, columns_from_store
from answerkey.comparison.comparison import Comparison
from answerkey.comparison.ranking import Ranking, rank_runs
from answerkey.comparison.runs import compare_runs
from answerkey.run import RunInfo
from answerkey.server.kept import Kept, Key
from answerkey.store import schema
from answerkey.store.sql import SqlStore

__all__ = ["compare_stored", "rank_stored"]

# Some 200 bytes for each question.
_columns: Kept[Columns] = Kept(300_000, len)
# What a comparison keeps of single questions are those that flipped or stand alone.
_comparisons: Kept[Comparison] = Kept(
    300_000, lambda found: 100 + len(found.flips) + len(found.unpaired) + len(found.edited)
)
_rankings: Kept[Ranking] = Kept(200, lambda _: 1)


def compare_stored(store: SqlStore, base: RunInfo, candidate: RunInfo) -> Comparison:
    """As `answerkey compare` does; raises UsageError where the runs have no scored question in common."""
    return _comparisons.get(
        _key(store, (base, candidate)), lambda: compare_runs(_read(store, base), _read(store, candidate))
    )


def rank_stored(store: SqlStore, infos: Sequence[RunInfo]) -> Ranking:
    """As `answerkey compare` ranks more than two runs; raises UsageError where they share no scored question."""
    return _rankings.get(_key(store, infos), lambda: rank_runs([_read(store, info) for info in infos]))


def _read(store: SqlStore, info: RunInfo) -> Columns:
    return _columns.get(_key(store, (info,)), lambda: columns_from_store(store, [info])[0])


def _key(store: SqlStore, infos: Sequence[RunInfo]) -> Key | None:
    """Changes whenever one of the runs does; None while one of them is under way."""
    runs = schema.runs.c
    states = []
    for info in infos:
        with store.transaction() as connection:
            row = connection.execute(select(runs.info, runs.summary).where(runs.id == info.id)).one()
        if row.summary is None or info.status == "running":
            return None
        state = f"{store.engine.url}\n{row.info}\n{row.summary}"
        states.append(blake2b(state.encode(), digest_size=16).hexdigest())
    return tuple(states)
