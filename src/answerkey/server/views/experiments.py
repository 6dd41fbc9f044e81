"""Experiments: golden set and chatbot, whether the newest run can be released, and what needs attention."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from math import sqrt
from typing import Literal
from urllib.parse import quote, urlencode

import msgspec

from answerkey.errors import UsageError
from answerkey.model.comparison import Comparison
from answerkey.model.run import GateResult, RunInfo
from answerkey.report.wording import count, gate_value, percent, points_change
from answerkey.server.rendering import compare_stored, decide_stored, feedback_figures, waiting_reviews
from answerkey.store.production import ProductionFilter, ProductionReplies, feedback_state
from answerkey.store.sql import Figures, Progress, RunRow, RunTable, SqlStore
from answerkey.text.dates import local_time
from answerkey.text.normalise import one_line

# Runs with more questions are not compared.
LARGE = 20_000
_WEEK = 7
# Verdicts, or replies, of a week below which nothing is said of it.
FEWEST_VERDICTS = 20
# Runs of a sparkline, and the difference of scores that fills its height at least.
_SPARK_RUNS = 10
_SPARK_REACH = 0.1
# Failed gates that are named.
_NAMED_GATES = 3


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a run with a baseline or the previous run."""

    id: str
    # "the baseline production" or "the previous run".
    words: str
    verdict: str
    # The reason of a verdict that the mean does not give, e.g. `3 questions confirmed broken`.
    because: str = ""
    mean: float
    low: float
    high: float


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a run can be released: its gates, as `answerkey show` evaluates them, and verdicts against other runs."""

    gates: tuple[GateResult, ...] = ()
    # The run's own baseline or else those of its golden set, then the previous run.
    against: tuple[Against, ...] = ()
    # Whether the run is too large to be compared here.
    too_large: bool = False


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """A golden set and a chatbot, with the newest of its runs that ended, or else its newest run."""

    question_set: str
    target: str
    runs: int
    last: RunInfo
    # None: no run has ended.
    figures: Figures | None
    # The first comparison; None: nothing to compare with.
    against: Against | None
    decision: Decision = Decision()
    # A newer run that is running or was interrupted.
    unfinished: Progress | None = None
    # Whether its tools were broken on purpose.
    faulted: bool = False
    # Scores of its newest runs that ended, oldest first.
    scores: tuple[float, ...] = ()

    @property
    def spark(self) -> str:
        """The scores as points of a line, 100 wide and 20 high; empty for a single one."""
        if len(self.scores) < 2:
            return ""
        low, high = min(self.scores), max(self.scores)
        reach, step = max(high - low, _SPARK_REACH), 100 / (len(self.scores) - 1)
        return " ".join(
            f"{number * step:.1f},{19 - 18 * (score - low) / reach:.1f}"
            for number, score in enumerate(self.scores)
        )

    @property
    def address(self) -> str:
        """The page with its trend and runs."""
        return "/?" + urlencode({"set": self.question_set, "target": self.target})

    @property
    def compare_address(self) -> str:
        """The page that compares its newest run."""
        return compare_address(self.last, self.against)


def compare_address(info: RunInfo, against: Against | None) -> str:
    """The page that compares a run."""
    base = "" if against is None else f"base={quote(against.id, safe='')}&"
    return f"/compare?{base}run={quote(info.id, safe='')}"


NeedKind = Literal["gate", "regression", "interrupted", "satisfaction", "errors", "review"]


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs attention."""

    kind: NeedKind
    words: str
    address: str


def load_experiments(store: SqlStore) -> tuple[Experiment, ...]:
    """All experiments, most recently run first."""
    listed = RunTable(store)
    baselines = baselines_by_set(store)
    experiments = []
    for one in listed.experiments(newest=_SPARK_RUNS):
        newest = (one.ended or one.unfinished)[0]
        # An interrupted run has figures, but of the few questions that it asked.
        figures = newest.figures if one.ended else None
        previous = one.ended[1] if len(one.ended) > 1 else None
        decision = Decision() if figures is None else decide(store, newest, previous, baselines)
        unfinished = one.unfinished[0].info if one.unfinished else None
        if unfinished is not None and unfinished.created_at < newest.info.created_at:
            unfinished = None
        experiments.append(
            Experiment(
                question_set=one.question_set,
                target=one.target,
                runs=one.total,
                last=newest.info,
                figures=figures,
                against=decision.against[0] if decision.against else None,
                decision=decision,
                unfinished=None if unfinished is None else listed.progress(unfinished),
                faulted=is_faulted(newest.info),
                scores=tuple(
                    row.figures.score
                    for row in reversed(one.ended)
                    if row.figures is not None and row.figures.score is not None
                ),
            )
        )
    return tuple(experiments)


