"""QuestionTotals: what is known of one question's trials, mergeable from parts of a log in any order."""

import marshal
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import msgspec
from msgspec.structs import astuple

from answerkey.model.question import Question, group_of
from answerkey.model.reply import HARNESS_PROBLEMS, Reply
from answerkey.model.scorecard import UNNUMBERED, Scorecard, Trial, passes
from answerkey.stats.intervals import fixed_point_mean, to_fixed_point

# Words in a short and in a medium question.
_SHORT, _MEDIUM = 8, 20
_SHORT_NAME, _MEDIUM_NAME, _LONG_NAME = (
    "short (up to 8 words)",
    "medium (9 to 20 words)",
    "long (over 20 words)",
)
# Columns beside the measures. No measure's name begins with "$".
SCORE, PASSED, COST, PAID, WORTH = "score", "passed", "$cost", "$paid", "$worth"
ERRORS, LATENCY, TOOL = "$errors", "$latency", "$tool "


class MeasureNames(msgspec.Struct, frozen=True, order=True):
    """The names of a scorecard's values."""

    components: tuple[str, ...]
    metrics: tuple[str, ...]


# Few combinations make up all scorecards.
_measure_names = lru_cache(maxsize=1000)(MeasureNames)


class TrialValues(msgspec.Struct, frozen=True):
    """What the mean of a question is taken over: the values of one of its trials."""

    names: MeasureNames
    score: float | None
    # Of the components, then of the metrics.
    values: tuple[float | None, ...]
    cost: float | None

    @classmethod
    def of(cls, trial: Trial) -> "TrialValues":
        """The values of a scored trial."""
        return cls.of_card(trial.scorecard, trial.cost)

    @classmethod
    def of_card(cls, card: Scorecard, cost: float | None = None) -> "TrialValues":
        """The values of a scorecard, beside what the replies cost."""
        names = _measure_names(tuple(card.components), tuple(card.metrics))
        values = (*[score.value for score in card.components.values()], *card.metrics.values())
        return cls(names, card.total, values, cost)

    def columns(self, pass_mark: float) -> Iterator[tuple[str, float]]:
        """The values that there are, by name, and whether the score passes."""
        score, cost = self.score, self.cost
        if score is not None:
            yield SCORE, score
            yield PASSED, float(passes(score, pass_mark))
        for name, value in zip((*self.names.components, *self.names.metrics), self.values, strict=True):
            if value is not None:
                yield name, value
        if cost is not None:
            yield COST, cost
            if score is not None:
                yield PAID, cost
                yield WORTH, score


class SliceKey(NamedTuple):
    """A slice of a run's questions."""

    kind: str
    name: str


OVERALL = SliceKey("overall", "overall")


class QuestionSlices(msgspec.Struct, frozen=True):
    """The slices that a question is in, and whether it expects nothing of a reply's text and of its tool calls."""

    category: str
    persona: str | None
    tags: tuple[str, ...]
    tools: str
    length: str
    expects_nothing_of_text: bool
    expects_nothing_of_tools: bool

    @classmethod
    def of(cls, question: Question) -> "QuestionSlices":
        """The slices of a question."""
        words = len(question.question.split())
        return _shared_slices(
            question.category,
            question.persona,
            question.tags,
            _expected_tools(question),
            _SHORT_NAME if words <= _SHORT else _MEDIUM_NAME if words <= _MEDIUM else _LONG_NAME,
            question.expects_nothing_of_text,
            question.expects_nothing_of_tools,
        )

    def listed(self) -> tuple[SliceKey, ...]:
        """The slices by kind and name."""
        return _slice_keys(self)


# Few combinations make up the questions of most logs.
_shared_slices = lru_cache(maxsize=1000)(QuestionSlices)


def _expected_tools(question: Question) -> str:
    if not question.turns and len(question.expected_tools) <= 1:
        return question.expected_tools[0].name if question.expected_tools else "(none)"
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


# The sum of a column over some values, in fixed point, and how many there are.
ColumnSum = tuple[int, int]


def add_to_column(sums: dict[str, ColumnSum], column: str, total: int, size: int) -> None:
    """Add values with this sum to a column."""
    known = sums.get(column)
    sums[column] = (total, size) if known is None else (known[0] + total, known[1] + size)


_Value = TypeVar("_Value", QuestionSlices, TrialValues)
# Different slices, and different values, that the questions of a block share; further ones are written with each question.
_MOST_SHARED = 128
# A question with a single plain reply in a block, as most are in a log of varied questions: its id, its `first`, the checksum of
# its text, the trial's number and index, the numbers of its slices and values, errors, and latency in fixed point.
SingleTrial = tuple[str, int, int, int, int | None, int, int, int, int | None]


