"""The Review page: one reply at a time that a person should judge, and what waits behind it."""

from typing import Annotated, Literal

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.model.feedback import Feedback
from answerkey.model.run import RunInfo
from answerkey.server.views.paging import ShortText
from answerkey.server.views.question import QuestionQuery, TrialView, load_question
from answerkey.store.review import ReviewItem, ReviewQueue
from answerkey.store.sql import SqlStore

__all__ = ["ReviewQuery", "ReviewVerdict", "ReviewView", "load_review", "save_verdict"]

_AHEAD = 12


class ReviewQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which run's queue, and how many replies were skipped."""

    run: ShortText | None = None
    at: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0


class ReviewView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    # None: the store has no run yet.
    info: RunInfo | None
    at: int
    waiting: int
    done: int
    # None: nothing waits, or everything was skipped.
    item: ReviewItem | None
    reference_answer: str | None
    trial: TrialView | None
    ahead: tuple[ReviewItem, ...]


class ReviewVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer's verdict, as the page and the API send it."""

    run: str
    question: str
    verdict: Literal["trust", "distrust"]
    trial: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    comment: Annotated[str, msgspec.Meta(max_length=20_000)] = ""


def load_review(store: SqlStore, query: ReviewQuery) -> ReviewView:
    """Read the page."""
    try:
        info = store.find_run(query.run or "latest")
    except UnknownNameError:
        if query.run:
            raise
        return ReviewView(
            info=None, at=0, waiting=0, done=0, item=None, reference_answer=None, trial=None, ahead=()
        )
    queue = ReviewQueue(store, info)
    waiting, done = queue.counts()
    items = queue.page(limit=_AHEAD, offset=query.at)
    item = items[0] if items else None
    trial = None
    reference = None
    if item is not None:
        shown = load_question(store, QuestionQuery(), info.id, item.question_id)
        reference = shown.question.reference_answer
        trial = next((one for one in shown.trials if one.detail.trial == item.trial), None)
    return ReviewView(
        info=info,
        at=query.at,
        waiting=waiting,
        done=done,
        item=item,
        reference_answer=reference,
        trial=trial,
        ahead=tuple(items[1:]),
    )


def save_verdict(store: SqlStore, given: ReviewVerdict, author: str) -> Feedback:
    """Save a reviewer's verdict; the same reviewer's second one on a reply replaces the first."""
    queue = ReviewQueue(store, store.find_run(given.run))
    trusted = given.verdict == "trust"
    return queue.judge(given.question, given.trial, trusted=trusted, comment=given.comment, author=author)
