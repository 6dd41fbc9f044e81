"""ReportView: what every renderer shows of a run. One pass over the results, and memory that does not grow with them."""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from math import fsum

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.model.run import GateResult, LoggedResults, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial, letter_grade, mean_score, passes
from answerkey.model.summary import QuestionFigures, QuestionRow, Slice, Summary
from answerkey.report.detail import Limits, Loss, TrialDetail, losses_of, trial_detail
from answerkey.report.wording import (
    GRADE_MEANINGS,
    count,
    list_words,
    milliseconds,
    name_words,
    percent,
    score_percent,
)
from answerkey.stats.intervals import Interval
from answerkey.text.normalise import one_line

# Trials of one question that are shown in full, the worst first.
_TRIALS_SHOWN = 3
_QUESTION_WIDTH = 400
_NAME_WIDTH = 80
# A question's score (−1: none), its position, and its trials.
_Ranked = tuple[float, int, list[Trial]]


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
    # Whether these are single replies: a log is not looked through for the questions that they answer.
    worst_are_replies: bool
    failed: int
    slowest: tuple[SlowView, ...]
    # Why points were lost → how many: in replies that ended in an error ("error"), else by component.
    lost: dict[str, float]
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
    mark = run.info.pass_mark
    found = _ranked(run, worst, rows)
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
        categories=worst_first(summary.categories),
        slices={kind: worst_first(parts) for kind, parts in summary.slices.items()},
        worst=tuple(_question(position, trials, mark) for _, position, trials in found.lowest),
        imperfect=found.imperfect,
        worst_are_replies=found.of_replies,
        failed=found.failed,
        slowest=tuple(
            SlowView(one_line(slow.id, 120), found.slow_texts.get(slow.id, ""), slow.latency_ms)
            for slow in summary.slowest
        ),
        lost=dict(sorted(found.lost.items(), key=lambda item: (item[0] != "error", -item[1]))),
        rows=tuple(
            _question(position, trials, mark, limits)
            for _, position, trials in [*found.failures, *found.others][:rows]
        ),
        total_rows=found.total,
    )


class _Found:
    """What a look through a run's results finds. It is made ready at the end: many are read, and few are shown."""

    def __init__(self) -> None:
        self.lowest: list[_Ranked] = []
        self.failures: list[_Ranked] = []
        self.others: list[_Ranked] = []
        # What the slowest questions ask.
        self.slow_texts: dict[str, str] = {}
        self.imperfect = self.failed = self.total = 0
        # Whether what is ranked are single replies.
        self.of_replies = False
        # Why points were lost; nothing where the results were not looked through.
        self.lost: dict[str, float] = {}


def _ranked(run: Run, worst: int, rows: int) -> _Found:
    found = _Found()
    results = run.results
    if (
        isinstance(results, LoggedResults)
        and not rows
        and min(worst, results.imperfect) <= len(results.worst)
    ):
        # All that is shown is known already.
        found.imperfect, found.failed, found.total = results.imperfect, results.failed, run.summary.questions
        found.of_replies = True
        found.lowest = [(_rank(trial), place, [trial]) for place, trial in enumerate(results.worst[:worst])]
        return found
    slow = {entry.id for entry in run.summary.slowest}
    for position, trials in enumerate(run.by_question()):
        found.total += 1
        score = _mean_score(trials)
        rank = -1.0 if score is None else score
        _add_losses(found.lost, trials)
        identity = trials[0].question.id
        if identity in slow:
            found.slow_texts[identity] = one_line(trials[0].question.question, _QUESTION_WIDTH)
        if rank < 1:
            found.imperfect += 1
            _insert(found.lowest, (rank, position, trials), worst)
        if not passes(score, run.info.pass_mark):
            found.failed += 1
            _insert(found.failures, (rank, position, trials), rows)
        elif len(found.others) < rows:
            found.others.append((rank, position, trials))
    return found


def _mean_score(trials: Sequence[Trial]) -> float | None:
    return mean_score(trial.scorecard.total for trial in trials)


def _add_losses(lost: dict[str, float], trials: Sequence[Trial]) -> None:
    """Add what a question lost by root cause: a reply that is an error lacks keywords because it is one."""
    for trial in trials:
        card = trial.scorecard
        if card.total is None:
            continue
        causes = {"error": 1 - card.total}
        if card.error is None:
            parts = card.components.items()
            causes = {name: part.weight * (1 - (part.value or 0.0)) for name, part in parts if part.weight}
        for cause, points in causes.items():
            if points > 1e-9:
                lost[cause] = lost.get(cause, 0.0) + points / len(trials)


