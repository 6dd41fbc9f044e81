"""Run: one pass over a question set, with its results one by one; Summary: results added up, overall and by slice.

Each mean of a summary has an interval and its coverage.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from math import fsum
from typing import Any, ClassVar, Literal, overload

import msgspec

from answerkey.model.comparison import Comparison, Confirmation
from answerkey.model.judgement import JudgeRecord
from answerkey.model.options import Options, TargetVersion
from answerkey.model.question import RunTruth
from answerkey.model.reply import FaultSettings
from answerkey.model.scorecard import (
    PASS_MARK,
    Scorecard,
    Trial,
    letter_grade,
    mean_score,
    passes,
    shown_score,
    trials_by_question,
)
from answerkey.stats.intervals import Interval

# With what the reasons begin why rows of a log have no score.
BAD_ROW = "bad row: "
# Below it, a grade is not praised: too many questions let a wrong reply pass.
WEAK_STRENGTH = 0.8


class Latency(msgspec.Struct, frozen=True):
    """Latency of replies in milliseconds."""

    # The figures in the order of tables.
    FIGURES: ClassVar = ("mean", "p50", "p90", "p95", "p99", "max")

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    # Of the mean, over units; None where the units are not known, as in a log, or there is only one.
    mean_interval: Interval | None = None


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What questions cost, those whose cost is known: each the mean of its trials."""

    # How many questions that are.
    questions: int
    # Mean of a question, with its interval over units.
    question: float
    interval: Interval | None
    # What a point costs: the sum ÷ the sum of their scores; a question answered perfectly is one point.
    point: float | None


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """The aggregates of some of a run's questions: all of them, a category, a persona, …"""

    name: str
    questions: int
    # What the intervals count: questions, or the groups that they belong to; None in runs kept before they were counted.
    units: int | None = None
    # Scored questions of the largest unit; None in runs stored before they were counted.
    largest_unit: int | None = None
    # Trials that have a score, and the replies of all: a conversation's trial has one for every turn.
    trials: int
    # Of these trials, those that passed; `passed` below counts questions, by the mean of their trials.
    trials_passed: int = 0
    trial_pass_rate: float | None = None
    replies: int
    score: float | None
    grade: str | None
    interval: Interval | None
    components: dict[str, float | None]
    component_intervals: dict[str, Interval | None]
    passed: int
    pass_rate: float | None
    pass_interval: Interval | None = None
    grades: dict[str, int]
    errors: dict[str, int]
    error_rate: float
    # None where the units are not known, as in a log.
    error_interval: Interval | None = None
    latency_ms: Latency | None
    metrics: dict[str, float | None]
    metric_intervals: dict[str, Interval | None] = {}
    # None: no cost is known.
    cost: Cost | None = None


class KeyStrength(msgspec.Struct, frozen=True, kw_only=True):
    """The share of questions whose key refuses every wrong reply that was tried."""

    value: float
    low: float
    high: float
    # Questions that wrong replies could be made for, and those that refuse all of theirs.
    questions: int
    strong: int

    @property
    def weak(self) -> int:
        """Questions that let a wrong reply pass."""
        return self.questions - self.strong


class KeyFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The best score of a trivial bot, which knows no answer."""

    value: float
    # What the bot does: "calls every tool and repeats the question".
    bot: str
    # On how many questions it was tried.
    questions: int


class KeyQuality(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer key of a run refuses."""

    # None: no wrong reply could be made for any question.
    strength: KeyStrength | None
    # The mean score of a bot whose tools are right and whose facts are all wrong.
    always_wrong_score: float | None
    floor: KeyFloor


class SlowQuestion(msgspec.Struct, frozen=True):
    """A question that took long."""

    id: str
    latency_ms: float


class SuspectedReply(msgspec.Struct, frozen=True):
    """A reply that is suspected to be an error."""

    # The question's id.
    id: str
    kind: str
    # The words that raised the suspicion.
    words: str
    probability: float


