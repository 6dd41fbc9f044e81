"""Tally: adds up trials so that the parts of a run, added up apart and merged in any order, give the same summary.

Replies are counted as they come; a question is counted once, when all of its trials are known, by the mean of their values. All
sums are whole numbers, so that the order of adding does not matter. Few different values make up most questions, so questions
with equal values are counted together: a tally of millions is small.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeVar

import msgspec

from answerkey.model.question import Question
from answerkey.model.question_totals import (
    COST,
    ERRORS,
    LATENCY,
    OVERALL,
    PAID,
    PASSED,
    SCORE,
    TOOL,
    WORTH,
    AlikeReplies,
    ColumnSum,
    MeasureNames,
    QuestionSlices,
    QuestionTotals,
    SliceKey,
    TrialValues,
    add_to_column,
    counted_latency,
)
from answerkey.model.reply import Reply, Usage
from answerkey.model.run import Cost, Latency, Slice, SlowQuestion, Summary, SuspectedReply
from answerkey.model.scorecard import (
    PASS_MARK,
    Scorecard,
    Trial,
    fails_once,
    harness_problem,
    letter_grade,
    passes,
    reason,
    round_score,
)
from answerkey.stats.intervals import Durations, Interval, UnitMoments, fixed_point_mean, to_fixed_point

GRADES = "ABCDF"
# More different groups of equal questions than these are folded into moments, which changes no figure.
_MOST_CELLS = 50_000
_SLOWEST_LISTED = 5
_SUSPECTED_LISTED = 10
_CRITICAL_LISTED = 20
# Reasons may hold any message: the number of different ones that are counted and listed, and their length.
_REASONS_COUNTED = 1000
_REASONS_LISTED = 20
_REASON_LENGTH = 200
_OTHER_REASONS = "other reasons"
# Milliseconds are summed in nanoseconds, usage (tokens, money) in units of 10⁻¹².
_NANOSECONDS = 1e6
_USAGE_UNITS = 10**12
_PHASES = ("tools", "rest", "first_byte", "queue", "retry")


class ReplyCounts:
    """What is counted reply by reply, of the questions in some slices."""

    __slots__ = ("errors", "latency", "moments", "passed", "replies", "trials")

    def __init__(self) -> None:
        # Trials that have a score, and those of them that passed.
        self.trials = 0
        self.passed = 0
        self.replies = 0
        self.errors: dict[str, int] = {}
        self.latency = Durations()
        # Column → its moments over units.
        self.moments: dict[str, UnitMoments] = {}

    def add(self, trial: Trial, times: int, latencies: Iterable[float]) -> None:
        """Count scored trials that are alike in all but their latencies."""
        card = trial.scorecard
        self.trials += times * (card.total is not None)
        self.passed += times * card.passed
        self.replies += times * len(trial.replies)
        for turn in card.turns or (card,):
            if turn.error is not None:
                self.errors[turn.error.kind] = self.errors.get(turn.error.kind, 0) + times
        self.latency.extend(latencies)

    def add_unit(self, sums: Mapping[str, ColumnSum], times: int = 1) -> None:
        """Count the sums of a unit, all of whose replies were counted; `times` units that are alike."""
        for column, (total, size) in sums.items():
            if size:
                bounded = column == ERRORS and fixed_point_mean(total, size) <= 1
                self._moments_of(column).add(total, size, times, bounded=bounded)

    def add_unbounded(self, column: str, totals: Sequence[int]) -> None:
        """Count units of one reply each, by their values in a column."""
        self._moments_of(column).extend(totals, 1)

    def _moments_of(self, column: str) -> UnitMoments:
        found = self.moments.get(column)
        if found is None:
            found = self.moments[column] = UnitMoments()
        return found

    def interval(self, column: str, replies: int) -> Interval | None:
        """The interval of a mean over this many replies; None where the units of some are not known."""
        moments = self.moments.get(column)
        if moments is None or moments.count != replies:
            return None
        interval = moments.interval()
        if interval is None:
            return None
        return Interval(max(0.0, round(interval.low, 6)), round(interval.high, 6), interval.level)

    def merge(self, other: "ReplyCounts") -> None:
        """Add what another has counted."""
        self.trials += other.trials
        self.passed += other.passed
        self.replies += other.replies
        for kind, times in other.errors.items():
            self.errors[kind] = self.errors.get(kind, 0) + times
        self.latency.merge(other.latency)
        for column, moments in other.moments.items():
            self.moments.setdefault(column, UnitMoments()).merge(moments)


class QuestionCounts:
    """What the questions of a slice come to."""

    __slots__ = (
        "_moments",
        "expecting_no_tools",
        "expecting_nothing",
        "grades",
        "passed",
        "questions",
        "units",
    )

    def __init__(self) -> None:
        self.questions = 0
        self.units = 0
        self.passed = 0
        # Questions that expect nothing of a reply's text, checks included, and nothing of its tool calls.
        self.expecting_nothing = 0
        self.expecting_no_tools = 0
        self.grades: Counter[str] = Counter()
        self._moments: dict[str, UnitMoments] = {}

    def add(self, values: TrialValues, times: int, pass_mark: float, slices: QuestionSlices) -> None:
        """Count questions with these means."""
        self.questions += times
        checked = "checks" in values.names.components
        self.expecting_nothing += times * (slices.expects_nothing_of_text and not checked)
        self.expecting_no_tools += times * slices.expects_nothing_of_tools
        if values.score is not None:
            self.grades[letter_grade(values.score)] += times
            self.passed += times * passes(values.score, pass_mark)

    def moments(self, column: str) -> UnitMoments:
        """The moments of a column over units."""
        found = self._moments.get(column)
        if found is None:
            found = self._moments[column] = UnitMoments()
        return found

    def mean(self, column: str) -> tuple[float | None, Interval | None]:
        """A column's mean over the questions that have a value, and its interval over their units."""
        found = self._moments.get(column)
        return (None, None) if found is None else (round_score(found.mean), found.interval())

    def cost(self) -> Cost | None:
        """What questions cost, and what a point costs; None where no cost is known."""
        mean, interval = self.mean(COST)
        if mean is None:
            return None
        if interval is not None:
            interval = msgspec.structs.replace(interval, low=max(0.0, interval.low))
        paid, worth = self.moments(PAID), self.moments(WORTH)
        point = round_score(paid.total / worth.total) if worth.total > 0 else None
        return Cost(questions=self.moments(COST).count, question=mean, interval=interval, point=point)

    def merge(self, other: "QuestionCounts") -> None:
        """Add what another has counted."""
        self.questions += other.questions
        self.units += other.units
        self.passed += other.passed
        self.expecting_nothing += other.expecting_nothing
        self.expecting_no_tools += other.expecting_no_tools
        self.grades.update(other.grades)
        for column, moments in other._moments.items():
            self.moments(column).merge(moments)


