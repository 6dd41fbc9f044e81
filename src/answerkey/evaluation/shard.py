"""A shard of a log: a block of rows in, a mergeable part of the summary and the scored rows out.

Everything here is plain data and pure functions, so that any engine can do it anywhere and in any order: first
`ShardScorer(plan).score(block)` for every block, then `add_up` for each of the PARTITIONS of what the parts say of questions. The
tallies of both, merged, are the run's.
"""

import gc
from bisect import insort
from collections.abc import Iterable
from typing import Any
from zlib import crc32

import msgspec

from answerkey.evaluation.log_rows import LogRows
from answerkey.model.question import Question, group_of
from answerkey.model.question_record import SEVERAL, QuestionRecord, RecordBatch, merged_question
from answerkey.model.tally import Names, Signature, Tally, Values, signature_of, values_of
from answerkey.model.trial import Trial
from answerkey.scorers.grader import Grader
from answerkey.scorers.grader_recipe import GraderRecipe
from answerkey.scorers.grading_process import grader_by
from answerkey.scorers.measuring import Measured, measuring
from answerkey.transcripts.row_files import decode_line

__all__ = [
    "PARTITIONS",
    "AddedUp",
    "BadRow",
    "Block",
    "ShardPart",
    "ShardPlan",
    "ShardScorer",
    "ShardTally",
    "add_up",
]

# Questions are dealt out by the checksum of their unit, so that all that is said of a unit comes together.
PARTITIONS = 128
# The lowest replies that a report lists.
_WORST_LISTED = 20
# Kept results are packed so many together.
_PACKED = 500
# So much of a bad row is kept.
_ROW_SHOWN = 2000


class ShardPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that scoring a block takes, besides the block."""

    # None where the grader exists in one process only, and is given to ShardScorer itself.
    recipe: GraderRecipe | None
    # The golden set; None: expectations stand in the rows.
    questions: tuple[Question, ...] | None = None
    pass_mark: float
    # Whether the scored rows are wanted, too.
    keep_results: bool = False


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Some rows of a log, one after the other."""

    # Its number among all blocks, and the place of its first row or line in the log as a whole.
    number: int
    first: int
    # The file, as it is called in messages, and the line before its first; None: its rows have no lines.
    path: str
    line: int | None = None
    # JSON Lines, or rows that were read already, each with its line.
    lines: bytes = b""
    rows: list[tuple[int | None, dict[str, Any]]] = []
    # Something that went wrong with the file behind its rows.
    problem: str = ""


class BadRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that could not be scored."""

    file: str
    line: int | None
    reason: str
    # The row as it stands there, or its beginning.
    row: str = ""


class ShardPart(msgspec.Struct, kw_only=True):
    """What comes of a block."""

    number: int
    # Trials that were graded.
    trials: int
    tally: Tally
    # For each partition, a packed RecordBatch; empty where there is nothing.
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
    # Packed lists of places and trials, in order, where results are kept.
    results: list[bytes] = []


class ShardScorer:
    """Scores blocks one after the other."""

    def __init__(self, plan: ShardPlan, grader: Grader | None = None) -> None:
        if grader is None:
            if plan.recipe is None:
                raise TypeError("a plan without a recipe needs the grader itself")
            grader = grader_by(plan.recipe)
        self._plan = plan
        self._grade = grader.grade
        # Results that nobody reads need no words.
        self._measure = None if plan.keep_results else measuring(grader)
        self._rows = LogRows(plan.questions)

    def score(self, block: Block) -> ShardPart:
        """Score a block; a row that cannot be read or scored is told among the bad ones."""
        # Rows make no cycles: looking for them in all that a block keeps would take a third of the time.
        looked_for_cycles = gc.isenabled()
        gc.disable()
        try:
            return self._score(block)
        finally:
            if looked_for_cycles:
                gc.enable()

    def _score(self, block: Block) -> ShardPart:
        tally = ShardTally(self._plan)
        measure = self._measure
        for trial, place in self.trials(block, tally):
            measured = None if measure is None else measure(trial.question, trial.replies)
            if measured is None or not tally.add_measured(trial, place, measured):
                tally.add(trial.scored(self._grade(trial.question, trial.replies)), place)
        return tally.part(block.number)

    def trials(self, block: Block, tally: "ShardTally") -> Iterable[tuple[Trial, int]]:
        """The block's trials with their places; bad rows go to the tally."""
        read = self._rows.read
        for line, place, raw, row in _rows(block, tally):
            try:
                position, question, number, replies = read(row, place)
            except ValueError as error:
                tally.add_bad(block, line, str(error), raw, row)
                continue
            yield Trial(question, number, position, replies), place
        if block.problem:
            tally.add_bad(block, block.line, block.problem)


