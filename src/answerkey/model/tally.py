"""Tally: adds up trials so that the parts of a run, added up apart and merged in any order, give the same summary.

Replies are counted as they come; a question is counted once, when all of its trials are known, by the mean of their values. All
sums are whole numbers, so that the order of adding does not matter. Few different values make up most questions, so questions
with equal values are counted together: a tally of millions is small.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from zlib import crc32

import msgspec

from answerkey.model.question import Question, group_of
from answerkey.model.reasons import reason
from answerkey.model.reply import HARNESS_PROBLEMS, Reply, Usage
from answerkey.model.scorecard import (
    PASS_MARK,
    UNNUMBERED,
    Scorecard,
    Trial,
    harness_problem,
    letter_grade,
    passes,
    round_score,
)
from answerkey.model.summary import Cost, Latency, Slice, SlowQuestion, Summary
from answerkey.stats.durations import Durations
from answerkey.stats.intervals import Interval, UnitMoments, fixed_point_mean, to_fixed_point

GRADES = "ABCDF"
# More different groups of equal questions than these are folded into moments, which changes no figure.
_MOST_CELLS = 50_000
# Words in a short and in a medium question.
_SHORT, _MEDIUM = 8, 20
_SHORT_NAME, _MEDIUM_NAME, _LONG_NAME = (
    "short (up to 8 words)",
    "medium (9 to 20 words)",
    "long (over 20 words)",
)
# Columns beside the measures. No measure's name begins with "$".
_SCORE, _PASSED, _COST, _PAID, _WORTH = "score", "passed", "$cost", "$paid", "$worth"
_ERRORS, _LATENCY, _TOOL = "$errors", "$latency", "$tool "
_SLOWEST_LISTED = 5
# Reasons may hold any message: so many different ones are counted apart, so many are listed, up to this length.
_REASONS_COUNTED = 1000
_REASONS_LISTED = 20
_REASON_LENGTH = 200
_OTHER_REASONS = "other reasons"
# Milliseconds are summed in nanoseconds, usage (tokens, money) in units of 10⁻¹².
_NANOSECONDS = 1e6
_USAGE_UNITS = 10**12
_PHASES = ("tools", "rest", "first_byte", "queue", "retry")


class MeasureNames(NamedTuple):
    """The names of a scorecard's values."""

    components: tuple[str, ...]
    metrics: tuple[str, ...]


class TrialValues(NamedTuple):
    """What the mean of a question is taken over: the values of one of its trials."""

    names: MeasureNames
    score: float | None
    # Of the components, then of the metrics.
    values: tuple[float | None, ...]
    cost: float | None

    @classmethod
    def of(cls, trial: Trial) -> "TrialValues":
        """The values of a scored trial."""
        card = trial.scorecard
        names = MeasureNames(tuple(card.components), tuple(card.metrics))
        values = (*[score.value for score in card.components.values()], *card.metrics.values())
        return cls(names, card.total, values, trial.cost)

    def columns(self, pass_mark: float) -> Iterator[tuple[str, float]]:
        """The values that there are, by name, and whether the score passes."""
        score, cost = self.score, self.cost
        if score is not None:
            yield _SCORE, score
            yield _PASSED, float(passes(score, pass_mark))
        for name, value in zip((*self.names.components, *self.names.metrics), self.values, strict=True):
            if value is not None:
                yield name, value
        if cost is not None:
            yield _COST, cost
            if score is not None:
                yield _PAID, cost
                yield _WORTH, score


class SliceKey(NamedTuple):
    """A slice of a run's questions."""

    kind: str
    name: str


_OVERALL = SliceKey("overall", "overall")


class QuestionSlices(NamedTuple):
    """The slices that a question is in, and whether it expects nothing of a reply."""

    category: str
    persona: str | None
    tags: tuple[str, ...]
    tools: str
    length: str
    expects_nothing: bool

    @classmethod
    def of(cls, question: Question) -> "QuestionSlices":
        """The slices of a question."""
        words = len(question.question.split())
        return cls(
            question.category,
            question.persona,
            question.tags,
            _expected_tools(question),
            _SHORT_NAME if words <= _SHORT else _MEDIUM_NAME if words <= _MEDIUM else _LONG_NAME,
            question.expects_nothing,
        )

    def listed(self) -> tuple[SliceKey, ...]:
        """The slices by kind and name."""
        return _slice_keys(self)


