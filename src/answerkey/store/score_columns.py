"""A finished run's columns, kept in one piece beside its scorecards, so that comparing large runs reads megabytes and
not the hundreds that the scorecards take.

They are only ever a copy: written when a run ends, forgotten in the transaction that changes any of its scorecards, and
not believed if their number is not that of the scorecards. Without them the scorecards are read.
"""

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import func, select

from answerkey.model.run import RunInfo
from answerkey.store import schema
from answerkey.store.writing import LEAST_COLUMNS, write_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from answerkey.comparison.columns import Columns
    from answerkey.store.sql import SqlStore

__all__ = ["keep_columns", "kept_columns"]

# Larger runs would make a piece that databases refuse.
_MOST_TRIALS = 4_000_000
# Changes with the form: what an older answerkey kept is then not understood, and the scorecards are read.
_FORM = 1


class _Kept(msgspec.Struct, array_like=True):
    form: int
    ids: memoryview
    id_ends: memoryview
    hashes: memoryview
    categories: memoryview
    category_names: list[str]
    scores: memoryview
    latencies: memoryview
    costs: memoryview
    components: dict[str, memoryview]
    metrics: dict[str, memoryview]
    errors: dict[str, int]
    replies: int
    trial_scores: memoryview | None
    trial_starts: memoryview | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


def keep_columns(store: "SqlStore", info: RunInfo) -> None:
    """Keep the columns of a run that has ended, if it is large."""
    if not LEAST_COLUMNS <= _trials(store, info) <= _MOST_TRIALS:
        return
    from answerkey.comparison.columns import read_scorecards

    columns = read_scorecards(store, info, {})
    row = {
        "run_id": info.id,
        "scoring_hash": info.scoring_hash,
        "trials": columns.replies,
        "payload": _encode(_packed(columns)),
    }
    with store.statements() as statements:
        write_rows(statements, "score_columns", [row])


def kept_columns(store: "SqlStore", info: RunInfo) -> "Columns | None":
    """The columns as they were kept; None if they were not, or are out of date."""
    kept = schema.score_columns.c
    query = select(kept.trials, kept.payload).where(
        kept.run_id == info.id, kept.scoring_hash == info.scoring_hash
    )
    with store.transaction() as connection:
        row = connection.execute(query).first()
    if row is None or row.trials != _trials(store, info):
        return None
    try:
        found = _decode(row.payload)
    except msgspec.DecodeError:
        return None
    return _unpacked(info, found) if found.form == _FORM else None


def _trials(store: "SqlStore", info: RunInfo) -> int:
    cards = schema.scorecards.c
    query = select(func.count()).where(cards.run_id == info.id, cards.scoring_hash == info.scoring_hash)
    with store.transaction() as connection:
        return int(connection.execute(query).scalar_one())


def _packed(columns: "Columns") -> _Kept:
    def flat(values: "npt.NDArray[np.generic]") -> memoryview:
        # Little-endian on every machine, so that a store can be moved.
        return memoryview(values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes())

    scores, starts = columns.trial_scores, columns.trial_starts
    return _Kept(
        form=_FORM,
        ids=memoryview(columns.ids.data),
        id_ends=flat(columns.ids.ends),
        hashes=flat(columns.hashes),
        categories=flat(columns.categories),
        category_names=columns.category_names,
        scores=flat(columns.scores),
        latencies=flat(columns.latencies),
        costs=flat(columns.costs),
        components={name: flat(values) for name, values in columns.components.items()},
        metrics={name: flat(values) for name, values in columns.metrics.items()},
        errors=dict(columns.errors),
        replies=columns.replies,
        trial_scores=None if scores is None else flat(scores),
        trial_starts=None if starts is None else flat(starts),
    )


def _unpacked(info: RunInfo, kept: _Kept) -> "Columns":
    import numpy as np

    from answerkey.comparison.columns import Columns
    from answerkey.comparison.texts import Texts

    def floats(piece: memoryview) -> "npt.NDArray[np.float64]":
        return np.frombuffer(piece, "<f8")

    return Columns(
        info=info,
        ids=Texts(kept.ids, np.frombuffer(kept.id_ends, "<i8")),
        hashes=np.frombuffer(kept.hashes, "<u8").reshape(-1, 2),
        categories=np.frombuffer(kept.categories, "<i4"),
        category_names=kept.category_names,
        scores=floats(kept.scores),
        latencies=floats(kept.latencies),
        costs=floats(kept.costs),
        components={name: floats(piece) for name, piece in kept.components.items()},
        metrics={name: floats(piece) for name, piece in kept.metrics.items()},
        errors=Counter(kept.errors),
        replies=kept.replies,
        clusters=None,
        cluster_names=[],
        trial_scores=None if kept.trial_scores is None else floats(kept.trial_scores),
        trial_starts=None if kept.trial_starts is None else np.frombuffer(kept.trial_starts, "<i8"),
    )