class AlikeReplies:
    """Replies that are alike in the slices of their question, their values and their error.

    Those that have nothing else but a text, tools by name and a latency are counted here, and in the tally all at once.
    """

    __slots__ = ("errors", "latencies", "slices", "times", "trial", "values")

    def __init__(self, trial: Trial, slices: QuestionSlices, values: TrialValues) -> None:
        # The first of them, scored.
        self.trial, self.slices, self.values = trial, slices, values
        self.errors = _errors(trial.scorecard)
        self.times = 0
        # Those that are known.
        self.latencies: list[float] = []


class SingleReply(msgspec.Struct, frozen=True, gc=False):
    """The only reply of a trial whose question is a unit of its own."""

    question: Question
    alike: AlikeReplies
    first: int
    number: int
    # Its position in the log, where results are kept.
    index: int | None
    latency: float | None


def is_single(trial: Trial) -> bool:
    """Whether a `SingleReply` holds all that a question's totals count of a trial."""
    question, replies = trial.question, trial.replies
    if len(replies) != 1 or question.severity is not None or group_of(question) is not None:
        return False
    return all(call.duration_ms is None for call in replies[0].tool_calls)


class SharedValues(NamedTuple):
    """Slices and values of the questions of a block: most of them are those of many questions, which refer to them by number."""

    slices: dict[QuestionSlices, int]
    values: dict[TrialValues, int]
    listed: "ListedValues"
    # The numbers of what alike replies have in common.
    alike: dict[AlikeReplies, tuple[int | None, int | None]]

    @classmethod
    def none(cls) -> "SharedValues":
        """Those of a block without questions."""
        return cls({}, {}, ListedValues([], []), {})

    def number_slices(self, slices: QuestionSlices) -> int | None:
        """The number of slices; None if there are too many different ones."""
        return _number(self.slices, self.listed.slices, slices)

    def number_values(self, values: TrialValues) -> int | None:
        """The number of values; None if there are too many different ones."""
        return _number(self.values, self.listed.values, values)

    def single_trial(self, reply: SingleReply) -> SingleTrial | None:
        """A question by its only reply in a block; None if there are too many different slices or values."""
        question, alike, latency = reply.question, reply.alike, reply.latency
        numbers = self.alike.get(alike)
        if numbers is None:
            numbers = self.number_slices(alike.slices), self.number_values(alike.values)
            self.alike[alike] = numbers
        its_slices, its_values = numbers
        if its_slices is None or its_values is None:
            return None
        return (
            question.id,
            reply.first,
            crc32(question.question.encode("utf-8", "replace")),
            reply.number,
            reply.index,
            its_slices,
            its_values,
            alike.errors,
            None if latency is None else to_fixed_point(latency),
        )


class ListedValues(NamedTuple):
    """The slices and values of a block by their number."""

    slices: list[QuestionSlices]
    values: list[TrialValues]

    def packed(self) -> bytes:
        """All of it in built-in types, packed."""
        return marshal.dumps((list(map(astuple, self.slices)), list(map(_plain_values, self.values))))

    @classmethod
    def unpack(cls, packed: bytes) -> "ListedValues":
        """Those that `packed` wrote."""
        slices, values = marshal.loads(packed)  # noqa: S302  # our own table, which only its owner can write
        return cls([QuestionSlices(*one) for one in slices], [_values(one) for one in values])


def _number(numbers: dict[_Value, int], listed: list[_Value], value: _Value) -> int | None:
    number = numbers.get(value)
    if number is None and len(listed) < _MOST_SHARED:
        number = numbers[value] = len(listed)
        listed.append(value)
    return number


def _plain_values(values: TrialValues) -> tuple[object, ...]:
    return astuple(values.names), values.score, values.values, values.cost


def _values(plain: tuple[Any, ...]) -> TrialValues:
    (components, metrics), score, values, cost = plain
    return TrialValues(MeasureNames(components, metrics), score, values, cost)


def _errors(card: Scorecard) -> int:
    return sum(turn.error is not None for turn in card.turns) if card.turns else card.error is not None


