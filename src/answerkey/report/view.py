"""The view model of a run that every report renders; built in one pass, in memory that does not grow with the results."""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from answerkey.errors import UnknownNameError, nearest_name
from answerkey.model.comparison import cause_lines
from answerkey.model.run import (
    BAD_ROW,
    GateResult,
    Latency,
    LoggedResults,
    QuestionFigures,
    QuestionRow,
    Run,
    RunInfo,
    Slice,
    StreamedResults,
    Summary,
    question_row,
)
from answerkey.model.scorecard import Trial, fails_once, mean_score, passes
from answerkey.report.detail import Limits, Loss, TrialDetail, losses_of, trial_detail
from answerkey.report.wording import (
    count,
    grade_words,
    key_lines,
    list_words,
    milliseconds,
    name_words,
    passed_texts,
    percent,
    score_percent,
    scored_questions,
)
from answerkey.runs.causes import Grouping
from answerkey.stats.intervals import Interval
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

# Trials of one question that are shown in full, the worst first.
_TRIALS_SHOWN = 3
# Logs with more replies are not read again to explain a failed gate.
_MOST_EXPLAINED = 100_000
_QUESTION_WIDTH = 400
_NAME_WIDTH = 80


class _Ranked(NamedTuple):
    """A question in the order in which reports list it: failed critical ones first, then by score."""

    is_other: bool
    # −1: not scored.
    score: float
    position: int
    trials: list[Trial]

    @classmethod
    def of(cls, score: float | None, position: int, trials: list[Trial], pass_mark: float) -> "_Ranked":
        is_critical = trials[0].question.severity == "critical"
        failed = is_critical and (
            score is None or fails_once((trial.scorecard.total for trial in trials), pass_mark)
        )
        return cls(not failed, -1.0 if score is None else score, position, trials)


class ComponentView(msgspec.Struct, frozen=True):
    """A component over the whole run."""

    name: str
    weight: float
    score: float | None
    interval: Interval | None
    # False: no question expects anything of it, so that its 1.0 says nothing.
    measured: bool = True


class QuestionView(QuestionFigures, frozen=True, kw_only=True):
    """A question with the mean of its trials, and why it lost points."""

    # The losses of its worst trial.
    losses: tuple[Loss, ...]
    # Its worst trials in full; empty unless limits were given.
    details: tuple[TrialDetail, ...] = ()


class SlowView(msgspec.Struct, frozen=True):
    """A slow question."""

    id: str
    question: str
    latency_ms: float


class ReportView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a report shows."""

    info: RunInfo
    summary: Summary
    gates: tuple[GateResult, ...]
    warnings: tuple[str, ...]
    components: tuple[ComponentView, ...]
    # Weakest first.
    categories: tuple[Slice, ...]
    slices: dict[str, tuple[Slice, ...]]
    # Whether questions are listed below, or single replies: the worst of a log whose results were not kept.
    lists_replies: bool
    # Questions or replies that lost points, the worst first.
    worst: tuple[QuestionView, ...]
    # How many of all questions or replies lost points, how many failed, and how many there are.
    imperfect: int
    failed: int
    total: int
    slowest: tuple[SlowView, ...]
    # The largest causes of lost points, in words; empty if the results were not read.
    causes: tuple[str, ...]
    # Those that are shown before everything else because a gate failed: against the baseline, else of the run itself.
    reasons: tuple[str, ...] = ()
    # Questions or replies in full: the failed ones first, worst first, then the others in order.
    rows: tuple[QuestionView, ...] = ()

    @property
    def failed_gates(self) -> tuple[GateResult, ...]:
        return tuple(gate for gate in self.gates if not gate.passed)

    @property
    def later_causes(self) -> tuple[str, ...]:
        """The run's causes where they are not shown before everything else."""
        return () if self.causes == self.reasons else self.causes

    @property
    def title(self) -> str:
        """The run's name, or its id."""
        return one_line(self.info.name or self.info.id, 120)

    def counted(self, number: int) -> str:
        """`3 questions`, or `3 replies` if single replies are listed."""
        return count(number, "reply", "replies") if self.lists_replies else count(number, "question")

    @property
    def key(self) -> tuple[str, ...]:
        """How much the answer key refuses, what was computed from data, and preconditions that failed."""
        lines = key_lines(self.summary, score_percent)
        truth = self.info.truth
        if truth is not None and truth.computed:
            computed = count(truth.computed, "expectation")
            lines.append(f"{computed} computed from data, {local_time(truth.computed_at)}")
        if truth is not None and truth.world:
            failed = [f"{check.name} is {check.value}" for check in truth.world if not check.holds]
            checks = count(len(truth.world), "precondition")
            lines.append(f"{checks} on the data: {', '.join(failed) or 'all hold'}")
        return tuple(f"{line[:1].upper()}{line[1:]}." for line in lines)

    @property
    def latencies(self) -> list[tuple[str, Latency]]:
        """The latencies of all replies, then of each tool; empty if nothing was timed."""
        if self.summary.latency_ms is None:
            return []
        tools = self.summary.tool_latency_ms.items()
        return [("all replies", self.summary.latency_ms), *((one_line(name, 120), of) for name, of in tools)]

    @property
    def replies_passed(self) -> str:
        """`2,119 of 3,000 replies passed (70.6%)` where questions have several replies, else empty."""
        _, *replies = passed_texts(self.summary)
        return "".join(replies)