class Summary(Slice, frozen=True, kw_only=True):
    """A whole run's aggregates, with its slices."""

    # Trials that were planned, and trials scored ÷ planned.
    planned: int
    coverage: float
    # Questions that expect nothing of the text, and questions that expect nothing of the tool calls: any reply has 1.0
    # there for response quality, or for tool usage.
    expecting_nothing: int = 0
    expecting_no_tools: int = 0
    # Questions of severity critical, how many of them had a reply that did not pass, and the ids of the first of those.
    critical: int = 0
    critical_failures: int = 0
    critical_failed: tuple[str, ...] = ()
    # What the answer key refuses; None where it was not measured, as for logs without a golden set.
    strength: KeyStrength | None = None
    always_wrong_score: float | None = None
    floor: KeyFloor | None = None
    # Replies that are suspected to be errors: listed for review, not charged.
    suspected_errors: int = 0
    # The likeliest of them.
    suspected_replies: tuple[SuspectedReply, ...] = ()
    # Replies in which not every tool call could be observed; a call that was not seen counts as not made.
    tools_unobserved: int
    # Why models stopped early (length, refusal, filter) → in how many replies.
    finishes: dict[str, int] = {}
    # Why trials were asked but have no score → how many; those that were never asked show in the coverage alone.
    unscored: dict[str, int]
    # Which of its own problems the harness had → with how many of those trials; none of it is charged to the chatbot.
    harness: dict[str, int] = {}
    usage: dict[str, float]
    categories: tuple[Slice, ...]
    # Kind of slice (persona, tag, tools, length) → its slices.
    slices: dict[str, tuple[Slice, ...]]
    tool_latency_ms: dict[str, Latency]
    # Mean milliseconds by phase: first byte, tools, the rest, and the harness's own waits apart.
    phases_ms: dict[str, float]
    slowest: tuple[SlowQuestion, ...]

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Components of which no question expects anything, so that their 1.0 says nothing."""
        if not self.questions:
            return ()
        tools = ("tool_usage",) if self.expecting_no_tools == self.questions else ()
        text = ("response_quality",) if self.expecting_nothing == self.questions else ()
        return (*tools, *text)

    @property
    def is_silent_key(self) -> bool:
        """Whether more than a tenth of the questions expect nothing of the text."""
        return self.expecting_nothing > self.questions / 10

    @property
    def is_beaten(self) -> bool:
        """Whether a bot that knows no answer has a passing grade and scores as much."""
        floor, score = self.floor, self.score
        return floor is not None and score is not None and PASS_MARK <= score <= floor.value

    @property
    def is_weak_key(self) -> bool:
        """Whether the grade says little, so that the headline must say why."""
        is_weak = self.strength is not None and self.strength.value < WEAK_STRENGTH
        return self.is_silent_key or self.is_beaten or is_weak

    def __repr__(self) -> str:
        score = "unscored" if self.score is None else f"{shown_score(self.score)} {self.grade}"
        return f"<Summary: {score}, {self.passed} of {self.questions} questions passed>"


class QuestionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A question of a run over its trials."""

    id: str
    # Its place in the set, from 0.
    position: int
    question: str
    category: str
    # The mean of its trials.
    score: float | None
    grade: str | None
    passed: bool
    trials: int
    trials_passed: int
    # Whether its severity is critical.
    critical: bool = False
    # The kind of an error that one of its replies ended in.
    error: str | None = None
    # Of its slowest trial.
    latency_ms: float | None = None
    cost: float | None = None
    tools: tuple[str, ...] = ()
    persona: str | None = None
    tags: tuple[str, ...] = ()
    # Of its trials: the lowest and the highest score.
    lowest: float | None = None
    highest: float | None = None
    # Every component and metric, as the mean of the trials that have a value.
    measures: dict[str, float | None] = {}
    # The beginning of what was said last in its first trial.
    reply: str = ""
    # Its line in a log, for a single reply of one.
    line: int | None = None


class QuestionRow(QuestionFigures, frozen=True, kw_only=True):
    """A question as the store lists it."""

    # Its worst trial, for the reasons of lost points.
    scorecard: Scorecard


