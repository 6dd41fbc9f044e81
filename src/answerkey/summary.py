"""Summary: a run's results added up, overall and by slice, each mean with an interval and its coverage."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import fsum

import msgspec

from answerkey.question import Question
from answerkey.reply import Reply
from answerkey.scorecard import PASS_MARK, Scorecard, grade, round_score
from answerkey.stats.intervals import Interval, mean_interval
from answerkey.stats.quantiles import percentiles

__all__ = [
    "Latency",
    "Result",
    "Slice",
    "SlowQuestion",
    "Summary",
    "summarise",
    "summarise_unordered",
    "total_latency",
]

GRADES = "ABCDF"
# Longer names than these are for people; the bounds are words in the question.
_LENGTHS = ((8, "short (up to 8 words)"), (20, "medium (9 to 20 words)"), (None, "long (over 20 words)"))
_SLOWEST_LISTED = 5


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of one question: the replies to its turns and what they are worth."""

    question: Question
    trial: int
    # One per turn; a plain question has one.
    replies: tuple[Reply, ...]
    scorecard: Scorecard

    @property
    def latency_ms(self) -> float | None:
        """Time the chatbot took over all turns."""
        return total_latency(self.replies)


def total_latency(replies: Iterable[Reply]) -> float | None:
    """Milliseconds that replies took together; None if none was timed."""
    taken = [reply.timings.latency_ms for reply in replies if reply.timings.latency_ms is not None]
    return fsum(taken) if taken else None


class Latency(msgspec.Struct, frozen=True):
    """Latency of replies in milliseconds."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """The aggregates of some of a run's questions: all of them, a category, a persona, …"""

    name: str
    questions: int
    # Trials scored, and their replies: a conversation's trial has one for every turn.
    trials: int
    replies: int
    score: float | None
    grade: str | None
    interval: Interval | None
    components: dict[str, float | None]
    component_intervals: dict[str, Interval | None]
    passed: int
    pass_rate: float | None
    grades: dict[str, int]
    errors: dict[str, int]
    error_rate: float
    latency_ms: Latency | None
    metrics: dict[str, float | None]


class SlowQuestion(msgspec.Struct, frozen=True):
    """A question that took long."""

    id: str
    latency_ms: float


class Summary(Slice, frozen=True, kw_only=True):
    """A whole run's aggregates, with its slices."""

    # Trials that were planned, and trials scored ÷ planned.
    planned: int
    coverage: float
    # Replies in which tool calls could not be observed; they count as "none used".
    tools_unobserved: int
    # Components that could not be scored, by name.
    unscored: dict[str, int]
    usage: dict[str, float]
    categories: tuple[Slice, ...]
    # Kind of slice (persona, tag, tools, length) → its slices.
    slices: dict[str, tuple[Slice, ...]]
    tool_latency_ms: dict[str, Latency]
    # Mean milliseconds by phase: first byte, tools, the rest, and the harness's own waits apart.
    phases_ms: dict[str, float]
    slowest: tuple[SlowQuestion, ...]


def summarise(results: Iterable[Result], *, planned: int, pass_mark: float = PASS_MARK) -> Summary:
    """Add up results that come grouped by question; memory stays flat as their number grows."""
    adding = Summariser(pass_mark)
    for _, group in groupby(results, key=lambda result: result.question.id):
        trials = list(group)
        measured = Measured()
        for trial in trials:
            measured.add(trial)
            adding.add_whole(trial)
        adding.add_question(trials[0].question, measured)
    return adding.summary(planned)


def summarise_unordered(
    results: Iterable[Result], *, planned: int | None, pass_mark: float = PASS_MARK
) -> Summary:
    """Add up results in any order: a question's trials are gathered, so memory grows with the questions."""
    adding = Summariser(pass_mark)
    gathered: dict[str, tuple[Question, Measured]] = {}
    trials = 0
    for result in results:
        trials += 1
        adding.add_whole(result)
        found = gathered.get(result.question.id)
        if found is None:
            found = gathered[result.question.id] = (result.question, Measured())
        found[1].add(result)
    for question, measured in gathered.values():
        adding.add_question(question, measured)
    return adding.summary(trials if planned is None else planned)