def build_view(run: Run, *, worst: int = 10, rows: int = 0, limits: Limits | None = None) -> ReportView:
    """Read a run's results once; list the `worst` questions, and `rows` of them in full."""
    limits = limits or Limits()
    mark = run.info.pass_mark
    ranking = _rank_results(run, worst, rows)
    summary = run.summary
    causes = ranking.cause_lines()
    return ReportView(
        info=run.info,
        summary=summary,
        gates=run.gates,
        warnings=tuple(one_line(warning, 400) for warning in run.warnings),
        components=tuple(
            ComponentView(
                name,
                weight,
                summary.components.get(name),
                summary.component_intervals.get(name),
                name not in summary.unmeasured,
            )
            for name, weight in run.info.weights.items()
        ),
        categories=worst_first(summary.categories),
        slices={kind: worst_first(parts) for kind, parts in summary.slices.items()},
        lists_replies=ranking.lists_replies,
        worst=tuple(_question(ranked.position, ranked.trials, mark) for ranked in ranking.lowest),
        imperfect=ranking.imperfect,
        failed=ranking.failed,
        total=ranking.total,
        slowest=tuple(
            SlowView(one_line(slow.id, 120), ranking.slow_texts.get(slow.id, ""), slow.latency_ms)
            for slow in summary.slowest
        ),
        causes=causes,
        reasons=() if run.passed else compared_causes(run) or causes,
        rows=tuple(
            _question(ranked.position, ranked.trials, mark, limits)
            for ranked in [*ranking.failures, *ranking.others][:rows]
        ),
    )


def compared_causes(run: Run) -> tuple[str, ...]:
    """The largest causes of the points lost against the baseline."""
    comparison = run.comparison
    return () if comparison is None else tuple(cause_lines(comparison.causes, comparison.lost))


def own_causes(run: Run) -> tuple[str, ...]:
    """The largest causes of the points lost in a run that failed a gate, where no baseline says more."""
    return () if run.passed or compared_causes(run) else _rank_results(run, 0, 0).cause_lines()


class _Ranking:
    """The questions to show. Views are made from them at the end: many are read, and few are shown."""

    def __init__(self) -> None:
        self.lowest: list[_Ranked] = []
        self.failures: list[_Ranked] = []
        self.others: list[_Ranked] = []
        # Texts of the slowest questions.
        self.slow_texts: dict[str, str] = {}
        self.imperfect = self.failed = self.total = 0
        # Whether single replies are ranked.
        self.lists_replies = False
        self.grouping = Grouping()

    def cause_lines(self) -> tuple[str, ...]:
        """The largest causes of lost points; none if the results were not read."""
        groups = self.grouping.groups()
        return tuple(cause_lines(groups, -sum(group.points for group in groups)))