def question_row(trials: Sequence[Trial], pass_mark: float) -> QuestionRow:
    """A question of a run from its trials: what the store lists, and what reports show."""
    first, cards = trials[0], [trial.scorecard for trial in trials]
    score = mean_score(card.total for card in cards)
    scores = [card.total for card in cards if card.total is not None]
    measures: dict[str, list[float]] = {}
    for card in cards:
        values = {**{name: part.value for name, part in card.components.items()}, **card.metrics}
        for name, value in values.items():
            known = measures.setdefault(name, [])
            if value is not None:
                known.append(value)
    costs = [cost for trial in trials if (cost := trial.cost) is not None]
    return QuestionRow(
        id=first.question.id,
        position=first.position,
        question=first.question.question,
        category=first.question.category,
        persona=first.question.persona,
        tags=first.question.tags,
        score=score,
        grade=None if score is None else letter_grade(score),
        critical=first.question.severity == "critical",
        passed=passes(score, pass_mark),
        trials=len(trials),
        trials_passed=sum(card.passed for card in cards),
        lowest=min(scores, default=None),
        highest=max(scores, default=None),
        error=next((card.error.kind for card in cards if card.error is not None), None),
        latency_ms=max((time for trial in trials if (time := trial.latency_ms) is not None), default=None),
        cost=fsum(costs) if costs else None,
        tools=tuple(
            dict.fromkeys(name for trial in trials for reply in trial.replies for name in reply.tools_used)
        ),
        measures={name: fsum(known) / len(known) if known else None for name, known in measures.items()},
        reply=(first.replies[-1].text or "") if first.replies else "",
        line=first.origin.line if len(trials) == 1 and first.origin is not None else None,
        scorecard=min(cards, key=lambda card: -1.0 if card.total is None else card.total),
    )