class Summariser:
    """Adds up questions one by one."""

    def __init__(self, pass_mark: float) -> None:
        self._pass_mark = pass_mark
        self._overall = _Tally("overall", pass_mark)
        self._slices: dict[str, dict[str, _Tally]] = defaultdict(dict)
        self._whole = _WholeRun()

    def add_question(self, question: Question, measured: "Measured") -> None:
        """Count a question, its trials averaged."""
        self._overall.add(measured)
        for kind, name in _slice_names(question):
            tally = self._slices[kind].get(name)
            if tally is None:
                tally = self._slices[kind][name] = _Tally(name, self._pass_mark)
            tally.add(measured)

    def add_whole(self, trial: Result) -> None:
        """Count what is only added up over all replies."""
        self._whole.add(trial)

    def summary(self, planned: int) -> Summary:
        """What it all comes to."""
        whole = self._whole
        overall = self._overall.slice()
        trials = self._overall.trials
        return Summary(
            **{field: getattr(overall, field) for field in Slice.__struct_fields__},
            planned=planned,
            coverage=round_score(trials / planned) if planned else 1.0,
            tools_unobserved=whole.tools_unobserved,
            unscored={name: count for name, count in whole.unscored.items() if count},
            usage=whole.usage(),
            categories=tuple(tally.slice() for tally in self._slices["category"].values()),
            slices={
                kind: tuple(tally.slice() for tally in tallies.values())
                for kind, tallies in self._slices.items()
                if kind != "category"
            },
            tool_latency_ms={name: _latency(taken) for name, taken in sorted(whole.tool_ms.items())},
            phases_ms={
                name: round(fsum(taken) / len(taken), 3) for name, taken in whole.phases.items() if taken
            },
            slowest=tuple(whole.slowest),
        )


def _slice_names(question: Question) -> Iterator[tuple[str, str]]:
    yield "category", question.category
    if question.persona:
        yield "persona", question.persona
    for tag in question.tags:
        yield "tag", tag
    tools = sorted({tool.name for turn in question.asks for tool in turn.expected_tools})
    yield "tools", " + ".join(tools) or "(none)"
    words = len(question.question.split())
    yield "length", next(name for most, name in _LENGTHS if most is None or words <= most)


class Measured:
    """A question's trials averaged: what every mean over questions is made of."""

    __slots__ = ("_components", "_metrics", "_score", "errors", "latencies", "replies", "trials")

    def __init__(self) -> None:
        self.trials = self.replies = 0
        self._score = _Sum()
        self._components: dict[str, _Sum] = {}
        self._metrics: dict[str, _Sum] = {}
        self.errors: dict[str, int] = {}
        self.latencies: list[float] = []

    def add(self, trial: Result) -> None:
        """Count one trial."""
        card = trial.scorecard
        self.trials += 1
        self.replies += len(trial.replies)
        self._score.add(card.total)
        for name, score in card.components.items():
            _sum_of(self._components, name).add(score.value)
        for name, value in card.metrics.items():
            _sum_of(self._metrics, name).add(value)
        for turn in card.turns or (card,):
            if turn.error is not None:
                self.errors[turn.error.kind] = self.errors.get(turn.error.kind, 0) + 1
        for reply in trial.replies:
            if reply.timings.latency_ms is not None:
                self.latencies.append(reply.timings.latency_ms)

    @property
    def score(self) -> float | None:
        """Mean of the trials' totals."""
        return self._score.mean

    @property
    def components(self) -> dict[str, float | None]:
        """Mean of each component over the trials."""
        return {name: total.mean for name, total in self._components.items()}

    @property
    def metrics(self) -> dict[str, float | None]:
        """Mean of each metric over the trials."""
        return {name: total.mean for name, total in self._metrics.items()}


class _Sum:
    """A sum of the values that exist."""

    __slots__ = ("_count", "_sum")

    def __init__(self) -> None:
        self._sum = 0.0
        self._count = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self._sum += value
            self._count += 1

    @property
    def mean(self) -> float | None:
        return self._sum / self._count if self._count else None


def _sum_of(sums: dict[str, _Sum], name: str) -> _Sum:
    found = sums.get(name)
    if found is None:
        found = sums[name] = _Sum()
    return found


