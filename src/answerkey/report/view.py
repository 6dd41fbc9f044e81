"""ReportView: what every renderer shows of a run. One pass over the results, and memory that does not grow with them."""

import heapq
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import fsum

import msgspec

from answerkey.model.question_figures import QuestionFigures, QuestionRow
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.model.scorecard import grade, round_score
from answerkey.model.summary import Slice, Summary
from answerkey.model.trial import Trial
from answerkey.report.detail import Limits, TrialDetail, trial_detail
from answerkey.report.losses import Loss, losses_of
from answerkey.stats.intervals import Interval
from answerkey.text.sanitise import one_line

__all__ = [
    "ComponentView",
    "QuestionView",
    "ReportView",
    "SlowView",
    "brief_questions",
    "build_view",
    "row_view",
]

# Trials of one question that are shown in full, the worst first.
_TRIALS_SHOWN = 3
_QUESTION_WIDTH = 400
_NAME_WIDTH = 80


class ComponentView(msgspec.Struct, frozen=True):
    """A component over the whole run."""

    name: str
    weight: float
    score: float | None
    interval: Interval | None


class QuestionView(QuestionFigures, frozen=True, kw_only=True):
    """A question over its trials, and why it lost points: in files, on the terminal and on the dashboard."""

    # Why points were lost, in its worst trial.
    losses: tuple[Loss, ...]
    # Its worst trials in full, where details were asked for.
    details: tuple[TrialDetail, ...] = ()


class SlowView(msgspec.Struct, frozen=True):
    """A question that took long."""

    id: str
    question: str
    latency_ms: float


class ReportView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a report shows."""

    info: RunInfo
    summary: Summary
    gates: tuple[GateResult, ...]
    warnings: tuple[str, ...]
    components: tuple[ComponentView, ...]
    # The worst first.
    categories: tuple[Slice, ...]
    slices: dict[str, tuple[Slice, ...]]
    # Questions that lost points, the worst first.
    worst: tuple[QuestionView, ...]
    # How many lost points at all, and how many failed.
    imperfect: int
    failed: int
    slowest: tuple[SlowView, ...]
    # Questions shown one by one: those that failed first, the worst of them first, then the others in order.
    rows: tuple[QuestionView, ...] = ()
    total_rows: int = 0

    @property
    def title(self) -> str:
        """What the run is called."""
        return one_line(self.info.name or self.info.id, 120)


def build_view(run: Run, *, worst: int = 10, rows: int = 0, limits: Limits | None = None) -> ReportView:
    """Read a run's results once and keep what a report shows: `worst` questions, and `rows` of them in full."""
    limits = limits or Limits()
    worst_kept = _Lowest(worst)
    failures = _Lowest(rows)
    others: list[QuestionView] = []
    slow = {entry.id: entry.latency_ms for entry in run.summary.slowest}
    slow_texts: dict[str, str] = {}
    imperfect = failed = total = 0
    for position, trials in enumerate(_by_question(run)):
        total += 1
        score = _mean_score(trials)
        rank = -1.0 if score is None else score
        passed = score is not None and score >= run.info.pass_mark
        identity = trials[0].question.id
        if identity in slow:
            slow_texts[identity] = one_line(trials[0].question.question, _QUESTION_WIDTH)
        imperfect += rank < 1
        failed += not passed
        # A run may have many questions and a report shows few: only those are made ready to be shown.
        in_worst = rank < 1 and worst_kept.would_keep(rank, position)
        in_rows = len(others) < rows if passed else failures.would_keep(rank, position)
        if not in_worst and not in_rows:
            continue
        brief = _question(position, trials, score, passed)
        if in_worst:
            worst_kept.offer(rank, position, brief)
        if in_rows and passed:
            others.append(_with_details(brief, trials, limits))
        elif in_rows:
            failures.offer(rank, position, _with_details(brief, trials, limits))
    shown = failures.items()
    summary = run.summary
    return ReportView(
        info=run.info,
        summary=summary,
        gates=run.gates,
        warnings=tuple(one_line(warning, 400) for warning in run.warnings),
        components=tuple(
            ComponentView(name, weight, summary.components.get(name), summary.component_intervals.get(name))
            for name, weight in run.info.weights.items()
        ),
        categories=_worst_first(summary.categories),
        slices={kind: _worst_first(parts) for kind, parts in summary.slices.items()},
        worst=worst_kept.items(),
        imperfect=imperfect,
        failed=failed,
        slowest=tuple(
            SlowView(one_line(name, 120), slow_texts.get(name, ""), taken) for name, taken in slow.items()
        ),
        rows=(*shown, *others)[:rows],
        total_rows=total,
    )