class ExperimentLink(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a run one of the two of an interleaved experiment."""

    # The ids of both, the first target's run before the second's.
    runs: tuple[str, str]
    early_stop: bool
    # Planned interim analyses at which it may stop; 0: none.
    looks: int = 0
    # The second run is the first one with these faults; None: the runs are of two chatbots.
    faults: FaultSettings | None = None

    def is_faulted(self, run_id: str) -> bool:
        """Whether this run is the one with faults."""
        return self.faults is not None and run_id == self.runs[1]


# How the name of what a recorded log's replies came from begins.
RECORDED = "recorded:"


class Rescoring(msgspec.Struct, frozen=True, kw_only=True):
    """That a run was scored again, and how it was scored before."""

    at: str
    match: str
    scoring_hash: str
    question_set_hash: str
    score: float | None


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Description of a run: target, golden set, repeats and scoring."""

    id: str
    name: str
    # Interrupted: stopped before every question was asked; can be resumed. Partial: it ended, and a question has no reply.
    status: Literal["running", "interrupted", "partial", "complete"]
    created_at: str
    target: str
    target_hash: str
    # Target as `resume` opens it again; None for a Python object.
    target_spec: str | None = None
    target_version: TargetVersion = TargetVersion()
    question_set: str
    question_set_hash: str
    # File of the golden set; None for sets made in Python.
    question_path: str | None = None
    # Trials per question; of a recorded log, the most replies to one question.
    repeat: int = 1
    match: str = "standard"
    weights: dict[str, float]
    # Metric → direction, as declared by scorers; the default is higher.
    directions: dict[str, Literal["higher", "lower"]] = {}
    pass_mark: float = 0.7
    # How it was asked and scored.
    options: Options = Options()
    # Hash of the scoring; scorecards are stored by it.
    scoring_hash: str = ""
    finished_at: str | None = None
    # None: the run has no judge.
    judge: JudgeRecord | None = None
    experiment: ExperimentLink | None = None
    # None: nothing was computed or checked.
    truth: RunTruth | None = None
    tags: tuple[str, ...] = ()
    # Why it stopped early, if the user did not stop it.
    stopped: str = ""
    # Run whose replies were copied at its start (`resume --accept-changes`).
    made_from: str | None = None
    # Results of asking changed questions again; those replies are not part of the run.
    confirmation: Confirmation | None = None
    # Of a recorded log: reason → rows that could not be scored. They lower the coverage, after rescoring too.
    bad_rows: dict[str, int] = {}
    # Of a recorded log: further columns of its rows that are stored with the results (`--keep`).
    kept_columns: tuple[str, ...] = ()
    # Each `rescore`, oldest first.
    rescored: tuple[Rescoring, ...] = ()

    @property
    def is_log(self) -> bool:
        """Whether it is a recorded log: nothing more can be asked, and a question has any number of replies."""
        # A target has a fingerprint; a log only has its file.
        return self.target.startswith(RECORDED) and self.target_hash in ("", self.target)

    def confirmation_against(self, base: str) -> Confirmation | None:
        """The results of asking changed questions again, if this base run is the baseline since which they changed."""
        return self.confirmation if self.options.baseline == base else None


class EarlierRun(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier run of the same target and golden set, for the trend of a later one."""

    id: str
    name: str
    created_at: str
    score: float | None
    grade: str | None
    interval: Interval | None
    passed: int
    questions: int
    latency_ms: Latency | None
    question_set_hash: str


class GateResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """A gate, whether it passed, and the value that it was compared with."""

    gate: str
    passed: bool
    # A number, a verdict, or slice → number.
    value: Any
    # Why it failed, if the value alone does not say.
    reason: str = ""

    @property
    def finding(self) -> str:
        """The value in words, e.g. `score is 0.866`, `Rent is 0.65`, `the verdict is worse`."""
        if isinstance(self.value, dict):
            return (
                ", ".join(f"{name} is {_known(part)}" for name, part in self.value.items()) or "no such slice"
            )
        if self.gate.lstrip().startswith("no regression"):
            return f"the verdict is {self.value}"
        return f"{re.split('[<>=!]', self.gate)[0].strip()} is {_known(self.value)}"

    @property
    def because(self) -> str:
        """The reason in parentheses, to follow the value."""
        return f" ({self.reason})" if self.reason else ""


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)


class GateResults(tuple[GateResult, ...]):
    """Results of gates; true if all of them passed."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return all(result.passed for result in self)

    def __repr__(self) -> str:
        failed = [result for result in self if not result.passed]
        if not failed:
            return f"<{len(self)} conditions passed>"
        return f"<{'; '.join(f'{one.gate} failed: {one.finding}{one.because}' for one in failed)}>"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run: its description, summary and results, trial by trial in the order of the set."""

    info: RunInfo
    summary: Summary
    gates: tuple[GateResult, ...] = ()
    # Comparison with the baseline, if there is one.
    comparison: Comparison | None = None
    warnings: tuple[str, ...] = ()
    # Earlier runs, oldest first; loaded only for reports.
    earlier: tuple[EarlierRun, ...] = ()
    # Whether CSV and Excel files list the worst results first.
    tables_worst_first: bool = False
    # Those of a large run are read from the store at each iteration.
    results: Sequence[Trial] = ()

    @property
    def id(self) -> str:
        """The run's id."""
        return self.info.id

    @property
    def passed(self) -> bool:
        """Whether every gate was passed."""
        return all(gate.passed for gate in self.gates)

    @property
    def misconfigured(self) -> bool:
        """Whether no reply was scored, because the configuration of the target is wrong."""
        summary = self.summary
        wrong = sum(summary.harness.get(kind, 0) for kind in ("configuration", "mapping", "not_recorded"))
        return wrong > 0 and not summary.trials and wrong == sum(summary.unscored.values())

    @property
    def score(self) -> float | None:
        """The mean score; None if nothing could be scored."""
        return self.summary.score

    def to_dict(self) -> dict[str, Any]:
        """The run document."""
        from answerkey.model.run_document import run_document  # few commands write it

        return run_document(self)

    def by_question(self) -> Iterator[list[Trial]]:
        """Yield the trials of each question, in the order of the set, or of a log's first replies."""
        results = self.results
        return trials_by_question(results.by_question() if isinstance(results, LoggedResults) else results)

    def failed_questions(self) -> Iterator[list[Trial]]:
        """Yield the trials of each question that did not pass; of a stored run, only these are read."""
        results, pass_mark = self.results, self.info.pass_mark
        if isinstance(results, StreamedResults) and not isinstance(results, LoggedResults):
            groups = trials_by_question(results.of_questions_below(pass_mark))
        else:
            groups = self.by_question()
        for trials in groups:
            if not passes(mean_score(trial.scorecard.total for trial in trials), pass_mark):
                yield trials

    def table_results(self) -> Iterable[Trial]:
        """The results in the order of a table."""
        return self.worst_first() if self.tables_worst_first else self.results

    def worst_first(self) -> Iterable[Trial]:
        """All results, the worst first: unscored ones, then by score."""
        if isinstance(self.results, LoggedResults):
            return self.results.worst_first()
        return sorted(self.results, key=lambda trial: -1.0 if trial.score is None else trial.score)

    def rows(self) -> list[dict[str, Any]]:
        """A flat row for each result, under the names of the run document."""
        from answerkey.model.run_document import result_row  # API users only

        return [result_row(result) for result in self.results]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        from answerkey.model.run_document import data_frame

        return data_frame(self)

    def check(self, *conditions: str) -> "GateResults":
        """Evaluate conditions such as "score >= 0.9"; the result is false if one fails, and its repr says which."""
        from importlib import (
            import_module,  # by name: gates are in a layer above
        )

        checked: GateResults = import_module("answerkey.runs.stored").check(self, *conditions)
        return checked

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        from answerkey.model.run_document import run_html

        return run_html(self)

    def __repr__(self) -> str:
        score = self.summary.score
        shown = "unscored" if score is None else f"{shown_score(score)} {self.summary.grade}"
        return f"<Run {self.info.name!r} {self.info.id}: {shown}, {self.summary.questions} questions>"


class StreamedResults(Sequence[Trial]):
    """Results that are not in memory: every iteration reads them again."""

    def __init__(
        self,
        read: Callable[[], Iterable[Trial]],
        find: Callable[[str], list[Trial]] | None = None,
        below: Callable[[float], Iterable[Trial]] | None = None,
    ) -> None:
        self._read, self._find = read, find
        # Reads the questions whose mean score is below a limit, or unknown.
        self._below = below

    def of_questions_below(self, score: float) -> Iterable[Trial]:
        """The results of questions whose mean score may be below a limit; all of them where no others can be left out."""
        return iter(self) if self._below is None else self._below(score)

    def of_question(self, question_id: str) -> list[Trial]:
        """The results of one question."""
        if self._find is not None:
            return self._find(question_id)
        return [result for result in self if result.question.id == question_id]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._read())

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<{len(self)} results>"

    @cached_property
    def _count(self) -> int:
        return sum(1 for _ in self._read())

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return list(islice(self, start, stop, step)) if step > 0 else list(self)[index]
        position = index if index >= 0 else index + len(self)
        result = next(islice(self, position, None), None) if position >= 0 else None
        if result is None:
            raise IndexError(f"no result {index}")
        return result


class LoggedResults(StreamedResults):
    """The results of a log; the worst ones are known without reading all."""

    def __init__(
        self,
        read: Callable[[], Iterable[Trial]],
        *,
        by_question: Callable[[], Iterable[Trial]],
        worst_first: Callable[[], Iterable[Trial]],
        worst: Sequence[Trial],
        imperfect: int,
        failed: int,
        lines: Callable[[], Iterable[bytes]] | None = None,
        table_lines: Callable[[], Iterable[bytes]] | None = None,
        has_trials: bool = True,
    ) -> None:
        super().__init__(read)
        # Whether all can be read; else only the worst were stored, or lines.
        self.has_trials = has_trials
        # All results by question; a log has them in any order.
        self.by_question = by_question
        self.worst_first = worst_first
        # All results as lines of JSON, if these were stored instead of trials: in full, or what tables have of them.
        self.lines, self.table_lines = lines, table_lines
        # Lowest score first.
        self.worst = worst
        # Number of results that lost points, and that failed.
        self.imperfect = imperfect
        self.failed = failed
