"""Recorded replies: a log goes block by block through the same scorers as a live run and gives the same document."""

import errno
import os
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from hashlib import blake2b
from heapq import nsmallest
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import msgspec

from answerkey.errors import AnswerkeyError, InputError, InterruptedRunError, StoreError, UsageError
from answerkey.model.options import Options
from answerkey.model.question import QuestionSet
from answerkey.model.question_lines import AddedUp
from answerkey.model.result_rows import Kept
from answerkey.model.run import RECORDED, LoggedResults, Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.model.tally import Tally
from answerkey.model.whole_tally import WholeTally
from answerkey.runs.bad_rows import keep_bad_rows
from answerkey.runs.log_blocks import LogBlocks, log_files
from answerkey.runs.progress import Progress, RunningScore
from answerkey.runs.score_journal import ScoreJournal
from answerkey.runs.shard import Block, ShardPlan
from answerkey.runs.shard_processes import Here, OtherProcesses, Shards
from answerkey.runs.shard_tally import PARTITIONS, ShardPart
from answerkey.runs.stored import run_warnings
from answerkey.scorers.grader import Grader

# A log of no more blocks than these is scored before another process has started.
_FEW_BLOCKS = 3
# Fewer bytes are scored again as fast as they are looked up.
_WORTH_A_JOURNAL = 4 * 1024 * 1024
# Raised where a journal of before could not be read.
_JOURNAL = 7
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WORST_SHOWN = 20
_IDS_NAMED = 3


