"""Recorded logs: files are read in blocks, each block is graded by the grader of a live run, and all blocks are added up.

A log may be larger than memory, and its blocks may be scored in any order, by any process: `BlockScorer.score` turns a block into
plain data, and `LogRun` adds the parts up.
"""

import errno
import os
import sys
from array import array
from collections import Counter, deque
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from heapq import nsmallest
from itertools import chain, count, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from answerkey.errors import (
    AnswerkeyError,
    InputError,
    InterruptedRunError,
    NoReplyTextError,
    StoreError,
    UsageError,
)
from answerkey.model.options import Options
from answerkey.model.question import QuestionSet
from answerkey.model.question_totals import QuestionTotals
from answerkey.model.run import RECORDED, LoggedResults, Run, RunInfo, StreamedResults
from answerkey.model.scorecard import UNNUMBERED, Trial
from answerkey.model.tally import AlikeTrials, Tally
from answerkey.protocols import Progress, RunningScore
from answerkey.runs.context import with_key_quality
from answerkey.runs.log_files import BadRow, Block, LogBlocks, has_own_results, write_bad_rows
from answerkey.runs.log_rows import (
    WORST_LISTED,
    BlockCollector,
    BlockScorer,
    LoggedTrial,
    LogPlan,
    ResultForm,
    paused_garbage_collection,
)
from answerkey.runs.log_table import BlockPart, BlockSummary, LogTable, LowScore, NotedRows, ResultLines
from answerkey.runs.stored import new_run_id, run_warnings
from answerkey.scorers.grader import Grader
from answerkey.text.normalise import count as counted
from answerkey.text.normalise import count_of
from answerkey.text.patterns import blake2b
from answerkey.transcripts.files import database_url, shown_url
from answerkey.transcripts.recorded_rows import propose_mapping, question_in_row
from answerkey.transcripts.row_files import open_rows

if TYPE_CHECKING:
    from answerkey.judge.session import Judge, JudgingSession
    from answerkey.store.sql import SqlStore

# A log of no more blocks than these is scored before another process has started.
_FEW_BLOCKS = 3
# A smaller log is scored again faster than a journal is read.
_WORTH_A_JOURNAL = 4 * 1024 * 1024
# Raised when journals of earlier code cannot be read.
_JOURNAL_VERSION = 14
_IDS_NAMED = 3
# A first block with at least this many rows shows whether the mapping works.
_ENOUGH_ROWS = 1000
# The share of rows without a text above which a warning says so.
_MOST_WITHOUT_TEXT = 0.1
# Replies read ahead of the one whose judgement is awaited.
_MOST_AHEAD = 2000
_STORE_BATCH = 1000


