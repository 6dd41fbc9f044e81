"""The Question and Review pages, and those of production replies and feedback.

A Question page shows every trial with its scores, and the history over runs; golden cases are made from production replies.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec

from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.judgement import COMMENT_LIMIT, Feedback, FeedbackStats, ProductionReply, ReplyKey
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.report.detail import Loss, TrialDetail, trial_detail
from answerkey.report.markup import Chart, Line, Moment, Rule, bar_chart, line_chart
from answerkey.report.result_files import Table
from answerkey.runs.production import METADATA, TAG, ProductionSeries, case_id, metadata_values, why_proposed
from answerkey.server.rendering import feedback_figures, series_stored
from answerkey.server.runs import RunQuery
from answerkey.server.tables import (
    NoQuery,
    PageNumber,
    Paging,
    ReplyRow,
    TableView,
    reply_row,
    reply_table,
    table_of_run,
)
from answerkey.stats.intervals import Interval, wilson_interval
from answerkey.stats.paired import Confusion, cohen_kappa, krippendorff_alpha
from answerkey.store.feedback import (
    FeedbackFilter,
    FeedbackStore,
    Order,
    ReviewItem,
    ReviewQueue,
    review_production,
)
from answerkey.store.production import (
    MAX_COUNTED,
    ProductionFacets,
    ProductionFilter,
    ProductionQueue,
    ProductionReplies,
)
from answerkey.store.questions import HistoryPoint, question_history
from answerkey.store.sql import SqlStore
from answerkey.store.table_query import ShortText
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

_PAGE = 50
# Turns of a conversation that are listed.
_MOST_TURNS = 50


# Values of a facet that are drawn.
_MOST_LINES = 5
_FACETS = (("version", "Version"), ("model", "Model"), ("category", "Category"), ("error", "Error"))


class RepliesQuery(ProductionFilter, frozen=True, kw_only=True):
    """Which replies, and in what order; the figures are over the same replies."""

    not_filters = (*ProductionFilter.not_filters, "by")

    page: PageNumber = 1
    # The facet that the figures are split by: version, model, category, error or metadata.NAME.
    by: ShortText | None = None


class RepliesView(TableView, frozen=True, kw_only=True):
    """What the list shows."""

    anchor = "replies"

    query: RepliesQuery
    figures: ProductionSeries
    # Values to filter by: of the days, and of metadata in the newest replies.
    facets: ProductionFacets
    metadata: dict[str, tuple[str, ...]]
    paging: Paging
    rows: tuple[ReplyRow, ...]

    @property
    def splits(self) -> list[tuple[str, str]]:
        """What the figures can be split by: (facet, name)."""
        return [*_FACETS, *((f"{METADATA}{name}", name) for name, values in self.metadata.items() if values)]

    def charts(self, link: Callable[..., str]) -> list[tuple[str, Chart]]:
        """The figures by day; a value leads to the replies of its day."""
        days = dict.fromkeys(one.day for one in self.figures.days)
        moments = [
            Moment(at=day, name=day, address=link(since=day, until=day, page=None) + "#replies")
            for day in days
        ]
        return production_charts(self.figures, moments)

    @property
    def table(self) -> Table:
        return reply_table(self.query, self.rows)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A golden case suggested by the reply and its feedback."""

    id: str
    category: str
    expected_tools: tuple[str, ...]
    reference_answer: str


class ReplyView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of one reply shows."""

    row: ReplyRow
    received_at: str | None
    trace_id: str | None
    conversation_id: str | None
    metadata: dict[str, str]
    # The replies of its conversation in order, this one among them; none if it is alone.
    conversation: tuple[ReplyRow, ...]
    # False: nothing was expected, and only errors are graded.
    graded: bool
    detail: TrialDetail
    draft: Draft


class CaseForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form that makes a golden case from a reply; lists have one item per line."""

    id: Annotated[str, msgspec.Meta(max_length=400)] = ""
    category: Annotated[str, msgspec.Meta(max_length=400)] = ""
    expected_tools: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] = ""
    expected_keywords: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] = ""
    reference_answer: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] = ""


