"""A shard of a log: a block of rows in, a mergeable part of the summary and the scored rows out.

Everything here is plain data and pure functions, so that any engine can do it anywhere and in any order: first
`ShardScorer(plan).score(block)` for every block, then `add_up` for each of the PARTITIONS of what the parts say of questions. The
tallies of both, merged, are the run's.
"""

import gc
import os
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from answerkey.model.options import Options
from answerkey.model.question import Question
from answerkey.model.result_rows import Kept
from answerkey.model.scorecard import Trial
from answerkey.runs.log_rows import SCORED_BEFORE, LogRows
from answerkey.runs.logged_question import LoggedQuestion
from answerkey.runs.plain_lines import PlainLines
from answerkey.runs.plain_rows import PlainRow, Use, plain_calls, told_in, used_in
from answerkey.runs.shard_tally import Lowest, ShardPart, ShardTally
from answerkey.scorers.grader import Grader
from answerkey.scorers.grading_process import grader_by
from answerkey.scorers.measuring import Measuring, measuring
from answerkey.scorers.plan import GraderRecipe
from answerkey.transcripts.row_files import decode_line


class ShardPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that scoring a block takes, besides the block."""

    # None where the grader exists in one process only, and is given to ShardScorer itself.
    recipe: GraderRecipe | None
    # The golden set; None: expectations stand in the rows.
    questions: tuple[Question, ...] | None = None
    pass_mark: float
    # What is wanted of each scored row.
    kept: Kept = "nothing"
    # Seconds of CPU that one reply may take where other processes score.
    scoring_seconds: float = Options().scoring_seconds

    @property
    def given(self) -> int:
        """How many questions the golden set has."""
        return len(self.questions or ())


class FilePart(msgspec.Struct, frozen=True):
    """Where some lines are in a file of this machine, so that a process that can read it needs only this."""

    path: str
    # By which it is known, should another file have taken its name.
    device: int
    inode: int
    start: int
    length: int

    def read(self) -> bytes | None:
        """The lines; None: they cannot be read there any more."""
        try:
            with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123  # a third of the time of Path.open
                found = os.fstat(file.fileno())
                if (found.st_dev, found.st_ino) != (self.device, self.inode):
                    return None
                lines = os.pread(file.fileno(), self.length, self.start)
        except OSError:
            return None
        return lines if len(lines) == self.length else None


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
    # Where the lines are, if a file has them as they stand.
    part: FilePart | None = None
    rows: list[tuple[int | None, dict[str, Any]]] = []
    # Rows that could not be read: line, reason and the row.
    bad: list[tuple[int | None, str, bytes]] = []
    # Something that went wrong with the file behind its rows.
    problem: str = ""
    # The places of rows whose scoring took too long before.
    too_costly: tuple[int, ...] = ()

    def sent(self) -> "Block":
        """As it is sent to another process: without lines that it can read for itself."""
        return self if self.part is None else msgspec.structs.replace(self, lines=b"")

    def arrived(self) -> "Block | None":
        """What was sent, with its lines; None: they cannot be read here, and must be sent."""
        lines = self.lines if self.part is None else self.part.read()
        return None if lines is None else msgspec.structs.replace(self, lines=lines)


# Line, place, the row as it stands (a line, or what was read already), and what was read: plain, or anything.
_Read = tuple[int | None, int, bytes | dict[str, Any], PlainRow | dict[str, Any]]


class ShardScorer:
    """Scores blocks one after the other."""

    def __init__(self, plan: ShardPlan, grader: Grader | None = None) -> None:
        if grader is None:
            if plan.recipe is None:
                raise TypeError("a plan without a recipe needs the grader itself")
            grader = grader_by(plan.recipe)
        self._plan = plan
        self._grade, self._too_costly, self.prepare = grader.grade, grader.too_costly, grader.prepare
        # Called with the place of each row before it is scored.
        self.before_row: Callable[[int], None] | None = None
        # Results that nobody reads need no words, and lines of plain rows are filled in.
        self._measuring = None if plan.kept == "trials" else measuring(grader)
        self._lines: PlainLines | None = None
        if plan.kept != "nothing" and self._measuring is not None:
            self._lines = PlainLines.of(grader, self._measuring.quality, plan.kept)
            self._measuring = self._measuring if self._lines is not None else None
        self._rows = LogRows(plan.questions, grader.registry)
        self._lowest = Lowest()

    def tally(self) -> ShardTally:
        """For the trials of one block."""
        plan = self._plan
        return ShardTally(plan.pass_mark, kept=plan.kept, lowest=self._lowest)

    def score(self, block: Block) -> ShardPart:
        """Score a block; a row that cannot be read or scored is told among the bad ones."""
        # Rows make no cycles: looking for them in all that a block keeps would take a third of the time.
        looked_for_cycles = gc.isenabled()
        gc.disable()
        try:
            tally = self.tally()
            rows = self._read(block, tally)
            if self._measuring is not None and self._measuring.looks and not block.too_costly:
                rows = self._measured(rows, tally, self._measuring)
            for trial, place in self._trials(rows, block, tally):
                if place in block.too_costly:
                    card = self._too_costly(trial.question, trial.number, self._plan.scoring_seconds)
                    tally.add(trial.scored(card), place)
                else:
                    self._add(trial, place, tally)
            return tally.part(block.number, self._graded)
        finally:
            if looked_for_cycles:
                gc.enable()

    def trials(self, block: Block, tally: ShardTally) -> Iterable[tuple[Trial, int]]:
        """The block's trials with their places; bad rows go to the tally."""
        return self._trials(self._read(block, tally), block, tally)

    def _read(self, block: Block, tally: ShardTally) -> Iterable[_Read]:
        plain = self._rows.plain
        for place, (number, given) in enumerate(block.rows, start=block.first):
            try:
                row: PlainRow | dict[str, Any] = plain.convert(given)
            except (msgspec.ValidationError, UnicodeEncodeError):
                plain.learn(given)
                row = given
            yield number, place, given, row
        if not block.lines:
            return
        before = block.line or 0
        for index, line in enumerate(block.lines.split(b"\n"), start=1):
            try:
                row = plain.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                if not line or line.isspace():
                    continue
                try:
                    row = decode_line(line.removeprefix(b"\xef\xbb\xbf"))
                except ValueError as error:
                    tally.add_bad(block.path, before + index, str(error), line)
                    continue
                plain.learn(row)
            yield before + index, block.first + index - 1, line, row

    def _measured(self, rows: Iterable[_Read], tally: ShardTally, measuring: Measuring) -> Iterable[_Read]:
        """Measure the plain rows; gives the others.

        This loop is what a log of millions waits for: names of its own for all that it touches, and no object a row.
        """
        measure, named, whole = measuring.plain, tally.named, tally.tally.whole
        say, find = measuring.quality.said, measuring.quality.find
        lines, keep_line = self._lines, tally.keep
        add_number, add_values, add_taken = tally.plain[0].append, tally.plain[1].append, tally.taken.append
        lowest, limit, slow_from = tally.lowest, tally.lowest.limit, whole.slow_from
        for read, kind in self._with_kinds(rows, measuring):
            row = read[3]
            if isinstance(row, dict):
                yield read
                continue
            question = named.get((row.question,) if row.id is None else row.id)
            if question is None:
                question = self._question(row, read[1], tally, measuring)
            elif question.told is not None and question.told != told_in(row):
                question = None
            text, taken = row.answer, row.latency_ms
            told_use: Use | None = (row.tools_used, None)
            if row.tool_calls or row.usage is not None:
                told_use = used_in(row, calls=lines is None)
            if question is None or told_use is None or (text is not None and "\0" in text):
                yield read
                continue
            used, usage = told_use
            if lines is not None and lines.whole:
                matches = find(question.keywords, text)
                said = [match.found for match in matches]
            else:
                matches, said = (), say(question.keywords, text)
            quality = said.count(True) / len(said) if said else 1.0
            found = measure(question.tools, used or (), quality, kind, plain_calls)
            if found is None or (points := found.points) is None:
                yield read
                continue
            if lines is not None:
                keep_line(read[1], lines.line(question, row, matches, tuple(said), found))
            add_number(question.number)
            add_values(found)
            if used is None and row.tool_calls is None:
                whole.tools_unobserved += 1
            if usage is not None:
                whole.add_usage(usage)
            add_taken(taken)
            if taken is not None and taken >= slow_from:
                whole.add_time(question.id, taken)
                slow_from = whole.slow_from
            if row.trial:
                question.add_trial(row.trial)
            elif lines is not None:
                question.add_place(read[1])
            if points < 1 and points <= limit:
                # Objects in it are read again, as any other row's.
                tally.add_low(points, read[1], self._graded(row, *read[1:3]) if row.tool_calls else row)
                limit = lowest.limit

    def _with_kinds(self, rows: Iterable[_Read], measuring: Measuring) -> Iterable[tuple[_Read, str | None]]:
        """The rows with the kinds of failures that the plain ones' texts show."""
        if self.before_row is None:
            # Step by step for the whole block: code that does one thing at a time stays in the processor's cache.
            read = list(rows)
            kinds = measuring.kinds(["" if isinstance(row, dict) else row.answer for _, _, _, row in read])
            yield from zip(read, kinds, strict=True)
            return
        for one in rows:
            self.before_row(one[1])
            row = one[3]
            yield one, None if isinstance(row, dict) else measuring.kinds([row.answer])[0]

    def _question(
        self, row: PlainRow, place: int, tally: ShardTally, measuring: Measuring
    ) -> LoggedQuestion | None:
        """The question of a plain row that is the first with this name; None: it must be looked at."""
        if not self._rows.has_golden_set:
            return tally.told_question(row, place)
        given = self._rows.given(row)
        if given is None or not measuring.measures(given[1]):
            return None
        return tally.given_question(row, *given)

    def _trials(self, rows: Iterable[_Read], block: Block, tally: ShardTally) -> Iterable[tuple[Trial, int]]:
        for line, place, raw, row in rows:
            if self.before_row is not None:
                self.before_row(place)
            if isinstance(row, dict) and row.keys() >= SCORED_BEFORE:
                tally.scored_before = block.path
            try:
                trial = self._trial(row, place, raw)
            except ValueError as error:
                tally.add_bad(block.path, line, str(error), raw)
                continue
            yield trial, place
        for line, reason, row_bytes in block.bad:
            tally.add_bad(block.path, line, reason, row_bytes)
        if block.problem:
            tally.add_bad(block.path, block.line, block.problem)

    def _trial(self, row: PlainRow | dict[str, Any], place: int, raw: bytes | dict[str, Any] = b"") -> Trial:
        found = None if isinstance(row, dict) else self._rows.read_plain(row, place)
        if found is None:
            if not isinstance(row, dict):
                row = decode_line(raw) if isinstance(raw, bytes) else raw
            found = self._rows.read(row, place)
        position, question, number, replies = found
        return Trial(question, number, position, replies)

    def _add(self, trial: Trial, place: int, tally: ShardTally) -> None:
        if self._measuring is not None and self._lines is None:
            found = self._measuring.any(trial.question, trial.replies)
            if found is not None and tally.add_measured(trial, place, found):
                return
        tally.add(trial.scored(self._grade(trial.question, trial.replies)), place)

    def _graded(self, row: PlainRow, place: int, raw: bytes | dict[str, Any] = b"") -> Trial:
        trial = self._trial(row, place, raw)
        return trial.scored(self._grade(trial.question, trial.replies))