def _is_share(column: str, value: float) -> bool:
    """Whether a value is a share; a count, a duration or a price is not."""
    return column not in (COST, PAID) and 0.0 <= value <= 1.0


class WholeRunCounts:
    """What is only added up for the run as a whole."""

    def __init__(self) -> None:
        self.tools_unobserved = 0
        # Finish reasons of replies that did not end by themselves.
        self.finishes: Counter[str] = Counter()
        self.harness: Counter[str] = Counter()
        # Replies that are suspected to be errors and not charged.
        self.suspected = 0
        self._suspected_replies: list[SuspectedReply] = []
        self.tool_latency: dict[str, Durations] = {}
        self._unscored: Counter[str] = Counter()
        # Nanoseconds by phase; replies that were timed, and those of them whose first byte was.
        self._phases = dict.fromkeys(_PHASES, 0)
        self._timed = self._first_bytes = 0
        # Question → its slowest trial, of the slowest few questions; what is faster than the limit is not among them.
        self._slowest: dict[str, float] = {}
        self.slowest_limit = 0.0
        self._usage: Counter[str] = Counter()

    def add(self, trial: Trial) -> None:
        """Count a scored trial."""
        if trial.scorecard.total is None:
            problem = harness_problem(trial.scorecard)
            if problem is not None:
                self.harness[problem] += 1
            self.add_unscored(_unscored_reason(trial.scorecard, problem))
        for turn in trial.scorecard.turns or (trial.scorecard,):
            found = turn.suspected
            if found is not None:
                self.suspected += 1
                listed = SuspectedReply(trial.question.id, found.kind, found.words, found.probability)
                self._add_suspected([listed])
        for reply in trial.replies:
            self._add_reply(reply)
        latency = trial.latency_ms
        if latency is not None and latency >= self.slowest_limit:
            self.add_slow(trial.question.id, latency)

    def add_alike(self, alike: AlikeReplies) -> None:
        """Count plain replies, whose latencies were compared with the slowest ones before."""
        self.tools_unobserved += alike.times * (not alike.trial.reply.evidence.tools_observed)
        self._add_rest(alike.latencies)

    def _add_rest(self, latencies: Sequence[float], tools_ms: float = 0.0) -> None:
        """Count the time that replies took beside their tools."""
        self._timed += len(latencies)
        self._phases["rest"] += sum(
            [round(max(0.0, latency - tools_ms) * _NANOSECONDS) for latency in latencies]
        )

    def _add_suspected(self, replies: Iterable[SuspectedReply]) -> None:
        """Keep the likeliest, each wording once."""
        known = {(reply.id, reply.words): reply for reply in (*self._suspected_replies, *replies)}
        ranked = sorted(known.values(), key=lambda reply: (-reply.probability, reply.id, reply.words))
        self._suspected_replies = ranked[:_SUSPECTED_LISTED]

    def suspected_replies(self) -> tuple[SuspectedReply, ...]:
        """The replies that are most likely errors without being charged."""
        return tuple(self._suspected_replies)

    def _add_reply(self, reply: Reply) -> None:
        self.tools_unobserved += not reply.evidence.tools_observed and reply.failure is None
        if reply.finish is not None:
            self.finishes[reply.finish] += 1
        tools_ms = 0.0
        for call in reply.tool_calls:
            if call.duration_ms is not None:
                tools_ms += call.duration_ms
                self.tool_latency.setdefault(call.name, Durations()).add(call.duration_ms)
        timings = reply.timings
        if timings.latency_ms is not None:
            self._add_rest([timings.latency_ms], tools_ms)
            if tools_ms:
                self._phases["tools"] += round(tools_ms * _NANOSECONDS)
            if timings.first_byte_ms is not None:
                self._first_bytes += 1
                self._phases["first_byte"] += round(timings.first_byte_ms * _NANOSECONDS)
            if timings.queue_ms or timings.retry_ms:
                self._phases["queue"] += round(timings.queue_ms * _NANOSECONDS)
                self._phases["retry"] += round(timings.retry_ms * _NANOSECONDS)
        if reply.usage is not None:
            self._add_usage(reply.usage)

    def _add_usage(self, usage: Usage) -> None:
        for name in usage.__struct_fields__:
            amount = getattr(usage, name)
            if amount is not None:
                self._usage[name] += round(amount * _USAGE_UNITS)

    def add_slow(self, identity: str, latency: float) -> None:
        """Count a reply that took at least as long as the limit."""
        self._slowest[identity] = max(latency, self._slowest.get(identity, 0.0))
        if len(self._slowest) > _SLOWEST_LISTED:
            self._slowest = dict(self._ranked()[:_SLOWEST_LISTED])
            self.slowest_limit = min(self._slowest.values())

    def _ranked(self) -> list[tuple[str, float]]:
        return [
            (identity, -slow)
            for slow, identity in sorted([(-slow, one) for one, slow in self._slowest.items()])
        ]

    def add_unscored(self, why: str, times: int = 1) -> None:
        """Count trials that have no score for a reason."""
        listed = why in self._unscored or len(self._unscored) < _REASONS_COUNTED
        self._unscored[why if listed else _OTHER_REASONS] += times

    def merge(self, other: "WholeRunCounts") -> None:
        """Add what another has counted."""
        self.tools_unobserved += other.tools_unobserved
        self.finishes.update(other.finishes)
        self.harness.update(other.harness)
        self.suspected += other.suspected
        self._add_suspected(other._suspected_replies)
        for why, times in other._unscored.items():
            self.add_unscored(why, times)
        for name, latency in other.tool_latency.items():
            self.tool_latency.setdefault(name, Durations()).merge(latency)
        self._timed += other._timed
        self._first_bytes += other._first_bytes
        for name, nanoseconds in other._phases.items():
            self._phases[name] += nanoseconds
        for identity, latency_ms in other._slowest.items():
            self.add_slow(identity, latency_ms)
        self._usage.update(other._usage)

    def unscored_reasons(self) -> dict[str, int]:
        """Why trials have no score, the most frequent reason first."""
        ranked = sorted(
            self._unscored.items(),
            key=lambda counted: (counted[0] == _OTHER_REASONS, -counted[1], counted[0]),
        )
        listed = dict(ranked[:_REASONS_LISTED])
        rest = sum(times for _, times in ranked[_REASONS_LISTED:])
        return listed | ({_OTHER_REASONS: listed.get(_OTHER_REASONS, 0) + rest} if rest else {})

    def phases_ms(self) -> dict[str, float]:
        """The mean time of each phase."""
        counts = {name: self._first_bytes if name == "first_byte" else self._timed for name in _PHASES}
        return {
            name: round(self._phases[name] / counts[name] / _NANOSECONDS, 3)
            for name in _PHASES
            if counts[name]
        }

    def slowest(self) -> tuple[SlowQuestion, ...]:
        """The slowest questions, the slowest first."""
        return tuple(SlowQuestion(identity, round(latency, 3)) for identity, latency in self._ranked())

    def usage(self) -> dict[str, float]:
        """What was used up in all."""
        return {
            name: amount // _USAGE_UNITS
            if amount % _USAGE_UNITS == 0 and name != "cost"
            else round(amount / _USAGE_UNITS, 9)
            for name, amount in self._usage.items()
        }


