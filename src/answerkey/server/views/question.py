"""The Question page: what was said and done in every trial, why it scored so, and how it went in other runs."""

from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.model.feedback import Feedback, ReplyKey
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.trial import Trial
from answerkey.report.charts import Chart, Rule, line_chart, moment_labels
from answerkey.report.detail import TrialDetail, trial_detail
from answerkey.report.losses import Loss
from answerkey.server.views.run import RunQuery
from answerkey.store.feedback_book import FeedbackBook
from answerkey.store.question_list import HistoryPoint, QuestionList
from answerkey.store.sql import SqlStore
from answerkey.text.moments import local_time
from answerkey.text.sanitise import one_line

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
    book = FeedbackBook(store)
    asked = results[0].question
    history = QuestionList(store).history(question, limit=_HISTORY)
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
    rows, total = QuestionList(store).rows(info, query, limit=3 if query.at else 2, offset=start)
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