def _rank_results(run: Run, worst: int, rows: int) -> _Ranking:
    ranking = _Ranking()
    results = run.results
    if (
        isinstance(results, LoggedResults)
        and not rows
        and not (not run.passed and results.has_trials and run.summary.trials <= _MOST_EXPLAINED)
        and min(worst, results.imperfect) <= len(results.worst)
    ):
        # The scoring of the log has collected all that is shown.
        ranking.imperfect, ranking.failed = results.imperfect, results.failed
        ranking.lists_replies = True
        unscored = run.summary.unscored.items()
        ranking.total = run.summary.trials + sum(
            n for reason, n in unscored if not reason.startswith(BAD_ROW)
        )
        mark = run.info.pass_mark
        ranking.lowest = sorted(
            _Ranked.of(trial.scorecard.total, position, [trial], mark)
            for position, trial in enumerate(results.worst[:worst])
        )
        return ranking
    slow = {entry.id for entry in run.summary.slowest}
    for position, trials in enumerate(run.by_question()):
        ranking.total += 1
        score = mean_score([trial.scorecard.total for trial in trials])
        ranked = _Ranked.of(score, position, trials, run.info.pass_mark)
        ranking.grouping.add_trials(trials, run.info.options.scoring.match)
        identity = trials[0].question.id
        if identity in slow:
            ranking.slow_texts[identity] = one_line(trials[0].question.question, _QUESTION_WIDTH)
        if ranked.score < 1:
            ranking.imperfect += 1
            _insert(ranking.lowest, ranked, worst)
        if not passes(score, run.info.pass_mark):
            ranking.failed += 1
            _insert(ranking.failures, ranked, rows)
        elif len(ranking.others) < rows:
            ranking.others.append(ranked)
    return ranking


def _question(
    position: int, trials: Sequence[Trial], pass_mark: float, limits: Limits | None = None
) -> QuestionView:
    """A question with the mean of its trials; with `limits` also its worst trials in full."""
    view = row_view(question_row(trials, pass_mark))
    worst = sorted(trials, key=_rank)[:_TRIALS_SHOWN]
    return msgspec.structs.replace(
        view,
        id=one_line(view.id, 120),
        position=position,
        question=one_line(view.question, _QUESTION_WIDTH),
        category=one_line(view.category, _NAME_WIDTH),
        details=() if limits is None else tuple(trial_detail(trial, limits) for trial in worst),
        tools=tuple(one_line(name, _NAME_WIDTH) for name in view.tools),
    )


def row_view(row: QuestionRow) -> QuestionView:
    figures = {name: getattr(row, name) for name in QuestionFigures.__struct_fields__}
    return QuestionView(**figures, losses=losses_of(row.scorecard))


def _rank(trial: Trial) -> float:
    return -1.0 if trial.scorecard.total is None else trial.scorecard.total


def worst_first(parts: Sequence[Slice]) -> tuple[Slice, ...]:
    """Slices sorted by score, lowest first, with names cut to fit a table."""
    ordered = sorted(parts, key=lambda part: (-1.0 if part.score is None else part.score, part.name))
    return tuple(msgspec.structs.replace(part, name=one_line(part.name, _NAME_WIDTH)) for part in ordered)


def _insert(lowest: list[_Ranked], entry: _Ranked, most: int) -> None:
    """Keep the `most` questions that come first."""
    insort(lowest, entry)
    del lowest[most:]


def failures_of(run: Run) -> Iterator[QuestionView]:
    """The failed questions, in the order of the set."""
    for trials in run.failed_questions():
        yield _question(trials[0].position, trials, run.info.pass_mark)


def only_failures(run: Run) -> Run:
    """The run with only the results of failed questions; the summary is that of the whole run."""
    return msgspec.structs.replace(
        run, results=StreamedResults(lambda: chain.from_iterable(run.failed_questions()))
    )


# Ids that an unknown one is compared with; reading more would take longer than to look it up.
_MOST_COMPARED = 20_000