def baselines_by_set(store: SqlStore) -> dict[str, list[tuple[str, RunInfo]]]:
    """Golden set → its baselines with their names, by name."""
    found: dict[str, list[tuple[str, RunInfo]]] = {}
    for name, run_id in sorted(store.baselines().items()):
        info = store.find_run(run_id)
        found.setdefault(info.question_set, []).append((name, info))
    return found


def decide(
    store: SqlStore,
    row: RunRow,
    previous: RunRow | None,
    baselines: Mapping[str, Sequence[tuple[str, RunInfo]]],
) -> Decision:
    """The gates of a finished run, and its comparisons with baselines and the previous run."""
    info = row.info
    if is_faulted(info):
        # Worse than without faults on purpose.
        return Decision()
    if row.figures is None or row.figures.questions > LARGE:
        return Decision(too_large=row.figures is not None)
    run = decide_stored(store, info)
    against: dict[str, Against] = {}
    known = baselines.get(info.question_set, ())
    if run.comparison is not None:
        # A baseline's name says more than the id that is stored with the run.
        names = [name for name, base in known if base.id == run.comparison.base.id]
        words = f"the baseline {one_line((names or [run.comparison.base.name])[0], 40)}"
        against[run.comparison.base.id] = _verdict(run.comparison, words)
    else:
        for name, base in known:
            compare_into(store, base, info, f"the baseline {one_line(name, 40)}", against)
    if previous is not None:
        compare_into(store, previous.info, info, "the previous run", against)
    return Decision(gates=run.gates, against=tuple(against.values()))


def is_faulted(info: RunInfo) -> bool:
    """Whether tools of the chatbot were broken in this run on purpose."""
    return info.experiment is not None and info.experiment.is_faulted(info.id)


def compare_into(
    store: SqlStore, base: RunInfo, info: RunInfo, words: str, against: dict[str, Against]
) -> None:
    if base.id == info.id or base.id in against:
        return
    # Without common questions, the golden set was replaced.
    with suppress(UsageError):
        against[base.id] = _verdict(compare_stored(store, base, info), words)


def _verdict(comparison: Comparison, words: str) -> Against:
    return Against(
        id=comparison.base.id,
        words=words,
        verdict=comparison.verdict,
        because=comparison.because,
        mean=comparison.difference.mean,
        low=comparison.difference.low,
        high=comparison.difference.high,
    )


def needs_of(store: SqlStore, experiments: tuple[Experiment, ...]) -> tuple[Need, ...]:
    """What needs attention in all experiments, most serious first."""
    return (
        *(need for one in experiments for need in _gates(one)),
        *_regressions(experiments),
        *(need for one in experiments for need in _unfinished(one)),
        *production_needs(store),
        *_reviews(store, experiments),
    )


def _gate_finding(result: GateResult) -> str:
    """The gate's value or, without one, why it failed."""
    if result.value is None:
        return one_line(result.reason, 120) or "it has no value"
    return f"it is {gate_value(result.value)}"


def _gates(one: Experiment) -> Iterator[Need]:
    name, address = one_line(one.last.name, 60), f"/runs/{quote(one.last.id, safe='')}"
    failed = [result for result in one.decision.gates if not result.passed]
    if failed:
        words = ", ".join(
            f"{one_line(result.gate, 60)} ({_gate_finding(result)})" for result in failed[:_NAMED_GATES]
        )
        more = f" and {len(failed) - _NAMED_GATES} more" if len(failed) > _NAMED_GATES else ""
        yield Need(
            kind="gate",
            words=f"“{name}” fails {count(len(failed), 'gate')}: {words}{more}",
            address=f"{address}?result=failed",
        )