class LogScoring(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is scored."""

    # Where rows have their fields: field → JMESPath.
    fields: dict[str, str] = {}
    # What is read of a database.
    sql: str = ""
    # Other columns that results keep.
    keep: tuple[str, ...] = ()
    # Processes that score; None: one per core.
    processes: int | None = None
    # What is kept of each result, besides the summary and the lowest replies.
    results: ResultForm = "trials"
    # Where bad rows are written; None: they are only counted.
    bad_rows: Path | None = None
    # CPU seconds that one reply may take in a scoring process; a reply that takes longer is unscored. None: as for a run.
    scoring_seconds: float | None = None
    # Whether the same command resumes an interrupted scoring.
    resumable: bool = False
    # Where the scoring happens, and the address of the Ray cluster, HOST:PORT.
    engine: Literal["local", "ray"] = "local"
    ray_address: str | None = None


_decode_trial = msgspec.msgpack.Decoder(Trial).decode


class BlockPool(Protocol):
    """Scores blocks, in any order."""

    def score(self, blocks: Iterable[Block]) -> Iterator[BlockPart]:
        """The parts as they are done; blocks are taken only as fast as they are scored."""
        ...

    def close(self) -> None:
        """Nothing more will come."""
        ...


class InlinePool:
    """Scores blocks in this process."""

    def __init__(self, plan: LogPlan, grader: Grader) -> None:
        self._scorer = BlockScorer(plan, grader)

    def score(self, blocks: Iterable[Block]) -> Iterator[BlockPart]:
        """One after the other."""
        return map(self._scorer.score, blocks)

    def close(self) -> None:
        """Nothing is open."""


def score_log(
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
        pool, blocks = _choose_pool(log, grader, how)
        with closing(pool):
            log.begin()
            for part in pool.score(blocks):
                log.add(part)
        return log.run()
    except KeyboardInterrupt as error:
        log.stop(error)
        if log.table.path is None and not log.table.not_resumable:
            raise
        raise InterruptedRunError(
            f"interrupted after {log.running.done:,} replies; {log.next_time}"
        ) from None
    except BaseException as error:
        log.stop(error)
        raise
    finally:
        progress.end()


def _choose_pool(log: "LogRun", grader: Grader, how: LogScoring) -> tuple[BlockPool, Iterator[Block]]:
    plan, blocks = log.plan, log.blocks_to_do()
    if how.engine == "ray":
        from answerkey.runs.workers import RayPool  # few logs are scored on a cluster

        return RayPool(plan, how.ray_address), blocks
    first = list(islice(blocks, _FEW_BLOCKS + 1))
    processes = how.processes or _cores()
    alone = plan.recipe is None or processes == 1 or (how.processes is None and len(first) <= _FEW_BLOCKS)
    if alone:
        return InlinePool(plan, grader), chain(first, blocks)
    from answerkey.runs.workers import ProcessPool  # small logs need none

    return ProcessPool(plan, processes), chain(first, blocks)


def _cores() -> int:
    # Those that this process may use, where the system says so.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LogRun:
    """The parts of a log, put together to a run."""

    def __init__(
        self,
        paths: Sequence[Path],
        grader: Grader,
        questions: QuestionSet | None,
        how: LogScoring,
        progress: Progress,
    ) -> None:
        self._blocks = LogBlocks(paths, how.fields, how.sql, None if questions is None else questions.path)
        self._own_results = [path for path in self._blocks.paths if path.is_file() and has_own_results(path)]
        if questions is None and self._own_results:
            # Without expectations every reply would be right.
            raise InputError(
                "has results that answerkey wrote, which do not hold what was expected; add --questions GOLDEN "
                "with the golden set, or score the original log",
                path=self._own_results[0],
            )
        self._how, self._progress = how, progress
        self.info = msgspec.structs.replace(_log_info(grader, paths, questions), kept_columns=how.keep)
        self._questions, self._scoring = questions, grader.scoring
        self.plan = LogPlan(
            recipe=grader.recipe,
            questions=None if questions is None else questions.questions,
            pass_mark=grader.scoring.pass_mark,
            results=how.results,
            keep=how.keep,
            scoring_seconds=how.scoring_seconds or Options().scoring_seconds,
        )
        path = _journal_path(self._blocks, grader.hash, questions, how) if how.resumable else None
        self.table = LogTable(path)
        self.running = RunningScore()
        self._tally = Tally(self.plan.pass_mark)
        self._worst: list[LowScore] = []
        # Block → the bytes that had been read up to its end.
        self._bytes_read: dict[int, int] = {}
        self._imperfect = self._failed = 0
        self._bad: list[tuple[int, list[BadRow]]] = []
        self._columns: set[str] = set()
        self._without_text, self._asked_otherwise = NotedRows(), NotedRows()

    def recover(self) -> None:
        """Resume from what an interrupted scoring of the same log has left."""
        for summary in self.table.recover():
            self._count(summary)

    def stop(self, error: BaseException) -> None:
        """It ended early: leave the journal for the next command, unless that would fail in the same way."""
        if _would_repeat(error):
            self.table.discard()
        self.table.close()

    @property
    def next_time(self) -> str:
        """What the same command does after this one was interrupted."""
        if self.table.not_resumable:
            return f"the same command starts from the beginning, since {self.table.not_resumable}"
        return "run the same command again to continue"

    def begin(self) -> None:
        """Start the progress display."""
        self._progress.begin(self.info, planned=None, done=self.running.done)

    def blocks_to_do(self) -> Iterator[Block]:
        """The blocks that have not been scored yet."""
        done = frozenset(self.table.done)
        for block in self._blocks:
            if block.number not in done:
                self._bytes_read[block.number] = self._blocks.bytes_read
                yield block

    def add(self, part: BlockPart) -> None:
        """Store a part and count it."""
        self._check_mapping(part.summary)
        self.table.add(part)
        self._count(part.summary)
        # Blocks are read before they are scored, so that the total can be estimated.
        read, size = self._bytes_read.pop(part.summary.number), self._blocks.size
        self.running.expected = round(self.running.done * size / read) if size and read else None
        self._progress.advance(self.running)

    def _check_mapping(self, summary: BlockSummary) -> None:
        """Stop at the first block of a log if its rows are all bad in the same way: that is the mapping's fault."""
        many = summary.number == 0 and not summary.trials and len(summary.bad) >= _ENOUGH_ROWS
        if many and self._how.fields and len({row.counted_as for row in summary.bad}) == 1:
            raise summary.bad[0].error()

    def _count(self, summary: BlockSummary) -> None:
        self._tally.merge(summary.tally)
        self._worst = nsmallest(WORST_LISTED, [*self._worst, *summary.worst])
        self._imperfect += summary.imperfect
        self._failed += summary.failed
        self._columns |= summary.columns
        if summary.bad:
            self._bad.append((summary.number, summary.bad))
        self._without_text.merge(summary.without_text)
        self._asked_otherwise.merge(summary.asked_otherwise)
        self.running.add_part(summary.trials, summary.errors, summary.points)

    def run(self) -> Run:
        """The run that all parts make."""
        self._bad.sort(key=lambda block: block[0])
        self._check_gradable()
        questions = _QuestionCount(self.plan, self._blocks.rows_read)
        with paused_garbage_collection():
            for some in self.table.questions():
                if isinstance(some, AlikeTrials):
                    self._tally.add_single_trials(some)
                    questions.add_single_trials(some)
                    continue
                for totals in some:
                    self._tally.add_question(totals)
                    questions.add(totals)
                self._tally.close_groups()
        unanswered = len(self.plan.questions or ()) - questions.answered
        summary = self._tally.summary(None, unanswered=unanswered)
        summary = with_key_quality(summary, self._questions, self._scoring, self.info, None)
        info = msgspec.structs.replace(self.info, repeat=questions.repeat, bad_rows=self._bad_reasons())
        self.table.discard()
        warnings = run_warnings(info, summary, where_bad_rows_are=self._write_bad_rows())
        notes = [*warnings, *questions.notes(), *self._row_notes(), *self._blocks.notes]
        if summary.replies and summary.tools_unobserved == summary.replies:
            notes += self._tools_hint()
        results = self._results(questions.numbers)
        return Run(info=info, summary=summary, warnings=tuple(notes), results=results)

    def _check_gradable(self) -> None:
        """Refuse a log without a row that can be scored, or without the text of a single reply."""
        done = self.running.done
        if not done:
            rows = [row for _, some in self._bad for row in some]
            if not rows:
                raise InputError("holds no reply", path=self._blocks.paths[0])
            [(reason, _)] = Counter(row.counted_as for row in rows).most_common(1)
            raise next(row for row in rows if row.counted_as == reason).error(len(rows))
        first = self._without_text.first
        if first is not None and self._without_text.count == done:
            none = f" (none of {done:,} rows has one; nothing was graded)" if done > 1 else ""
            raise NoReplyTextError(first.reason + none, path=first.file, line=first.line)

    def _bad_reasons(self) -> dict[str, int]:
        whole = Tally(self.plan.pass_mark).whole
        for _, rows in self._bad:
            for row in rows:
                whole.add_unscored(row.counted_as)
        return whole.unscored_reasons()

    def _results(self, numbers: "array[int]") -> LoggedResults:
        form, has_golden_set, table = self._how.results, self.plan.questions is not None, self.table

        def trials(results: Iterable[tuple[int, bytes]]) -> Iterator[Trial]:
            if form != "trials":
                raise InputError(
                    "the results of this log were not stored one by one (results='trials' keeps them)"
                )
            for index, packed in results:
                trial = _numbered(_decode_trial(packed), numbers[index])
                yield trial if has_golden_set else msgspec.structs.replace(trial, position=index)

        def lines() -> Iterator[bytes]:
            return (_numbered_lines(some, numbers) for some in table.lines())

        worst = [_numbered(low.trial(), numbers[low.index] if numbers else 1) for low in self._worst]
        return LoggedResults(
            lambda: trials(table.results()),
            by_question=lambda: trials(table.results_by_question()),
            worst_first=lambda: trials(table.worst_results()),
            lines=lines if form == "lines" else None,
            table_lines=lines if form == "table_lines" else None,
            has_trials=form == "trials",
            worst=worst,
            imperfect=self._imperfect,
            failed=self._failed,
        )

    def _write_bad_rows(self) -> str:
        """Write the side file; returns where the rows are, in words."""
        if self._how.bad_rows is None:
            return ""
        lines = b"".join(msgspec.json.encode(row) + b"\n" for _, rows in self._bad for row in rows)
        try:
            path = write_bad_rows(self._how.bad_rows, lines, self._blocks.paths)
        except OSError as error:
            # The scores are worth more than the list of what has none.
            return f"they are only counted, since {self._how.bad_rows} cannot be written ({error.strerror})"
        return f"they are in {path} with line and reason" if lines else ""

    def _tools_hint(self) -> Iterator[str]:
        """Where the rows of a log without tool calls seem to have them, as the first row shows."""
        path = self._blocks.paths[0]
        if not path.is_file():
            return
        with suppress(AnswerkeyError, StopIteration):
            _, row = next(open_rows(path, "replies", self._how.fields).rows)
            place = propose_mapping(row, question_in_row(row) or "").get("tool_calls")
            if place is not None:
                yield f"if {place} lists the tools that a reply used, add --map tools_used={place}"

    def _row_notes(self) -> Iterator[str]:
        done, without_text, other = self.running.done, self._without_text, self._asked_otherwise
        if without_text.first is not None and without_text.count > _MOST_WITHOUT_TEXT * done:
            errors = "has no reply text and counts as an error", "have no reply text and count as errors"
            yield f"{count_of(without_text.count, done, 'row', *errors)}; {without_text.first.error()}"
        if other.first is not None:
            asks = (
                "asks something else than the question with its id",
                "ask something else than the question with their id",
            )
            yield (
                f"{count_of(other.count, done, 'row', *asks)}, by which they are graded; {other.first.error()}. "
                "Leave out ids that are not those of the golden set."
            )
        copies = self.table.copied_rows()
        if copies:
            read = done + sum(len(rows) for _, rows in self._bad)
            copied = count_of(copies, read, "row", "is an exact copy", "are exact copies")
            yield f"{copied} of another row; all are counted. Remove them if the log was joined twice."
        for column in self._how.keep:
            if column not in self._columns:
                yield f"no row has the column {column!r} (--keep)"
        if 0 < len(self._own_results) < len(self._blocks.paths):
            own = _first_few([str(path) for path in self._own_results])
            yield (
                f"{own}: rows that answerkey wrote itself, with the replies of an earlier scoring. "
                "If the log they came from is scored too, these replies count twice: leave such files out."
            )


class _QuestionCount:
    """What is counted over all questions of a log, besides their values."""

    def __init__(self, plan: LogPlan, rows: int) -> None:
        self._golden = len(plan.questions or ())
        # Place in the log → the trial number of the reply there, where results are kept.
        self.numbers = array("i", [1]) * rows if plan.results != "nothing" else array("i")
        # The most replies of any question, and how many questions of the golden set have one.
        self.repeat = 1
        self.answered = 0
        self._ambiguous: list[str] = []
        # Questions with a trial number that several replies have, and how many replies that is.
        self._repeated: list[str] = []
        self._repeated_numbers = 0

    def add(self, totals: QuestionTotals) -> None:
        """Count a question with all of its trials."""
        self.repeat = max(self.repeat, totals.replies)
        self.answered += totals.first < self._golden
        if totals.has_several_texts:
            self._ambiguous.append(totals.id)
        if not totals.numbers and not totals.indices:
            return
        used = sorted(totals.numbers)
        repeated = sum(one == other for one, other in pairwise(used))
        if repeated:
            self._repeated_numbers += repeated
            self._repeated.append(totals.id)
        for index, number in zip(sorted(totals.indices), _free_numbers(used), strict=False):
            self.numbers[index] = number

    def add_single_trials(self, alike: AlikeTrials) -> None:
        """Count questions with one reply each."""
        self.answered += sum(first < self._golden for first in alike.firsts)

    def notes(self) -> Iterator[str]:
        """What a reader must know of the log's ids and trial numbers."""
        if self._ambiguous:
            ids = counted(len(self._ambiguous), "id is", "ids are")
            yield (
                f"{ids} used for more than one question ({_first_few(self._ambiguous)}); "
                "the replies count as trials of one. Give each question its own id."
            )
        if self._repeated:
            yield (
                f"{self._repeated_numbers} replies ({len(self._repeated)} questions: {_first_few(self._repeated)}) share a "
                "trial number with another reply; all are counted. Check for duplicates."
            )


def _free_numbers(used: Sequence[int]) -> Iterator[int]:
    """The numbers from 1 that are not among the given ones, which are sorted."""
    number = 1
    for taken in used:
        yield from range(number, taken)
        number = max(number, taken + 1)
    yield from count(number)


def _first_few(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:_IDS_NAMED]) + (", …" if len(names) > _IDS_NAMED else "")