def _unscored_reason(card: Scorecard, problem: str | None) -> str:
    """Why a trial has no score: the first component that has a weight and no value."""
    for score in card.components.values():
        if score.value is None and score.weight:
            words = reason(score)[:_REASON_LENGTH]
            return f"{score.name}: {words}" if problem in (None, "scorer") else f"harness: {problem}: {words}"
    return "not scored"


class CriticalCounts:
    """Questions of severity critical, and those of them to which a reply did not pass."""

    def __init__(self) -> None:
        self.questions = self.failures = 0
        # (position, id) of the first that failed.
        self._failed: list[tuple[int, str]] = []

    def add(self, totals: QuestionTotals, pass_mark: float) -> None:
        """Count a critical question."""
        self.questions += 1
        if fails_once((values.score for values in totals.trials), pass_mark):
            self.failures += 1
            self._add_failed([(totals.first, totals.id)])

    def merge(self, other: "CriticalCounts") -> None:
        """Add what another has counted."""
        self.questions += other.questions
        self.failures += other.failures
        self._add_failed(other._failed)

    def _add_failed(self, failed: Iterable[tuple[int, str]]) -> None:
        self._failed = sorted([*self._failed, *failed])[:_CRITICAL_LISTED]

    def failed(self) -> tuple[str, ...]:
        """The ids of the first that failed."""
        return tuple(identity for _, identity in self._failed)