def only_question(run: Run, question_id: str) -> Run:
    """The run with only one question's results."""
    results = run.results
    if isinstance(results, StreamedResults):
        found = results.of_question(question_id)
    else:
        found = [result for result in results if result.question.id == question_id]
    if not found:
        asked = {result.question.id: None for result in islice(results, _MOST_COMPARED)}
        close = nearest_name(question_id, asked)
        hint = f"did you mean {close!r}?" if close else f"`answerkey show {run.info.id} --failures` lists ids"
        raise UnknownNameError(f"no question {question_id!r} in run {run.info.id}; {hint}")
    return msgspec.structs.replace(run, results=found)


# A run in plain sentences, for readers who do not know the scoring.

# Component → its name for people.
COMPONENT_WORDS = {
    "tool_usage": "Used the right tools",
    "response_quality": "Said what it should",
    "error_handling": "Worked without errors",
}


def component_words(name: str) -> str:
    """A component's name for people."""
    return COMPONENT_WORDS[name] if name in COMPONENT_WORDS else name_words(name).capitalize()


def story_sentences(view: ReportView) -> tuple[str, ...]:
    """The result in sentences, most important first."""
    return tuple(_sentences(view))


def phases_sentence(phases: Mapping[str, float]) -> str:
    """Where the time of an average reply went; empty if unknown."""
    words = {"first_byte": "to the first byte"}
    if phases.get("tools"):
        # Without tools, the rest is the whole.
        words |= {"tools": "in tools", "rest": "the rest"}
    spent = ", ".join(
        f"{milliseconds(phases[name])} {what}" for name, what in words.items() if phases.get(name)
    )
    if not spent:
        return ""
    waited = ""
    if phases.get("queue") or phases.get("retry"):
        queue, retry = milliseconds(phases.get("queue", 0)), milliseconds(phases.get("retry", 0))
        waited = f"; not counted: {queue} in the harness’s queue, {retry} in retries"
    return f"On average {spent}{waited}."


def _sentences(view: ReportView) -> Iterator[str]:
    summary, info = view.summary, view.info
    target, questions = one_line(info.target, 80), one_line(info.question_set, 80)
    asked = f"The chatbot “{target}” was asked {count(summary.questions, 'question')} from “{questions}”"
    times = f", {'up to ' if info.is_log else ''}{info.repeat} times each," if info.repeat > 1 else ""
    if summary.score is None:
        yield f"{asked}{times} but nothing could be scored."
        return
    words = grade_words(summary, score_percent)
    sign = "," if words.startswith("but ") else ":"
    meaning = f"{sign} {words[:1].lower()}{words[1:]}"
    yield f"{asked}{times} and scored {score_percent(summary.score)}, grade {summary.grade}{meaning}."
    if summary.interval is not None and summary.questions > 1:
        low, high = score_percent(summary.interval.low), score_percent(summary.interval.high)
        yield f"With this many questions, the true score is probably between {low} and {high}."
    scored = scored_questions(summary)
    failed, mark = scored - summary.passed, percent(info.pass_mark, 0)
    unscored = f"; {summary.questions - scored:,} were not scored" if scored < summary.questions else ""
    if failed or unscored:
        yield f"{summary.passed:,} questions passed (scored {mark} or more) and {failed:,} failed{unscored}."
    else:
        yield f"Every question passed (scored {mark} or more)."
    if view.replies_passed:
        yield f"{view.replies_passed}; a question’s score is the mean of its replies."
    yield from _weakness(view)
    if summary.errors:
        total = sum(summary.errors.values())
        yield f"{count(total, 'reply', 'replies')} ended in an error ({list_words(summary.errors)})."
    if summary.suspected_errors:
        yield f"{count(summary.suspected_errors, 'reply', 'replies')} may be an error and cost nothing; please check."
    if summary.latency_ms is not None:
        half, most = milliseconds(summary.latency_ms.p50), milliseconds(summary.latency_ms.p95)
        yield f"Half of the replies took at most {half}, 95% at most {most}."


def _weakness(view: ReportView) -> Iterator[str]:
    scored = [part for part in view.categories if part.score is not None]
    if len(scored) > 1 and scored[0].score != scored[-1].score:
        low = scored[0]
        yield f"The weakest category is “{one_line(low.name, 60)}” ({score_percent(low.score)})."