def _expected_tools(question: Question) -> str:
    if not question.turns and len(question.expected_tools) == 1:
        return question.expected_tools[0].name
    tools = sorted({tool.name for turn in question.asks for tool in turn.expected_tools})
    return " + ".join(tools) or "(none)"


@lru_cache(maxsize=10_000)
def _slice_keys(slices: QuestionSlices) -> tuple[SliceKey, ...]:
    persona = (SliceKey("persona", slices.persona),) if slices.persona else ()
    return (
        SliceKey("category", slices.category),
        *persona,
        *(SliceKey("tag", tag) for tag in slices.tags),
        SliceKey("tools", slices.tools),
        SliceKey("length", slices.length),
    )


class ColumnSum:
    """The sum of a column over some values, in fixed point, and how many there are."""

    __slots__ = ("size", "total")

    def __init__(self, total: int = 0, size: int = 0) -> None:
        self.total, self.size = total, size

    def add(self, total: int, size: int) -> None:
        """Add values with this sum."""
        self.total += total
        self.size += size


class QuestionTotals:
    """All that is known of one question's trials, or of those in one part of a log."""

    __slots__ = (
        "first",
        "group",
        "has_several_texts",
        "id",
        "numbers",
        "places",
        "slices",
        "sums",
        "text_checksum",
        "trials",
    )

    def __init__(self, question: Question, first: int) -> None:
        self.id = question.id
        self.slices = QuestionSlices.of(question)
        # The unit of analysis that it belongs to; None: itself.
        self.group = group_of(question)
        # Its position in the golden set, or the place of its first reply in the log.
        self.first = first
        # One id may be used for several questions by mistake.
        self.text_checksum = crc32(question.question.encode("utf-8", "replace"))
        self.has_several_texts = False
        # Values of a trial → how many trials have them.
        self.trials: dict[TrialValues, int] = {}
        # Sums over replies: errors, latency, and the time of each tool's calls.
        self.sums: dict[str, ColumnSum] = {}
        # Trial numbers that were given; places in the log of replies without one, where these are wanted.
        self.numbers = array("i")
        self.places: list[int] = []

    @property
    def unit(self) -> str:
        """The unit of analysis; a group never has the key of a question."""
        return f"q {self.id}" if self.group is None else f"g {self.group}"

    @property
    def replies(self) -> int:
        """How many trials there are."""
        return sum(self.trials.values())

    def add(self, trial: Trial, place: int | None = None) -> None:
        """Count a scored trial; `place` is its place in a log whose results are kept."""
        values = TrialValues.of(trial)
        self.trials[values] = self.trials.get(values, 0) + 1
        if trial.number != UNNUMBERED:
            self.numbers.append(trial.number)
        elif place is not None:
            self.places.append(place)
        self._add_replies(trial)

    def _add_replies(self, trial: Trial) -> None:
        card = trial.scorecard
        errors = sum(turn.error is not None for turn in card.turns) if card.turns else card.error is not None
        self._sum(_ERRORS).add(to_fixed_point(errors), len(trial.replies))
        for reply in trial.replies:
            latency = counted_latency(reply)
            if latency is not None:
                self._sum(_LATENCY).add(to_fixed_point(latency), 1)
            for call in reply.tool_calls:
                if call.duration_ms is not None:
                    self._sum(_TOOL + call.name).add(to_fixed_point(call.duration_ms), 1)

    def _sum(self, column: str) -> ColumnSum:
        found = self.sums.get(column)
        if found is None:
            found = self.sums[column] = ColumnSum()
        return found

    def merge(self, other: "QuestionTotals") -> None:
        """Add what another part of the log has of the same question."""
        self.has_several_texts |= other.has_several_texts or other.text_checksum != self.text_checksum
        if other.first < self.first:
            self.first, self.slices, self.group = other.first, other.slices, other.group
        for values, times in other.trials.items():
            self.trials[values] = self.trials.get(values, 0) + times
        for column, part in other.sums.items():
            self._sum(column).add(part.total, part.size)
        self.numbers += other.numbers
        self.places += other.places

    def mean(self) -> TrialValues:
        """Each value as the mean of the trials that have it."""
        if len(self.trials) == 1:
            return next(iter(self.trials))
        ordered = sorted(self.trials, key=lambda values: values.names)
        names = MeasureNames(
            tuple(dict.fromkeys(name for one in ordered for name in one.names.components)),
            tuple(dict.fromkeys(name for one in ordered for name in one.names.metrics)),
        )
        columns: dict[str, ColumnSum] = {}
        for one, times in self.trials.items():
            measured = zip((*one.names.components, *one.names.metrics), one.values, strict=True)
            for name, value in ((_SCORE, one.score), (_COST, one.cost), *measured):
                if value is not None:
                    columns.setdefault(name, ColumnSum()).add(to_fixed_point(value) * times, times)

        def mean(name: str) -> float | None:
            column = columns.get(name)
            return None if column is None else fixed_point_mean(column.total, column.size)

        means = tuple(mean(name) for name in (*names.components, *names.metrics))
        return TrialValues(names, mean(_SCORE), means, mean(_COST))


