"""Feedback: a person's verdict on a reply, the production replies that people give verdicts on, and what verdicts add up to."""

import math
from typing import Any, Literal

import msgspec

from answerkey.errors import UsageError
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Scorecard

FeedbackSource = Literal["user", "review", "import"]
# A verdict from here on counts as positive: satisfaction is positive ÷ all.
POSITIVE = 0.5
# Characters of a comment; a person's longest remark is far below it.
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
    """Which reply of a run: the key under which the store keeps it."""

    run_id: str
    ask_hash: str
    trial: int
    # Whose reply: the run may have been resumed with a chatbot that had changed.
    target_hash: str = ""


class Feedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's verdict on one reply."""

    id: str
    created_at: str
    # 1.0 a thumb up, 0.0 a thumb down, a score in between.
    value: float
    # A visitor of a chat page, a reviewer in the review lane, or another tool's export.
    source: FeedbackSource = "user"
    comment: str = ""
    author: str | None = None
    # What the reply should have been, where the person said so.
    correction: str | None = None
    # How the sender named the reply: the chatbot's own ids.
    response_id: str | None = None
    trace_id: str | None = None
    conversation_id: str | None = None
    # The reply in the store: one of a run, or one of production. Both None: not matched yet.
    reply: ReplyKey | None = None
    production_id: str | None = None
    question: str | None = None
    category: str | None = None
    # Who sent it: a site, a person, or a program on this machine; empty for imports and reviews.
    sender: str = ""
    # By this the sender's sending again is known: it is the same verdict.
    idempotency_key: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def positive(self) -> bool:
        """Whether it counts as satisfied."""
        return self.value >= POSITIVE

    @property
    def matched(self) -> bool:
        """Whether the reply that it is about is known."""
        return self.reply is not None or self.production_id is not None


class ProductionReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply that the chatbot gave to a real user."""

    # The chatbot's own id of it, or one made for it.
    id: str
    # When it was said, as far as its sender told, and when it came.
    created_at: str
    received_at: str | None = None
    # Who sent it: a site, a person, or a program on this machine.
    sender: str = ""
    # The chatbot that said it, as far as its sender told.
    model: str | None = None
    version: str | None = None
    question: str
    reply: Reply
    category: str | None = None
    # Only where the golden set has the question: else there is nothing to score it by.
    score: float | None = None
    scorecard: Scorecard | None = None
    # Hash of the golden set and the scoring that it was last graded by.
    graded_by: str | None = None


def read_value(value: Any) -> float:
    """A verdict as a number from 0 to 1: a thumb in the usual words, a yes or no, or a score."""
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
    """What several comments have in common."""

    words: str
    comments: int
    negative: int
    example: str


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How people's verdicts agree with answerkey's scores of the same replies."""

    pairs: int
    # Pearson's r with its 95% interval; None with too few pairs or where everybody said the same.
    correlation: float | None
    low: float | None
    high: float | None
    mean_score_positive: float | None
    mean_score_negative: float | None


class FeedbackStats(msgspec.Struct, frozen=True, kw_only=True):
    """All feedback in figures. Reviewers' verdicts are counted apart: they are no users."""

    feedback: int
    positive: int
    negative: int
    # Positive ÷ all; None without any.
    satisfaction: float | None
    # The replies that users could have judged: production's, and those of runs whose replies were judged by users.
    queries: int
    # Feedback on those replies ÷ their number; None when no such reply is known.
    feedback_rate: float | None
    comments: int
    # Verdicts whose reply is not known (yet).
    unmatched: int
    reviews: int
    reviews_trusted: int
    categories: tuple[CategoryFeedback, ...]
    days: tuple[DayFeedback, ...]
    themes: tuple[FeedbackTheme, ...]
    agreement: Agreement
