"""Run: one pass over a question set, with its aggregates and its results one by one."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Literal, overload

import msgspec

from answerkey.model.comparison import Comparison, Confirmation
from answerkey.model.fault import FaultSettings
from answerkey.model.judgement import JudgeRecord
from answerkey.model.options import Options, TargetVersion
from answerkey.model.run_document import run_document
from answerkey.model.scorecard import Trial, shown_score
from answerkey.model.summary import Latency, Summary
from answerkey.model.truth import RunTruth
from answerkey.stats.intervals import Interval


class ExperimentLink(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a run one of the two of an interleaved experiment."""

    # The ids of both, the first target's run before the second's.
    runs: tuple[str, str]
    early_stop: bool
    # Planned looks at which it may stop; 0: none.
    looks: int = 0
    # The second run is the first one with these faults; None: the runs are of two chatbots.
    faults: FaultSettings | None = None

    def is_faulted(self, run_id: str) -> bool:
        """Whether this run is the one with faults."""
        return self.faults is not None and run_id == self.runs[1]


# How the name of what a recorded log's replies came from begins.
RECORDED = "recorded:"


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is: who was asked what, how often, and how it is scored."""

    id: str
    name: str
    # Interrupted: stopped before every question was asked; can be resumed. Partial: it ended, and a question has no reply.
    status: Literal["running", "interrupted", "partial", "complete"]
    created_at: str
    target: str
    target_hash: str
    # What `resume` makes the target from again; None for a Python object, which has no name.
    target_spec: str | None = None
    # Which version of it was asked, as far as that is known.
    target_version: TargetVersion = TargetVersion()
    question_set: str
    question_set_hash: str
    # The golden set's file, for `resume`; None for sets that were made in Python.
    question_path: str | None = None
    # How often each question is asked; of a recorded log: the most replies that any question has.
    repeat: int = 1
    match: str = "standard"
    weights: dict[str, float]
    # Metrics of which less is better, as their scorers declare it; of all others more is.
    directions: dict[str, Literal["higher", "lower"]] = {}
    pass_mark: float = 0.7
    # How it was asked and scored, so that `resume` can go on alike.
    options: Options = Options()
    # Hash of the scoring in force: scorecards are kept by it.
    scoring_hash: str = ""
    finished_at: str | None = None
    # None: the run has no judge.
    judge: JudgeRecord | None = None
    experiment: ExperimentLink | None = None
    # None: nothing was computed or checked.
    truth: RunTruth | None = None
    # What people call it by, beside its name.
    tags: tuple[str, ...] = ()
    # Why it ended before everything was asked, where that was not the user's doing.
    stopped: str = ""
    # The run whose replies it began with (`resume --accept-changes`).
    made_from: str | None = None
    # What asking again showed of questions that flipped since its baseline: those replies do not belong to the run.
    confirmation: Confirmation | None = None
    # Of a recorded log: why rows could not be scored → how many. They count against coverage however often it is rescored.
    bad_rows: dict[str, int] = {}
    # Of a recorded log: other columns of its rows that results keep.
    kept_columns: tuple[str, ...] = ()

    @property
    def is_log(self) -> bool:
        """Whether it is a recorded log: no chatbot was asked, so nothing more can be asked, and its questions may have any number
        of replies each."""
        # A chatbot that was asked has a fingerprint; a log is known by its file alone.
        return self.target.startswith(RECORDED) and self.target_hash in ("", self.target)


class EarlierRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the same chatbot on the same golden set, in the trend of a later one."""

    id: str
    name: str
    created_at: str
    score: float | None
    grade: str | None
    interval: Interval | None
    passed: int
    questions: int
    latency_ms: Latency | None
    # Of the golden set, which may have been another version of it.
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
        """What the gate was compared with, e.g. `score is 0.866`, `Rent is 0.65`, `the candidate is worse`."""
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
    """A finished pass: what it was, its aggregates, and its results in the set's order, trial by trial."""

    info: RunInfo
    summary: Summary
    gates: tuple[GateResult, ...] = ()
    # The comparison with a baseline, when there was one.
    comparison: Comparison | None = None
    warnings: tuple[str, ...] = ()
    # The trend, the oldest first; read only when it is shown.
    earlier: tuple[EarlierRun, ...] = ()
    # Whether CSV and Excel files list the worst results first, not in order.
    tables_worst_first: bool = False
    # A large run's are read from the store each time they are looked through.
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
        """Whether no reply counts, since the target is not set up as it must be."""
        summary = self.summary
        wrong = summary.harness.get("configuration", 0) + summary.harness.get("mapping", 0)
        return wrong > 0 and not summary.trials and wrong == sum(summary.unscored.values())

    @property
    def score(self) -> float | None:
        """The mean score; None if nothing could be scored."""
        return self.summary.score

    def to_dict(self) -> dict[str, Any]:
        """The run document."""
        return run_document(self)

    def by_question(self) -> Iterator[list[Trial]]:
        """The trials of each question together, in the order of the set or in which a log first answers them."""
        results = self.results
        grouped = results.by_question() if isinstance(results, LoggedResults) else results
        for _, trials in groupby(grouped, key=attrgetter("question.id")):
            yield list(trials)

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
        from answerkey.model.result_rows import result_row  # for those who program

        return [result_row(result) for result in self.results]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        from answerkey.model.result_rows import data_frame

        return data_frame(self)

    def check(self, *conditions: str) -> "GateResults":
        """Evaluate conditions such as "score >= 0.9"; the result is false if one fails, and its repr says which."""
        from importlib import (
            import_module,  # by name: the gates are above the model, which must not know them
        )

        checked: GateResults = import_module("answerkey.runs.verdicts").check(self, *conditions)
        return checked

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from answerkey.model.result_rows import run_html

        return run_html(self)

    def __repr__(self) -> str:
        score = self.summary.score
        shown = "unscored" if score is None else f"{shown_score(score)} {self.summary.grade}"
        return f"<Run {self.info.name!r} {self.info.id}: {shown}, {self.summary.questions} questions>"


class StreamedResults(Sequence[Trial]):
    """Results that are not in memory: every iteration reads them again."""

    def __init__(
        self, read: Callable[[], Iterable[Trial]], find: Callable[[str], list[Trial]] | None = None
    ) -> None:
        self._read = read
        self._find = find

    def of_question(self, question_id: str) -> list[Trial]:
        """One question's, looked up where that can be done."""
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
        place = index if index >= 0 else index + len(self)
        found = next(islice(self, place, None), None) if place >= 0 else None
        if found is None:
            raise IndexError(f"no result {index}")
        return found


class LoggedResults(StreamedResults):
    """The results of a log, of which the lowest are known without a look through all of them."""

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
    ) -> None:
        super().__init__(read)
        # All results, question by question: in the log, the replies to a question may be anywhere.
        self.by_question = by_question
        # All results, the worst first.
        self.worst_first = worst_first
        # The rows of all results as lines of JSON, where these were kept instead of trials.
        self.lines = lines
        # The lowest first.
        self.worst = worst
        # How many lost points, and how many failed.
        self.imperfect = imperfect
        self.failed = failed