_Counts = TypeVar("_Counts", QuestionCounts, ReplyCounts)


class _Cell(NamedTuple):
    """Questions with equal slices and equal means."""

    slices: QuestionSlices
    values: TrialValues


class _CellCount:
    """How many questions are alike, where the first of them is, and the counts of their replies."""

    __slots__ = ("first", "replies", "times")

    def __init__(self, first: int, replies: ReplyCounts) -> None:
        self.times, self.first, self.replies = 0, first, replies


class AlikeTrials:
    """Questions with one plain reply each that are alike in all but their latency."""

    __slots__ = ("errors", "firsts", "latencies", "slices", "values")

    def __init__(self, slices: QuestionSlices, values: TrialValues, errors: int) -> None:
        self.slices, self.values, self.errors = slices, values, errors
        # The position of each question; the latencies that are known, in fixed point.
        self.firsts: list[int] = []
        self.latencies: list[int] = []


class Tally:
    """Adds up trials, and the questions that they belong to."""

    def __init__(self, pass_mark: float = PASS_MARK) -> None:
        self.pass_mark = pass_mark
        self.whole = WholeRunCounts()
        self._critical = CriticalCounts()
        # Counted reply by reply, by the slices of their question.
        self._replies: dict[QuestionSlices, ReplyCounts] = {}
        # Questions that are units themselves. Questions by their group, with their sums over replies.
        self._cells: dict[_Cell, _CellCount] = {}
        self._groups: dict[str, list[tuple[_Cell, Mapping[str, ColumnSum]]]] = {}
        # Questions that were folded, by their slices.
        self._questions: dict[QuestionSlices, QuestionCounts] = {}
        # Of closed groups, whose questions may be in different slices: their questions, and sums over their replies.
        self._grouped_questions: dict[SliceKey, QuestionCounts] = {}
        self._grouped_replies: dict[SliceKey, ReplyCounts] = {}
        # Where each list of names, and each combination of slices, was first seen: it gives the order of the summary.
        self._first_names: dict[MeasureNames, int] = {}
        self._first_slices: dict[QuestionSlices, int] = {}

    def add_reply(self, trial: Trial, slices: QuestionSlices) -> None:
        """Count a scored trial of a question that is in these slices."""
        known = [time for reply in trial.replies if (time := counted_latency(reply)) is not None]
        self._replies_of(slices).add(trial, 1, known)
        self.whole.add(trial)

    def add_alike(self, alike: AlikeReplies) -> None:
        """Count plain replies."""
        self._replies_of(alike.slices).add(alike.trial, alike.times, alike.latencies)
        self.whole.add_alike(alike)

    def _replies_of(self, slices: QuestionSlices) -> ReplyCounts:
        counts = self._replies.get(slices)
        if counts is None:
            counts = self._replies[slices] = ReplyCounts()
        return counts

    def add_question(self, totals: QuestionTotals) -> None:
        """Count a question, all of whose trials were counted."""
        cell, first = _Cell(totals.slices, totals.mean()), totals.first
        if totals.is_critical:
            self._critical.add(totals, self.pass_mark)
        if totals.group is not None:
            self._note_first(cell, first)
            self._groups.setdefault(totals.group, []).append((cell, totals.sums))
            return
        self._add_to_cell(cell, first, 1).add_unit(totals.sums)

    def add_single_trials(self, alike: "AlikeTrials") -> None:
        """Count questions of one plain reply each."""
        cell = _Cell(alike.slices, alike.values)
        times = len(alike.firsts)
        replies = self._add_to_cell(cell, min(alike.firsts), times)
        replies.add_unit({ERRORS: (to_fixed_point(alike.errors), 1)}, times)
        if alike.latencies:
            replies.add_unbounded(LATENCY, alike.latencies)

    def _add_to_cell(self, cell: _Cell, first: int, times: int) -> ReplyCounts:
        """Count questions that are alike; returns the counts of their replies."""
        if len(self._cells) >= _MOST_CELLS:
            self._fold_cells()
        count = self._cells.get(cell)
        if count is None:
            # A later part of a log may say that the question is in other slices than its replies.
            replies = self._replies.setdefault(cell.slices, ReplyCounts())
            count = self._cells[cell] = _CellCount(first, replies)
        count.times += times
        count.first = min(count.first, first)
        return count.replies

    def _note_first(self, cell: _Cell, first: int) -> None:
        names, slices = cell.values.names, cell.slices
        self._first_names[names] = min(self._first_names.get(names, first), first)
        self._first_slices[slices] = min(self._first_slices.get(slices, first), first)

    def merge(self, other: "Tally") -> None:
        """Add what another has counted; the questions of one group must all be in one of them."""
        other._fold_cells()
        self.whole.merge(other.whole)
        self._critical.merge(other._critical)
        for slices, counts in other._replies.items():
            self._replies.setdefault(slices, ReplyCounts()).merge(counts)
        for group, questions in other._groups.items():
            self._groups.setdefault(group, []).extend(questions)
        for slices, questions_counted in other._questions.items():
            self._questions.setdefault(slices, QuestionCounts()).merge(questions_counted)
        for key, questions_counted in other._grouped_questions.items():
            self._grouped_questions.setdefault(key, QuestionCounts()).merge(questions_counted)
        for key, counts in other._grouped_replies.items():
            self._grouped_replies.setdefault(key, ReplyCounts()).merge(counts)
        for names, first in other._first_names.items():
            self._first_names[names] = min(self._first_names.get(names, first), first)
        for slices, first in other._first_slices.items():
            self._first_slices[slices] = min(self._first_slices.get(slices, first), first)

    def close_groups(self) -> None:
        """Sum up the groups: no more of their questions will come."""
        for questions in self._groups.values():
            self._fold_group([cell for cell, _ in questions])
            sums: dict[SliceKey, dict[str, ColumnSum]] = {}
            for cell, columns in questions:
                for key in (OVERALL, *cell.slices.listed()):
                    unit = sums.setdefault(key, {})
                    for column, part in columns.items():
                        add_to_column(unit, column, *part)
            for key, unit in sums.items():
                self._grouped_replies.setdefault(key, ReplyCounts()).add_unit(unit)
        self._groups.clear()

    def _fold_cells(self) -> None:
        for cell, count in self._cells.items():
            (slices, values), times = cell, count.times
            self._note_first(cell, count.first)
            counts = self._questions.get(slices)
            if counts is None:
                counts = self._questions[slices] = QuestionCounts()
            counts.add(values, times, self.pass_mark, slices)
            counts.units += times
            for column, value in values.columns(self.pass_mark):
                counts.moments(column).add(to_fixed_point(value), 1, times, bounded=_is_share(column, value))
        self._cells.clear()

    def _fold_group(self, cells: Sequence[_Cell]) -> None:
        """Add one unit of several questions to every slice that any of them is in."""
        units: dict[SliceKey, dict[str, ColumnSum]] = {}
        # Columns of a slice with a value that is not a share.
        unbounded: set[tuple[SliceKey, str]] = set()
        for slices, values in cells:
            columns = list(values.columns(self.pass_mark))
            for key in (OVERALL, *slices.listed()):
                counts = self._grouped_questions.setdefault(key, QuestionCounts())
                counts.add(values, 1, self.pass_mark, slices)
                unit = units.setdefault(key, {})
                for column, value in columns:
                    add_to_column(unit, column, to_fixed_point(value), 1)
                    if not _is_share(column, value):
                        unbounded.add((key, column))
        for key, unit in units.items():
            counts = self._grouped_questions[key]
            counts.units += 1
            for column, part in unit.items():
                bounded = (key, column) not in unbounded
                counts.moments(column).add(*part, bounded=bounded)

    def summary(self, planned: int | None, unanswered: int = 0) -> Summary:
        """All of it; without a plan, everything there is was planned, and a reply to each unanswered question."""
        self.close_groups()
        self._fold_cells()
        whole = self.whole
        ordered = sorted(self._first_slices, key=lambda slices: (self._first_slices[slices], repr(slices)))
        listed = list(dict.fromkeys(key for slices in ordered for key in slices.listed()))
        names = self._measure_names()
        questions, replies = self._whole_run()
        overall = _slice(OVERALL, questions, replies, names)
        slices = {key: msgspec.structs.replace(overall, name=key.name) for key in listed}
        for key, counts in self._parts_of_run(listed).items():
            slices[key] = _slice(key, *counts, names)
        unscored = whole.unscored_reasons()
        if planned is None:
            planned = overall.trials + sum(unscored.values()) + unanswered
        kinds = dict.fromkeys(key.kind for key in listed)
        return Summary(
            **{field: getattr(overall, field) for field in Slice.__struct_fields__},
            planned=planned,
            coverage=round_score(min(1.0, overall.trials / planned)) if planned else 1.0,
            expecting_nothing=questions.expecting_nothing,
            expecting_no_tools=questions.expecting_no_tools,
            critical=self._critical.questions,
            critical_failures=self._critical.failures,
            critical_failed=self._critical.failed(),
            suspected_errors=whole.suspected,
            suspected_replies=whole.suspected_replies(),
            tools_unobserved=whole.tools_unobserved,
            finishes=dict(sorted(whole.finishes.items())),
            unscored=unscored,
            harness=dict(sorted(whole.harness.items())),
            usage=whole.usage(),
            categories=tuple(part for key, part in slices.items() if key.kind == "category"),
            slices={
                kind: tuple(part for key, part in slices.items() if key.kind == kind)
                for kind in kinds
                if kind != "category"
            },
            tool_latency_ms={
                name: _latency(latency, replies, TOOL + name)
                for name, latency in sorted(whole.tool_latency.items())
            },
            phases_ms=whole.phases_ms(),
            slowest=whole.slowest(),
        )

    def _whole_run(self) -> tuple[QuestionCounts, ReplyCounts]:
        questions, replies = QuestionCounts(), ReplyCounts()
        if len(self._questions) == 1 and not self._grouped_questions:
            [questions] = self._questions.values()
        else:
            for counts in (*self._questions.values(), *_of_key(self._grouped_questions, OVERALL)):
                questions.merge(counts)
        for answered in (*self._replies.values(), *_of_key(self._grouped_replies, OVERALL)):
            replies.merge(answered)
        return questions, replies

    def _parts_of_run(self, listed: Sequence[SliceKey]) -> dict[SliceKey, tuple[QuestionCounts, ReplyCounts]]:
        """The slices that have only some of the questions; the others are the whole run."""
        combinations = self._first_slices.keys() | self._replies.keys()
        occurrences: Counter[SliceKey] = Counter()
        for slices in combinations:
            occurrences.update(set(slices.listed()))
        partial = [key for key in listed if occurrences[key] < len(combinations)]
        found = {key: (QuestionCounts(), ReplyCounts()) for key in partial}
        for slices, questions in self._questions.items():
            for key in found.keys() & slices.listed():
                found[key][0].merge(questions)
        for slices, replies in self._replies.items():
            for key in found.keys() & slices.listed():
                found[key][1].merge(replies)
        for key, (questions, replies) in found.items():
            for grouped in _of_key(self._grouped_questions, key):
                questions.merge(grouped)
            for answered in _of_key(self._grouped_replies, key):
                replies.merge(answered)
        return found

    def _measure_names(self) -> MeasureNames:
        """The components and metrics that any question has, in the order in which they were first seen."""
        ordered = sorted(self._first_names, key=lambda names: (self._first_names[names], names))
        return MeasureNames(
            tuple(dict.fromkeys([name for names in ordered for name in names.components])),
            tuple(dict.fromkeys([name for names in ordered for name in names.metrics])),
        )