def _would_repeat(error: BaseException) -> bool:
    """Whether the same command would fail in the same way: because of its input, a full disk, or a mistake of ours.

    A lost cluster or connection, or a process that had too little memory, may work next time.
    """
    if isinstance(error, AnswerkeyError):
        return isinstance(error, UsageError) and not isinstance(error, StoreError)
    if isinstance(error, OSError):
        # A journal that fills the disk is part of the problem.
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, Exception)


def _numbered(trial: Trial, number: int) -> Trial:
    return msgspec.structs.replace(trial, number=number) if trial.number == UNNUMBERED else trial


def _numbered_lines(some: ResultLines, numbers: "array[int]") -> bytes:
    """Rows with their trial numbers; those of unnumbered rows are written with a 1.

    The first such bytes are the field itself: in a text before it, the quotes would be escaped.
    """
    indices, lines = some.indices, some.lines
    between = numbers[indices[0] : indices[-1] + 1]
    if between.count(1) == len(between):
        return lines
    return b"".join(
        [
            line.replace(b'"trial":1,', b'"trial":%d,' % numbers[index], 1)
            for line, index in zip(lines.splitlines(keepends=True), indices, strict=True)
        ]
    )


def _journal_path(
    blocks: LogBlocks, scoring: str, questions: QuestionSet | None, how: LogScoring
) -> Path | None:
    """The journal of scoring these files in this way; None: there is none."""
    stamps = blocks.stamps()
    if stamps is None or (blocks.size or 0) < _WORTH_A_JOURNAL:
        return None
    key = [
        _JOURNAL_VERSION,
        sys.hexversion,
        stamps,
        scoring,
        questions and questions.hash,
        how.fields,
        how.results,
        how.keep,
    ]
    name = blake2b(msgspec.json.encode(key), digest_size=12).hexdigest()
    # Where there is no home folder, "~" stays as it is and cannot be written: then there is no journal.
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(cache) / "answerkey" / "scoring" / f"{name}.journal"