def production_charts(series: ProductionSeries, moments: Sequence[Moment]) -> list[tuple[str, Chart]]:
    """Errors, score, satisfaction, time and cost by day: one line, or one for each of the commonest values."""
    known = {(one.day, one.value): one for one in series.days}
    values = [group.value for group in series.groups[:_MOST_LINES]] or [""]
    drawn: list[tuple[str, Chart]] = []

    def add(title: str, unit: str, *figures: tuple[str, str]) -> None:
        """Draw figures, each with its name and its field."""
        lines = []
        for value in values:
            cells = [known.get((moment.at, value)) for moment in moments]
            for words, name in figures:
                intervals = [
                    None if cell is None else getattr(cell, f"{name}_interval", None) for cell in cells
                ]
                lines.append(
                    Line(
                        name=(one_line(value, 40) or "unknown") if series.groups else words,
                        values=[None if cell is None else getattr(cell, name) for cell in cells],
                        # Those of several lines would cover each other.
                        intervals=[one and (one.low, one.high) for one in intervals]
                        if len(values) == 1
                        else (),
                    )
                )
        if any(value is not None for line in lines for value in line.values):
            drawn.append((title, line_chart(lines, moments, unit=unit)))

    add("Replies a day", "count", ("replies", "replies"))
    add("Ended in an error", "percent", ("errors", "error_rate"))
    add("Score by the golden set", "percent", ("score", "score"))
    add("Satisfaction", "percent", ("satisfaction", "satisfaction"))
    if series.groups:
        add("Time (p95)", "ms", ("p95", "p95"))
    else:
        add("Time", "ms", ("slow (p95)", "p95"), ("typical (p50)", "p50"))
    add("Cost of a reply", "money", ("cost", "cost"))
    return drawn


def load_replies(store: SqlStore, query: RepliesQuery) -> RepliesView:
    replies = ProductionReplies(store)
    found, total = replies.page(query, limit=_PAGE, offset=(query.page - 1) * _PAGE)
    verdicts = replies.verdicts([item.id for item in found])
    return RepliesView(
        query=query,
        figures=series_stored(store, query, query.by),
        facets=replies.facets(query),
        metadata=metadata_values(store),
        paging=Paging(query.page, _PAGE, min(total, MAX_COUNTED), more=total > MAX_COUNTED),
        rows=tuple(reply_row(item, verdicts.get(item.id, [])) for item in found),
    )


def load_reply(store: SqlStore, query: NoQuery, reply: str) -> ReplyView:
    """Read one reply; raises UnknownNameError if it does not exist."""
    item = find_production_reply(store, reply)
    given = ProductionReplies(store).verdicts([item.id]).get(item.id, [])
    question = Question(id=item.id, question=item.question, category=item.category or "uncategorised")
    card = item.scorecard or Scorecard(components={}, total=None, grade=None, passed=False)
    if item.score is None:
        # Nothing was expected: its scores only show whether it was an error.
        errors_only = {name: score for name, score in card.components.items() if name == "error_handling"}
        card = msgspec.structs.replace(card, components=errors_only, total=None, grade=None)
    conversation = item.reply.conversation_id
    turns: tuple[ReplyRow, ...] = ()
    if conversation:
        same = ProductionFilter(conversation=conversation[:200], sort="created_at")
        found, _ = ProductionReplies(store).page(same, limit=_MOST_TURNS)
        turns = tuple(reply_row(one, ()) for one in found) if len(found) > 1 else ()
    liked = any(one.positive for one in given) and not any(not one.positive for one in given)
    corrected = next((one.correction for one in given if one.correction), None)
    return ReplyView(
        row=reply_row(item, given),
        received_at=item.received_at,
        trace_id=item.reply.trace_id,
        conversation_id=item.reply.conversation_id,
        metadata=item.metadata,
        conversation=turns,
        graded=item.score is not None,
        detail=trial_detail(Trial(question, replies=(item.reply,), scorecard=card)),
        draft=Draft(
            id=case_id(item.question),
            category=item.category or "",
            expected_tools=tuple(dict.fromkeys(item.reply.tools_used)),
            # Only a correction, or a reply that was liked, is known to be a good answer.
            reference_answer=corrected or (item.reply.text or "" if liked else ""),
        ),
    )


