"""Recorded replies: a log is streamed through the same scorers as a live run and gives the same document."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from answerkey.datasets.questions import EXPECTATION_FIELDS, parse_question
from answerkey.errors import InputError
from answerkey.evaluation.progress import Progress, RunningScore
from answerkey.evaluation.spool import Spool
from answerkey.evaluation.warnings import run_warnings
from answerkey.model.options import Options, Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.model.run import Run, RunInfo, StreamedResults
from answerkey.model.scorecard import round_score
from answerkey.model.summary import Summary
from answerkey.model.tally import summarise_unordered
from answerkey.model.trial import Trial
from answerkey.scorers.grader import Grader
from answerkey.transcripts.recorded_rows import reply_in_row
from answerkey.transcripts.reply_mapping import reply_from_payload
from answerkey.transcripts.row_files import read_rows

__all__ = ["read_trials", "recorded_info", "recorded_run", "score_recorded"]

# Fields of a row that describe the question, not the reply.
_QUESTION_FIELDS = EXPECTATION_FIELDS | {
    "id",
    "question",
    "category",
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


def read_trials(paths: Iterable[str | Path], questions: QuestionSet | None = None) -> Iterator[Trial]:
    """Every recorded reply with its question; expectations stand in the row, or in `questions`."""
    golden = _Golden(questions)
    seen: Counter[str] = Counter()
    for path in paths:
        for line, row in read_rows(path):
            try:
                position, question = golden.question(row)
                seen[question.id] += 1
                trial = _trial(row, seen[question.id])
                yield Trial(question, trial, position, _replies(row, question))
            except ValueError as error:
                raise InputError(str(error), path=path, line=line) from None


def recorded_info(
    scoring: Scoring, scoring_hash: str, *, source: str, questions: QuestionSet | None
) -> RunInfo:
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
        match=scoring.match,
        weights=scoring.weights,
        pass_mark=scoring.pass_mark,
        scoring_hash=scoring_hash,
        options=Options(scoring=scoring),
        finished_at=now,
    )


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
    if question.turns:
        turns = [reply_in_row(row, turn.question, number) for number, turn in enumerate(question.turns)]
        return tuple(reply for reply in turns if reply is not None)
    payload = {name: value for name, value in row.items() if name not in _QUESTION_FIELDS or name == "tools"}
    if payload.get("tools") == "none":
        del payload["tools"]
    return (reply_from_payload(payload, recorded=True),)


def score_recorded(
    paths: Iterable[str | Path],
    *,
    grader: Grader,
    questions: QuestionSet | None = None,
    on_result: Callable[[Trial], None] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Grade recorded replies. The run's results can be read as often as need be; they are not in memory."""
    listed = [Path(path) for path in paths]
    spool = Spool()
    trials = 1

    def graded() -> Iterator[Trial]:
        nonlocal trials
        for trial in grader.ahead(read_trials(listed, questions)):
            card = grader.grade(trial.question, trial.replies)
            result = trial.scored(card)
            if questions is not None:
                trials = max(trials, trial.number)
            if on_result is not None:
                on_result(result)
            if progress is not None:
                running.add(card)
                progress.advance(running)
            yield result

    running = RunningScore()
    if progress is not None:
        info = recorded_info(grader.scoring, grader.hash, source=listed[0].stem, questions=questions)
        progress.begin(info, planned=None, done=0)
    try:
        summary = summarise_unordered(spool.write(graded()), pass_mark=grader.scoring.pass_mark)
    finally:
        if progress is not None:
            progress.end()
    return recorded_run(spool, summary, grader=grader, paths=listed, questions=questions, trials=trials)


def recorded_run(
    spool: Spool,
    summary: Summary,
    *,
    grader: Grader,
    paths: Sequence[Path],
    questions: QuestionSet | None,
    trials: int,
    judge: dict[str, Any] | None = None,
) -> Run:
    """What scored results come to, as a run."""
    if not summary.replies:
        raise InputError("holds no reply", path=paths[0])
    if questions is not None:
        summary = _with_coverage(summary, questions, trials)
    info = recorded_info(grader.scoring, grader.hash, source=paths[0].stem, questions=questions)
    info = msgspec.structs.replace(info, repeat=trials, judge=judge or {}, directions=grader.lower_is_better)
    return Run(
        info=info, summary=summary, warnings=run_warnings(info, summary), results=StreamedResults(spool.read)
    )


def _with_coverage(summary: Summary, questions: QuestionSet, trials: int) -> Summary:
    """Against a golden set, a question that no reply answers is one that was planned and not scored."""
    planned = len(questions) * trials
    return msgspec.structs.replace(
        summary, planned=planned, coverage=round_score(min(1.0, summary.trials / planned)) if planned else 1.0
    )
