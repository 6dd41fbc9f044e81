"""FeedbackStats: people's verdicts in figures, by category and day, and how they agree with the scores."""

import msgspec

__all__ = ["Agreement", "CategoryFeedback", "DayFeedback", "FeedbackStats", "FeedbackTheme"]


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
