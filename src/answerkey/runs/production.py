"""What real users asked: grading of production replies, figures of them, and cases proposed from negative feedback.

The figures are by day, and by a facet such as the version, for any filter. Golden cases can be drafted from real questions.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from answerkey.config import Settings
from answerkey.errors import AnswerkeyError, InputError, StoreMissingError, UnknownNameError, UsageError
from answerkey.model.judgement import POSITIVE, Feedback, ProductionReply, read_value
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.runs.context import golden_set, with_truth
from answerkey.runs.log_files import LogBlocks
from answerkey.runs.log_rows import RowReader, UnreadableRow
from answerkey.runs.stored import open_configured_store, stored_trials
from answerkey.scorers.grader import make_grader
from answerkey.stats.intervals import Interval, interval_of_moments, percentiles, wilson_interval
from answerkey.store.database import Sql, sql
from answerkey.store.feedback import FeedbackStore, question_of
from answerkey.store.production import ProductionFilter, ProductionReplies
from answerkey.store.sql import SqlStore
from answerkey.text.dates import local_time
from answerkey.transcripts.files import database_url, input_path, remote_url

# Sources that are in the store.
PRODUCTION, FEEDBACK = "production", "feedback"
_LISTS = (".md", ".markdown", ".txt")
# Columns of a log with a person's verdict.
_VERDICTS = ("feedback", "rating", "thumbs", "verdict")
# Columns of a list of questions with how often each was asked.
_COUNTS = ("count", "frequency")
_LISTED_PROBLEMS = 3
# Replies graded in one transaction.
_BATCH = 200


class ProductionGrading:
    """Grades production replies; finds the golden case by the wording of the question.

    The golden set is read again when its file changes, and replies are graded again when it or the scoring changes.
    """

    def __init__(self, settings: Settings, questions: str | None = None) -> None:
        """`questions` is the golden set's file, by default the configured one; without any, only errors are graded."""
        self._settings = settings
        named = questions or settings.questions
        self._path = None if named is None else settings.folder / named
        self._grader = make_grader(settings.scoring, settings)
        self._lock = Lock()
        self._seen: tuple[int, int] | None = None
        self._cases: dict[str, Question] = {}
        # Hash of the current golden set and scoring.
        self.version = ""
        # Why the file cannot be read now; the version read before stays in use.
        self.problem: str | None = None
        self._read(None if self._path is None else _state(self._path))

    def refresh(self) -> None:
        """Read the golden set again if its file has changed; if that fails, `problem` says why."""
        if self._path is None:
            return
        with self._lock:
            state = _state(self._path)
            if state == self._seen:
                return
            try:
                self._read(state)
                self.problem = None
            except AnswerkeyError as error:
                self._seen, self.problem = state, str(error)

    def grade(self, item: ProductionReply) -> ProductionReply:
        """The reply with its scorecard: a full score if the golden set has the question, else only errors."""
        # One at a time: custom scorers need not be thread-safe.
        with self._lock:
            version, golden = self.version, self._cases.get(_comparable(item.question))
            question = golden or Question(id="", question=item.question)
            card = self._grader.grade(question, (item.reply,))
        return msgspec.structs.replace(
            item,
            category=item.category if golden is None else golden.category,
            score=None if golden is None else card.total,
            scorecard=card,
            graded_by=version,
        )

    def regrade(self, store: SqlStore) -> int:
        """Grade again all replies graded with another golden set or scoring; returns their number."""
        self.refresh()
        replies = ProductionReplies(store)
        done = 0
        while stale := replies.graded_otherwise(self.version, limit=_BATCH):
            replies.keep_grades([self.grade(item) for item in stale])
            done += len(stale)
        return done

    def _read(self, state: tuple[int, int] | None) -> None:
        cases: dict[str, Question] = {}
        set_hash = ""
        if self._path is not None:
            questions, _ = with_truth(golden_set(self._path, self._settings), self._settings)
            set_hash = questions.hash
            for question in questions:
                if not question.turns:
                    cases.setdefault(_comparable(question.question), question)
        self._cases = cases
        self.version = hashlib.blake2b(f"{set_hash}\n{self._grader.hash}".encode(), digest_size=8).hexdigest()
        self._seen = state


