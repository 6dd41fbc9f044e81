"""Measuring: the values of a grader's scorecard without its words, for the rows of a log whose results are not kept.

The decisions are the scorers' own (`values`, `said`, `failure_kinds`); what is left out is what they say about them. Any
reply that needs another scorer than the three components is not measured but graded.
"""

from collections.abc import Callable, Sequence

from answerkey.model.question import ExpectedTool, Question
from answerkey.model.reply import HARNESS_PROBLEMS, Reply, ToolCall
from answerkey.model.scorecard import total
from answerkey.model.slice_sums import Names, Values
from answerkey.protocols import Scorer
from answerkey.scorers.checks import Checks
from answerkey.scorers.error_handling import ErrorHandling, KnownKinds, find_failure
from answerkey.scorers.grader import Grader
from answerkey.scorers.response_quality import ResponseQuality
from answerkey.scorers.retrieval import RetrievalQuality, SourceHygiene
from answerkey.scorers.tool_usage import ToolUsage

_MOST_KNOWN = 20_000
# The values of ToolUsage, in its order.
_ToolValues = tuple[float | None, ...]


class Measured:
    """A scorecard's values; equal ones are mostly the same object."""

    __slots__ = ("error", "names", "points", "values")

    def __init__(self, names: Names, values: Values, error: str | None = None) -> None:
        self.names = names
        self.values = values
        # The score; None: it has none.
        self.points = values[0]
        # The kind of the error that counted.
        self.error = error


class Measuring:
    """How a grader's replies are measured."""

    def __init__(self, grader: Grader, tool_usage: ToolUsage, quality: ResponseQuality) -> None:
        self._weights = grader.scoring.weights
        self._tool_usage, self.quality = tool_usage, quality
        # Whether keywords are only looked for, so that their question does not matter: else nothing is plain.
        self.looks = quality.mode != "smart"
        given = (*ToolUsage.direction, ResponseQuality.name, ErrorHandling.name)
        self._components = tuple(name for name in given if name in self._weights)
        metrics = tuple(name for name in given if name not in self._weights)
        self._names = (self._components, metrics)
        self._places = [given.index(name) for name in (*self._components, *metrics)]
        # Few different values come out of many replies, and few different calls out of many questions.
        self._known: dict[object, Measured] = {}
        self._tools: dict[object, _ToolValues] = {}
        # The kinds of failures that some texts show.
        self.kinds = KnownKinds().of

    @property
    def covers_the_weights(self) -> bool:
        """Whether every weighted component is one that is measured."""
        return len(self._components) == len(self._weights)

    def measures(self, question: Question) -> bool:
        """Whether replies to a question that have no sources can be measured by `plain`."""
        return (
            not (question.turns or question.relevant_documents or question.checks)
            and not (question.forbidden_keywords or question.forbidden_tools or question.tools)
            and (bool(question.expected_keywords) or not question.reference_answer)
            and all(tool.arguments is None for tool in question.expected_tools)
        )

    def plain(
        self,
        tools: tuple[str, ...],
        used: tuple[str, ...],
        said: float | None,
        kind: str | None,
        calls: Callable[[tuple[str, ...]], tuple[ToolCall, ...] | None],
    ) -> Measured | None:
        """A reply: names of tools, a text that says this share of the keywords and shows this kind of failure;
        None: `calls` makes no calls of the names.
        """
        fit = self._tools.get((tools, used))
        if fit is None:
            made = calls(used)
            if made is None:
                return None
            question = Question(id="", question="", expected_tools=tuple(map(ExpectedTool, tools)))
            fit = self._tool_usage.values(question, Reply(tool_calls=made))
            if len(self._tools) < _MOST_KNOWN:
                self._tools[tools, used] = fit
        return self._known.get((fit, said, kind)) or self._measured(fit, said, kind)

    def any(self, question: Question, replies: Sequence[Reply]) -> Measured | None:
        """Any replies; None: they must be graded."""
        if question.turns or question.relevant_documents or question.checks:
            return None
        (reply,) = replies
        if reply.sources or (reply.usage is not None and reply.usage.cost is not None):
            return None
        if reply.failure is not None and reply.failure.kind in HARNESS_PROBLEMS:
            return None
        failure = find_failure(reply)
        fit, said = self._tool_usage.values(question, reply), self.quality.value(question, reply)
        return self._measured(fit, said, None if failure is None else failure.kind)

    def _measured(self, fit: _ToolValues, said: float | None, kind: str | None) -> Measured:
        known = self._known.get((fit, said, kind))
        if known is None:
            found = (*fit, said, 1.0 if kind is None else 0.0)
            values = [found[place] for place in self._places]
            points = total(dict(zip(self._components, values, strict=False)), self._weights)
            known = Measured(self._names, (points, *values), kind)
            if len(self._known) < _MOST_KNOWN:
                self._known[fit, said, kind] = known
        return known


def measuring(grader: Grader) -> Measuring | None:
    """How a grader's replies are measured; None where each must be graded, as by scorers of one's own."""
    parts = _parts(grader.scorers)
    if parts is None or grader.takes_judgements or "checks" in grader.scoring.weights:
        return None
    found = Measuring(grader, *parts)
    return found if found.covers_the_weights else None


def _parts(scorers: Sequence[Scorer]) -> tuple[ToolUsage, ResponseQuality] | None:
    """The two scorers that have values of their own; None if there are others than are known here."""
    kinds = [type(scorer) for scorer in scorers]
    # The last three say nothing of a question without documents and checks, and a reply without sources.
    if kinds != [ToolUsage, ResponseQuality, ErrorHandling, RetrievalQuality, SourceHygiene, Checks]:
        return None
    tool_usage, quality = scorers[:2]
    if not isinstance(tool_usage, ToolUsage) or not isinstance(quality, ResponseQuality):
        return None
    return tool_usage, quality
