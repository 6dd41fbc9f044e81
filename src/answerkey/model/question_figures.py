"""QuestionFigures: a question of a run over its trials, as every list shows it."""

import msgspec

from answerkey.model.scorecard import Scorecard

__all__ = ["QuestionFigures", "QuestionRow"]


class QuestionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A question of a run over its trials."""

    id: str
    # Its place in the set, from 0.
    position: int
    question: str
    category: str
    # The mean of its trials.
    score: float | None
    grade: str | None
    passed: bool
    trials: int
    trials_passed: int
    # The kind of an error that one of its replies ended in.
    error: str | None = None
    # Of its slowest trial.
    latency_ms: float | None = None
    cost: float | None = None
    tools: tuple[str, ...] = ()
    persona: str | None = None
    tags: tuple[str, ...] = ()
    # Of its trials: the lowest and the highest score.
    lowest: float | None = None
    highest: float | None = None
    # Every component and metric, as the mean of the trials that have a value.
    measures: dict[str, float | None] = {}
    # The beginning of what was said last in its first trial.
    reply: str = ""


class QuestionRow(QuestionFigures, frozen=True, kw_only=True):
    """A question as the store lists it."""

    # Its worst trial, for the reasons of lost points.
    scorecard: Scorecard
