"""Slices: which of them a question is in, and what their replies and questions come to, in sums that merge in any order."""

from collections import Counter
from functools import lru_cache

import msgspec

from answerkey.model.question import Question
from answerkey.model.scorecard import letter_grade, passes, round_score
from answerkey.model.summary import Cost
from answerkey.stats.durations import Durations
from answerkey.stats.intervals import Interval, UnitMoments, fixed_point_mean

# What a scorecard's values are called: its components, its metrics.
Names = tuple[tuple[str, ...], tuple[str, ...]]
# The score, then the components' values and the metrics'.
Values = tuple[float | None, ...]
# What a question cost stands among its metrics under this name, which no metric has; what of it was paid for a score, and that.
COST, _PAID, _WORTH = "$cost", "$paid", "$worth"
# What replies have: errors, milliseconds; and those of each tool's calls.
ERRORS, TAKEN, TOOL = "$errors", "$taken", "$tool "
# Column → its sum over a question's replies as a whole number, and how many there are.
ReplySums = dict[str, list[int]]
# Longer names than these are for people; the bounds are words in the question.
_SHORT, _MEDIUM = 8, 20
_LENGTHS = ("short (up to 8 words)", "medium (9 to 20 words)", "long (over 20 words)")
# The slices that a question is in: category, persona, tags, expected tools, and the place of its length in _LENGTHS; and whether
# it expects nothing.
Signature = tuple[str, str | None, tuple[str, ...], str, int, bool]
# Kind and name of a slice.
SliceKey = tuple[str, str]


class Replies:
    """What is counted reply by reply, of the questions in some slices."""

    __slots__ = ("errors", "moments", "replies", "taken", "trials")

    def __init__(self) -> None:
        # Trials that have a score.
        self.trials = 0
        self.replies = 0
        self.errors: dict[str, int] = {}
        self.taken = Durations()
        # The column's name → its moments over units.
        self.moments: dict[str, UnitMoments] = {}

    def add_unit(self, sums: ReplySums, times: int = 1) -> None:
        """Count what the replies of a unit, which were all counted, add up to; of so many units that are alike."""
        for column, (total, size) in sums.items():
            if size:
                self.moments.setdefault(column, UnitMoments()).add(
                    total, size, times, bounded=column == ERRORS and fixed_point_mean(total, size) <= 1
                )

    def interval(self, column: str, replies: int) -> Interval | None:
        """The interval of a mean over so many replies; None where the units of some are not known."""
        found = self.moments.get(column)
        if found is None or found.count != replies:
            return None
        interval = found.interval()
        if interval is None:
            return None
        return Interval(max(0.0, round(interval.low, 6)), round(interval.high, 6), interval.level)

    def merge(self, other: "Replies") -> None:
        self.trials += other.trials
        self.replies += other.replies
        for kind, times in other.errors.items():
            self.errors[kind] = self.errors.get(kind, 0) + times
        self.taken.merge(other.taken)
        for column, moments in other.moments.items():
            self.moments.setdefault(column, UnitMoments()).merge(moments)


def add_sums(sums: ReplySums, column: str, total: int, size: int) -> None:
    """Add to a column of sums."""
    found = sums.setdefault(column, [0, 0])
    found[0] += total
    found[1] += size


class SliceSums:
    """What the questions of a slice come to."""

    __slots__ = ("_moments", "expecting_nothing", "grades", "passed", "questions", "units")

    def __init__(self) -> None:
        self.questions = 0
        self.units = 0
        self.passed = 0
        # Questions whose replies nothing is expected of, checks neither.
        self.expecting_nothing = 0
        self.grades: Counter[str] = Counter()
        # The column's name → its moments.
        self._moments: dict[str, UnitMoments] = {}

    def add_question(self, score: float | None, times: int, pass_mark: float) -> None:
        self.questions += times
        if score is not None:
            self.grades[letter_grade(score)] += times
            self.passed += times * (passes(score, pass_mark))

    def moments(self, column: str) -> UnitMoments:
        found = self._moments.get(column)
        if found is None:
            found = self._moments[column] = UnitMoments()
        return found

    def mean(self, column: str) -> tuple[float | None, Interval | None]:
        """A column's mean over the questions that have a value, and its interval over their units."""
        found = self._moments.get(column)
        return (None, None) if found is None else (round_score(found.mean), found.interval())

    def merge(self, other: "SliceSums") -> None:
        self.questions += other.questions
        self.units += other.units
        self.passed += other.passed
        self.expecting_nothing += other.expecting_nothing
        self.grades.update(other.grades)
        for column, moments in other._moments.items():
            self.moments(column).merge(moments)


def columns_of(names: Names, values: Values, pass_mark: float) -> list[tuple[str, float]]:
    """A question's values by name, those that it has, and whether it passed."""
    columns = [
        (name, value)
        for name, value in zip(("score", *names[0], *names[1]), values, strict=True)
        if value is not None
    ]
    if values[0] is not None:
        columns.append(("passed", float(passes(values[0], pass_mark))))
        if names[1] and names[1][-1] == COST and values[-1] is not None:
            columns += [(_PAID, values[-1]), (_WORTH, values[0])]
    return columns


def is_bounded(column: str, value: float) -> bool:
    """Whether a value is a share; a count, a duration or a price is not."""
    return column not in (COST, _PAID) and 0.0 <= value <= 1.0


def cost_of(sums: SliceSums) -> Cost | None:
    """What questions cost, and what was paid for a point; None where nothing is known of it."""
    mean, interval = sums.mean(COST)
    if mean is None:
        return None
    if interval is not None:
        interval = msgspec.structs.replace(interval, low=max(0.0, interval.low))
    paid, worth = sums.moments(_PAID), sums.moments(_WORTH)
    point = round_score(paid.total / worth.total) if worth.total > 0 else None
    return Cost(questions=sums.moments(COST).count, question=mean, interval=interval, point=point)


def length_of(question: str) -> int:
    """The place of a question's length in _LENGTHS."""
    words = len(question.split())
    return 0 if words <= _SHORT else 1 if words <= _MEDIUM else 2


def signature_of(question: Question) -> Signature:
    """The slices that a question is in."""
    return (
        question.category,
        question.persona,
        question.tags,
        _tools_of(question),
        length_of(question.question),
        question.expects_nothing,
    )


def _tools_of(question: Question) -> str:
    if not question.turns and len(question.expected_tools) == 1:
        return question.expected_tools[0].name
    tools = sorted({tool.name for turn in question.asks for tool in turn.expected_tools})
    return " + ".join(tools) or "(none)"


@lru_cache(maxsize=10_000)
def keys_of(signature: Signature) -> tuple[SliceKey, ...]:
    """The slices, by kind and name."""
    category, persona, tags, tools, length, _ = signature
    return (
        ("category", category),
        *((("persona", persona),) if persona else ()),
        *(("tag", tag) for tag in tags),
        ("tools", tools),
        ("length", _LENGTHS[length]),
    )