def _regressions(experiments: tuple[Experiment, ...]) -> Iterator[Need]:
    for one in experiments:
        if one.against is not None and one.against.verdict == "worse":
            change = one.against
            because = f"{change.because}; mean " if change.because else ""
            likely = f"{points_change(change.low)} to {points_change(change.high)}"
            yield Need(
                kind="regression",
                words=f"“{one_line(one.last.name, 60)}” is worse than {one.against.words}: "
                f"{because}{points_change(change.mean)} points, likely {likely}",
                address=one.compare_address,
            )


def _unfinished(one: Experiment) -> Iterator[Need]:
    progress = one.unfinished
    if progress is not None and progress.status == "interrupted":
        replies = f"{progress.done:,} of {count(progress.planned, 'reply', 'replies')}"
        yield Need(
            kind="interrupted",
            words=f"The newest run of {one_line(one.question_set, 40)} was interrupted after {replies}; "
            f"continue with: answerkey resume {progress.id}",
            address=f"/runs/{quote(progress.id, safe='')}",
        )


def production_needs(store: SqlStore, today: date | None = None) -> list[Need]:
    """What got significantly worse in production in a week, from the week before.

    Without `today`, the week ends with the newest verdict, or reply.
    """
    return [*_satisfaction(store, today), *_production_errors(store, today)]


def _satisfaction(store: SqlStore, today: date | None) -> Iterator[Need]:
    days = feedback_figures(store).days
    if not days:
        return
    weeks = _weeks(today or date.fromisoformat(days[-1].day))
    parts = [[day for day in days if since <= day.day <= until] for since, until in weeks]
    before, now = ((sum(day.positive for day in part), sum(day.feedback for day in part)) for part in parts)
    if _fell(*before, *now):
        since = weeks[1][0]
        rates = f"from {percent(before[0] / before[1], 0)} to {percent(now[0] / now[1], 0)}"
        yield Need(
            kind="satisfaction",
            words=f"Satisfaction fell {rates} in the week from {since}",
            address=f"/feedback?since={since}&value=down",
        )


def _production_errors(store: SqlStore, today: date | None) -> Iterator[Need]:
    replies = ProductionReplies(store)
    newest, _ = replies.page(ProductionFilter(), limit=1)
    if not newest:
        return
    weeks = _weeks(today or date.fromisoformat(local_time(newest[0].created_at, zone=False)[:10]))
    facets = [replies.facets(ProductionFilter(since=since, until=until)) for since, until in weeks]
    before, now = ((part.replies - sum(part.errors.values()), part.replies) for part in facets)
    if _fell(*before, *now):
        since = weeks[1][0]
        rates = f"from {percent(1 - before[0] / before[1])} to {percent(1 - now[0] / now[1])}"
        yield Need(
            kind="errors",
            words=f"Errors in production rose {rates} of the replies in the week from {since}",
            address=f"/replies?result=error&since={since}",
        )


def _weeks(last: date) -> list[tuple[str, str]]:
    """The first and the last day of the week before, and of the week that ends on a day."""
    ends = (last - timedelta(days=_WEEK), last)
    return [(str(end - timedelta(days=_WEEK - 1)), str(end)) for end in ends]


def _fell(good_before: int, before: int, good_now: int, now: int) -> bool:
    """Whether a share fell from one week to the next more than by chance."""
    if min(before, now) < FEWEST_VERDICTS:
        return False
    pooled = (good_before + good_now) / (before + now)
    error = sqrt(pooled * (1 - pooled) * (1 / before + 1 / now))
    return error > 0 and (good_before / before - good_now / now) / error > 1.96


def _reviews(store: SqlStore, experiments: tuple[Experiment, ...]) -> Iterator[Need]:
    state = feedback_state(store)
    for one in experiments:
        unreviewed = one.figures is None or one.faulted
        waiting = 0 if unreviewed else waiting_reviews(store, one.last, state)
        if waiting:
            verb = "waits" if waiting == 1 else "wait"
            name = one_line(one.last.name, 60)
            words = f"{count(waiting, 'reply', 'replies')} of “{name}” {verb} for a review"
            yield Need(kind="review", words=words, address=f"/review?run={quote(one.last.id, safe='')}")
