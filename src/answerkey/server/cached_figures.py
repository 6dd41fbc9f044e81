"""Comparisons and figures of feedback, worked out once as long as what they are made from does not change."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Generic, TypeVar

from answerkey.comparison.columns import Columns, columns_from_store
from answerkey.comparison.run_comparison import compare_runs
from answerkey.comparison.run_ranking import Ranking, rank_runs
from answerkey.model.comparison import Comparison
from answerkey.model.feedback import FeedbackStats
from answerkey.model.run import RunInfo
from answerkey.store.feedback_book import FeedbackFilter
from answerkey.store.feedback_sums import feedback_state, feedback_stats
from answerkey.store.sql import SqlStore

Made = TypeVar("Made")
# What a thing was made from; None: it cannot be kept.
Key = tuple[str, ...] | None


class SizedCache(Generic[Made]):
    """What was made last, up to a total size."""

    def __init__(self, most: int, size: Callable[[Made], int] = lambda _: 1) -> None:
        self._most = most
        self._measure = size
        self._size = 0
        self._items: OrderedDict[Key, Made] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key, make: Callable[[], Made]) -> Made:
        """What has this key, made now if it must be; what was wanted least lately is given up for it."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        made = make()
        if key is not None:
            with self._lock:
                if key not in self._items:
                    self._items[key] = made
                    self._size += self._measure(made)
                while self._size > self._most:
                    self._size -= self._measure(self._items.popitem(last=False)[1])
        return made


# Some 200 bytes for each question.
_columns: SizedCache[Columns] = SizedCache(300_000, lambda columns: len(columns.scores))
# What a comparison keeps of single questions are those that flipped or stand alone.
_comparisons: SizedCache[Comparison] = SizedCache(
    300_000, lambda found: 100 + len(found.flips) + len(found.unpaired) + len(found.edited)
)
_rankings: SizedCache[Ranking] = SizedCache(200)
_feedback: SizedCache[FeedbackStats] = SizedCache(8)


def compare_stored(store: SqlStore, base: RunInfo, candidate: RunInfo) -> Comparison:
    """As `answerkey compare` does; raises UsageError where the runs have no scored question in common."""
    infos = (base, candidate)
    return _comparisons.get(_key(store, infos), lambda: compare_runs(*_read(store, infos)))


def rank_stored(store: SqlStore, infos: Sequence[RunInfo]) -> Ranking:
    """As `answerkey compare` ranks more than two runs; raises UsageError where they share no scored question."""
    return _rankings.get(_key(store, infos), lambda: rank_runs(_read(store, infos)))


def feedback_figures(store: SqlStore, wanted: FeedbackFilter | None = None) -> FeedbackStats:
    """What `answerkey feedback stats` says of the days that are wanted."""
    days = ("", "") if wanted is None else (wanted.since or "", wanted.until or "")
    key = (store.address, *days, *feedback_state(store))
    return _feedback.get(key, lambda: feedback_stats(store, wanted=wanted))


def _read(store: SqlStore, infos: Sequence[RunInfo]) -> list[Columns]:
    """Each run by itself: reading is what takes the time, and most comparisons share a run with the one before."""
    return [
        _columns.get(_key(store, (info,)), lambda info=info: columns_from_store(store, [info])[0])  # type: ignore[misc]
        for info in infos
    ]


def _key(store: SqlStore, infos: Sequence[RunInfo]) -> Key:
    """Changes whenever one of the runs does; None while one of them is under way."""
    states = []
    for info in infos:
        state = store.finished_state(info.id)
        if state is None or info.status == "running":
            return None
        states.append(blake2b(f"{store.address}\n{state}".encode(), digest_size=16).hexdigest())
    return tuple(states)