def _rows(block: Block, tally: "ShardTally") -> Iterable[tuple[int | None, int, bytes, dict[str, Any]]]:
    """Line, place, the line itself and the row."""
    for place, (number, given) in enumerate(block.rows, start=block.first):
        yield number, place, b"", given
    if not block.lines:
        return
    decode = msgspec.json.Decoder().decode
    before = block.line or 0
    for index, line in enumerate(block.lines.split(b"\n"), start=1):
        if not line or line.isspace():
            continue
        try:
            row = decode(line)
            if type(row) is not dict:
                row = decode_line(line, decode)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            try:
                row = decode_line(line.removeprefix(b"\xef\xbb\xbf"), decode)
            except ValueError as error:
                tally.add_bad(block, before + index, str(error), line)
                continue
        yield before + index, block.first + index - 1, line, row


class ShardTally:
    """Adds up a block's trials."""

    def __init__(self, plan: ShardPlan) -> None:
        self._keep = plan.keep_results
        self._pass_mark = plan.pass_mark
        self._tally = Tally(plan.pass_mark)
        self._questions: dict[str, _Question] = {}
        self._names: dict[Names, int] = {}
        self._worst: list[tuple[float, int, bytes]] = []
        self._trials = self._imperfect = self._failed = 0
        self._bad: list[BadRow] = []
        self._errors, self._points = 0, 0.0
        self._kept: list[tuple[int, Trial]] = []
        self._packed: list[bytes] = []

    def add(self, trial: Trial, place: int) -> None:
        """Count a scored trial."""
        card = trial.scorecard
        signature = self._add_values(trial, place, *values_of(trial))
        self._tally.add_reply(trial, signature)
        self._errors += card.error is not None
        if card.total is None or card.total < 1:
            self._imperfect += 1
            self._failed += not card.passed
            rank = -1.0 if card.total is None else card.total
            if self._is_low(rank):
                insort(self._worst, (rank, place, _pack(trial)))
                del self._worst[_WORST_LISTED:]
        if self._keep:
            self._kept.append((place, trial))
            if len(self._kept) >= _PACKED:
                self._pack_kept()

    def add_measured(self, trial: Trial, place: int, measured: Measured) -> bool:
        """Count a trial by its values; False: it is among the lowest, or has no score, and must be graded."""
        points = measured.values[0]
        if points is None or (points < 1 and self._is_low(points)):
            return False
        signature = self._add_values(trial, place, measured.names, measured.values)
        self._tally.add_measured(trial.question.id, trial.replies[0], points, measured.error, signature)
        self._errors += measured.error is not None
        if points < 1:
            self._imperfect += 1
            self._failed += points < self._pass_mark
        return True

    def _is_low(self, rank: float) -> bool:
        return len(self._worst) < _WORST_LISTED or rank < self._worst[-1][0]

    def _add_values(self, trial: Trial, place: int, names: Names, values: Values) -> Signature:
        """Count a trial for its question; gives the slices that the reply is in."""
        question = trial.question
        found = self._questions.get(question.id)
        if found is None:
            found = self._questions[question.id] = _Question(question, trial.position)
        signature = found.signature
        if question is not found.question:
            signature = signature_of(question)
            if question.question != found.question.question:
                found.wording = SEVERAL
        self._trials += 1
        self._points += values[0] or 0.0
        names_place = self._names.get(names)
        if names_place is None:
            names_place = self._names[names] = len(self._names)
        key = (names_place, values)
        found.values[key] = found.values.get(key, 0) + 1
        if not trial.number:
            found.unnumbered += 1
            if self._keep:
                found.places.append(place)
        elif trial.number > found.highest:
            found.highest = trial.number
        return signature

    def add_bad(
        self, block: Block, line: int | None, reason: str, raw: bytes = b"", row: object = None
    ) -> None:
        """Count a row that cannot be scored."""
        text = (raw or (b"" if row is None else msgspec.json.encode(row, enc_hook=str))).decode(
            "utf-8", "replace"
        )
        self._bad.append(BadRow(block.path, line, reason, text[:_ROW_SHOWN]))
        self._tally.whole.add_unscored(f"bad row: {reason}")

    def _pack_kept(self) -> None:
        self._packed.append(_pack(self._kept))
        self._kept = []

    def part(self, number: int) -> ShardPart:
        """What it comes to."""
        if self._kept:
            self._pack_kept()
        dealt: list[list[QuestionRecord]] = [[] for _ in range(PARTITIONS)]
        for identity, found in self._questions.items():
            unit = identity if found.group is None else found.group
            record = QuestionRecord(
                identity,
                found.signature,
                found.group,
                found.first,
                found.wording,
                [(place, values, times) for (place, values), times in found.values.items()],
                found.unnumbered,
                found.highest,
                found.places,
            )
            dealt[crc32(unit.encode("utf-8", "replace")) % PARTITIONS].append(record)
        names = list(self._names)
        return ShardPart(
            number=number,
            trials=self._trials,
            tally=self._tally,
            records=[_pack(RecordBatch(names, records)) if records else b"" for records in dealt],
            worst=self._worst,
            imperfect=self._imperfect,
            failed=self._failed,
            bad=self._bad,
            errors=self._errors,
            points=self._points,
            results=self._packed,
        )


