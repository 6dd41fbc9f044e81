"""The Review page: one reply at a time that a person should judge, and what waits behind it."""

from math import ceil
from typing import Annotated, Literal

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.model.feedback import Feedback
from answerkey.model.run import RunInfo
from answerkey.server.views.question import QuestionQuery, TrialView, load_question
from answerkey.server.views.table_choice import ShortText
from answerkey.stats.agreement import krippendorff_alpha
from answerkey.stats.intervals import Interval, wilson_interval
from answerkey.store.review import Order, ReviewItem, ReviewQueue
from answerkey.store.sql import SqlStore

_AHEAD = 12
# Points of a hundred.
Precision = Literal[5, 10, 15]


class ReviewQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which run's queue, and how many replies were skipped."""

    run: ShortText | None = None
    # Drawn by lot, which tells how good the replies are; or where a judge disagrees most first.
    order: Order = "sample"
    # Second opinions: replies that one reviewer has judged.
    second: bool = False
    # Within how many points of a hundred the share of good replies shall be known.
    precision: Precision = 10
    # What was judged last, to take it back: a question and its trial.
    last: ShortText | None = None
    last_trial: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    at: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0


class ReviewView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    # None: the store has no run yet.
    info: RunInfo | None
    query: ReviewQuery
    at: int
    waiting: int
    done: int
    # How many verdicts the precision takes, of all that wait or are done.
    needed: int = 0
    # Replies that most of their reviewers trust, of those with a verdict, with its interval.
    trusted: int = 0
    interval: Interval | None = None
    # Who has judged, on how many replies two or more did, and Krippendorff's alpha of those.
    reviewers: tuple[str, ...] = ()
    shared: int = 0
    alpha: float | None = None
    # None: nothing waits, or everything was skipped.
    item: ReviewItem | None
    reference_answer: str | None
    trial: TrialView | None
    ahead: tuple[ReviewItem, ...]


class ReviewVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer's verdict, as the page and the API send it."""

    run: str
    question: str
    # undo: take back what this reviewer said of it.
    verdict: Literal["trust", "distrust", "undo"]
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
            info=None,
            query=query,
            at=0,
            waiting=0,
            done=0,
            item=None,
            reference_answer=None,
            trial=None,
            ahead=(),
        )
    queue = ReviewQueue(store, info)
    waiting, done = queue.counts()
    verdicts = queue.verdicts()
    given = [2 * sum(said.values()) > len(said) for said in verdicts.values()]
    shared = [said for said in verdicts.values() if len(said) > 1]
    reviewers = tuple(sorted({name for said in verdicts.values() for name in said}))
    items = queue.page(order=query.order, reviews=int(query.second), limit=_AHEAD, offset=query.at)
    item = items[0] if items else None
    trial = None
    reference = None
    if item is not None:
        shown = load_question(store, QuestionQuery(), info.id, item.question_id)
        reference = shown.question.reference_answer
        trial = next((one for one in shown.trials if one.detail.trial == item.trial), None)
    return ReviewView(
        info=info,
        query=query,
        at=query.at,
        waiting=waiting,
        done=done,
        needed=sample_size(waiting + done, query.precision / 100),
        trusted=sum(given),
        interval=wilson_interval(sum(given), len(given)) if given else None,
        reviewers=reviewers,
        shared=len(shared),
        alpha=krippendorff_alpha([[_number(said.get(name)) for name in reviewers] for said in shared]),
        item=item,
        reference_answer=reference,
        trial=trial,
        ahead=tuple(items[1:]),
    )


def sample_size(total: int, precision: float) -> int:
    """How many of so many tell a share within ± the precision, 19 times in 20, whatever it is."""
    endless = (1.96 / (2 * precision)) ** 2
    return min(total, ceil(endless * total / (endless + total - 1))) if total else 0


def _number(trusted: bool | None) -> float | None:
    return None if trusted is None else float(trusted)


def save_verdict(store: SqlStore, given: ReviewVerdict, author: str) -> Feedback | None:
    """Save a reviewer's verdict, in the place of their earlier one, or take that back: then there is none."""
    queue = ReviewQueue(store, store.find_run(given.run))
    if given.verdict == "undo":
        queue.take_back(given.question, given.trial, author=author)
        return None
    trusted = given.verdict == "trust"
    return queue.judge(given.question, given.trial, trusted=trusted, comment=given.comment, author=author)
