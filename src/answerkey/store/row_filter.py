"""What tables are filtered by: ranges of measures and an order, which all of them take, and what a run's questions take."""

from functools import cache
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec

from answerkey.errors import UsageError
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import lowest_score
from answerkey.store.database import EPSILON, Database, Where
from answerkey.store.feedback import ShortText

_BOUNDS = {"A": (0.9, 9.0), "B": (0.8, 0.9), "C": (0.7, 0.8), "D": (0.6, 0.7), "F": (-9.0, 0.6)}
# What can be sorted by and is no measure → a question's value over its trials, of `c` its scorecards and `q` itself.
COUNTED = {
    "score": "AVG(c.score)",
    "latency_ms": "MAX(c.latency_ms)",
    "cost": "SUM(c.cost)",
    "judge": "AVG(c.judge)",
    "spread": "MAX(c.score) - MIN(c.score)",
    "error": "MAX(c.error_kind)",
    "position": "c.position",
    "id": "MAX(q.id)",
    "category": "MAX(q.category)",
}


class Range(msgspec.Struct, frozen=True):
    """Between which values something must be; None: any."""

    name: str
    low: float | None
    high: float | None

    @classmethod
    def read(cls, text: str) -> "Range":
        """From `score:0.5..0.8`, `score:..0.8` or `score:0.5..`."""
        name, _, limits = text.rpartition(":")
        low, dots, high = limits.partition("..")
        try:
            if not name or not dots:
                raise ValueError
            return cls(name, float(low) if low else None, float(high) if high else None)
        except ValueError:
            raise UsageError(
                f"range {text[:80]!r}: write a name and two numbers, as score:0.5..0.8"
            ) from None

    def __str__(self) -> str:
        low, high = ("" if limit is None else f"{limit:g}" for limit in (self.low, self.high))
        return f"{self.name}:{low}..{high}"

    def holds(self, value: float | None) -> bool:
        """Whether a value is in it; one that is missing is in none."""
        if value is None:
            return False
        above = self.low is None or value >= self.low - EPSILON
        return above and (self.high is None or value <= self.high + EPSILON)


class Ranged(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a table are wanted by what is measured of them, in what order, and which columns of them."""

    # As `Range.read` takes them.
    range: tuple[ShortText, ...] = ()
    # The same of one more, as a form sends it.
    measure: ShortText | None = None
    low: float | None = None
    high: float | None = None
    # The name of a column; with a minus the largest come first.
    sort: ShortText = ""
    # The names of the columns that are wanted; none: the usual ones.
    columns: tuple[ShortText, ...] = ()

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Every range that is set."""
        given = [Range.read(text) for text in self.range]
        if self.measure and (self.low is not None or self.high is not None):
            given.append(Range(self.measure, self.low, self.high))
        return tuple(dict.fromkeys(given))

    @property
    def order(self) -> tuple[str, bool]:
        """By what rows are sorted, and whether the largest come first."""
        return self.sort.removeprefix("-"), self.sort.startswith("-")

    @property
    def conditions(self) -> dict[str, Any]:
        """What is set of the table's own conditions, which may all be None."""
        table = next(kind for kind in type(self).__mro__ if Ranged in kind.__bases__)
        own = [name for name, usual in _usual(table).items() if usual is None and name not in _usual(Ranged)]
        return {name: value for name in own if (value := getattr(self, name)) is not None}

    def parameters(self, **more: Any) -> str:
        """What is chosen, after `more`, as the query of an address."""
        given = {
            **more,
            **self.conditions,
            "range": [str(one) for one in self.ranges],
            "columns": self.columns,
        }
        order = {} if self.sort == _usual(type(self))["sort"] else {"sort": self.sort}
        return urlencode({**given, **order}, doseq=True)


@cache
def _usual(table: type[Ranged]) -> dict[str, Any]:
    """What a table's query has where nothing is said."""
    return {field.name: field.default for field in msgspec.structs.fields(table)}


class RowFilter(Ranged, frozen=True, kw_only=True):
    """Which of a run's questions are wanted, and in what order."""

    # Words in the question or the reply.
    text: ShortText | None = None
    result: Literal["failed", "passed", "lost", "error"] | None = None
    grade: Literal["A", "B", "C", "D", "F"] | None = None
    category: ShortText | None = None
    persona: ShortText | None = None
    tag: ShortText | None = None
    # A kind of error.
    error: ShortText | None = None
    # A tool that was called.
    tool: ShortText | None = None
    # A name of COUNTED or of a component or metric; with a minus the largest come first.
    sort: ShortText = "score"

    @property
    def measures(self) -> list[str]:
        """The components and metrics that it asks for, which the database cannot look into."""
        asked = [self.order[0], *(one.name for one in self.ranges)]
        return [name for name in dict.fromkeys(asked) if name not in COUNTED]


def words_condition(
    database: Database, text: str, question: str = "q", replies: str = "r"
) -> tuple[str, ...]:
    """A condition with its values: whether words are in a question or in the replies to it."""
    asked, wanted = database.contains(f"COALESCE({question}.folded, {question}.asked)", text)
    said, _ = database.contains(f"COALESCE({replies}.folded, {replies}.text)", text)
    return f"{asked} OR {said}", wanted, wanted


def of_trials(wanted: RowFilter, database: Database) -> Where:
    """What single trials are filtered by, of `c` their scorecards, `q` their questions and `r` their replies."""
    where = Where()
    if wanted.text:
        where.add(*words_condition(database, wanted.text))
    if wanted.tool:
        where.add(*database.has_tool("r.tools", wanted.tool))
    if wanted.category is not None:
        where.add("q.category = ?", wanted.category)
    if wanted.persona is not None:
        where.add(f"{database.json_text('q.payload', 'persona')} = ?", wanted.persona)
    if wanted.tag is not None:
        where.add(f"? IN ({database.json_texts('q.payload', 'tags')})", wanted.tag)
    if wanted.error is not None:
        where.add("c.error_kind = ?", wanted.error)
    if wanted.result == "error":
        where.add("c.error_kind IS NOT NULL")
    return where


def of_questions(wanted: RowFilter, info: RunInfo, value: Any) -> Where:
    """What questions are filtered by, over their trials; `value` gives the SQL of a name of COUNTED."""
    where = Where()
    score = value("score")
    if wanted.grade is not None:
        low, high = _BOUNDS[wanted.grade]
        where.add(f"{score} >= ? AND {score} < ?", low - EPSILON, high - EPSILON)
    if wanted.result == "failed":
        where.add(f"{score} IS NULL OR {score} < ?", lowest_score(info.pass_mark))
    elif wanted.result == "passed":
        where.add(f"{score} >= ?", lowest_score(info.pass_mark))
    elif wanted.result == "lost":
        where.add(f"{score} IS NULL OR {score} < ?", 1 - EPSILON)
    for limit in wanted.ranges:
        if limit.name in COUNTED:
            if limit.low is not None:
                where.add(f"{value(limit.name)} >= ?", limit.low - EPSILON)
            if limit.high is not None:
                where.add(f"{value(limit.name)} <= ?", limit.high + EPSILON)
    return where
