"""Summary: a run's results added up, overall and by slice, each mean with an interval and its coverage."""

from typing import ClassVar

import msgspec

from answerkey.model.scorecard import PASS_MARK, Scorecard, shown_score
from answerkey.stats.intervals import Interval

# With what the reasons begin why rows of a log have no score.
BAD_ROW = "bad row: "
# Below it, a grade is not praised: too many questions let a wrong reply pass.
WEAK_STRENGTH = 0.8


class Latency(msgspec.Struct, frozen=True):
    """Latency of replies in milliseconds."""

    # The figures in the order of tables.
    FIGURES: ClassVar = ("mean", "p50", "p90", "p95", "p99", "max")

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    # Of the mean, over units; None where the units are not known, as in a log, or there is only one.
    mean_interval: Interval | None = None


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What questions cost, those whose cost is known: each the mean of its trials."""

    # How many questions that are.
    questions: int
    # Mean of a question, with its interval over units.
    question: float
    interval: Interval | None
    # What a point costs: the sum ÷ the sum of their scores; a question answered perfectly is one point.
    point: float | None


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """The aggregates of some of a run's questions: all of them, a category, a persona, …"""

    name: str
    questions: int
    # What the intervals count: questions, or the groups that they belong to; None in runs kept before they were counted.
    units: int | None = None
    # Scored questions of the largest unit; None in runs stored before they were counted.
    largest_unit: int | None = None
    # Trials that have a score, and the replies of all: a conversation's trial has one for every turn.
    trials: int
    # Of these trials, those that passed; `passed` below counts questions, by the mean of their trials.
    trials_passed: int = 0
    trial_pass_rate: float | None = None
    replies: int
    score: float | None
    grade: str | None
    interval: Interval | None
    components: dict[str, float | None]
    component_intervals: dict[str, Interval | None]
    passed: int
    pass_rate: float | None
    pass_interval: Interval | None = None
    grades: dict[str, int]
    errors: dict[str, int]
    error_rate: float
    # None where the units are not known, as in a log.
    error_interval: Interval | None = None
    latency_ms: Latency | None
    metrics: dict[str, float | None]
    metric_intervals: dict[str, Interval | None] = {}
    # None: no cost is known.
    cost: Cost | None = None


class KeyStrength(msgspec.Struct, frozen=True, kw_only=True):
    """The share of questions whose key refuses every wrong reply that was tried."""

    value: float
    low: float
    high: float
    # Questions that wrong replies could be made for, and those that refuse all of theirs.
    questions: int
    strong: int

    @property
    def weak(self) -> int:
        """Questions that let a wrong reply pass."""
        return self.questions - self.strong


class KeyFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The best score of a trivial bot, which knows no answer."""

    value: float
    # What the bot does: "calls every tool and repeats the question".
    bot: str
    # On how many questions it was tried.
    questions: int


class KeyQuality(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer key of a run refuses."""

    # None: no wrong reply could be made for any question.
    strength: KeyStrength | None
    # The mean score of a bot whose tools are right and whose facts are all wrong.
    always_wrong_score: float | None
    floor: KeyFloor


class SlowQuestion(msgspec.Struct, frozen=True):
    """A question that took long."""

    id: str
    latency_ms: float


class SuspectedReply(msgspec.Struct, frozen=True):
    """A reply that is suspected to be an error."""

    # The question's id.
    id: str
    kind: str
    # The words that raised the suspicion.
    words: str
    probability: float


class Summary(Slice, frozen=True, kw_only=True):
    """A whole run's aggregates, with its slices."""

    # Trials that were planned, and trials scored ÷ planned.
    planned: int
    coverage: float
    # Questions that expect nothing of the text, and questions that expect nothing of the tool calls: any reply has 1.0
    # there for response quality, or for tool usage.
    expecting_nothing: int = 0
    expecting_no_tools: int = 0
    # Questions of severity critical, how many of them did not pass, and the ids of the first of those.
    critical: int = 0
    critical_failures: int = 0
    critical_failed: tuple[str, ...] = ()
    # What the answer key refuses; None where it was not measured, as for logs without a golden set.
    strength: KeyStrength | None = None
    always_wrong_score: float | None = None
    floor: KeyFloor | None = None
    # Replies that are suspected to be errors: listed for review, not charged.
    suspected_errors: int = 0
    # The likeliest of them.
    suspected_replies: tuple[SuspectedReply, ...] = ()
    # Replies in which not every tool call could be observed; a call that was not seen counts as not made.
    tools_unobserved: int
    # Why models stopped early (length, refusal, filter) → in how many replies.
    finishes: dict[str, int] = {}
    # Why trials were asked but have no score → how many; those that were never asked show in the coverage alone.
    unscored: dict[str, int]
    # Which of its own problems the harness had → with how many of those trials; none of it is charged to the chatbot.
    harness: dict[str, int] = {}
    usage: dict[str, float]
    categories: tuple[Slice, ...]
    # Kind of slice (persona, tag, tools, length) → its slices.
    slices: dict[str, tuple[Slice, ...]]
    tool_latency_ms: dict[str, Latency]
    # Mean milliseconds by phase: first byte, tools, the rest, and the harness's own waits apart.
    phases_ms: dict[str, float]
    slowest: tuple[SlowQuestion, ...]

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Components of which no question expects anything, so that their 1.0 says nothing."""
        counts = {"tool_usage": self.expecting_no_tools, "response_quality": self.expecting_nothing}
        return tuple(name for name, number in counts.items() if self.questions and number == self.questions)

    @property
    def is_silent_key(self) -> bool:
        """Whether more than a tenth of the questions expect nothing of the text."""
        return self.expecting_nothing > self.questions / 10

    @property
    def is_beaten(self) -> bool:
        """Whether a bot that knows no answer has a passing grade and scores as much."""
        floor, score = self.floor, self.score
        return floor is not None and score is not None and PASS_MARK <= score <= floor.value

    @property
    def is_weak_key(self) -> bool:
        """Whether the grade says little, so that the headline must say why."""
        is_weak = self.strength is not None and self.strength.value < WEAK_STRENGTH
        return self.is_silent_key or self.is_beaten or is_weak

    def __repr__(self) -> str:
        score = "unscored" if self.score is None else f"{shown_score(self.score)} {self.grade}"
        return f"<Summary: {score}, {self.passed} of {self.questions} questions passed>"


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
    # Whether its severity is critical.
    critical: bool = False
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