class _Tally:
    """Running aggregates of one slice."""

    def __init__(self, name: str, pass_mark: float) -> None:
        self.name = name
        self.pass_mark = pass_mark
        self.questions = self.trials = self.replies = self.passed = 0
        self.scores = array("d")
        self.components: dict[str, array[float]] = {}
        self.metrics: dict[str, array[float]] = {}
        self.grades: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.latencies = array("d")

    def add(self, question: Measured) -> None:
        self.questions += 1
        self.trials += question.trials
        self.replies += question.replies
        if question.score is not None:
            self.scores.append(question.score)
            self.grades[grade(question.score)] += 1
            self.passed += round_score(question.score) >= self.pass_mark
        _append(self.components, question.components)
        _append(self.metrics, question.metrics)
        self.errors.update(question.errors)
        self.latencies.extend(question.latencies)

    def slice(self) -> Slice:
        score = _rounded_mean(self.scores)
        return Slice(
            name=self.name,
            questions=self.questions,
            trials=self.trials,
            replies=self.replies,
            score=score,
            grade=None if score is None else grade(score),
            interval=mean_interval(self.scores),
            components={name: _rounded_mean(values) for name, values in self.components.items()},
            component_intervals={name: mean_interval(values) for name, values in self.components.items()},
            passed=self.passed,
            pass_rate=round_score(self.passed / len(self.scores)) if self.scores else None,
            grades={letter: self.grades[letter] for letter in GRADES},
            errors=dict(sorted(self.errors.items())),
            error_rate=round_score(self.errors.total() / self.replies) if self.replies else 0.0,
            latency_ms=_latency(self.latencies) if self.latencies else None,
            metrics={name: _rounded_mean(values) for name, values in self.metrics.items()},
        )


class _WholeRun:
    """What is only added up for the run as a whole."""

    def __init__(self) -> None:
        self.tools_unobserved = 0
        self.unscored: Counter[str] = Counter()
        self.tool_ms: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self.phases: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self.slowest: list[SlowQuestion] = []
        self._usage: Counter[str] = Counter()

    def add(self, trial: Result) -> None:
        for name, score in trial.scorecard.components.items():
            self.unscored[name] += score.value is None
        for reply in trial.replies:
            self._add_reply(reply)
        taken = trial.latency_ms
        if taken is not None and (len(self.slowest) < _SLOWEST_LISTED or taken > self.slowest[-1].latency_ms):
            self._add_slow(trial.question.id, round(taken, 3))

    def _add_slow(self, identity: str, taken: float) -> None:
        others = [slow for slow in self.slowest if slow.id != identity]
        known = next((slow.latency_ms for slow in self.slowest if slow.id == identity), 0.0)
        self.slowest = sorted(
            [*others, SlowQuestion(identity, max(known, taken))], key=lambda slow: -slow.latency_ms
        )
        del self.slowest[_SLOWEST_LISTED:]

    def _add_reply(self, reply: Reply) -> None:
        self.tools_unobserved += not reply.evidence.tools_observed and reply.failure is None
        tools_ms = 0.0
        for call in reply.tool_calls:
            if call.duration_ms is not None:
                tools_ms += call.duration_ms
                self.tool_ms[call.name].append(call.duration_ms)
        timings = reply.timings
        if timings.latency_ms is not None:
            self.phases["tools"].append(tools_ms)
            self.phases["rest"].append(max(0.0, timings.latency_ms - tools_ms))
            if timings.first_byte_ms is not None:
                self.phases["first_byte"].append(timings.first_byte_ms)
            self.phases["queue"].append(timings.queue_ms)
            self.phases["retry"].append(timings.retry_ms)
        if reply.usage is not None:
            for name in reply.usage.__struct_fields__:
                amount = getattr(reply.usage, name)
                if amount is not None:
                    self._usage[name] += amount

    def usage(self) -> dict[str, float]:
        return {name: round(amount, 9) for name, amount in self._usage.items()}


def _append(columns: dict[str, "array[float]"], values: Mapping[str, float | None]) -> None:
    for name, value in values.items():
        if name not in columns:
            columns[name] = array("d")
        if value is not None:
            columns[name].append(value)


def _rounded_mean(values: Sequence[float]) -> float | None:
    return round_score(fsum(values) / len(values)) if values else None


def _latency(taken: Sequence[float]) -> Latency:
    p50, p90, p95, p99 = percentiles(taken, (50, 90, 95, 99))
    return Latency(
        mean=round(fsum(taken) / len(taken), 3),
        p50=round(p50, 3),
        p90=round(p90, 3),
        p95=round(p95, 3),
        p99=round(p99, 3),
        max=round(max(taken), 3),
    )