def _of_key(counts: Mapping[SliceKey, _Counts], key: SliceKey) -> Sequence[_Counts]:
    return (counts[key],) if key in counts else ()


def _slice(key: SliceKey, counts: QuestionCounts, replies: ReplyCounts, names: MeasureNames) -> Slice:
    score, interval = counts.mean(SCORE)
    means = {name: counts.mean(name) for name in (*names.components, *names.metrics)}
    scored = sum(counts.grades.values())
    errors = sum(replies.errors.values())
    return Slice(
        name=key.name,
        questions=counts.questions,
        units=counts.units,
        largest_unit=counts.moments(SCORE).largest,
        trials=replies.trials,
        trials_passed=replies.passed,
        trial_pass_rate=round_score(replies.passed / replies.trials) if replies.trials else None,
        replies=replies.replies,
        score=score,
        grade=None if score is None else letter_grade(score),
        interval=interval,
        components={name: means[name][0] for name in names.components},
        component_intervals={name: means[name][1] for name in names.components},
        passed=counts.passed,
        pass_rate=round_score(counts.passed / scored) if scored else None,
        pass_interval=counts.mean(PASSED)[1],
        grades={letter: counts.grades.get(letter, 0) for letter in GRADES},
        errors=dict(sorted(replies.errors.items())),
        error_rate=round_score(errors / replies.replies) if replies.replies else 0.0,
        error_interval=replies.interval(ERRORS, replies.replies),
        latency_ms=_latency(replies.latency, replies, LATENCY) if replies.latency.count else None,
        metrics={name: means[name][0] for name in names.metrics},
        metric_intervals={name: means[name][1] for name in names.metrics},
        cost=counts.cost(),
    )


