"""SliceSums: what the replies and questions of a slice come to, in sums that merge in any order."""

from collections import Counter

import msgspec

from answerkey.model.scorecard import grade, round_score
from answerkey.model.summary import Cost
from answerkey.stats.durations import Durations
from answerkey.stats.intervals import Interval
from answerkey.stats.unit_moments import UnitMoments

__all__ = ["COST", "Names", "Replies", "SliceSums", "Values", "columns_of", "cost_of", "is_bounded"]

# What a scorecard's values are called: its components, its metrics.
Names = tuple[tuple[str, ...], tuple[str, ...]]
# The score, then the components' values and the metrics'.
Values = tuple[float | None, ...]
# What a question cost stands among its metrics under this name, which no metric has; what of it was paid for a score, and that.
COST, _PAID, _WORTH = "$cost", "$paid", "$worth"


class Replies:
    """What is counted reply by reply, of the questions in some slices."""

    __slots__ = ("errors", "replies", "taken", "trials")

    def __init__(self) -> None:
        # Trials that have a score.
        self.trials = 0
        self.replies = 0
        self.errors: dict[str, int] = {}
        self.taken = Durations()

    def merge(self, other: "Replies") -> None:
        self.trials += other.trials
        self.replies += other.replies
        for kind, times in other.errors.items():
            self.errors[kind] = self.errors.get(kind, 0) + times
        self.taken.merge(other.taken)


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
            self.grades[grade(score)] += times
            self.passed += times * (round_score(score) >= pass_mark)

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
        columns.append(("passed", float(round_score(values[0]) >= pass_mark)))
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
