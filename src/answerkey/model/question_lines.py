"""QuestionLines: what one part of a log says of some questions, on its way to where all parts of it are added up."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import count as count_from
from operator import itemgetter

import msgspec

from answerkey.model.slice_sums import ERRORS, TAKEN, Names, ReplySums, Signature, Values, add_sums
from answerkey.model.tally import Tally
from answerkey.stats.intervals import to_fixed_point

# In the place of a checksum, where one id stands for several questions.
SEVERAL = -1


# A question with one of the values that its trials have in a part: its id; the places of its slices and of its values in the
# part's lists; how many trials have these values; its position in the golden set, or the place of its first reply in the log;
# and the checksum of what was asked, to tell when one id stands for several questions. Then, on one of its lines: replies, errors
# among them, replies whose time is known, and what these took together, as two whole numbers (packed ones have 64 bits).
QuestionLine = tuple[str, int, int, int, int, int, int, int, int, int, int]
# Of a question: the columns that few have, each with its sum in two parts and its size.
RareSums = dict[str, tuple[int, int, int]]
_HALF = 60


def split_fixed_point(total: int) -> tuple[int, int]:
    """A sum as two whole numbers that can be packed."""
    return total >> _HALF, total & ((1 << _HALF) - 1)


class QuestionLines(msgspec.Struct, array_like=True):
    """Lines of one part of a log. Slices and values are packed, since few of them serve many lines."""

    # Each a Signature, and each a pair of Names and Values.
    signatures: list[bytes]
    values: list[bytes]
    lines: list[QuestionLine]
    # Question → the unit that it belongs to, where it is none itself.
    groups: dict[str, str] = {}
    # Question → how many of its rows have a trial number, and which numbers these are, where any has one: the first and last
    # of each row of numbers without a gap, one pair after the other. Numbers that stand twice are in it once.
    numbered: dict[str, tuple[int, list[int]]] = {}
    # Question → the places of its replies without a number, where results are kept.
    places: dict[str, list[int]] = {}
    # Question → what the calls of its tools took, where any says it.
    tools: dict[str, RareSums] = {}


class AddedUp:
    """What the parts say of the questions of some partitions."""

    def __init__(self, pass_mark: float) -> None:
        self.tally = Tally(pass_mark)
        # The most replies of any question, and how many questions of the golden set have one.
        self.repeat = 1
        self.answered = 0
        # Ids that stand for several questions, and those of which several replies have one number.
        self.ambiguous: list[str] = []
        self.doubled: list[str] = []
        # Replies whose number another one of their question has.
        self.doubles = 0
        # Of the replies without a number that are not given a 1: the places in the log, and the numbers.
        self.places = array("q")
        self.numbers = array("i")

    def merge(self, other: "AddedUp") -> None:
        """Add what was added up of other partitions."""
        self.tally.merge(other.tally)
        self.repeat = max(self.repeat, other.repeat)
        self.answered += other.answered
        self.ambiguous += other.ambiguous
        self.doubled += other.doubled
        self.doubles += other.doubles
        self.places += other.places
        self.numbers += other.numbers


_read_lines = msgspec.msgpack.Decoder(QuestionLines).decode
_read_signature = msgspec.msgpack.Decoder(Signature).decode
_read_values = msgspec.msgpack.Decoder(tuple[Names, Values]).decode


def add_up(batches: Iterable[bytes], pass_mark: float, given: int = 0) -> AddedUp:
    """Add up one partition: `batches` are what each part has for it, in any order; `given` questions are in the golden set."""
    gathered = _Gathered(given)
    for packed in batches:
        gathered.add(_read_lines(packed))
    return gathered.added_up(pass_mark)


class _Gathered:
    """The lines of a partition, by question."""

    def __init__(self, given: int) -> None:
        self._given = given
        # Every signature and every list of values that was seen, packed, with its place.
        self._signatures: dict[bytes, int] = {}
        self._values: dict[bytes, int] = {}
        # Of a question with one line (as all in a log of as many questions as replies) the line, else a list of them.
        self._questions: dict[str, QuestionLine | list[QuestionLine]] = {}
        self._groups: dict[str, str] = {}
        self._numbered: dict[str, tuple[int, list[int]]] = {}
        self._places: dict[str, list[int]] = {}
        self._tools: dict[str, ReplySums] = {}

    def add(self, batch: QuestionLines) -> None:
        signatures, values, questions = self._signatures, self._values, self._questions
        signature_of = [signatures.setdefault(packed, len(signatures)) for packed in batch.signatures]
        value_of = [values.setdefault(packed, len(values)) for packed in batch.values]
        for line in batch.lines:
            identity = line[0]
            line = (identity, signature_of[line[1]], value_of[line[2]], *line[3:])  # the same, in our lists
            known = questions.get(identity)
            if known is None:
                questions[identity] = line
            elif isinstance(known, list):
                known.append(line)
            else:
                questions[identity] = [known, line]
        self._groups |= batch.groups
        for identity, (count, told) in batch.numbered.items():
            before, earlier = self._numbered.get(identity, (0, []))
            earlier += told
            self._numbered[identity] = (before + count, earlier)
        for identity, places in batch.places.items():
            self._places.setdefault(identity, []).extend(places)
        for identity, sums in batch.tools.items():
            known_sums = self._tools.setdefault(identity, {})
            for column, (high, low, size) in sums.items():
                add_sums(known_sums, column, (high << _HALF) + low, size)

    def added_up(self, pass_mark: float) -> AddedUp:
        added = AddedUp(pass_mark)
        signatures = [_read_signature(packed) for packed in self._signatures]
        values = [_read_values(packed) for packed in self._values]
        # Slices, values, replies and errors of questions that are units themselves → how many there are, and where the first
        # stands; slices and replies → what these took, question by question.
        alike: dict[tuple[int, int, int, int], list[int]] = {}
        taken: dict[tuple[int, int], list[int]] = {}
        for identity, found in self._questions.items():
            if isinstance(found, list) or self._groups or self._numbered or identity in self._tools:
                self._add_question(added, found if isinstance(found, list) else [found], signatures, values)
                continue
            _, signature, value, times, first, wording, replies, errors, timed, high, low = found
            if timed:
                taken.setdefault((signature, timed), []).append((high << _HALF) + low)
            if wording == SEVERAL:
                added.ambiguous.append(identity)
            added.answered += first < self._given
            if times > 1:
                self._number(added, identity, times)
            known = alike.get((signature, value, replies, errors))
            if known is None:
                alike[signature, value, replies, errors] = [1, first]
            else:
                known[0] += 1
                if first < known[1]:
                    known[1] = first
        for (signature, value, replies, errors), (questions, first) in alike.items():
            sums: ReplySums = {ERRORS: [to_fixed_point(errors), replies]}
            added.tally.add_question(signatures[signature], None, first, {values[value]: 1}, questions, sums)
        for (signature, timed), totals in taken.items():
            added.tally.add_taken(signatures[signature], totals, timed)
        # A unit's questions are all here, so that its values can be summed now.
        added.tally.close_groups()
        return added

    def _add_question(
        self,
        added: AddedUp,
        lines: list[QuestionLine],
        signatures: list[Signature],
        values: list[tuple[Names, Values]],
    ) -> None:
        """Add a question with all of its lines."""
        identity, signature, *_ = first_line = min(lines, key=itemgetter(4))
        wordings = {line[5] for line in lines}
        if len(wordings) > 1 or SEVERAL in wordings:
            added.ambiguous.append(identity)
        added.answered += first_line[4] < self._given
        counted: dict[tuple[Names, Values], int] = {}
        sums = dict(self._tools.get(identity, {}))
        for _, _, value, times, _, _, replies, errors, timed, high, low in lines:
            counted[values[value]] = counted.get(values[value], 0) + times
            add_sums(sums, ERRORS, to_fixed_point(errors), replies)
            add_sums(sums, TAKEN, (high << _HALF) + low, timed)
        added.tally.add_question(
            signatures[signature], self._groups.get(identity), first_line[4], counted, replies=sums
        )
        self._number(added, identity, sum(counted.values()))

    def _number(self, added: AddedUp, identity: str, replies: int) -> None:
        """Count a question's replies, and give those without a number the lowest that are free, in the order of the log."""
        added.repeat = max(added.repeat, replies)
        count, told = self._numbered.get(identity, (0, []))
        taken = _without_overlaps(told)
        doubles = count - sum(last - first + 1 for first, last in taken)
        if doubles:
            added.doubles += doubles
            added.doubled.append(identity)
        for place, number in zip(sorted(self._places.get(identity, ())), _free(taken), strict=False):
            if number != 1:
                added.places.append(place)
                added.numbers.append(number)


def number_runs(numbers: Iterable[int]) -> list[int]:
    """The first and last of each row of numbers without a gap, one pair after the other, as QuestionLines has them."""
    runs: list[int] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1] == number - 1:
            runs[-1] = number
        else:
            runs += (number, number)
    return runs


def _without_overlaps(told: list[int]) -> list[tuple[int, int]]:
    """Rows of numbers of several parts, in order, each number in one of them."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(zip(told[::2], told[1::2], strict=True)):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _free(taken: list[tuple[int, int]]) -> Iterator[int]:
    """The numbers that are not taken, from 1 on."""
    after = 0
    for first, last in taken:
        yield from range(after + 1, first)
        after = last
    yield from count_from(after + 1)