_question_id = attrgetter("question.id")


def _latency(durations: Durations, replies: ReplyCounts, column: str) -> Latency:
    """Durations as they are reported, with the interval of their mean over units."""
    mean, half, p90, p95, p99, longest = (
        round(figure, 3)
        for figure in (durations.mean, *durations.percentiles((50, 90, 95, 99)), durations.longest)
    )
    return Latency(mean, half, p90, p95, p99, longest, replies.interval(column, durations.count))


def summarise(results: Iterable[Trial], *, planned: int | None, pass_mark: float = PASS_MARK) -> Summary:
    """Add up results that come grouped by question."""
    return _tally(results, pass_mark)[0].summary(planned)


def summarise_log(
    results: Iterable[Trial], *, questions: int, bad_rows: Mapping[str, int], pass_mark: float
) -> Summary:
    """Add up a stored log, grouped by question.

    A question without a reply lacks one; rows that could not be scored lack a score.
    """
    tally, answered = _tally(results, pass_mark)
    for why, times in bad_rows.items():
        tally.whole.add_unscored(why, times)
    return tally.summary(None, unanswered=max(0, questions - answered))


def _tally(results: Iterable[Trial], pass_mark: float) -> tuple[Tally, int]:
    """The results added up, and how many questions they belong to."""
    tally, answered = Tally(pass_mark), 0
    for place, (_, trials) in enumerate(groupby(results, key=_question_id)):
        totals: QuestionTotals | None = None
        question: Question | None = None
        for trial in trials:
            if totals is None:
                totals, question = QuestionTotals(trial.question, place), trial.question
            same = trial.question is question
            tally.add_reply(trial, totals.slices if same else QuestionSlices.of(trial.question))
            totals.add(trial)
        if totals is not None:
            tally.add_question(totals)
            answered = place + 1
    return tally, answered
