"""What lists show: a run, a question of a run, a question's history, and by what they are filtered."""

from typing import Annotated, Literal

import msgspec

from answerkey.model.run import RunInfo
from answerkey.model.summary import Latency
from answerkey.stats.intervals import Interval

__all__ = [
    "Facets",
    "Figures",
    "HistoryPoint",
    "Progress",
    "RowFilter",
    "RunRow",
    "ShortText",
    "Sort",
]

# What people search for is short.
ShortText = Annotated[str, msgspec.Meta(max_length=200)]
Sort = Literal["worst", "best", "slowest", "order", "costliest"]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What lists show of a run's summary; the rest of it is not even decoded."""

    questions: int
    score: float | None
    grade: str | None
    interval: Interval | None = None
    components: dict[str, float | None] = {}
    passed: int = 0
    pass_rate: float | None = None
    error_rate: float = 0.0
    errors: dict[str, int] = {}
    coverage: float = 1.0
    latency_ms: Latency | None = None
    usage: dict[str, float] = {}
    metrics: dict[str, float | None] = {}


class RunRow(msgspec.Struct, frozen=True):
    """A run in a list."""

    info: RunInfo
    # None while it is under way.
    figures: Figures | None
    # The names under which it is a baseline.
    baselines: tuple[str, ...] = ()


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is."""

    id: str
    status: str
    done: int
    planned: int
    score: float | None
    grade: str | None
    passed: int
    errors: int


class RowFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which of a run's questions are wanted, and in what order."""

    category: ShortText | None = None
    grade: Literal["A", "B", "C", "D", "F"] | None = None
    result: Literal["failed", "passed", "lost", "error"] | None = None
    # A kind of error.
    error: ShortText | None = None
    # A tool that was called.
    tool: ShortText | None = None
    # Words in the question or the reply.
    text: ShortText | None = None
    sort: Sort = "worst"


class Facets(msgspec.Struct, frozen=True):
    """What a run's questions can be filtered by, with how many there are of each."""

    categories: dict[str, int]
    errors: dict[str, int]


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One question in one run."""

    run_id: str
    run_name: str
    created_at: str
    target: str
    score: float | None
    grade: str | None
    passed: bool
    trials: int
    lowest: float | None
    highest: float | None
    error: str | None
    latency_ms: float | None