def golden_case(store: SqlStore, identity: str, form: CaseForm) -> dict[str, Any]:
    """The golden case that the form describes; raises UsageError if it is invalid."""
    item = find_production_reply(store, identity)
    case: dict[str, Any] = {"id": form.id.strip() or case_id(item.question), "question": item.question}
    if form.category.strip():
        case["category"] = form.category.strip()
    case["expected_tools"] = _lines(form.expected_tools)
    case["expected_keywords"] = _lines(form.expected_keywords)
    if form.reference_answer.strip():
        case["reference_answer"] = form.reference_answer.strip()
    case["tags"] = [TAG]
    try:
        parse_question(case)
    except ValueError as error:
        raise UsageError(f"invalid golden case: {error}") from None
    verdicts = ProductionReplies(store).verdicts([item.id]).get(item.id, [])
    case["feedback"] = why_proposed(verdicts[0] if verdicts else None, item)
    return case


def find_production_reply(store: SqlStore, identity: str) -> ProductionReply:
    """A production reply; raises UnknownNameError if it does not exist."""
    item = ProductionReplies(store).find(identity)
    if item is None:
        raise UnknownNameError(f"no production reply {identity[:120]!r} in this store")
    return item


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


# The Feedback page


_PAGE_FEEDBACK = 25


class FeedbackQuery(FeedbackFilter, frozen=True, kw_only=True):
    """Which verdicts to list; the figures are over all verdicts of the days."""

    page: PageNumber = 1


class FeedbackView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    query: FeedbackQuery
    stats: FeedbackStats
    paging: Paging
    items: tuple[Feedback, ...]
    # Negative verdicts, from which golden cases are proposed.
    downvoted: int

    @property
    def chart(self) -> Chart:
        """Thumbs by day; each bar links to the verdicts of its day."""
        # At least seven bars, so that a single day does not fill the chart.
        bars: list[list[tuple[float, str, str, str | None]]] = [[] for _ in range(7 - len(self.stats.days))]
        labels = [""] * len(bars)
        for day in self.stats.days:
            bad = day.feedback - day.positive
            address = f"/feedback?since={day.day}&until={day.day}"
            bars.append(
                [
                    (float(day.positive), "A", f"{day.day}: {day.positive} thumbs up", f"{address}&value=up"),
                    (float(bad), "F", f"{day.day}: {bad} thumbs down", f"{address}&value=down"),
                ]
            )
            labels.append(day.day[5:])
        return bar_chart(bars, labels)


def load_feedback(store: SqlStore, query: FeedbackQuery) -> FeedbackView:
    book = FeedbackStore(store)
    items, total = book.page(query, limit=_PAGE_FEEDBACK, offset=(query.page - 1) * _PAGE_FEEDBACK)
    down = FeedbackFilter(value="down", since=query.since, until=query.until)
    _, downvoted = book.page(down, limit=1)
    return FeedbackView(
        query=query,
        stats=feedback_figures(store, query),
        paging=Paging(query.page, _PAGE_FEEDBACK, total),
        items=tuple(items),
        downvoted=downvoted,
    )


_HISTORY = 50
# Characters of a finding (a judge's reasons) that are shown.
_FINDING = 4_000


class QuestionQuery(RunQuery, frozen=True, kw_only=True):
    """The list that the visitor came from, and the question's position in it, for next and previous."""

    not_filters = (*RunQuery.not_filters, "at")

    at: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | None = None


class Neighbours(msgspec.Struct, frozen=True, kw_only=True):
    """The next and the previous question in the visitor's list."""

    before: str | None = None
    after: str | None = None
    at: int = 0
    total: int = 0