def counted_latency(reply: Reply) -> float | None:
    """What a reply took; None if it was not timed, or if its time is the harness's own."""
    if reply.failure is not None and reply.failure.kind in HARNESS_PROBLEMS:
        return None
    return reply.timings.latency_ms


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

    def add(self, trial: Trial) -> None:
        """Count a scored trial."""
        card = trial.scorecard
        self.trials += card.total is not None
        self.passed += card.passed
        self.replies += len(trial.replies)
        for turn in card.turns or (card,):
            if turn.error is not None:
                self.errors[turn.error.kind] = self.errors.get(turn.error.kind, 0) + 1
        for reply in trial.replies:
            latency = counted_latency(reply)
            if latency is not None:
                self.latency.add(latency)

    def add_unit(self, sums: Mapping[str, ColumnSum], times: int = 1) -> None:
        """Count the sums of a unit, all of whose replies were counted; `times` units that are alike."""
        for column, part in sums.items():
            if part.size:
                bounded = column == _ERRORS and fixed_point_mean(part.total, part.size) <= 1
                self.moments.setdefault(column, UnitMoments()).add(
                    part.total, part.size, times, bounded=bounded
                )

    def interval(self, column: str, replies: int) -> Interval | None:
        """The interval of a mean over so many replies; None where the units of some are not known."""
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

    __slots__ = ("_moments", "expecting_nothing", "grades", "passed", "questions", "units")

    def __init__(self) -> None:
        self.questions = 0
        self.units = 0
        self.passed = 0
        # Questions that expect nothing of a reply, checks included.
        self.expecting_nothing = 0
        self.grades: Counter[str] = Counter()
        self._moments: dict[str, UnitMoments] = {}

    def add(self, values: TrialValues, times: int, pass_mark: float, *, expects_nothing: bool) -> None:
        """Count questions with these means."""
        self.questions += times
        self.expecting_nothing += times * (expects_nothing and "checks" not in values.names.components)
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
        mean, interval = self.mean(_COST)
        if mean is None:
            return None
        if interval is not None:
            interval = msgspec.structs.replace(interval, low=max(0.0, interval.low))
        paid, worth = self.moments(_PAID), self.moments(_WORTH)
        point = round_score(paid.total / worth.total) if worth.total > 0 else None
        return Cost(questions=self.moments(_COST).count, question=mean, interval=interval, point=point)

    def merge(self, other: "QuestionCounts") -> None:
        """Add what another has counted."""
        self.questions += other.questions
        self.units += other.units
        self.passed += other.passed
        self.expecting_nothing += other.expecting_nothing
        self.grades.update(other.grades)
        for column, moments in other._moments.items():
            self.moments(column).merge(moments)


