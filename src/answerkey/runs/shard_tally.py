"""ShardTally: adds up the trials of a block to a ShardPart, which merges with other parts in any order.

Plain rows are only listed while the block lasts, question by question and value by value, and counted all at once at its end.
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import msgspec

from answerkey.model.question import UNCATEGORISED, Question, group_of
from answerkey.model.question_lines import SEVERAL, QuestionLines, RareSums, number_runs, split_fixed_point
from answerkey.model.result_rows import Kept, RowLines, row_line
from answerkey.model.scorecard import Trial
from answerkey.model.slice_sums import (
    ERRORS,
    TAKEN,
    Names,
    ReplySums,
    Signature,
    Values,
    length_of,
    signature_of,
)
from answerkey.model.tally import Tally, values_of
from answerkey.runs.bad_rows import BadRow
from answerkey.runs.logged_question import LoggedQuestion
from answerkey.runs.plain_rows import PlainRow, identity_of, plain_question, told_in
from answerkey.scorers.measuring import Measured
from answerkey.stats.intervals import fixed_point_mean, to_fixed_point

# Questions are dealt out by the checksum of their unit, so that all that is said of a unit comes together.
PARTITIONS = 128
# The lowest replies that a report lists.
_WORST_LISTED = 20
# Kept results are packed so many together: a tenth of a megabyte, for which the system need not find new memory each time.
_PACKED = 50
# So much of a bad row is kept.
_ROW_SHOWN = 2000


class ShardPart(msgspec.Struct, kw_only=True):
    """What comes of a block."""

    number: int
    # Trials that were graded.
    trials: int
    tally: Tally
    # For each partition, packed QuestionLines; empty where there is nothing.
    records: list[bytes]
    # The lowest scores: rank, place, the trial packed.
    worst: list[tuple[float, int, bytes]]
    # Replies that lost points, and that failed.
    imperfect: int
    failed: int
    bad: list[BadRow]
    # For people who watch: replies that are errors, and all scores together.
    errors: int = 0
    points: float = 0.0
    # Packed lists of places and trials or lines, in order, where results are kept.
    results: list[bytes] = []
    scored_before: str = ""  # The file whose rows answerkey wrote itself; empty: this block has none.


class Lowest:
    """The lowest ranks of all blocks that a process has scored: what is above them need not be told again."""

    def __init__(self) -> None:
        self._ranked: list[tuple[float, int]] = []
        # The highest rank that may still be among them.
        self.limit = 2.0

    def takes(self, rank: float, place: int) -> bool:
        """Whether a reply is among the lowest so far, which it then counts for."""
        if len(self._ranked) == _WORST_LISTED:
            if (rank, place) >= self._ranked[-1]:
                return False
            del self._ranked[-1]
        insort(self._ranked, (rank, place))
        if len(self._ranked) == _WORST_LISTED:
            self.limit = self._ranked[-1][0]
        return True

    def has(self, rank: float, place: int) -> bool:
        """Whether a reply is still among them."""
        return len(self._ranked) < _WORST_LISTED or (rank, place) <= self._ranked[-1]


class ShardTally:
    """Adds up a block's trials."""

    def __init__(self, pass_mark: float, *, kept: Kept = "nothing", lowest: Lowest | None = None) -> None:
        self._what = kept
        self._pass_mark = pass_mark
        self.tally = Tally(pass_mark)
        self.lowest = lowest or Lowest()
        # Questions by their id, and those of plain rows by how rows name them.
        self._questions: dict[str, LoggedQuestion] = {}
        self._listed: list[LoggedQuestion] = []
        self.named: dict[object, LoggedQuestion] = {}
        self._signatures: dict[Signature, int] = {}
        self._plain_signatures: dict[object, int] = {}
        # Of each plain reply its question's number, its values and its time; and the first two of all others.
        self.plain: tuple[list[int], list[Measured]] = ([], [])
        self.taken: list[float | None] = []
        self._others: tuple[list[int], list[Measured]] = ([], [])
        self._known: dict[tuple[Names, Values], Measured] = {}
        # Rank, place, and the trial or the row that it can be made of.
        self._low: list[tuple[float, int, Trial | PlainRow]] = []
        self._imperfect = self._failed = self._errors = 0
        self._points, self.scored_before = 0.0, ""
        self._bad: list[BadRow] = []
        # Results with their places: trials, of which some are packed already, or the lines that will be written.
        self._kept: list[tuple[int, Any]] = []
        self._packed: list[bytes] = []

    def add(self, trial: Trial, place: int) -> None:
        """Count a scored trial."""
        card = trial.scorecard
        names_and_values = values_of(trial)
        measured = self._known.get(names_and_values)
        if measured is None:
            measured = self._known[names_and_values] = Measured(*names_and_values)
        self.tally.add_reply(trial, *self._add_values(trial, place, measured))
        self._errors += card.error is not None
        self._points += card.total or 0.0
        if card.total is None or card.total < 1:
            self._imperfect += 1
            self._failed += not card.passed
            self.add_low(-1.0 if card.total is None else card.total, place, trial)
        if self._what != "nothing":
            self.keep(place, trial if self._what == "trials" else row_line(trial, self._what))

    def add_measured(self, trial: Trial, place: int, measured: Measured) -> bool:
        """Count a trial by its values; False: it may be among the lowest, or has no score, and must be graded."""
        points = measured.points
        if points is None or (points < 1 and points <= self.lowest.limit):
            return False
        counted = self._add_values(trial, place, measured)
        self.tally.add_measured(trial.question.id, trial.replies[0], measured.error, *counted)
        self._count(measured, 1)
        return True

    def _count(self, measured: Measured, times: int) -> None:
        points = measured.points or 0.0
        self._errors += times * (measured.error is not None)
        self._points += times * points
        if points < 1:
            self._imperfect += times
            self._failed += times * (points < self._pass_mark)

    def add_low(self, rank: float, place: int, found: Trial | PlainRow) -> None:
        """Remember what is among the lowest."""
        if rank <= self.lowest.limit and self.lowest.takes(rank, place):
            self._low.append((rank, place, found))

    def _add_values(self, trial: Trial, place: int, measured: Measured) -> tuple[Signature, ReplySums]:
        """Count a trial for its question; gives the slices that the reply is in, and the question's sums."""
        question = trial.question
        signature = signature_of(question)
        found = self._questions.get(question.id)
        if found is None:
            found = self._new(question.id, question.question, trial.position, self._place_of(signature))
            found.group = group_of(question)
        elif question.question != found.question:
            found.wording = SEVERAL
        numbers, values = self._others
        numbers.append(found.number)
        values.append(measured)
        if trial.number:
            found.add_trial(trial.number)
        elif self._what != "nothing":
            found.add_place(place)
        return signature, found.sums

    def _new(self, identity: str, text: str, first: int, signature: int) -> LoggedQuestion:
        found = LoggedQuestion(identity, text, first, len(self._listed), signature)
        self._questions[identity] = found
        self._listed.append(found)
        return found

    def _place_of(self, signature: Signature) -> int:
        return self._signatures.setdefault(signature, len(self._signatures))

    def given_question(self, row: PlainRow, position: int, question: Question) -> LoggedQuestion | None:
        """A plain row's question in the golden set, whose rows can be measured; None: this row cannot."""
        found = self._questions.get(question.id)
        if found is None:
            signature = self._place_of(signature_of(question))
            found = self._new(question.id, question.question, position, signature)
            found.group = group_of(question)
            found.tools = tuple(tool.name for tool in question.expected_tools)
            found.keywords = question.expected_keywords
            found.category = question.category
            found.plain = True
        return self._named(found, row) if found.plain else None

    def told_question(self, row: PlainRow, place: int) -> LoggedQuestion | None:
        """The question of a plain row that tells its expectations; None where something in it must be looked at."""
        named, tools, keywords = identity_of(row), row.expected_tools, row.expected_keywords
        if named is None or named[0] in self._questions or not all(map(str.strip, keywords)):
            return None
        if row.reference_answer is not None and not keywords:
            return None
        identity, text = named
        key = (row.category, tools, length_of(text), not keywords)
        signature = self._plain_signatures.get(key)
        if signature is None:
            question = plain_question(row)
            if question is None:
                return None
            signature = self._plain_signatures[key] = self._place_of(signature_of(question))
        found = self._new(identity, text, place, signature)
        found.tools, found.keywords, found.told, found.plain = tools, keywords, told_in(row), True
        found.category = row.category or UNCATEGORISED
        return self._named(found, row)

    def _named(self, found: LoggedQuestion, row: PlainRow) -> LoggedQuestion:
        self.named[(row.question,) if row.id is None else row.id] = found
        return found

    def add_bad(self, path: str, line: int | None, reason: str, raw: bytes | dict[str, Any] = b"") -> None:
        """Count a row that cannot be scored; `raw` is the row as it stands."""
        try:
            shown = raw if isinstance(raw, bytes) else msgspec.json.encode(raw, enc_hook=str)
        except UnicodeEncodeError:
            # Its reason says what is wrong with it.
            shown = b""
        self._bad.append(BadRow(path, line, reason, shown.decode("utf-8", "replace")[:_ROW_SHOWN]))
        self.tally.whole.add_unscored(self._bad[-1].counted_as)

    def keep(self, place: int, result: Trial | bytes) -> None:
        """Keep a result: a trial, or the line that will be written."""
        self._kept.append((place, result))
        if len(self._kept) >= _PACKED:
            self._pack_kept()

    def _pack_kept(self) -> None:
        self._packed.append(_pack(self._kept if self._what == "trials" else RowLines.of(self._kept)))
        self._kept = []

    def part(self, number: int, graded: Callable[[PlainRow, int], Trial] | None = None) -> ShardPart:
        """What it comes to; `graded` makes trials of the lowest plain rows."""
        if self._kept:
            self._pack_kept()
        self._count_plain()
        worst = []
        for rank, place, found in self._low:
            if self.lowest.has(rank, place):
                trial = found if isinstance(found, Trial) or graded is None else graded(found, place)
                worst.append((rank, place, _pack(trial)))
        return ShardPart(
            number=number,
            trials=len(self.plain[0]) + len(self._others[0]),
            tally=self.tally,
            records=self._records(),
            worst=worst,
            imperfect=self._imperfect,
            failed=self._failed,
            bad=self._bad,
            errors=self._errors,
            points=self._points,
            results=self._packed,
            scored_before=self.scored_before,
        )

    def _count_plain(self) -> None:
        numbers, measured = self.plain
        signatures = list(self._signatures)
        signature_of_number = [found.signature for found in self._listed]
        # Measured objects are told apart by which they are: comparing their values would take longer than the scoring.
        objects = dict(zip(map(id, measured), measured, strict=True))
        counted = Counter(zip(map(signature_of_number.__getitem__, numbers), map(id, measured), strict=True))
        for (signature, which), times in counted.items():
            self.tally.add_alike(signatures[signature], times, objects[which].error)
            self._count(objects[which], times)
        timed: dict[int, list[float]] = {}
        for number, taken in zip(numbers, self.taken, strict=True):
            if taken is not None:
                timed.setdefault(signature_of_number[number], []).append(taken)
        for signature, known in timed.items():
            self.tally.add_alike(signatures[signature], 0, None, known)
            self.tally.whole.add_times(known)

    def _records(self) -> list[bytes]:
        """What is known of the questions, dealt out to the partitions."""
        numbers, measured = self.plain[0] + self._others[0], self.plain[1] + self._others[1]
        objects = dict(zip(map(id, measured), measured, strict=True))
        counted = Counter(zip(numbers, map(id, measured), strict=True))
        signatures = [_pack(signature) for signature in self._signatures]
        packed: dict[tuple[Names, Values], int] = {}
        value_of = {
            which: packed.setdefault((one.names, one.values), len(packed)) for which, one in objects.items()
        }
        values = [_pack(pair) for pair in packed]
        dealt = [_Deal() for _ in range(PARTITIONS)]
        listed, sums = self._listed, self._sums_by_question()
        for (number, which), times in counted.items():
            found = listed[number]
            unit = found.id if found.group is None else found.group
            deal = dealt[crc32(unit.encode("utf-8", "replace")) % PARTITIONS]
            signature = deal.signatures.setdefault(found.signature, len(deal.signatures))
            value = deal.values.setdefault(value_of[which], len(deal.values))
            # What the question's replies add up to stands on the first of its lines.
            line = (found.id, signature, value, times, found.first, found.wording, *sums[number])
            deal.lines.append(line)
            sums[number] = _COUNTED
            if found.group is not None or found.numbers is not None or found.places is not None or found.sums:
                deal.add_rare(found)
        return [deal.packed(signatures, values) for deal in dealt]

    def _sums_by_question(self) -> list[tuple[int, int, int, int, int]]:
        """Of each question: replies, errors, replies whose time is known, and what these took, in halves."""
        replies, errors, timed, taken = ([0] * len(self._listed) for _ in range(4))
        for number, measured, one in zip(*self.plain, self.taken, strict=True):
            replies[number] += 1
            if measured.error is not None:
                errors[number] += 1
            if one is not None:
                timed[number] += 1
                taken[number] += to_fixed_point(one)
        for number, found in enumerate(self._listed):
            if found.sums:
                (failed, counted), (total, known) = found.sums[ERRORS], found.sums[TAKEN]
                replies[number] += counted
                errors[number] += round(fixed_point_mean(failed, 1))
                timed[number] += known
                taken[number] += total
        high, low = zip(*map(split_fixed_point, taken), strict=True) if taken else ((), ())
        return list(zip(replies, errors, timed, high, low, strict=True))


