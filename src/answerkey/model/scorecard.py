"""Score and Scorecard: what one reply is worth, component by component, and why."""

from collections.abc import Mapping
from math import floor
from typing import Any

import msgspec

from answerkey.model.reply import Failure, HarnessProblem

COMPONENTS = ("tool_usage", "response_quality", "error_handling")
DEFAULT_WEIGHTS: dict[str, float] = {"tool_usage": 0.40, "response_quality": 0.40, "error_handling": 0.20}
PASS_MARK = 0.70

_GRADES = ((0.90, "A"), (0.80, "B"), (0.70, "C"), (0.60, "D"))


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """One component's or metric's value, with the reason in words."""

    name: str
    # None: it could not be scored. A component without a value leaves its reply without a score.
    value: float | None
    reason: str = ""
    # Its share of the total; None for a metric, which is reported beside the total.
    weight: float | None = None
    # What the scorer lists beside the value: found and missing keywords, missing and extra tools, …
    details: dict[str, Any] = {}

    @property
    def score(self) -> float | None:
        """The value, under the name that the run document has for it."""
        return self.value


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """All scores of one reply; of a conversation, the mean of its turns with the turns beside it."""

    components: dict[str, Score]
    # None if a component that has a weight has no value: the reply is unscored as a whole.
    total: float | None
    grade: str | None
    passed: bool
    metrics: dict[str, float | None] = {}
    # Findings that are more than a number (claims, judge's reasons), by scorer's name.
    findings: dict[str, Any] = {}
    # The failure that counted: the target's own, or one that the text shows.
    error: Failure | None = None
    turns: tuple["Scorecard", ...] = ()

    @property
    def score(self) -> float | None:
        """The total, under the name that the run document has for it."""
        return self.total


# Of a reply that nothing has been said about yet.
UNSCORED = Scorecard(components={}, total=None, grade=None, passed=False)


def unscored_card(weights: Mapping[str, float], reason: str, problem: HarnessProblem) -> Scorecard:
    """The scorecard of a reply that the harness itself could not ask for or score: no component has a value."""
    components = {
        name: Score(name, None, reason, weight, {"unscored": reason, "harness": problem})
        for name, weight in weights.items()
    }
    return Scorecard(components=components, total=None, grade=None, passed=False)


def harness_problem(card: Scorecard) -> str | None:
    """Which of its own problems the harness had with a reply that has no score; None: another reason."""
    for turn in card.turns or (card,):
        for score in turn.components.values():
            if score.value is None and score.weight and "harness" in score.details:
                return str(score.details["harness"])
    return None


def round_score(value: float) -> float:
    """A score as it is compared and shown: 0.4 + 0.3 + 0.2 is 0.9 and an A."""
    return round(value, 9)


def round_down(value: float, digits: int = 3) -> float:
    """A score with so many digits, never rounded up into a better grade: 0.899999 is a B and must not read 0.900."""
    scale: int = 10**digits
    return floor(round_score(value) * scale + 1e-6) / scale


def shown_score(score: float | None, digits: int = 3) -> str:
    """A score as it reads everywhere."""
    return "–" if score is None else f"{round_down(score, digits):.{digits}f}"


def grade(score: float) -> str:
    """The letter for a score."""
    rounded = round_score(score)
    for least, letter in _GRADES:
        if rounded >= least:
            return letter
    return "F"


def total(values: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    """The weighted sum; None if a component with a weight has no value: left out, failing would pay."""
    weighed = 0.0
    for name, weight in weights.items():
        value = values.get(name)
        if value is not None:
            weighed += weight * value
        elif weight:
            return None
    return round_score(weighed)
