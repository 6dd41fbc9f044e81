"""The Question page: what was said and done in every trial, why it scored so, and how it went in other runs."""

from collections.abc import Iterable
from math import ceil
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.model.feedback import Feedback, ReplyKey
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.report.charts import Chart, Rule, line_chart, moment_labels
from answerkey.report.detail import Loss, TrialDetail, trial_detail
from answerkey.server.views.runs import RunQuery
from answerkey.stats.agreement import krippendorff_alpha
from answerkey.stats.intervals import Interval, wilson_interval
from answerkey.store.feedback import FeedbackStore
from answerkey.store.questions import HistoryPoint, QuestionTable, question_history
from answerkey.store.review import Order, ReviewItem, ReviewQueue
from answerkey.store.sql import SqlStore
from answerkey.store.table_query import ShortText
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

_HISTORY = 50
# Characters of a finding (a judge's reasons) that are shown.
_FINDING = 4_000


class QuestionQuery(RunQuery, frozen=True, kw_only=True):
    """The list from which the reader came, and the question's place in it, for the next and the one before."""

    at: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | None = None


class Neighbours(msgspec.Struct, frozen=True, kw_only=True):
    """The questions around this one in the reader's list."""

    before: str | None = None
    after: str | None = None
    at: int = 0
    total: int = 0


class TrialView(msgspec.Struct, frozen=True, kw_only=True):
    """One asking of the question."""

    detail: TrialDetail
    # What scorers found beyond a number, as text: a judge's reasons, for instance.
    findings: dict[str, str]
    metrics: dict[str, float | None]
    ids: dict[str, str]
    feedback: tuple[Feedback, ...]


class QuestionView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    info: RunInfo
    query: QuestionQuery
    question: Question
    score: float | None
    grade: str | None
    passed: bool
    # Why points were lost, in its worst trial.
    losses: tuple[Loss, ...]
    trials: tuple[TrialView, ...]
    history: tuple[HistoryPoint, ...]
    neighbours: Neighbours

    @property
    def chart(self) -> Chart:
        """Its score over runs, oldest first; each leads to the question in that run."""
        points = [point for point in reversed(self.history) if point.score is not None]
        names = [f"{one_line(point.run_name, 60)}, {local_time(point.created_at)}" for point in points]
        moments, runs = [point.created_at for point in points], [point.run_name for point in points]
        asked = quote(self.question.id, safe="")
        return line_chart(
            [("score", [point.score for point in points])],
            moment_labels(moments, runs),
            names=names,
            addresses=[f"/runs/{quote(point.run_id, safe='')}/questions/{asked}" for point in points],
            intervals=[(point.lowest or 0.0, point.highest or 0.0) for point in points],
            rules=[Rule(self.info.pass_mark, "pass mark", "gate")],
            top=1.0,
        )


def load_question(store: SqlStore, query: QuestionQuery, run: str, question: str) -> QuestionView:
    """Read the page."""
    info = store.find_run(run)
    results = store.results_of(info, question)
    book = FeedbackStore(store)
    asked = results[0].question
    history = question_history(store, question, limit=_HISTORY)
    mine = next((point for point in history if point.run_id == info.id), None)
    keys = [ReplyKey(info.id, asked.ask_hash, result.number, info.target_hash) for result in results]
    trials = [_trial(result, book.of_reply(key)) for result, key in zip(results, keys, strict=True)]
    first = results[0].scorecard
    return QuestionView(
        info=info,
        query=query,
        question=asked,
        score=first.total if mine is None else mine.score,
        grade=first.grade if mine is None else mine.grade,
        passed=first.passed if mine is None else mine.passed,
        losses=min(
            trials, key=lambda trial: -1.0 if trial.detail.score is None else trial.detail.score
        ).detail.losses,
        trials=tuple(trials),
        history=tuple(history),
        neighbours=_neighbours(store, info, query),
    )


def _trial(result: Trial, feedback: Iterable[Feedback]) -> TrialView:
    card = result.scorecard
    reply = result.replies[-1] if result.replies else Reply()
    names = ("response_id", "trace_id", "conversation_id")
    return TrialView(
        detail=trial_detail(result),
        findings={
            name: _readable(finding)
            for name, finding in card.findings.items()
            if name not in ("groundedness", "linked")
        },
        metrics=card.metrics,
        ids={name: one_line(value, 200) for name in names if (value := getattr(reply, name))},
        feedback=tuple(feedback),
    )


def load_full_reply(store: SqlStore, run: str, question: str, trial: int, turn: int) -> str:
    """A reply's whole text, however long."""
    info = store.find_run(run)
    for result in store.results_of(info, question, most=1000):
        if result.number == trial and 0 < turn <= len(result.replies):
            return result.replies[turn - 1].text or ""
    raise UnknownNameError(f"run {info.id} has no reply {turn} in trial {trial} of {question[:120]!r}")


def _neighbours(store: SqlStore, info: RunInfo, query: QuestionQuery) -> Neighbours:
    if query.at is None:
        return Neighbours()
    start = max(0, query.at - 1)
    rows, total = QuestionTable(store, info).page(query, limit=3 if query.at else 2, offset=start)
    index = query.at - start
    return Neighbours(
        before=rows[0].id if query.at and rows else None,
        after=rows[index + 1].id if len(rows) > index + 1 else None,
        at=query.at,
        total=total,
    )


def _readable(finding: Any) -> str:
    if isinstance(finding, str):
        return finding[:_FINDING]
    return msgspec.json.format(msgspec.json.encode(finding), indent=2).decode()[:_FINDING]


# The Review page: one reply at a time that a person should judge, and what waits behind it.


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
        queue.remove_verdict(given.question, given.trial, author=author)
        return None
    trusted = given.verdict == "trust"
    return queue.record_verdict(
        given.question, given.trial, trusted=trusted, comment=given.comment, author=author
    )
