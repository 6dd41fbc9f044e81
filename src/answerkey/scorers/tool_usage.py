"""Component 1: did the chatbot use the tools that the question needs?"""

from collections.abc import Iterable, Mapping
from typing import Any

from answerkey.model.options import ToolMode
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score
from answerkey.protocols import Direction, Need
from answerkey.scorers.tool_matching import ToolFit, fit_tools

__all__ = ["ToolUsage"]

_MOST_KNOWN = 20_000


class ToolUsage:
    """1.0 if every expected tool is among the tools used; other modes give partial credit.

    The values of all modes are recorded as metrics, whichever of them is the component.
    """

    name = "tool_usage"
    direction: Mapping[str, Direction] = dict.fromkeys(
        ("tool_usage", "tool_partial", "tool_precision", "tool_f1", "tool_ordered", "tool_arguments"),
        "higher",
    )
    needs: frozenset[Need] = frozenset()

    def __init__(self, mode: ToolMode = "standard") -> None:
        self.mode = mode
        self.version = f"tool_usage/1/{mode}"
        self._nothing: tuple[Score, ...] | None = None
        # What was expected and the names of what was called → the values, which are all that these decide.
        self._known: dict[object, tuple[float | None, ...]] = {}

    def score(self, question: Question, reply: Reply) -> tuple[Score, ...]:
        """The component first, then the metrics."""
        if not reply.tool_calls and not question.expected_tools:
            # Nothing expected and nothing called, as in most logs of retrieval: always the same scores.
            if self._nothing is None:
                self._nothing = self._score(question, reply)
            return self._nothing
        return self._score(question, reply)

    def values(self, question: Question, reply: Reply) -> tuple[float | None, ...]:
        """What `score` gives as its values, without the words."""
        try:
            key = (question.expected_tools, question.forbidden_tools, question.tools, reply.tools_used)
            known = self._known.get(key)
        except TypeError:
            # Arguments are expected, so that the calls must be looked at.
            return tuple([score.value for score in self.score(question, reply)])
        if known is None:
            known = tuple([score.value for score in self.score(question, reply)])
            if len(self._known) < _MOST_KNOWN:
                self._known[key] = known
        return known

    def _score(self, question: Question, reply: Reply) -> tuple[Score, ...]:
        used = reply.tools_used
        fit = fit_tools(question.expected_tools, reply.tool_calls)
        expected = dict.fromkeys([tool.name for tool in question.expected_tools])
        called = dict.fromkeys(used)
        missing = [name for name in expected if name not in called]
        extra = [name for name in called if name not in expected]
        banned = [name for name in called if name in question.forbidden_tools]
        details: dict[str, Any] = {"missing": missing, "extra": extra}
        if banned:
            details["forbidden"] = banned
        if question.tools == "none" and used:
            component = Score(self.name, 0.0, f"called {_names(called)} where no tool should be used")
        elif banned:
            component = Score(self.name, 0.0, f"called {_names(banned)}, which is forbidden")
        else:
            component = self._by_mode(question, reply, fit, missing)
        return (
            Score(self.name, component.value, component.reason, None, details),
            Score("tool_partial", fit.partial),
            Score("tool_precision", fit.precision),
            Score("tool_f1", fit.f1),
            Score("tool_ordered", fit.ordered),
            Score("tool_arguments", fit.arguments),
        )

    def _by_mode(self, question: Question, reply: Reply, fit: ToolFit, missing: list[str]) -> Score:
        if not question.expected_tools:
            return Score(self.name, 1.0, "no tool expected")
        if missing:
            unseen = "" if reply.evidence.tools_observed else " (tool calls were not observed)"
            reason = f"did not call {_names(missing)}{unseen}"
        else:
            reason = "called every expected tool"
        if self.mode == "standard":
            return Score(self.name, 0.0 if missing else 1.0, reason)
        value: float = getattr(fit, self.mode)
        return Score(self.name, value, f"{reason}; {self.mode} credit {value:.2f}")


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)
