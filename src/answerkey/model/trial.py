"""Trial: one question asked once, from plan to scorecard; and ScoreBatch: scores column by column."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Failure, Reply
from answerkey.model.scorecard import UNSCORED, Score, Scorecard, shown_score


class Trial(msgspec.Struct, frozen=True):
    """One question asked once. Planned, it has no reply yet; asked, its replies; scored, its scorecard too."""

    question: Question
    # 1 for the first time that a run asks the question.
    number: int = 1
    # The question's place in the set, by which results are kept in order.
    position: int = 0
    # One for each turn that was reached; a plain question has one.
    replies: tuple[Reply, ...] = ()
    scorecard: Scorecard = UNSCORED

    def answered(self, replies: tuple[Reply, ...]) -> "Trial":
        """The same trial, now asked."""
        return Trial(self.question, self.number, self.position, replies, self.scorecard)

    def scored(self, scorecard: Scorecard) -> "Trial":
        """The same trial, now scored."""
        return Trial(self.question, self.number, self.position, self.replies, scorecard)

    @property
    def reply(self) -> Reply:
        """The last reply, which is the only one of a plain question; a null reply where none was reached."""
        return self.replies[-1] if self.replies else Reply()

    # What the run document has of a result, under its names.

    @property
    def id(self) -> str:
        """The question's id."""
        return self.question.id

    @property
    def trial(self) -> int:
        """Which time of asking this is, from 1."""
        return self.number

    @property
    def category(self) -> str:
        """The question's category."""
        return self.question.category

    @property
    def score(self) -> float | None:
        """What the reply is worth; None if it could not be scored."""
        return self.scorecard.total

    @property
    def grade(self) -> str | None:
        """The letter for the score."""
        return self.scorecard.grade

    @property
    def passed(self) -> bool:
        """Whether it reached the pass mark."""
        return self.scorecard.passed

    @property
    def components(self) -> dict[str, Score]:
        """What the score is made of, each with its reason."""
        return self.scorecard.components

    @property
    def metrics(self) -> dict[str, float | None]:
        """What is reported beside the score."""
        return self.scorecard.metrics

    @property
    def error(self) -> Failure | None:
        """What went wrong: as it was charged, or as the target saw it."""
        seen = (reply.failure for reply in self.replies if reply.failure is not None)
        return self.scorecard.error or next(seen, None)

    def __repr__(self) -> str:
        score = "unscored" if self.score is None else f"{shown_score(self.score)} {self.grade}"
        return f"<Trial {self.id!r}: {score}>"

    @property
    def latency_ms(self) -> float | None:
        """Time the chatbot took over all turns."""
        return total_latency(self.replies)

    @property
    def cost(self) -> float | None:
        """What its replies cost together; None if that is not known of one that was answered."""
        if len(self.replies) == 1:
            return None if self.replies[0].usage is None else self.replies[0].usage.cost
        costs = [None if reply.usage is None else reply.usage.cost for reply in self.replies]
        unknown = any(
            cost is None and reply.failure is None for cost, reply in zip(costs, self.replies, strict=True)
        )
        known = [cost for cost in costs if cost is not None]
        return fsum(known) if known and not unknown else None


def total_latency(replies: Iterable[Reply]) -> float | None:
    """Milliseconds that replies took together; None if none was timed."""
    taken = [reply.timings.latency_ms for reply in replies if reply.timings.latency_ms is not None]
    return fsum(taken) if taken else None


class ScoreBatch(NamedTuple):
    """Some trials, column by column, grouped by question. A missing value is None, or NaN in an array."""

    ids: Sequence[str]
    # 16 bytes each.
    content_hashes: Sequence[bytes]
    categories: Sequence[str]
    scores: Sequence[float | None]
    error_kinds: Sequence[str | None]
    latencies_ms: Sequence[float | None]
    costs: Sequence[float | None]
    components: Mapping[str, Sequence[float | None]]
    metrics: Mapping[str, Sequence[float | None]]