# The sums of a question that stand on another line already.
_COUNTED = (0, 0, 0, 0, 0)


class _Deal:
    """What a block says of the questions of one partition."""

    __slots__ = ("groups", "lines", "numbered", "places", "signatures", "tools", "values")

    def __init__(self) -> None:
        # The block's place of each → its place here.
        self.signatures: dict[int, int] = {}
        self.values: dict[int, int] = {}
        self.lines: list[Any] = []
        self.groups: dict[str, str] = {}
        self.numbered: dict[str, tuple[int, list[int]]] = {}
        self.places: dict[str, list[int]] = {}
        self.tools: dict[str, RareSums] = {}

    def add_rare(self, found: LoggedQuestion) -> None:
        if found.group is not None:
            self.groups[found.id] = found.group
        if found.places is not None:
            self.places[found.id] = found.places
        if found.numbers is not None:
            self.numbered[found.id] = (len(found.numbers), number_runs(found.numbers))
        tools = {
            column: (*split_fixed_point(total), size)
            for column, (total, size) in found.sums.items()
            if column not in (ERRORS, TAKEN)
        }
        if tools:
            self.tools[found.id] = tools

    def packed(self, signatures: Sequence[bytes], values: Sequence[bytes]) -> bytes:
        if not self.lines:
            return b""
        return _pack(
            QuestionLines(
                list(map(signatures.__getitem__, self.signatures)),
                list(map(values.__getitem__, self.values)),
                self.lines,
                self.groups,
                self.numbered,
                self.places,
                self.tools,
            )
        )


_pack = msgspec.msgpack.Encoder().encode