def _log_info(grader: Grader, paths: Sequence[Path], questions: QuestionSet | None) -> RunInfo:
    """What a scored log is, in the terms of a run."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    url = database_url(paths[0])
    source = Path(shown_url(url) if url else paths[0]).stem
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
        **grader.run_fields,
    )


# A log whose replies a judge grades too: in this process, with many judgements at once.


async def score_judged_log(
    paths: Sequence[Path],
    *,
    grader: Grader,
    judge: "Judge",
    store: "SqlStore",
    questions: QuestionSet | None = None,
    how: LogScoring,
    progress: Progress,
) -> Run:
    """Grade recorded replies with a judge. The store caches its answers, so that each is paid for once."""
    from answerkey.runs.recorder import open_judge, store_executor  # for judged logs only

    log = LogRun(paths, grader, questions, how, progress)
    try:
        log.recover()
        log.begin()
        scorer = BlockScorer(log.plan, grader)
        with store_executor() as writer:
            async with open_judge(store, judge, new_run_id(), writer, canaries_in_background=True) as judging:
                if judging is None:
                    raise TypeError("a judge that cannot be opened")
                for block in log.blocks_to_do():
                    collector = BlockCollector(log.plan, block, grader)
                    async for trial, index in _judged(scorer.trials(block, collector), grader, judging):
                        collector.add(trial, index)
                    log.add(collector.part())
                    if judging.failure is not None:
                        break
                await judging.checked()
                await judging.check_own()
                log.info = msgspec.structs.replace(log.info, judge=judging.record())
        return log.run()
    except BaseException as error:
        log.stop(error)
        raise
    finally:
        progress.end()


async def _judged(
    logged: Iterable[LoggedTrial], grader: Grader, judging: "JudgingSession"
) -> AsyncIterator[tuple[Trial, int]]:
    """The trials, scored, in the log's order."""
    import asyncio  # most logs have no judge, and nothing to await

    async def score(one: LoggedTrial) -> tuple[Trial, int]:
        trial = one.trial
        judged = await judging.judge(trial.question, trial.replies)
        return trial.scored(grader.grade(trial.question, trial.replies, judged)), one.index

    waiting: deque[asyncio.Task[tuple[Trial, int]]] = deque()
    try:
        for one in logged:
            if judging.failure is not None:
                break
            waiting.append(asyncio.create_task(score(one)))
            if len(waiting) >= _MOST_AHEAD:
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