class TrialView(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of the question."""

    detail: TrialDetail
    # Further findings of scorers as text, e.g. a judge's reasons.
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
        """Its score over the runs of this chatbot; each point links to the question in that run."""
        points = [
            point
            for point in reversed(self.history)
            if point.score is not None and point.target == self.info.target
        ]
        asked = quote(self.question.id, safe="")
        moments = [
            Moment(
                at=point.created_at,
                name=f"{one_line(point.run_name, 60)}, {local_time(point.created_at)}",
                address=f"/runs/{quote(point.run_id, safe='')}/questions/{asked}",
            )
            for point in points
        ]
        score = Line(
            name="score",
            values=[point.score for point in points],
            intervals=[(point.lowest or 0.0, point.highest or 0.0) for point in points],
        )
        return line_chart([score], moments, rules=[Rule(self.info.pass_mark, "pass mark", "gate")])


def load_question(store: SqlStore, query: QuestionQuery, run: str, question: str) -> QuestionView:
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
    info = store.find_run(run)
    for result in store.results_of(info, question, most=1000):
        if result.number == trial and 0 < turn <= len(result.replies):
            return result.replies[turn - 1].text or ""
    raise UnknownNameError(f"run {info.id} has no reply {turn} in trial {trial} of {question[:120]!r}")


def _neighbours(store: SqlStore, info: RunInfo, query: QuestionQuery) -> Neighbours:
    if query.at is None:
        return Neighbours()
    start = max(0, query.at - 1)
    rows, total = table_of_run(store, info, query).page(query, limit=3 if query.at else 2, offset=start)
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


# The Review page: one reply at a time, and the queue behind it


_AHEAD = 12
# Runs offered for a review.
_RUNS = 30
# Points of a hundred.
Precision = Literal[5, 10, 15]


class ReviewQuery(ProductionFilter, frozen=True, kw_only=True):
    """Which queue, and how many replies were skipped; the filters are those of production replies."""

    not_filters = (*ProductionFilter.not_filters, "run", "last")

    source: Literal["run", "production"] = "run"
    run: ShortText | None = None
    # Whether score and judge are hidden until the verdict.
    blind: bool = True
    # A random sample, for an unbiased estimate; or the largest disagreements with the judge first.
    order: Order = "sample"
    # Second opinions: replies that have one review.
    second: bool = False
    # The wanted precision of the share of good replies, in percentage points.
    precision: Precision = 10
    # The last reviewed reply, for undo: a question and its trial.
    last: ShortText | None = None
    last_trial: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    at: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0


class ReviewView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    # None: the store has no runs.
    info: RunInfo | None
    query: ReviewQuery
    at: int = 0
    waiting: int = 0
    done: int = 0
    # The number of verdicts that the precision needs.
    needed: int = 0
    # Replies that the majority of their reviewers trust, and the interval of their share.
    trusted: int = 0
    interval: Interval | None = None
    # The reviewers, the number of replies with several reviews, and Krippendorff's alpha of those.
    reviewers: tuple[str, ...] = ()
    shared: int = 0
    alpha: float | None = None
    # None: the queue is empty, or everything was skipped.
    item: ReviewItem | None = None
    reference_answer: str | None = None
    trial: TrialView | None = None
    ahead: tuple[ReviewItem, ...] = ()
    # Of the production queue.
    reply: ReplyView | None = None
    # Replies on which the reviewers agree with the judge and with the score, each of how many, and κ with the judge.
    judge_agrees: tuple[int, int] = (0, 0)
    score_agrees: tuple[int, int] = (0, 0)
    kappa: float | None = None
    # Runs that can be chosen.
    runs: tuple[RunInfo, ...] = ()


class ReviewVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer's verdict, as the page and the API send it."""

    run: str = ""
    question: str = ""
    # The id of a production reply, instead of a run and its question.
    reply: str = ""
    # undo: remove this reviewer's verdict.
    verdict: Literal["trust", "distrust", "undo"]
    trial: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    comment: Annotated[str, msgspec.Meta(max_length=20_000)] = ""


def _load_production_review(store: SqlStore, query: ReviewQuery) -> ReviewView:
    queue = ProductionQueue(store, query)
    waiting, done = queue.counts()
    trusted, judged = queue.trusted()
    found = queue.next_id(query.at)
    reply = None if found is None else load_reply(store, NoQuery(), found)
    if reply is not None and query.blind:
        reply = msgspec.structs.replace(reply, detail=blind_detail(reply.detail))
    return ReviewView(
        info=None,
        query=query,
        at=query.at,
        waiting=waiting,
        done=done,
        needed=sample_size(waiting + done, query.precision / 100),
        trusted=trusted,
        interval=wilson_interval(trusted, judged) if judged else None,
        reply=reply,
        runs=tuple(store.list_infos(limit=_RUNS)),
    )


def blind_detail(detail: TrialDetail) -> TrialDetail:
    """A trial without anything that says how it was scored."""
    turns = (
        msgspec.structs.replace(
            turn,
            reply=None
            if turn.reply is None
            else tuple(msgspec.structs.replace(piece, marks=(), note="") for piece in turn.reply),
            found=(),
            missing=(),
            missing_tools=(),
            claims=(),
            links=None,
            remarks=(),
            components=(),
            metrics={},
        )
        for turn in detail.turns
    )
    return msgspec.structs.replace(detail, turns=tuple(turns), score=None, losses=())


def _agreement(pairs: Iterable[tuple[bool, float | None]], mark: float) -> tuple[Confusion, tuple[int, int]]:
    """Reviewers against a measure that passes from `mark` on: the table, and (agreeing, all)."""
    known = Counter((value >= mark, trusted) for trusted, value in pairs if value is not None)
    table = Confusion(known[True, True], known[True, False], known[False, True], known[False, False])
    return table, (known[True, True] + known[False, False], known.total())


def load_review(store: SqlStore, query: ReviewQuery) -> ReviewView:
    if query.source == "production":
        return _load_production_review(store, query)
    try:
        info = store.find_run(query.run or "latest")
    except UnknownNameError:
        if query.run:
            raise
        return ReviewView(info=None, query=query)
    queue = ReviewQueue(store, info)
    waiting, done = queue.counts()
    verdicts = queue.verdicts()
    trusted = [2 * sum(votes.values()) > len(votes) for votes in verdicts.values()]
    shared = [votes for votes in verdicts.values() if len(votes) > 1]
    reviewers = tuple(sorted({name for votes in verdicts.values() for name in votes}))
    items = queue.page(order=query.order, reviews=int(query.second), limit=_AHEAD, offset=query.at)
    item = items[0] if items else None
    trial = None
    reference = None
    if item is not None:
        shown = load_question(store, QuestionQuery(), info.id, item.question_id)
        reference = shown.question.reference_answer
        trial = next((one for one in shown.trials if one.detail.trial == item.trial), None)
        if trial is not None and query.blind:
            trial = msgspec.structs.replace(
                trial, detail=blind_detail(trial.detail), metrics={}, findings={}, feedback=()
            )
    grades = queue.grades()
    table, judge_agrees = _agreement([(trusted, judge) for trusted, _, judge in grades], info.pass_mark)
    kappa = cohen_kappa(table) if table.n else None
    _, score_agrees = _agreement([(trusted, score) for trusted, score, _ in grades], info.pass_mark)
    return ReviewView(
        info=info,
        query=query,
        at=query.at,
        waiting=waiting,
        done=done,
        needed=sample_size(waiting + done, query.precision / 100),
        trusted=sum(trusted),
        interval=wilson_interval(sum(trusted), len(trusted)) if trusted else None,
        reviewers=reviewers,
        shared=len(shared),
        alpha=krippendorff_alpha([[votes.get(name) for votes in shared] for name in reviewers]),
        item=item,
        reference_answer=reference,
        trial=trial,
        ahead=tuple(items[1:]),
        judge_agrees=judge_agrees,
        score_agrees=score_agrees,
        kappa=None if kappa is None else kappa.value,
        runs=tuple(store.list_infos(limit=_RUNS)),
    )


def sample_size(total: int, precision: float) -> int:
    """The sample size that estimates a share of `total` within ± the precision with 95% confidence."""
    endless = (1.96 / (2 * precision)) ** 2
    return min(total, ceil(endless * total / (endless + total - 1))) if total else 0


def save_verdict(store: SqlStore, verdict: ReviewVerdict, author: str) -> Feedback | None:
    """Save a reviewer's verdict, replacing their earlier one; None after an undo."""
    if verdict.reply:
        item = find_production_reply(store, verdict.reply)
        given = None if verdict.verdict == "undo" else verdict.verdict == "trust"
        return review_production(store, item, trusted=given, comment=verdict.comment, author=author)
    queue = ReviewQueue(store, store.find_run(verdict.run))
    if verdict.verdict == "undo":
        queue.remove_verdict(verdict.question, verdict.trial, author=author)
        return None
    trusted = verdict.verdict == "trust"
    return queue.record_verdict(
        verdict.question, verdict.trial, trusted=trusted, comment=verdict.comment, author=author
    )