def _state(path: Path) -> tuple[int, int] | None:
    """Modification time and size; None if the file does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def same_question(first: str, second: str) -> bool:
    """Whether two questions have the same wording, but for case, spaces and the sign at the end."""
    return _comparable(first) == _comparable(second)


def _comparable(question: str) -> str:
    return " ".join(question.casefold().split()).rstrip("?!. ")


# Golden cases proposed from negative feedback.

TAG = "from-feedback"
_REPLY = 2_000


def proposed_cases(store: SqlStore, *, most: int = 1_000) -> Iterator[dict[str, Any]]:
    """A golden case for every question with negative feedback or a negative review, newest first.

    A question of a golden set keeps its id and expectations, which may be too weak. A new one has no expectations: a
    person must add them.
    """
    book = FeedbackStore(store)
    production = ProductionReplies(store)
    seen: set[str] = set()
    for feedback in book.negative():
        question = feedback.question
        if not question or question.casefold().strip() in seen:
            continue
        if len(seen) == most:
            return
        seen.add(question.casefold().strip())
        known = _golden(store, feedback)
        case = _plain(known) if known is not None else _new(feedback, question)
        case["tags"] = [*(tag for tag in case.get("tags", ()) if tag != TAG), TAG]
        given = None if feedback.production_id is None else production.find(feedback.production_id)
        case["feedback"] = why_proposed(feedback, given)
        if feedback.correction and "reference_answer" not in case:
            case["reference_answer"] = feedback.correction
        yield case


def why_proposed(feedback: Feedback | None, reply: ProductionReply | None) -> dict[str, Any]:
    """The origin of a proposed case: the feedback, and the reply that it refers to."""
    why: dict[str, Any] = {}
    if feedback is not None:
        why = {
            "value": feedback.value,
            "comment": feedback.comment,
            "given_at": feedback.created_at,
            "source": feedback.source,
        }
    if reply is not None:
        why["reply"] = (reply.reply.text or "")[:_REPLY]
        why["tools_used"] = list(reply.reply.tools_used)
    return why


def case_id(question: str, prefix: str = "fb") -> str:
    """An id derived from the wording, so that a question proposed twice gets the same id."""
    return f"{prefix}-{hashlib.blake2b(question.encode('utf-8', 'replace'), digest_size=5).hexdigest()}"


def _new(feedback: Feedback, question: str) -> dict[str, Any]:
    case: dict[str, Any] = {"id": case_id(question), "question": question}
    if feedback.category:
        case["category"] = feedback.category
    case["expected_tools"] = []
    case["expected_keywords"] = []
    return case


def _plain(question: Question) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(question, line=None))
    plain.pop("line", None)
    plain |= plain.pop("metadata", {})
    return plain


def _golden(store: SqlStore, feedback: Feedback) -> Question | None:
    if feedback.reply is None:
        return None
    with store.database.reading() as connection:
        return question_of(connection, feedback.reply)


# The questions of real users, from logs, lists, runs and the store.


class RealQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One real question, with its reply if it is known."""

    text: str
    # The first question of its conversation, if it is a later turn.
    opening: str = ""
    # How often it was asked.
    count: int = 1
    # File and line, run, or the id of a production reply.
    source: str
    reply: Reply | None = None
    # Whether a person disliked the reply.
    disliked: bool = False
    category: str = ""


