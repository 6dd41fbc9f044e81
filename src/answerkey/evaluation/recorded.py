"""Recorded replies: a log is streamed through the same scorers as a live run and gives the same document."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, parse_question
from answerkey.errors import InputError
from answerkey.evaluation.bookkeeping import new_id, store_writer
from answerkey.evaluation.judging import judging_on
from answerkey.evaluation.progress import Progress, RunningScore
from answerkey.evaluation.spool import Spool
from answerkey.evaluation.warnings import run_warnings
from answerkey.model.options import Options
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.model.run import Run, RunInfo, StreamedResults
from answerkey.model.tally import Tally
from answerkey.model.trial import Trial
from answerkey.scorers.grader import Grader
from answerkey.store.sql import SqlStore
from answerkey.transcripts.recorded_rows import reply_in_row
from answerkey.transcripts.row_files import open_rows

if TYPE_CHECKING:
    from answerkey.judge.configured_judge import Judge
    from answerkey.judge.session import JudgingSession

__all__ = ["read_trials", "score_recorded"]

# Fields of a row that describe the question, not the reply.
_QUESTION_FIELDS = EXPECTATION_FIELDS | {
    "id",
    "question",
    "category",
    "group",
    "persona",
    "tags",
    "weight",
    "turns",
    "trial",
}
# The same without what every row has: their presence means that a row carries its own golden case.
_INLINE_FIELDS = (EXPECTATION_FIELDS | {"category", "persona", "tags", "turns"}) - {"tools"}
# Parsed questions are kept for rows that repeat them; a log of more different ones takes no more memory.
_MOST_PARSED = 20_000
# Replies that are read ahead of the one whose judgement is waited for.
_MOST_AHEAD = 2000


def read_trials(
    paths: Iterable[str | Path],
    questions: QuestionSet | None = None,
    fields: Mapping[str, str] | None = None,
    notes: list[str] | None = None,
) -> Iterator[Trial]:
    """Every recorded reply with its question; expectations stand in the row, or in `questions`.

    What is guessed to read a file is added to `notes`.
    """
    golden = _Golden(questions)
    seen: Counter[str] = Counter()
    for path in paths:
        file = open_rows(path, "replies", fields)
        if notes is not None and file.read_as:
            notes.append(f"{path} was read as: {file.read_as}")
        for line, row in file.rows:
            try:
                position, question = golden.question(row)
                seen[question.id] += 1
                trial = _trial(row, seen[question.id])
                yield Trial(question, trial, position, _replies(row, question))
            except ValueError as error:
                raise InputError(str(error), path=path, line=line) from None


class _Golden:
    """Finds the question that a recorded reply answers."""

    def __init__(self, questions: QuestionSet | None) -> None:
        self._given = questions is not None
        listed = list(enumerate(questions or ()))
        self._by_id = {question.id: (position, question) for position, question in listed}
        self._by_text = {question.question: (position, question) for position, question in reversed(listed)}
        # Rows of a log repeat their questions; parsing each once is most of the speed.
        self._parsed: dict[str, tuple[int, Question, Mapping[str, Any]]] = {}

    def question(self, row: Mapping[str, Any]) -> tuple[int, Question]:
        identity, text = row.get("id"), row.get("question")
        if isinstance(identity, int) and not isinstance(identity, bool):
            identity = str(identity)
        if self._given:
            found = self._by_id.get(identity) if isinstance(identity, str) else None
            if found is None and isinstance(text, str):
                found = self._by_text.get(text)
            if found is not None:
                return found
            if _INLINE_FIELDS.isdisjoint(row):
                named = f"id {identity!r}" if identity is not None else "that question"
                raise ValueError(f"the golden set has no question with {named}; check --questions")
        if identity is None and not isinstance(text, str) and not row.get("turns"):
            raise ValueError(
                "has neither 'id' nor 'question', so it cannot be told which question it answers"
            )
        expectations = {
            name: value for name, value in row.items() if name in _QUESTION_FIELDS and name != "trial"
        }
        if "tools" in expectations and expectations["tools"] != "none":
            del expectations["tools"]
        if text is None and not row.get("turns"):
            expectations["question"] = str(identity)
        return self._parse(expectations)

    def _parse(self, expectations: dict[str, Any]) -> tuple[int, Question]:
        key = str(expectations.get("id") or expectations.get("question"))
        known = self._parsed.get(key)
        if known is not None and known[2] == expectations:
            return known[0], known[1]
        question = parse_question(expectations)
        position = known[0] if known is not None else len(self._parsed)
        if known is not None or len(self._parsed) < _MOST_PARSED:
            self._parsed[key] = (position, question, expectations)
        return position, question


def _trial(row: Mapping[str, Any], counted: int) -> int:
    trial = row.get("trial")
    if trial is None:
        return counted
    if isinstance(trial, bool) or not isinstance(trial, int) or trial < 0:
        raise ValueError("'trial' must be a whole number")
    return trial


def _replies(row: Mapping[str, Any], question: Question) -> tuple[Reply, ...]:
    if not question.turns:
        return (reply_in_row(row, question.question) or Reply(),)
    turns = [
        reply_in_row(row, turn.question, number, in_turns=True) for number, turn in enumerate(question.turns)
    ]
    return tuple(reply for reply in turns if reply is not None)


async def score_recorded(
    paths: Sequence[Path],
    *,
    grader: Grader,
    judge: "Judge | None" = None,
    store: SqlStore | None = None,
    questions: QuestionSet | None = None,
    fields: Mapping[str, str] | None = None,
    progress: Progress,
) -> Run:
    """Grade recorded replies. The run's results can be read as often as need be; they are not in memory.

    The store is only for what a judge said, so that it is paid for once.
    """
    info = _recorded_info(grader, source=paths[0].stem, questions=questions)
    spool, running = Spool(), RunningScore()
    tally = Tally(grader.scoring.pass_mark, grouped=False)
    repeat, notes = 1, list[str]()
    progress.begin(info, planned=None, done=0)
    try:
        with store_writer() as writer:
            async with judging_on(store, judge, new_id(), writer, beside=True) as judging:
                async for trial in _graded(read_trials(paths, questions, fields, notes), grader, judging):
                    spool.add(trial)
                    tally.add(trial)
                    running.add(trial.scorecard)
                    progress.advance(running)
                    if questions is not None:
                        repeat = max(repeat, trial.number)
                if judging is not None:
                    await judging.checked()
                    info = msgspec.structs.replace(info, judge=judging.document())
    finally:
        progress.end()
    # Against a golden set, a question that no reply answers is one that was planned and not scored.
    summary = tally.summary(None if questions is None else len(questions) * repeat)
    if not summary.replies:
        raise InputError("holds no reply", path=paths[0])
    info = msgspec.structs.replace(info, repeat=repeat)
    warnings = (*run_warnings(info, summary), *notes)
    return Run(info=info, summary=summary, warnings=warnings, results=StreamedResults(spool.read))


async def _graded(
    trials: Iterable[Trial], grader: Grader, judging: "JudgingSession | None"
) -> AsyncIterator[Trial]:
    """The trials with their scorecards, in the log's order; a judge has many of them under way at once."""
    if judging is None:
        for trial in trials:
            yield trial.scored(grader.grade(trial.question, trial.replies))
        return

    async def judged(trial: Trial) -> Trial:
        scores = await judging.judge(trial.question, trial.replies)
        return trial.scored(grader.grade(trial.question, trial.replies, scores))

    waiting: deque[asyncio.Task[Trial]] = deque()
    try:
        for trial in trials:
            if judging.failure is not None:
                break
            waiting.append(asyncio.create_task(judged(trial)))
            if len(waiting) >= _MOST_AHEAD:
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _recorded_info(grader: Grader, *, source: str, questions: QuestionSet | None) -> RunInfo:
    """What a scored log is, in the terms of a run."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return RunInfo(
        id="recorded",
        name=source,
        status="complete",
        created_at=now,
        target=f"recorded:{source}",
        target_hash="",
        question_set=source if questions is None else questions.name,
        question_set_hash="" if questions is None else questions.hash,
        options=Options(scoring=grader.scoring),
        finished_at=now,
        **grader.kept,
    )