def brief_questions(run: Run) -> Iterator[tuple[QuestionView, list[Trial]]]:
    """Every question over its trials, without details, beside those trials."""
    for position, trials in enumerate(_by_question(run)):
        score = _mean_score(trials)
        passed = score is not None and score >= run.info.pass_mark
        yield _question(position, trials, score, passed), trials


def _by_question(run: Run) -> Iterator[list[Trial]]:
    for _, group in groupby(run.results, key=lambda result: result.question.id):
        yield list(group)


def _mean_score(trials: Sequence[Trial]) -> float | None:
    scores = [trial.scorecard.total for trial in trials if trial.scorecard.total is not None]
    return round_score(fsum(scores) / len(scores)) if scores else None


def _question(position: int, trials: Sequence[Trial], score: float | None, passed: bool) -> QuestionView:
    question = trials[0].question
    lowest = min(trials, key=_rank)
    latencies = [trial.latency_ms for trial in trials if trial.latency_ms is not None]
    costs = [cost for trial in trials if (cost := _cost(trial)) is not None]
    tools = dict.fromkeys(name for trial in trials for reply in trial.replies for name in reply.tools_used)
    return QuestionView(
        id=one_line(question.id, 120),
        position=position,
        question=one_line(question.question, _QUESTION_WIDTH),
        category=one_line(question.category, _NAME_WIDTH),
        score=score,
        grade=None if score is None else grade(score),
        passed=passed,
        trials=len(trials),
        trials_passed=sum(trial.scorecard.passed for trial in trials),
        losses=losses_of(lowest.scorecard),
        error=next(
            (trial.scorecard.error.kind for trial in trials if trial.scorecard.error is not None), None
        ),
        latency_ms=max(latencies) if latencies else None,
        cost=fsum(costs) if costs else None,
        tools=tuple(one_line(name, _NAME_WIDTH) for name in tools),
    )


def row_view(row: QuestionRow) -> QuestionView:
    """The same of a question that the store has listed."""
    figures = {name: getattr(row, name) for name in QuestionFigures.__struct_fields__}
    return QuestionView(**figures, losses=losses_of(row.scorecard))


def _cost(trial: Trial) -> float | None:
    known = [reply.usage.cost for reply in trial.replies if reply.usage and reply.usage.cost is not None]
    return fsum(known) if known else None


def _rank(trial: Trial) -> float:
    return -1.0 if trial.scorecard.total is None else trial.scorecard.total


def _with_details(brief: QuestionView, trials: Sequence[Trial], limits: Limits) -> QuestionView:
    chosen = sorted(trials, key=_rank)[:_TRIALS_SHOWN]
    return msgspec.structs.replace(brief, details=tuple(trial_detail(trial, limits) for trial in chosen))


def _worst_first(parts: Sequence[Slice]) -> tuple[Slice, ...]:
    ordered = sorted(parts, key=lambda part: (-1.0 if part.score is None else part.score, part.name))
    return tuple(msgspec.structs.replace(part, name=one_line(part.name, _NAME_WIDTH)) for part in ordered)


class _Lowest:
    """The so many questions with the lowest score, the earlier one where scores are equal."""

    def __init__(self, most: int) -> None:
        self._most = most
        # A heap whose first entry is the one to give up next; both keys are negated for that.
        self._heap: list[tuple[float, int, QuestionView]] = []

    def would_keep(self, score: float, position: int) -> bool:
        return len(self._heap) < self._most or (bool(self._heap) and (-score, -position) > self._heap[0][:2])

    def offer(self, score: float, position: int, question: QuestionView) -> None:
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, (-score, -position, question))
        elif self._heap and (-score, -position) > self._heap[0][:2]:
            heapq.heapreplace(self._heap, (-score, -position, question))

    def items(self) -> tuple[QuestionView, ...]:
        return tuple(
            question for _, _, question in sorted(self._heap, key=lambda entry: (-entry[0], -entry[1]))
        )
