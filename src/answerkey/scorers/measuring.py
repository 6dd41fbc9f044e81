"""Measuring: the values of a grader's scorecard without its words, for the rows of a log whose results are not kept.

The decisions are the scorers' own (`values`, `value`, `find_failure`); what is left out is what they say about them. Any reply
that needs another scorer than the three components is not measured but graded.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from answerkey.model.question import Question
from answerkey.model.reply import HARNESS_PROBLEMS, Reply
from answerkey.model.scorecard import total
from answerkey.protocols import Scorer
from answerkey.scorers.checks import Checks
from answerkey.scorers.error_handling import ErrorHandling, find_failure
from answerkey.scorers.grader import Grader
from answerkey.scorers.response_quality import ResponseQuality
from answerkey.scorers.retrieval.scorer import RetrievalQuality, SourceHygiene
from answerkey.scorers.tool_usage import ToolUsage

__all__ = ["Measure", "Measured", "measuring"]


class Measured(NamedTuple):
    """A scorecard's values."""

    # The components' names, and the metrics'.
    names: tuple[tuple[str, ...], tuple[str, ...]]
    # The score, then the components' values and the metrics'.
    values: tuple[float | None, ...]
    # The kind of the error that counted.
    error: str | None


_MOST_KNOWN = 20_000
# None: the reply must be graded.
Measure = Callable[[Question, Sequence[Reply]], Measured | None]


def measuring(grader: Grader) -> Measure | None:
    """How a grader's replies are measured; None where each must be graded, as by scorers of one's own."""
    weights = grader.scoring.weights
    parts = _parts(grader.scorers)
    if parts is None or grader.takes_judgements or "checks" in weights:
        return None
    tool_usage, quality = parts
    given = (*ToolUsage.direction, ResponseQuality.name, ErrorHandling.name)
    components = tuple(name for name in given if name in weights)
    if len(components) != len(weights):
        return None
    metrics = tuple(name for name in given if name not in weights)
    names = (components, metrics)
    places = [given.index(name) for name in (*components, *metrics)]
    # Few different values come out of many replies.
    measured: dict[object, Measured] = {}

    def measure(question: Question, replies: Sequence[Reply]) -> Measured | None:
        if question.turns or question.relevant_documents or question.checks:
            return None
        (reply,) = replies
        if reply.sources or (reply.usage is not None and reply.usage.cost is not None):
            return None
        if reply.failure is not None and reply.failure.kind in HARNESS_PROBLEMS:
            return None
        failure = find_failure(reply)
        tools, said = tool_usage(question, reply), quality(question, reply)
        key = (tools, said, None if failure is None else failure.kind)
        known = measured.get(key)
        if known is None:
            found = (*tools, said, 1.0 if failure is None else 0.0)
            values = [found[place] for place in places]
            points = total(dict(zip(components, values, strict=False)), weights)
            known = Measured(names, (points, *values), key[2])
            if len(measured) < _MOST_KNOWN:
                measured[key] = known
        return known

    return measure


def _parts(
    scorers: Sequence[Scorer],
) -> (
    tuple[Callable[[Question, Reply], tuple[float | None, ...]], Callable[[Question, Reply], float | None]]
    | None
):
    """The two scorers that have values of their own; None if there are others than are known here."""
    kinds = [type(scorer) for scorer in scorers]
    # The last three say nothing of a question without documents and checks, and a reply without sources.
    if kinds != [ToolUsage, ResponseQuality, ErrorHandling, RetrievalQuality, SourceHygiene, Checks]:
        return None
    tool_usage, quality = scorers[:2]
    if not isinstance(tool_usage, ToolUsage) or not isinstance(quality, ResponseQuality):
        return None
    return tool_usage.values, quality.value