class QuestionSources:
    """The questions of some sources; reading them again is not possible where one is standard input."""

    def __init__(
        self,
        sources: Sequence[str],
        settings: Settings,
        *,
        sql: str = "",
        fields: Mapping[str, str] | None = None,
        store: str | None = None,
    ) -> None:
        self._sources, self._settings = sources, settings
        self._sql, self._fields, self._store = sql, fields, store
        # Rows that could not be read.
        self.unreadable = 0
        self.problems: list[str] = []

    def __iter__(self) -> Iterator[RealQuestion]:
        logs: list[Path] = []
        for source in self._sources:
            path = input_path(source)
            if path.suffix.lower() in _LISTS and path.exists():
                yield from self._of_list(path)
            elif source == "-" or database_url(path) or remote_url(path) or _is_file(path):
                logs.append(path)
            else:
                yield from self._of_store(source)
        if logs:
            yield from self._of_logs(logs)
        elif self._sql:
            raise UsageError("--sql reads a database; give sqlite:///FILE or postgresql://…")

    def _of_list(self, path: Path) -> Iterator[RealQuestion]:
        from answerkey.datasets.table_formats import import_list

        for number, row in enumerate(import_list([path]).rows, start=1):
            category = row.get("category")
            text = category if isinstance(category, str) else ""
            yield RealQuestion(text=str(row["question"]), source=f"{path}: question {number}", category=text)

    def _of_logs(self, paths: Sequence[Path]) -> Iterator[RealQuestion]:
        reader = RowReader(None, keep=(*_VERDICTS, *_COUNTS), registry=self._settings.scorer_registry)
        rows = 0
        for block in LogBlocks(paths, self._fields or self._settings.map, self._sql):
            for row in reader.read(block):
                if isinstance(row, UnreadableRow):
                    self.unreadable += 1
                    if len(self.problems) < _LISTED_PROBLEMS:
                        self.problems.append(str(InputError(row.reason, path=block.path, line=row.line)))
                    continue
                rows += 1
                line = row.trial.origin.line if row.trial.origin is not None else None
                where = f"{block.path}:{line}" if line is not None else block.path
                yield from _of_trial(row.trial, where, has_reply=row.row_without_text is None)
        if not rows and self.problems:
            raise UsageError(f"{self.problems[0]} (none of {self.unreadable:,} rows can be read)")

    def _of_store(self, source: str) -> Iterator[RealQuestion]:
        try:
            opened = open_configured_store(self._settings, self._store, create=False)
        except StoreMissingError as error:
            if source in (PRODUCTION, FEEDBACK):
                raise
            raise InputError(
                f"no such file, and no run, since there is no store ({error})", path=source
            ) from None
        with opened as store:
            if source == PRODUCTION:
                yield from _of_production(store)
            elif source == FEEDBACK:
                for verdict in FeedbackStore(store).negative():
                    if verdict.question:
                        yield RealQuestion(
                            text=verdict.question, source=f"feedback {verdict.id}", disliked=True
                        )
            else:
                try:
                    info = store.find_run(source)
                except UnknownNameError:
                    raise UnknownNameError(
                        f"{source}: no such file, and no run of this name; a source is a file, a folder, a database, a run, "
                        "production or feedback"
                    ) from None
                for trial in stored_trials(store, info, list(store.questions(info.question_set_hash))):
                    yield from _of_trial(trial, f"run {info.id}", has_reply=True)


def _is_file(path: Path) -> bool:
    return path.exists() or any(mark in str(path) for mark in "*?[")


def _of_trial(trial: Trial, where: str, *, has_reply: bool) -> Iterator[RealQuestion]:
    """Each turn with its reply."""
    question = trial.question
    turns: Sequence[Question] = question.turns or (question,)
    columns = {} if trial.origin is None else trial.origin.columns or {}
    disliked = any(_is_negative(columns.get(name)) for name in _VERDICTS)
    # Beside a reply the column may count anything.
    counts = [] if has_reply else [columns[name] for name in _COUNTS if name in columns]
    for number, turn in enumerate(turns):
        reply = trial.replies[number] if has_reply and number < len(trial.replies) else None
        yield RealQuestion(
            text=turn.question,
            opening=turns[0].question if number else "",
            count=_count(counts[0]) if counts else 1,
            source=where,
            reply=reply,
            disliked=disliked,
        )


def _count(value: object) -> int:
    """How often a question was asked; once, unless the cell is a positive whole number."""
    text = str(value).strip()
    return max(1, int(text)) if text.isdecimal() else 1


def _is_negative(verdict: object) -> bool:
    with suppress(UsageError, ValueError, TypeError):
        return read_value(verdict) < POSITIVE
    return False


def _of_production(store: SqlStore) -> Iterator[RealQuestion]:
    replies, disliked = ProductionReplies(store), set()
    for verdict in FeedbackStore(store).negative():
        disliked.add(verdict.production_id)
    for item in replies.every(ProductionFilter()):
        yield RealQuestion(
            text=item.question,
            source=f"production {item.id}",
            reply=item.reply,
            disliked=item.id in disliked,
            category=item.category or "",
        )


# Facet → the column that replies are grouped by.
_FACETS = {"version": "version", "model": "model", "category": "category", "error": "error_kind"}
# How a facet of metadata begins: metadata.persona.
METADATA = "metadata."
# An absurd value from a sender would spoil a sum.
_MOST = 1e12


class ReplyFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Replies of a day, a value of a facet, or both, in figures."""

    day: str = ""
    value: str = ""
    replies: int
    errors: int
    # Replies that are errors ÷ all.
    error_rate: float | None
    error_interval: Interval | None
    # Replies that the golden set grades, and their mean score.
    graded: int
    score: float | None
    score_interval: Interval | None
    # Verdicts of users, replies that have one, and positive verdicts ÷ all.
    verdicts: int
    judged: int
    satisfaction: float | None
    # Several verdicts on one reply count as one.
    satisfaction_interval: Interval | None
    # Median time, and the time that 95% of replies took at most.
    p50: float | None
    p95: float | None
    # Mean cost of a reply.
    cost: float | None


class _Sums(msgspec.Struct, kw_only=True):
    """What figures are computed from."""

    replies: int = 0
    errors: int = 0
    graded: int = 0
    score: float = 0.0
    score_squares: float = 0.0
    lowest: float = 1.0
    highest: float = 0.0
    # Replies whose cost is known.
    costed: int = 0
    cost: float = 0.0
    latencies: list[float] = []
    verdicts: int = 0
    positive: int = 0
    judged: int = 0

    def add(self, other: "_Sums") -> None:
        self.replies += other.replies
        self.errors += other.errors
        self.graded += other.graded
        self.score += other.score
        self.score_squares += other.score_squares
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        self.costed += other.costed
        self.cost += other.cost
        self.latencies += other.latencies
        self.verdicts += other.verdicts
        self.positive += other.positive
        self.judged += other.judged

    def figures(self, day: str = "", value: str = "") -> ReplyFigures:
        n = self.graded
        mean = self.score / n if n else 0.0
        p50, p95 = percentiles(self.latencies, (50, 95)) if self.latencies else (None, None)
        rate = self.positive / self.verdicts if self.verdicts else None
        return ReplyFigures(
            day=day,
            value=value,
            replies=self.replies,
            errors=self.errors,
            error_rate=self.errors / self.replies if self.replies else None,
            error_interval=wilson_interval(self.errors, self.replies) if self.replies else None,
            graded=n,
            score=mean if n else None,
            score_interval=interval_of_moments(
                mean,
                n,
                units=n,
                squares=max(self.score_squares - n * mean * mean, 0.0),
                size_squares=float(n),
                farthest=max(self.highest - mean, mean - self.lowest),
            )
            if n
            else None,
            verdicts=self.verdicts,
            judged=self.judged,
            satisfaction=rate,
            satisfaction_interval=None
            if rate is None
            else wilson_interval(round(self.judged * rate), self.judged),
            p50=p50,
            p95=p95,
            cost=self.cost / self.costed if self.costed else None,
        )


class ProductionSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of replies that meet a filter."""

    total: ReplyFigures
    # Kind of error → number.
    errors: dict[str, int]
    # By value of the facet, most replies first; "" for replies without a value.
    groups: tuple[ReplyFigures, ...]
    # By day in the time zone of this machine, and value.
    days: tuple[ReplyFigures, ...]


def production_series(store: SqlStore, criteria: ProductionFilter, by: str | None = None) -> ProductionSeries:
    """The figures of all replies that meet a filter, by day and the facet `by`."""
    column = _column(by)
    where = ProductionReplies(store).filter_condition(criteria)
    by_time: dict[tuple[str, str], _Sums] = defaultdict(_Sums)
    errors: dict[str, int] = {}
    value_of = f"COALESCE(p.{column}, '')" if column else "''"
    # An hour, or ten minutes: in some zones a day begins at a half hour of UTC.
    offset = datetime.now().astimezone().utcoffset() or timedelta()
    group = f"SUBSTR(p.created_at, 1, {15 if offset % timedelta(hours=1) else 13}), {value_of}"
    with store.database.reading() as connection:
        for time, value, kind, *sums in connection.run(*_counts(group, where)):
            cell = by_time[time, value]
            replies, graded, score, squares, lowest, highest, costed, cost = sums
            if kind:
                errors[kind] = errors.get(kind, 0) + replies
                cell.errors += replies
            cell.replies += replies
            cell.graded += graded
            cell.score += score
            cell.score_squares += squares
            cell.lowest, cell.highest = min(cell.lowest, lowest), max(cell.highest, highest)
            cell.costed += costed
            cell.cost += cost
        timed = sql(
            "SELECT {group}, p.latency_ms FROM production_replies p WHERE p.latency_ms < ? AND {where}",
            _MOST,
            group=group,
            where=where,
        )
        for time, value, latency_ms in connection.run(*timed):
            by_time[time, value].latencies.append(latency_ms)
        for time, value, verdicts, positive, judged in connection.run(*_verdicts(group, where)):
            cell = by_time[time, value]
            cell.verdicts, cell.positive, cell.judged = verdicts, int(positive), judged
    return _by_day(by_time, errors, by)


