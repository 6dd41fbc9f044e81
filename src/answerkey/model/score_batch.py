"""ScoreBatch: the scores of some trials column by column, which is how comparisons read a run."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["ScoreBatch"]


class ScoreBatch(NamedTuple):
    """Some trials, column by column, grouped by question. A missing value is None, or NaN in an array."""

    ids: Sequence[str]
    # 16 bytes each.
    content_hashes: Sequence[bytes]
    categories: Sequence[str]
    scores: Sequence[float | None]
    error_kinds: Sequence[str | None]
    latencies_ms: Sequence[float | None]
    costs: Sequence[float | None]
    components: Mapping[str, Sequence[float | None]]
    metrics: Mapping[str, Sequence[float | None]]
