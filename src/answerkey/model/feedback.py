"""Feedback: a person's verdict on a reply, the production replies that people give verdicts on, and what verdicts add up to."""

import math
from typing import Any, Literal

import msgspec

from answerkey.errors import UsageError
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Scorecard
from answerkey.stats.intervals import Interval

FeedbackSource = Literal["user", "review", "import"]
# A verdict at or above this is positive: satisfaction is positive ÷ all.
POSITIVE = 0.5
# Maximum characters of a comment.
COMMENT_LIMIT = 20_000

_UP = frozenset(
    {"up", "thumbs_up", "thumbs-up", "👍", "positive", "good", "yes", "true", "trust", "like", "1", "+1"}
)
_DOWN = frozenset(
    {
        "down",
        "thumbs_down",
        "thumbs-down",
        "👎",
        "negative",
        "bad",
        "no",
        "false",
        "distrust",
        "dislike",
        "0",
        "-1",
    }
)


class ReplyKey(msgspec.Struct, frozen=True):
    """The key of a run's reply in the store."""

    run_id: str
    ask_hash: str
    trial: int
    # The chatbot's hash: a run may be resumed with a changed chatbot.
    target_hash: str = ""


class Feedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's verdict on one reply."""

    id: str
    created_at: str
    # 1.0: thumb up, 0.0: thumb down, or a score between.
    value: float
    # A visitor of a chat page, a reviewer in the review lane, or another tool's export.
    source: FeedbackSource = "user"
    comment: str = ""
    author: str | None = None
    # What the reply should have been.
    correction: str | None = None
    # The chatbot's own ids of the reply.
    response_id: str | None = None
    trace_id: str | None = None
    conversation_id: str | None = None
    # The reply in the store, of a run or of production; both None: not matched yet.
    reply: ReplyKey | None = None
    production_id: str | None = None
    question: str | None = None
    category: str | None = None
    # Sender: a site, a person, or a local program; empty for imports and reviews.
    sender: str = ""
    # The same key again is the same verdict.
    idempotency_key: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def positive(self) -> bool:
        """Whether it counts as satisfied."""
        return self.value >= POSITIVE

    @property
    def matched(self) -> bool:
        """Whether its reply is known."""
        return self.reply is not None or self.production_id is not None


class ProductionReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply that the chatbot gave to a real user."""

    # The chatbot's own id, or a generated one.
    id: str
    # When it was given, if the sender says so, and when it was received.
    created_at: str
    received_at: str | None = None
    # Sender: a site, a person, or a local program.
    sender: str = ""
    # The chatbot's model and version, if the sender names them.
    model: str | None = None
    version: str | None = None
    question: str
    reply: Reply
    category: str | None = None
    # What else was sent with it, e.g. persona, locale or tenant.
    metadata: dict[str, str] = {}
    # None: the golden set does not have the question.
    score: float | None = None
    scorecard: Scorecard | None = None
    # Hash of the golden set and scoring of its last grading.
    graded_by: str | None = None


def read_value(value: Any) -> float:
    """Return a verdict as a number from 0 to 1; accepts thumbs in the usual words, yes or no, and scores."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _UP:
            return 1.0
        if word in _DOWN:
            return 0.0
        try:
            value = float(word)
        except ValueError:
            raise UsageError(_wrong(value)) from None
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    raise UsageError(_wrong(value))


def _wrong(value: Any) -> str:
    return f'value {str(value)[:60]!r}: give "up", "down", true, false or a number from 0 to 1'


class CategoryFeedback(msgspec.Struct, frozen=True):
    """Verdicts on one category's replies."""

    category: str
    feedback: int
    positive: int
    satisfaction: float


class DayFeedback(msgspec.Struct, frozen=True):
    """Verdicts of one day."""

    day: str
    feedback: int
    positive: int
    satisfaction: float


class FeedbackTheme(msgspec.Struct, frozen=True):
    """Words that several comments share."""

    words: str
    comments: int
    negative: int
    example: str


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How people's verdicts agree with answerkey's scores of the same replies."""

    # Replies with a verdict and a score; of several verdicts on a reply, the mean counts.
    pairs: int
    # Pearson's r with its 95% interval; None: too few pairs, or all verdicts are the same.
    correlation: float | None
    low: float | None
    high: float | None
    mean_score_positive: float | None
    mean_score_negative: float | None


class FeedbackStats(msgspec.Struct, frozen=True, kw_only=True):
    """All feedback in figures. Reviewers' verdicts are counted separately from users'."""

    feedback: int
    positive: int
    negative: int
    # Positive ÷ all; None without any. Its interval is over replies: verdicts on one reply are not independent.
    satisfaction: float | None
    satisfaction_interval: Interval | None = None
    # Replies that users could rate: of production, and of runs that users rated.
    queries: int
    # Feedback on those replies ÷ their number; None when no such reply is known.
    feedback_rate: float | None
    comments: int
    # Verdicts without a known reply.
    unmatched: int
    reviews: int
    reviews_trusted: int
    categories: tuple[CategoryFeedback, ...]
    days: tuple[DayFeedback, ...]
    themes: tuple[FeedbackTheme, ...]
    agreement: Agreement

    @property
    def gate_numbers(self) -> dict[str, float | None]:
        """What gates can be about."""
        interval = self.satisfaction_interval
        return {
            "satisfaction": self.satisfaction,
            "satisfaction.low": None if interval is None else interval.low,
            "satisfaction.high": None if interval is None else interval.high,
            "feedback": self.feedback,
            "feedback_rate": self.feedback_rate,
            "unmatched": self.unmatched,
        }