class LogScoring(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is scored."""

    # Where rows have their fields: field → JMESPath.
    fields: dict[str, str] = {}
    # Processes that score; None: one for every core.
    processes: int | None = None
    # What is kept of the results: trials can be read one by one afterwards; lines are only written, and the processes that score
    # make them. There always are the summary and the lowest results.
    kept: Kept = "trials"
    # Where bad rows are written, if there are any; None: they are only counted.
    bad_rows: Path | None = None
    # Seconds of CPU that one reply may take where other processes score; one that takes longer is unscored. None: as for a run.
    scoring_seconds: float | None = None
    # A scoring that is interrupted goes on where it stopped when it is asked for again.
    resumable: bool = False
    # Where the scoring happens: local or ray; and the Ray cluster, as HOST:PORT.
    engine: Literal["local", "ray"] = "local"
    ray_address: str | None = None


def score_recorded(
    paths: Sequence[Path],
    *,
    grader: Grader,
    questions: QuestionSet | None = None,
    how: LogScoring,
    progress: Progress,
) -> Run:
    """Grade recorded replies, in this process, in several on this machine, or on a cluster."""
    log = LogRun(paths, grader, questions, how, progress)
    try:
        log.recover()
        shards, todo = _shards(log, grader, how)
        with closing(shards):
            # Whoever watches may start threads, which processes must not begin with.
            log.begin()
            for part in shards.score(todo):
                log.add(part)
            return log.run(shards)
    except KeyboardInterrupt as error:
        log.stop(error)
        if log.journal.path is None and not log.journal.not_kept:
            raise
        raise InterruptedRunError(
            f"interrupted after {log.running.done:,} replies; {log.next_time}"
        ) from None
    except BaseException as error:
        log.stop(error)
        raise
    finally:
        progress.end()


def _shards(log: "LogRun", grader: Grader, how: LogScoring) -> tuple[Shards, Iterator[Block]]:
    plan, blocks = log.plan, log.blocks_to_do()
    if how.engine == "ray":
        from answerkey.runs.ray_shards import RayShards  # few logs are scored on a cluster

        return RayShards(plan, how.ray_address), blocks
    first = list(islice(blocks, _FEW_BLOCKS + 1))
    processes = how.processes
    count = processes or _cores()
    alone = plan.recipe is None or count == 1 or (processes is None and len(first) <= _FEW_BLOCKS)
    if alone:
        return Here(plan, grader), chain(first, blocks)
    return OtherProcesses(plan, count, grader, not_theirs=[log.journal.file_number]), chain(first, blocks)


def _cores() -> int:
    # Those that this process may use, where the system says it.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LogRun:
    """The parts of a log put together to a run."""

    def __init__(
        self,
        paths: Sequence[Path],
        grader: Grader,
        questions: QuestionSet | None,
        how: LogScoring,
        progress: Progress,
    ) -> None:
        self._blocks = LogBlocks(log_files(paths), how.fields, paths)
        self._questions, self._how, self._progress = questions, how, progress
        self.info = _recorded_info(grader, paths, questions)
        self.plan = ShardPlan(
            recipe=grader.recipe,
            questions=None if questions is None else questions.questions,
            pass_mark=grader.scoring.pass_mark,
            kept=how.kept,
            scoring_seconds=how.scoring_seconds or Options().scoring_seconds,
        )
        path = _journal_path(self._blocks, grader.hash, questions, how) if how.resumable else None
        self.journal = ScoreJournal(path)
        self.running = RunningScore()
        self._tally = Tally(self.plan.pass_mark)
        self._worst: list[tuple[float, int, bytes]] = []
        # Block → the bytes that had been read up to its end.
        self._read_to: dict[int, int] = {}
        self._imperfect = self._failed = self._bad_count = 0
        # Of each block that has some: its bad rows as lines of JSON, and what is wrong with the first.
        self._bad: list[tuple[int, bytes]] = []
        self._first_bad: tuple[int, str] | None = None
        self._bad_reasons = WholeTally()
        # Files with rows that answerkey wrote itself.
        self._scored_before: set[str] = set()

    def recover(self) -> None:
        """Take up what an interrupted scoring of the same has left."""
        for part in self.journal.recovered():
            self._count(part)

    def stop(self, error: BaseException) -> None:
        """It ended early: the next command may have the journal, if that gets further."""
        if _would_repeat(error):
            self.journal.forget()
        self.journal.close()

    @property
    def next_time(self) -> str:
        """What the same command does after this one was interrupted."""
        if self.journal.not_kept:
            return f"the same command begins anew, since {self.journal.not_kept}"
        return "the same command goes on where it stopped"

    def begin(self) -> None:
        """Tell whoever watches."""
        self._progress.begin(self.info, planned=None, done=self.running.done)

    def blocks_to_do(self) -> Iterator[Block]:
        """The log's blocks that have not been scored yet."""
        done = self.journal.done
        for block in self._blocks:
            if block.number not in done:
                self._read_to[block.number] = self._blocks.bytes_read
                yield block

    def add(self, part: ShardPart) -> None:
        """Keep a part."""
        self.journal.append(part)
        self._count(part)
        # Blocks are read before they are scored.
        done, size = self._read_to.pop(part.number), self._blocks.size
        self.running.expected = round(self.running.done * size / done) if size and done else None
        self._progress.advance(self.running)

    def _count(self, part: ShardPart) -> None:
        self._tally.merge(part.tally)
        self._worst = nsmallest(_WORST_SHOWN, [*self._worst, *part.worst])
        self._imperfect += part.imperfect
        self._failed += part.failed
        self._bad_count += len(part.bad)
        if part.scored_before:
            self._scored_before.add(part.scored_before)
        if part.bad:
            for bad in part.bad:
                self._bad_reasons.add_unscored(bad.counted_as)
            lines = b"".join(msgspec.json.encode(bad) + b"\n" for bad in part.bad)
            self._bad.append((part.number, lines))
            bad = part.bad[0]
            where = bad.file if bad.line is None else f"{bad.file}:{bad.line}"
            if self._first_bad is None or part.number < self._first_bad[0]:
                self._first_bad = (part.number, f"{where}: {bad.reason}")
        self.running.add_part(part.trials, part.errors, part.points)

    def run(self, shards: Shards) -> Run:
        """What it all comes to."""
        if self._first_bad is not None and not self.running.done:
            raise InputError(self._first_bad[1])
        if not self.running.done:
            raise InputError("holds no reply", path=self.info.name)
        numbers = array("i", [1]) * self._blocks.places if self._how.kept != "nothing" else array("i")
        found = AddedUp(self.plan.pass_mark)
        partitions = [self.journal.partition(number) for number in range(PARTITIONS)]
        for added in shards.add_up(self.journal.name, partitions):
            for place, number in zip(added.places, added.numbers, strict=True):
                numbers[place] = number
            # They are in their places, and as many as the log has rows.
            del added.places[:], added.numbers[:]
            found.merge(added)
        self._tally.merge(found.tally)
        # A question that no reply answers lacks one; how many replies the others should have, nobody knows.
        summary = self._tally.summary(None, unanswered=self.plan.given - found.answered)
        reasons = self._bad_reasons.unscored_reasons()
        info = msgspec.structs.replace(self.info, repeat=found.repeat, bad_rows=reasons)
        worst = [
            _numbered(_read_trial(packed), numbers[place] if numbers else 1)
            for _, place, packed in self._worst
        ]
        self.journal.forget()
        warnings = run_warnings(info, summary, where_bad_rows_are=self._write_bad_rows())
        notes = [*warnings, *self._notes(found), *self._blocks.notes]
        kept = self._how.kept
        results = LoggedResults(
            self._results(numbers) if kept == "trials" else _not_kept,
            lines=self._lines(numbers) if kept.endswith("lines") else None,
            for_table=kept == "table lines",
            worst=worst,
            imperfect=self._imperfect,
            failed=self._failed,
        )
        return Run(info=info, summary=summary, warnings=tuple(notes), results=results)

    def _results(self, numbers: "array[int]") -> Callable[[], Iterator[Trial]]:
        """The results; numbered, where their rows have no number, in the log's order."""
        given = self.plan.questions is not None

        def read() -> Iterator[Trial]:
            for place, trial in self.journal.results():
                yield _numbered(trial, numbers[place], None if given else place)

        return read

    def _lines(self, numbers: "array[int]") -> Callable[[], Iterator[bytes]]:
        """The rows of the results, as they are written."""
        return lambda: (lines.numbered(numbers) for lines in self.journal.lines())

    def _write_bad_rows(self) -> str:
        """Write the side file; gives where they are, in words."""
        if self._how.bad_rows is None:
            return ""
        lines = b"".join(lines for _, lines in sorted(self._bad))
        try:
            path = keep_bad_rows(self._how.bad_rows, lines, self._blocks.paths)
        except OSError as error:
            # What was scored is worth more than the list of what could not be.
            return f"they are only counted, since {self._how.bad_rows} cannot be written ({error.strerror})"
        return f"they are in {path} with line and reason" if lines else ""

    def _notes(self, found: AddedUp) -> Iterator[str]:
        if found.ambiguous:
            yield (
                f"{len(found.ambiguous)} ids stand for more than one question each ({_some(found.ambiguous)}): their "
                "replies count as trials of one; give each question its own id"
            )
        if found.doubled:
            yield (
                f"{found.doubles} replies have a trial number that another reply to the same question has, of "
                f"{len(found.doubled)} questions ({_some(found.doubled)}): all of them count; look whether they are in "
                "the log twice"
            )
        if self._scored_before and len(self._scored_before) < self._blocks.files:
            yield (
                f"{_some(self._scored_before)}: rows that answerkey wrote itself, which carry replies of an earlier "
                "scoring; beside the log that they came from, these count twice: leave such files out"
            )


def _some(names: Collection[str]) -> str:
    """A few of them, to be named."""
    return ", ".join(sorted(names)[:_IDS_NAMED]) + (", …" if len(names) > _IDS_NAMED else "")


def _would_repeat(error: BaseException) -> bool:
    """Whether the same command would fail in the same way: for what is wrong with its input, or a mistake of ours.

    A cluster or a connection that was lost, a process that had too little memory or a store that was away may be there next time.
    """
    if isinstance(error, OSError):
        # A journal that fills the disk is part of what is wrong.
        return error.errno in _FULL
    if isinstance(error, AnswerkeyError):
        return isinstance(error, UsageError) and not isinstance(error, StoreError)
    return isinstance(error, Exception)


_read_trial = msgspec.msgpack.Decoder(Trial).decode


def _numbered(trial: Trial, number: int, position: int | None = None) -> Trial:
    return Trial(
        trial.question,
        trial.number or number,
        trial.position if position is None else position,
        trial.replies,
        trial.scorecard,
    )


def _not_kept() -> Iterator[Trial]:
    raise InputError("the results of this log were not kept one by one; ask for them (kept='trials')")


def _journal_path(
    blocks: LogBlocks, scoring: str, questions: QuestionSet | None, how: LogScoring
) -> Path | None:
    """The file that an interrupted scoring of the same files in the same way left or will leave; None: there is none."""
    stamps = blocks.stamps()
    if stamps is None or (blocks.size or 0) < _WORTH_A_JOURNAL:
        return None
    key = [
        _JOURNAL,
        stamps,
        scoring,
        questions and questions.hash,
        how.fields,
        how.kept,
    ]
    name = blake2b(msgspec.json.encode(key), digest_size=12).hexdigest()
    # Without a home there is a "~" that nobody made, which the journal does without.
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(cache) / "answerkey" / "scoring" / f"{name}.journal"


def _recorded_info(grader: Grader, paths: Sequence[Path], questions: QuestionSet | None) -> RunInfo:
    """What a scored log is, in the terms of a run."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    source = paths[0].stem
    return RunInfo(
        id="recorded",
        name=source,
        status="complete",
        created_at=now,
        target=f"{RECORDED}{source}",
        target_hash="",
        question_set=source if questions is None else questions.name,
        question_set_hash="" if questions is None else questions.hash,
        options=Options(scoring=grader.scoring),
        finished_at=now,
        **grader.kept,
    )