_pack = msgspec.msgpack.Encoder().encode


class _Question:
    """A question's replies in a block."""

    __slots__ = (
        *("first", "group", "highest", "places", "question"),
        *("signature", "unnumbered", "values", "wording"),
    )

    def __init__(self, question: Question, position: int) -> None:
        self.signature: Signature = signature_of(question)
        self.group = group_of(question) if question.group is not None or question.metadata else None
        self.first = position
        self.question = question
        self.wording = crc32(question.question.encode("utf-8", "replace"))
        self.values: dict[tuple[int, Values], int] = {}
        self.unnumbered = self.highest = 0
        self.places: list[int] = []


class AddedUp(msgspec.Struct, kw_only=True):
    """What the parts say of the questions of one partition."""

    tally: Tally
    # The highest trial number, and ids that stand for several questions.
    repeat: int = 1
    ambiguous: list[str] = []
    # Place and number of the trials that are not their question's first.
    numbers: list[tuple[int, int]] = []


_read_batch = msgspec.msgpack.Decoder(RecordBatch).decode


def add_up(batches: Iterable[bytes], pass_mark: float) -> AddedUp:
    """Add up one partition: `batches` are what each part has for it, in any order."""
    questions: dict[str, list[tuple[list[Names], QuestionRecord]]] = {}
    for packed in batches:
        batch = _read_batch(packed)
        for record in batch.records:
            known = questions.get(record.id)
            if known is None:
                questions[record.id] = [(batch.names, record)]
            else:
                known.append((batch.names, record))
    added = AddedUp(tally=Tally(pass_mark))
    for identity, parts in questions.items():
        added.tally.add_question(merged_question(parts))
        wordings = {record.wording for _, record in parts}
        if len(wordings) > 1 or SEVERAL in wordings:
            added.ambiguous.append(identity)
        if len(parts) > 1 or parts[0][1].unnumbered != 1:
            _number(added, [record for _, record in parts])
    # A unit's questions are all here, so that its values can be summed now.
    added.tally.close_groups()
    return added


def _number(added: AddedUp, records: list[QuestionRecord]) -> None:
    """Count a question's trials, and number those whose rows have no number in the order of the log."""
    highest = max(record.highest for record in records)
    added.repeat = max(added.repeat, highest, sum(record.unnumbered for record in records))
    places = sorted(place for record in records for place in record.places)
    added.numbers += [(place, number) for number, place in enumerate(places, start=1) if number > 1]