class QuestionTotals:
    """All that is known of one question's trials, or of those in one part of a log."""

    __slots__ = (
        "first",
        "group",
        "has_several_texts",
        "id",
        "indices",
        "is_critical",
        "numbers",
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
        self.is_critical = question.severity == "critical"
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
        self.indices: list[int] = []

    def to_plain(self, shared: SharedValues) -> tuple[object, ...]:
        """All of it in built-in types, which are written and read fastest."""
        return (
            self.id,
            self.group,
            self.first,
            self.text_checksum,
            self.has_several_texts,
            self.is_critical,
            _number_or_plain(shared.number_slices(self.slices), astuple(self.slices)),
            {
                _number_or_plain(shared.number_values(values), _plain_values(values)): times
                for values, times in self.trials.items()
            },
            self.sums,
            self.numbers.tobytes(),
            self.indices,
        )

    @classmethod
    def from_plain(cls, plain: tuple[Any, ...], shared: ListedValues) -> "QuestionTotals":
        """The totals that `to_plain` gave, with the slices and values that it refers to."""
        totals = cls.__new__(cls)
        (
            totals.id,
            totals.group,
            totals.first,
            totals.text_checksum,
            totals.has_several_texts,
            totals.is_critical,
            its_slices,
            trials,
            totals.sums,
            numbers,
            totals.indices,
        ) = plain
        slices, values = shared
        totals.slices = slices[its_slices] if type(its_slices) is int else QuestionSlices(*its_slices)
        totals.trials = {
            values[one] if type(one) is int else _values(one): times for one, times in trials.items()
        }
        totals.numbers = array("i", numbers)
        return totals

    @classmethod
    def from_single(cls, single: SingleTrial, shared: ListedValues) -> "QuestionTotals":
        """The totals of a question with a single trial."""
        identity, first, checksum, number, index, slices, values, errors, latency = single
        sums = {ERRORS: (to_fixed_point(errors), 1)} | ({} if latency is None else {LATENCY: (latency, 1)})
        numbers = array("i", () if number == UNNUMBERED else (number,))
        indices = [] if index is None or numbers else [index]
        plain = (
            identity,
            None,
            first,
            checksum,
            False,
            False,
            slices,
            {values: 1},
            sums,
            numbers.tobytes(),
            indices,
        )
        return cls.from_plain(plain, shared)

    @property
    def unit(self) -> str:
        """The unit of analysis; a group never has the key of a question."""
        return f"q {self.id}" if self.group is None else f"g {self.group}"

    @property
    def replies(self) -> int:
        """How many trials there are."""
        return sum(self.trials.values())

    def add(self, trial: Trial, index: int | None = None) -> None:
        """Count a scored trial; `index` is its position in a log whose results are kept."""
        values = TrialValues.of(trial)
        self.trials[values] = self.trials.get(values, 0) + 1 if self.trials else 1
        self._add_number(trial.number, index)
        self._add_replies(trial)

    @classmethod
    def of_singles(cls, replies: Sequence[SingleReply]) -> "QuestionTotals":
        """The totals of a question by the only replies of its trials."""
        first = replies[0]
        totals = cls(first.question, first.first)
        for alike, times in Counter([reply.alike for reply in replies]).items():
            totals.trials[alike.values] = totals.trials.get(alike.values, 0) + times
        errors = sum([reply.alike.errors for reply in replies])
        totals.sums[ERRORS] = to_fixed_point(errors), len(replies)
        latencies = [to_fixed_point(reply.latency) for reply in replies if reply.latency is not None]
        if latencies:
            totals.sums[LATENCY] = sum(latencies), len(latencies)
        for reply in replies:
            totals._add_number(reply.number, reply.index)
            if reply.question is not first.question:
                totals.has_several_texts |= reply.question.question != first.question.question
        return totals

    def _add_number(self, number: int, index: int | None) -> None:
        if number != UNNUMBERED:
            self.numbers.append(number)
        elif index is not None:
            self.indices.append(index)

    def _add_replies(self, trial: Trial) -> None:
        add_to_column(self.sums, ERRORS, to_fixed_point(_errors(trial.scorecard)), len(trial.replies))
        for reply in trial.replies:
            latency = counted_latency(reply)
            if latency is not None:
                add_to_column(self.sums, LATENCY, to_fixed_point(latency), 1)
            for call in reply.tool_calls:
                if call.duration_ms is not None:
                    add_to_column(self.sums, TOOL + call.name, to_fixed_point(call.duration_ms), 1)

    def merge(self, other: "QuestionTotals") -> None:
        """Add what another part of the log has of the same question."""
        self.has_several_texts |= other.has_several_texts or other.text_checksum != self.text_checksum
        if other.first < self.first:
            self.first, self.slices, self.group = other.first, other.slices, other.group
            self.is_critical = other.is_critical
        for values, times in other.trials.items():
            self.trials[values] = self.trials.get(values, 0) + times
        for column, part in other.sums.items():
            add_to_column(self.sums, column, *part)
        self.numbers += other.numbers
        self.indices += other.indices

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
            for name, value in ((SCORE, one.score), (COST, one.cost), *measured):
                if value is not None:
                    add_to_column(columns, name, to_fixed_point(value) * times, times)

        def mean(name: str) -> float | None:
            column = columns.get(name)
            return None if column is None else fixed_point_mean(*column)

        means = tuple(mean(name) for name in (*names.components, *names.metrics))
        return TrialValues(names, mean(SCORE), means, mean(COST))


def _number_or_plain(number: int | None, plain: tuple[object, ...]) -> int | tuple[object, ...]:
    return plain if number is None else number


def counted_latency(reply: Reply) -> float | None:
    """What a reply took; None if it was not timed, or if its time is the harness's own."""
    if reply.failure is not None and reply.failure.kind in HARNESS_PROBLEMS:
        return None
    return reply.timings.latency_ms