def _question(
    position: int, trials: Sequence[Trial], pass_mark: float, limits: Limits | None = None
) -> QuestionView:
    """A question over its trials; with `limits` also its worst trials in full."""
    question = trials[0].question
    score = _mean_score(trials)
    worst = sorted(trials, key=_rank)[:_TRIALS_SHOWN]
    latencies = [trial.latency_ms for trial in trials if trial.latency_ms is not None]
    costs = [cost for trial in trials if (cost := trial.cost) is not None]
    tools = dict.fromkeys(name for trial in trials for reply in trial.replies for name in reply.tools_used)
    return QuestionView(
        id=one_line(question.id, 120),
        position=position,
        question=one_line(question.question, _QUESTION_WIDTH),
        category=one_line(question.category, _NAME_WIDTH),
        score=score,
        grade=None if score is None else letter_grade(score),
        passed=passes(score, pass_mark),
        trials=len(trials),
        trials_passed=sum(trial.scorecard.passed for trial in trials),
        losses=losses_of(worst[0].scorecard),
        details=() if limits is None else tuple(trial_detail(trial, limits) for trial in worst),
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


def _rank(trial: Trial) -> float:
    return -1.0 if trial.scorecard.total is None else trial.scorecard.total


def worst_first(parts: Sequence[Slice]) -> tuple[Slice, ...]:
    """Slices from the lowest score, with names that fit a table."""
    ordered = sorted(parts, key=lambda part: (-1.0 if part.score is None else part.score, part.name))
    return tuple(msgspec.structs.replace(part, name=one_line(part.name, _NAME_WIDTH)) for part in ordered)


def _insert(lowest: list[_Ranked], entry: _Ranked, most: int) -> None:
    """Keep the so many questions with the lowest score, the earlier one where scores are equal."""
    insort(lowest, entry)
    del lowest[most:]


def failures_of(run: Run) -> Iterator[QuestionView]:
    """The questions that failed, in the set's order."""
    for position, trials in enumerate(run.by_question()):
        question = _question(position, trials, run.info.pass_mark)
        if not question.passed:
            yield question


def only_failures(run: Run) -> Run:
    """The run with the results of the questions that failed; its summary stays that of the whole."""

    def read() -> Iterator[Trial]:
        for trials in run.by_question():
            if not passes(_mean_score(trials), run.info.pass_mark):
                yield from trials

    return msgspec.structs.replace(run, results=StreamedResults(read))


def only_question(run: Run, question_id: str) -> Run:
    """The run with one question's results."""
    results = run.results
    if isinstance(results, StreamedResults):
        found = results.of_question(question_id)
    else:
        found = [result for result in results if result.question.id == question_id]
    if not found:
        raise UnknownNameError(
            f"no question {question_id!r} in run {run.info.id}; `answerkey show {run.info.id} --failures` lists ids"
        )
    return msgspec.structs.replace(run, results=found)


# A run in plain sentences, for a reader who knows nothing of scoring.


# Component → (what it is when it is good, why points are lost when it is not).
COMPONENT_WORDS = {
    "tool_usage": ("Used the right tools", "it did not use the tools that a question needs"),
    "response_quality": ("Said what it should", "replies lacked information that they should contain"),
    "error_handling": ("Worked without errors", "it failed or answered with an error"),
}


def component_words(name: str) -> str:
    """A component's name for people."""
    return COMPONENT_WORDS[name][0] if name in COMPONENT_WORDS else name_words(name).capitalize()


def story_sentences(view: ReportView) -> tuple[str, ...]:
    """What happened, in the order in which somebody would ask."""
    return tuple(_sentences(view))


def phases_sentence(phases: Mapping[str, float]) -> str:
    """Where the time of an average reply went; empty where that is not known."""
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
        waited = f"; waiting that is not the chatbot’s is not counted (queue {queue}, retries {retry})"
    return f"On average {spent}{waited}."


def loss_shares(lost: Mapping[str, float]) -> str:
    """Where points were lost, errors first: `93% in replies that ended in an error, 7% because …`."""
    total = sum(lost.values())
    shares = []
    for cause, points in lost.items():
        why = COMPONENT_WORDS[cause][1] if cause in COMPONENT_WORDS else f"of {name_words(cause)}"
        where = "in replies that ended in an error" if cause == "error" else f"because {why}"
        share = points / total
        shares.append(f"{'all were lost' if share > 0.999 else percent(share, 0)} {where}")
    return ", ".join(shares[:3])


def _sentences(view: ReportView) -> Iterator[str]:
    summary, info = view.summary, view.info
    target, questions = one_line(info.target, 80), one_line(info.question_set, 80)
    asked = f"The chatbot “{target}” was asked {count(summary.questions, 'question')} from “{questions}”"
    times = f", {'up to ' if info.is_log else ''}{info.repeat} times each," if info.repeat > 1 else ""
    if summary.score is None:
        yield f"{asked}{times} but nothing could be scored."
        return
    meaning = GRADE_MEANINGS[summary.grade or "F"].lower()
    yield f"{asked}{times} and scored {score_percent(summary.score)}, grade {summary.grade}: {meaning}."
    if summary.interval is not None and summary.questions > 1:
        low, high = score_percent(summary.interval.low), score_percent(summary.interval.high)
        yield f"Judging by this many questions, its true score probably lies between {low} and {high}."
    failed = summary.questions - summary.passed
    mark = percent(info.pass_mark, 0)
    if failed:
        yield f"{summary.passed:,} of the questions passed (scored {mark} or more) and {failed:,} failed."
    else:
        yield f"Every question passed (scored {mark} or more)."
    if summary.trials > summary.questions:
        yield (
            "A question is judged by the mean of its replies; "
            f"{summary.trials_passed:,} of {summary.trials:,} single replies passed."
        )
    yield from _weakness(view)
    if summary.errors:
        total = sum(summary.errors.values())
        yield f"{count(total, 'reply', 'replies')} ended in an error ({list_words(summary.errors)})."
    if summary.latency_ms is not None:
        half, most = milliseconds(summary.latency_ms.p50), milliseconds(summary.latency_ms.p95)
        yield f"Half of the replies came within {half}, and 19 of 20 within {most}."


def _weakness(view: ReportView) -> Iterator[str]:
    if view.lost:
        yield f"Of the lost points, {loss_shares(view.lost)}."
    scored = [part for part in view.categories if part.score is not None]
    if len(scored) > 1 and scored[0].score != scored[-1].score:
        low, high = scored[0], scored[-1]
        yield (
            f"It is weakest in “{one_line(low.name, 60)}” ({score_percent(low.score)}) "
            f"and best in “{one_line(high.name, 60)}” ({score_percent(high.score)})."
        )