def _column(by: str | None) -> str | None:
    if by is None:
        return None
    if by.startswith(METADATA):
        return "metadata"
    if by not in _FACETS:
        raise UsageError(f"by {by[:60]!r}: use {', '.join(_FACETS)} or {METADATA}NAME")
    return _FACETS[by]


def _counts(group: str, where: Sql) -> Sql:
    return sql(
        "SELECT {group}, COALESCE(p.error_kind, ''), COUNT(*), COUNT(p.score), COALESCE(SUM(p.score), 0.0), "
        "COALESCE(SUM(p.score * p.score), 0.0), COALESCE(MIN(p.score), 1.0), COALESCE(MAX(p.score), 0.0), "
        "COUNT(p.cost), COALESCE(SUM(p.cost), 0.0) FROM production_replies p WHERE {where} GROUP BY 1, 2, 3",
        group=group,
        where=where,
    )


def _verdicts(group: str, where: Sql) -> Sql:
    return sql(
        "SELECT {group}, COUNT(*), SUM(CASE WHEN f.value >= ? THEN 1 ELSE 0 END), COUNT(DISTINCT f.production_id) "
        "FROM feedback f JOIN production_replies p ON p.id = f.production_id "
        "WHERE f.source <> 'review' AND {where} GROUP BY 1, 2",
        POSITIVE,
        group=group,
        where=where,
    )


def _by_day(
    by_time: dict[tuple[str, str], _Sums], errors: dict[str, int], by: str | None
) -> ProductionSeries:
    """The figures of hours or parts of one, which are in UTC, by day in the time zone of this machine."""
    total = _Sums()
    groups: dict[str, _Sums] = defaultdict(_Sums)
    cells: dict[tuple[str, str], _Sums] = defaultdict(_Sums)
    days: dict[str, str] = {}
    for (time, value), cell in by_time.items():
        day = days.setdefault(
            time, local_time(f"{time}{'0:00' if len(time) > 13 else ':00:00'}+00:00", zone=False)[:10]
        )
        named = _metadata_value(value, by) if by and by.startswith(METADATA) else value
        for sums in (cells[day, named], groups[named], total):
            sums.add(cell)
    most = sorted(groups.items(), key=lambda item: (-item[1].replies, item[0]))
    return ProductionSeries(
        total=total.figures(),
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        groups=tuple(sums.figures(value=value) for value, sums in most) if by else (),
        days=tuple(sums.figures(day, value) for (day, value), sums in sorted(cells.items())),
    )


def _metadata_value(text: str, by: str) -> str:
    """The value of `metadata.NAME` in the text of a column."""
    begin = f"{by.removeprefix(METADATA)}="
    return next((line.removeprefix(begin) for line in text.split("\n") if line.startswith(begin)), "")


# The newest replies, whose metadata filters offer.
_NEWEST = 2_000
_MOST_VALUES = 30


def metadata_values(store: SqlStore) -> dict[str, tuple[str, ...]]:
    """Name → values of metadata in the newest replies; a name with very many values, such as a user's id, has none."""
    query = "SELECT metadata FROM production_replies ORDER BY created_at DESC LIMIT ?"
    found: dict[str, set[str]] = {}
    with store.database.reading() as connection:
        for (text,) in connection.run(query, (_NEWEST,)):
            for line in text.split("\n"):
                name, equals, value = line.partition("=")
                if equals:
                    found.setdefault(name, set()).add(value)
    return {
        name: tuple(sorted(values)) if len(values) <= _MOST_VALUES else ()
        for name, values in sorted(found.items())
    }