def _is_share(column: str, value: float) -> bool:
    """Whether a value is a share; a count, a duration or a price is not."""
    return column not in (_COST, _PAID) and 0.0 <= value <= 1.0


class WholeRunCounts:
    """What is only added up for the run as a whole."""

    def __init__(self) -> None:
        self.tools_unobserved = 0
        # Finish reasons of replies that did not end by themselves.
        self.finishes: Counter[str] = Counter()
        self.harness: Counter[str] = Counter()
        self.tool_latency: dict[str, Durations] = {}
        self._unscored: Counter[str] = Counter()
        # Nanoseconds by phase; replies that were timed, and those of them whose first byte was.
        self._phases = dict.fromkeys(_PHASES, 0)
        self._timed = self._first_bytes = 0
        # Question → its slowest trial, of the slowest few questions; what is faster than the limit is not among them.
        self._slowest: dict[str, float] = {}
        self._slowest_limit = 0.0
        self._usage: Counter[str] = Counter()

    def add(self, trial: Trial) -> None:
        """Count a scored trial."""
        if trial.scorecard.total is None:
            problem = harness_problem(trial.scorecard)
            if problem is not None:
                self.harness[problem] += 1
            self.add_unscored(_unscored_reason(trial.scorecard, problem))
        for reply in trial.replies:
            self._add_reply(reply)
        latency = trial.latency_ms
        if latency is not None and latency >= self._slowest_limit:
            self._add_slow(trial.question.id, latency)

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
            self._timed += 1
            self._phases["rest"] += round(max(0.0, timings.latency_ms - tools_ms) * _NANOSECONDS)
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

    def _add_slow(self, identity: str, latency: float) -> None:
        self._slowest[identity] = max(latency, self._slowest.get(identity, 0.0))
        if len(self._slowest) > _SLOWEST_LISTED:
            self._slowest = dict(self._ranked()[:_SLOWEST_LISTED])
            self._slowest_limit = min(self._slowest.values())

    def _ranked(self) -> list[tuple[str, float]]:
        return sorted(self._slowest.items(), key=lambda slow: (-slow[1], slow[0]))

    def add_unscored(self, why: str, times: int = 1) -> None:
        """Count trials that have no score for a reason."""
        listed = why in self._unscored or len(self._unscored) < _REASONS_COUNTED
        self._unscored[why if listed else _OTHER_REASONS] += times

    def merge(self, other: "WholeRunCounts") -> None:
        """Add what another has counted."""
        self.tools_unobserved += other.tools_unobserved
        self.finishes.update(other.finishes)
        self.harness.update(other.harness)
        for why, times in other._unscored.items():
            self.add_unscored(why, times)
        for name, latency in other.tool_latency.items():
            self.tool_latency.setdefault(name, Durations()).merge(latency)
        self._timed += other._timed
        self._first_bytes += other._first_bytes
        for name, nanoseconds in other._phases.items():
            self._phases[name] += nanoseconds
        for identity, latency_ms in other._slowest.items():
            self._add_slow(identity, latency_ms)
        self._usage.update(other._usage)

    def unscored_reasons(self) -> dict[str, int]:
        """Why trials have no score, the most frequent reason first."""
        ranked = sorted(
            self._unscored.items(), key=lambda found: (found[0] == _OTHER_REASONS, -found[1], found[0])
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


class _Cell(NamedTuple):
    """Questions with equal slices and equal means."""

    slices: QuestionSlices
    values: TrialValues


class Tally:
    """Adds up trials, and the questions that they belong to."""

    def __init__(self, pass_mark: float = PASS_MARK) -> None:
        self.pass_mark = pass_mark
        self.whole = WholeRunCounts()
        # Counted reply by reply, by the slices of their question.
        self._replies: dict[QuestionSlices, ReplyCounts] = {}
        # Questions that are units themselves: how many are alike. Questions by their group, with their sums over replies.
        self._cells: Counter[_Cell] = Counter()
        self._groups: dict[str, list[tuple[_Cell, Mapping[str, ColumnSum]]]] = {}
        # What was folded: questions by slice, and the sums over replies of closed groups.
        self._questions: dict[SliceKey, QuestionCounts] = {}
        self._closed: dict[SliceKey, ReplyCounts] = {}
        # Where each list of names, and each combination of slices, was first seen: it gives the order of the summary.
        self._first_names: dict[MeasureNames, int] = {}
        self._first_slices: dict[QuestionSlices, int] = {}

    def add_reply(self, trial: Trial, slices: QuestionSlices) -> None:
        """Count a scored trial of a question that is in these slices."""
        counts = self._replies.get(slices)
        if counts is None:
            counts = self._replies[slices] = ReplyCounts()
        counts.add(trial)
        self.whole.add(trial)

    def add_question(self, totals: QuestionTotals) -> None:
        """Count a question, all of whose trials were counted."""
        cell = _Cell(totals.slices, totals.mean())
        names, first = cell.values.names, totals.first
        self._first_names[names] = min(self._first_names.get(names, first), first)
        self._first_slices[cell.slices] = min(self._first_slices.get(cell.slices, first), first)
        if totals.group is not None:
            self._groups.setdefault(totals.group, []).append((cell, totals.sums))
            return
        self._cells[cell] += 1
        self._replies.setdefault(cell.slices, ReplyCounts()).add_unit(totals.sums)
        if len(self._cells) > _MOST_CELLS:
            self._fold_cells()

    def merge(self, other: "Tally") -> None:
        """Add what another has counted; the questions of one group must all be in one of them."""
        self.whole.merge(other.whole)
        for slices, counts in other._replies.items():
            self._replies.setdefault(slices, ReplyCounts()).merge(counts)
        self._cells.update(other._cells)
        for group, questions in other._groups.items():
            self._groups.setdefault(group, []).extend(questions)
        for key, counts in other._closed.items():
            self._closed.setdefault(key, ReplyCounts()).merge(counts)
        for key, sums in other._questions.items():
            self._slice_counts(key).merge(sums)
        for names, first in other._first_names.items():
            self._first_names[names] = min(self._first_names.get(names, first), first)
        for slices, first in other._first_slices.items():
            self._first_slices[slices] = min(self._first_slices.get(slices, first), first)
        if len(self._cells) > _MOST_CELLS:
            self._fold_cells()

    def close_groups(self) -> None:
        """Sum up the groups: no more of their questions will come."""
        for questions in self._groups.values():
            self._fold_group([cell for cell, _ in questions])
            sums: dict[SliceKey, dict[str, ColumnSum]] = {}
            for cell, columns in questions:
                for key in (_OVERALL, *cell.slices.listed()):
                    unit = sums.setdefault(key, {})
                    for column, part in columns.items():
                        unit.setdefault(column, ColumnSum()).add(part.total, part.size)
            for key, unit in sums.items():
                self._closed.setdefault(key, ReplyCounts()).add_unit(unit)
        self._groups.clear()

    def _fold_cells(self) -> None:
        for (slices, values), times in self._cells.items():
            columns = list(values.columns(self.pass_mark))
            for key in (_OVERALL, *slices.listed()):
                counts = self._slice_counts(key)
                counts.add(values, times, self.pass_mark, expects_nothing=slices.expects_nothing)
                counts.units += times
                for column, value in columns:
                    counts.moments(column).add(
                        to_fixed_point(value), 1, times, bounded=_is_share(column, value)
                    )
        self._cells.clear()

    def _fold_group(self, cells: Sequence[_Cell]) -> None:
        """Add one unit of several questions to every slice that any of them is in."""
        units: dict[SliceKey, dict[str, tuple[ColumnSum, bool]]] = {}
        for slices, values in cells:
            columns = list(values.columns(self.pass_mark))
            for key in (_OVERALL, *slices.listed()):
                self._slice_counts(key).add(values, 1, self.pass_mark, expects_nothing=slices.expects_nothing)
                unit = units.setdefault(key, {})
                for column, value in columns:
                    part, bounded = unit.get(column) or (ColumnSum(), True)
                    part.add(to_fixed_point(value), 1)
                    unit[column] = part, bounded and _is_share(column, value)
        for key, unit in units.items():
            counts = self._slice_counts(key)
            counts.units += 1
            for column, (part, bounded) in unit.items():
                counts.moments(column).add(part.total, part.size, bounded=bounded)

    def _slice_counts(self, key: SliceKey) -> QuestionCounts:
        counts = self._questions.get(key)
        if counts is None:
            counts = self._questions[key] = QuestionCounts()
        return counts

    def summary(self, planned: int | None, unanswered: int = 0) -> Summary:
        """All of it; without a plan, everything there is was planned, and a reply to each unanswered question."""
        self.close_groups()
        self._fold_cells()
        whole = self.whole
        ordered = sorted(self._first_slices, key=lambda slices: (self._first_slices[slices], repr(slices)))
        listed = list(dict.fromkeys(key for slices in ordered for key in slices.listed()))
        replies = self._replies_by_slice(listed)
        slices = {key: self._slice(key, replies[key]) for key in (_OVERALL, *listed)}
        overall = slices.pop(_OVERALL)
        unscored = whole.unscored_reasons()
        if planned is None:
            planned = overall.trials + sum(unscored.values()) + unanswered
        kinds = dict.fromkeys(key.kind for key in listed)
        return Summary(
            **{field: getattr(overall, field) for field in Slice.__struct_fields__},
            planned=planned,
            coverage=round_score(min(1.0, overall.trials / planned)) if planned else 1.0,
            expecting_nothing=self._slice_counts(_OVERALL).expecting_nothing,
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
                name: _latency(latency, replies[_OVERALL], _TOOL + name)
                for name, latency in sorted(whole.tool_latency.items())
            },
            phases_ms=whole.phases_ms(),
            slowest=whole.slowest(),
        )

    def _replies_by_slice(self, listed: Sequence[SliceKey]) -> dict[SliceKey, ReplyCounts]:
        found = {key: ReplyCounts() for key in (_OVERALL, *listed)}
        for slices, counts in self._replies.items():
            for key in (_OVERALL, *slices.listed()):
                found.setdefault(key, ReplyCounts()).merge(counts)
        for key, counts in self._closed.items():
            found.setdefault(key, ReplyCounts()).merge(counts)
        return found

    def _slice(self, key: SliceKey, replies: ReplyCounts) -> Slice:
        counts = self._slice_counts(key)
        score, interval = counts.mean(_SCORE)
        components, metrics = self._measure_names()
        means = {name: counts.mean(name) for name in (*components, *metrics)}
        scored = sum(counts.grades.values())
        errors = sum(replies.errors.values())
        return Slice(
            name=key.name,
            questions=counts.questions,
            units=counts.units,
            trials=replies.trials,
            trials_passed=replies.passed,
            trial_pass_rate=round_score(replies.passed / replies.trials) if replies.trials else None,
            replies=replies.replies,
            score=score,
            grade=None if score is None else letter_grade(score),
            interval=interval,
            components={name: means[name][0] for name in components},
            component_intervals={name: means[name][1] for name in components},
            passed=counts.passed,
            pass_rate=round_score(counts.passed / scored) if scored else None,
            pass_interval=counts.mean(_PASSED)[1],
            grades={letter: counts.grades.get(letter, 0) for letter in GRADES},
            errors=dict(sorted(replies.errors.items())),
            error_rate=round_score(errors / replies.replies) if replies.replies else 0.0,
            error_interval=replies.interval(_ERRORS, replies.replies),
            latency_ms=_latency(replies.latency, replies, _LATENCY) if replies.latency.count else None,
            metrics={name: means[name][0] for name in metrics},
            metric_intervals={name: means[name][1] for name in metrics},
            cost=counts.cost(),
        )

    def _measure_names(self) -> MeasureNames:
        """The components and metrics that any question has, in the order in which they were first seen."""
        ordered = sorted(self._first_names, key=lambda names: (self._first_names[names], names))
        return MeasureNames(
            tuple(dict.fromkeys(name for names in ordered for name in names.components)),
            tuple(dict.fromkeys(name for names in ordered for name in names.metrics)),
        )


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
    for place, (_, trials) in enumerate(groupby(results, key=lambda trial: trial.question.id)):
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