# A scored log in the store, where it can be shown and compared like a run that was asked.


def store_log(run: Run, store: "SqlStore", name: str | None, questions: QuestionSet | None) -> Run:
    """Store a scored log as a run. Its questions and trial numbers take memory, its replies do not."""
    listed = {} if questions is None else {question.id: question for question in questions}
    numbers: dict[str, set[int]] = {}
    for trial in run.results:
        listed.setdefault(trial.question.id, trial.question)
        numbers.setdefault(trial.question.id, set()).add(trial.number)
    # Rows may bring questions that the golden set does not have.
    if questions is None or len(listed) > len(questions):
        questions = QuestionSet(questions=tuple(listed.values()), name=run.info.question_set)
    info = msgspec.structs.replace(
        run.info,
        id=new_run_id(),
        name=name or run.info.name,
        # A log's target is known by its file alone: replies of two logs are never taken for each other's.
        target_hash=run.info.target,
        question_set_hash=questions.hash,
    )
    store.create_run(msgspec.structs.replace(info, status="running", finished_at=None), questions)
    trials = _with_free_numbers(run.results, questions, numbers)
    while batch := list(islice(trials, _STORE_BATCH)):
        store.add(info, batch)
    store.finish_run(info, run.summary)
    return msgspec.structs.replace(run, info=info, results=StreamedResults(lambda: store.results(info)))


def _with_free_numbers(
    results: Iterable[Trial], questions: QuestionSet, numbers: dict[str, set[int]]
) -> Iterator[Trial]:
    """The trials at their question's position in the set.

    The store has one reply for each trial number: of replies that share one, the first keeps it and the others get free ones.
    """
    positions = {question.id: (position, question) for position, question in enumerate(questions)}
    used: dict[str, set[int]] = {}
    free: dict[str, Iterator[int]] = {}
    for trial in results:
        position, question = positions[trial.question.id]
        number, taken = trial.number, used.setdefault(question.id, set())
        if number in taken:
            others = free.setdefault(question.id, count(1))
            number = next(other for other in others if other not in numbers[question.id])
        taken.add(number)
        yield msgspec.structs.replace(trial, question=question, number=number, position=position)
