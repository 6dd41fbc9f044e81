"""RowFilter: which of a run's questions are wanted and in what order, as conditions of the database."""

from typing import Any, Literal

from answerkey.model.run import RunInfo
from answerkey.store.database import EPSILON, Database, Where
from answerkey.store.feedback_book import ShortText
from answerkey.store.ranges import Ranged

__all__ = ["COUNTED", "RowFilter", "of_questions", "of_trials", "words_condition"]

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


class RowFilter(Ranged, frozen=True, kw_only=True):
    """Which of a run's questions are wanted, and in what order."""

    category: ShortText | None = None
    persona: ShortText | None = None
    tag: ShortText | None = None
    grade: Literal["A", "B", "C", "D", "F"] | None = None
    result: Literal["failed", "passed", "lost", "error"] | None = None
    # A kind of error.
    error: ShortText | None = None
    # A tool that was called.
    tool: ShortText | None = None
    # Words in the question or the reply.
    text: ShortText | None = None
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
        where.add(f"{score} IS NULL OR {score} < ?", info.pass_mark - EPSILON)
    elif wanted.result == "passed":
        where.add(f"{score} >= ?", info.pass_mark - EPSILON)
    elif wanted.result == "lost":
        where.add(f"{score} IS NULL OR {score} < ?", 1 - EPSILON)
    for limit in wanted.ranges:
        if limit.name in COUNTED:
            if limit.low is not None:
                where.add(f"{value(limit.name)} >= ?", limit.low - EPSILON)
            if limit.high is not None:
                where.add(f"{value(limit.name)} <= ?", limit.high + EPSILON)
    return where
