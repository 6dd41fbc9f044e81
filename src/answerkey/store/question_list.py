"""QuestionList: a run's questions page by page, filtered and sorted in the database; no run is ever read whole."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from answerkey.errors import UnknownNameError
from answerkey.model.feedback import ReplyKey
from answerkey.model.question_figures import QuestionRow
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, grade, round_score
from answerkey.store.database import EPSILON, Connection, Database, Where, signs
from answerkey.store.feedback_book import ShortText
from answerkey.store.sql import RESULTS, SqlStore, read_result
from answerkey.store.stored_info import read_run_info
from answerkey.store.writing import OF_RUN, of_run

__all__ = ["Facets", "HistoryPoint", "QuestionList", "RowFilter", "Sort", "words_condition"]

Sort = Literal["worst", "best", "slowest", "order", "costliest"]

_BOUNDS = {"A": (0.9, 9.0), "B": (0.8, 0.9), "C": (0.7, 0.8), "D": (0.6, 0.7), "F": (-9.0, 0.6)}
_ORDERS: dict[Sort, str] = {
    "worst": "COALESCE(score, -1.0), position",
    "best": "COALESCE(score, -1.0) DESC, position",
    "slowest": "COALESCE(latency_ms, -1.0) DESC, position",
    "costliest": "COALESCE(cost, -1.0) DESC, position",
    "order": "position",
}
# A question over its trials; asked once, there is nothing to add up.
_ONCE = "c.position, c.score, 1 AS trials, c.passed AS trials_passed, c.error_kind, c.latency_ms, c.cost"
_OFTEN = (
    "c.position, AVG(c.score) AS score, COUNT(*) AS trials, SUM(c.passed) AS trials_passed, "
    "MAX(c.error_kind) AS error_kind, MAX(c.latency_ms) AS latency_ms, SUM(c.cost) AS cost"
)
_WITH_QUESTION = " JOIN questions q ON q.key = c.question"
_WITH_REPLIES = " JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target AND r.trial = c.trial"


class RowFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which of a run's questions are wanted, and in what order."""

    category: ShortText | None = None
    grade: Literal["A", "B", "C", "D", "F"] | None = None
    result: Literal["failed", "passed", "lost", "error"] | None = None
    # A kind of error.
    error: ShortText | None = None
    # A tool that was called.
    tool: ShortText | None = None
    # Words in the question or the reply.
    text: ShortText | None = None
    sort: Sort = "worst"


class Facets(msgspec.Struct, frozen=True):
    """What a run's questions can be filtered by, with how many there are of each."""

    categories: dict[str, int]
    errors: dict[str, int]


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One question in one run."""

    run_id: str
    run_name: str
    created_at: str
    target: str
    score: float | None
    grade: str | None
    passed: bool
    trials: int
    lowest: float | None
    highest: float | None
    error: str | None
    latency_ms: float | None


def words_condition(
    database: Database, text: str, question: str = "q", replies: str = "r"
) -> tuple[str, ...]:
    """A condition with its values: whether words are in a question or in the replies to it."""
    asked, wanted = database.contains(f"COALESCE({question}.folded, {question}.asked)", text)
    said, _ = database.contains(f"COALESCE({replies}.folded, {replies}.text)", text)
    return f"{asked} OR {said}", wanted, wanted


class QuestionList:
    """Reads what lists of questions show."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def rows(
        self, info: RunInfo, wanted: RowFilter, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[QuestionRow], int]:
        """A page of a run's questions, and how many match in all."""
        grouped, values = self._grouped(info, wanted)
        # Which ones first, and all about those afterwards: sorting narrow rows takes a tenth of sorting wide ones.
        # How many there are in all comes along where texts are searched, which are long: they are read once for both.
        searched = bool(wanted.text or wanted.tool)
        counted = "COUNT(*) OVER ()" if searched else "0"
        query = f"SELECT position, {counted} FROM ({grouped}) AS g ORDER BY {_ORDERS[wanted.sort]} LIMIT ? OFFSET ?"
        with self._database.reading() as connection:
            chosen = connection.run(query, (*values, limit, offset)).fetchall()
            positions = [position for position, _ in chosen]
            total = chosen[0][1] if searched and chosen else None
            if total is None:
                total = connection.value(f"SELECT COUNT(*) FROM ({grouped}) AS g", values)
            found = self._chosen(connection, info, positions)
        return [found[position] for position in positions if position in found], int(total)

    def _chosen(
        self, connection: Connection, info: RunInfo, positions: Sequence[int]
    ) -> dict[int, QuestionRow]:
        if not positions:
            return {}
        every, values = self._grouped(info, RowFilter(), positions)
        figures = connection.run(every, values).fetchall()
        query = f"{RESULTS} AND c.position IN ({signs(positions)}) ORDER BY c.position, c.trial"
        worst: dict[int, Scorecard] = {}
        first: dict[int, Any] = {}
        for row in connection.run(query, (*of_run(info), *positions)):
            trial = read_result(row)
            known = worst.get(trial.position)
            if known is None or _rank(trial.scorecard.total) < _rank(known.total):
                worst[trial.position] = trial.scorecard
            first.setdefault(trial.position, trial)
        found = {}
        for position, score, trials, trials_passed, error_kind, latency_ms, cost in figures:
            if position not in first:
                continue
            asked, score = first[position], None if score is None else round_score(score)
            found[position] = QuestionRow(
                id=asked.question.id,
                position=position,
                question=asked.question.question[:300],
                category=asked.question.category,
                score=score,
                grade=None if score is None else grade(score),
                passed=score is not None and score >= info.pass_mark,
                trials=trials,
                trials_passed=int(trials_passed),
                error=error_kind,
                latency_ms=latency_ms,
                cost=cost,
                tools=tuple(dict.fromkeys(name for reply in asked.replies for name in reply.tools_used)),
                scorecard=worst[position],
            )
        return found

    def _grouped(
        self, info: RunInfo, wanted: RowFilter, positions: Sequence[int] | None = None
    ) -> tuple[str, list[Any]]:
        """A query for the figures of a run's questions, with its values."""
        once = info.repeat == 1
        where = Where(OF_RUN, *of_run(info))
        if positions is not None:
            where.add(f"c.position IN ({signs(positions)})", *positions)
        trials = self._of_trials(wanted)
        joined = ""
        if wanted.category is not None or wanted.text or wanted.tool:
            joined = _WITH_QUESTION + (_WITH_REPLIES if wanted.text or wanted.tool else "")
        if trials and once:
            where.add(str(trials), *trials.values)
        elif trials:
            # A question is wanted if one of its trials is, and its figures are still those of all of them.
            some = f"SELECT c.position FROM scorecards c{joined} WHERE {OF_RUN} AND {trials}"
            where.add(f"c.position IN ({some})", *of_run(info), *trials.values)
            joined = ""
        scored = _scored("c.score" if once else "AVG(c.score)", wanted, info)
        if once and scored:
            where.add(str(scored), *scored.values)
        query = f"SELECT {_ONCE if once else _OFTEN} FROM scorecards c{joined} WHERE {where}"
        if once:
            return query, where.values
        return f"{query} GROUP BY c.position HAVING {scored}", [*where.values, *scored.values]

    def _of_trials(self, wanted: RowFilter) -> Where:
        """What single trials are filtered by."""
        where = Where()
        if wanted.text:
            where.add(*words_condition(self._database, wanted.text))
        if wanted.tool:
            where.add(*self._database.has_tool("r.tools", wanted.tool))
        if wanted.category is not None:
            where.add("q.category = ?", wanted.category)
        if wanted.error is not None:
            where.add("c.error_kind = ?", wanted.error)
        if wanted.result == "error":
            where.add("c.error_kind IS NOT NULL")
        return where

    def facets(self, info: RunInfo) -> Facets:
        """The categories and error kinds of a run."""
        with self._database.reading() as connection:
            categories = connection.run(
                f"SELECT q.category, COUNT(DISTINCT c.position) FROM scorecards c{_WITH_QUESTION} WHERE {OF_RUN} "
                "GROUP BY q.category ORDER BY q.category LIMIT 500",
                of_run(info),
            ).fetchall()
            errors = connection.run(
                f"SELECT c.error_kind, COUNT(*) FROM scorecards c WHERE {OF_RUN} AND c.error_kind IS NOT NULL "
                "GROUP BY c.error_kind ORDER BY COUNT(*) DESC",
                of_run(info),
            ).fetchall()
        return Facets(dict(categories), dict(errors))

    def distribution(self, info: RunInfo) -> list[int]:
        """Questions by score: ten equal steps, the last one includes 1.0."""
        score = "c.score" if info.repeat == 1 else "AVG(c.score)"
        gathered = "" if info.repeat == 1 else "GROUP BY c.position"
        steps = " ".join(f"WHEN score < {edge / 10 - EPSILON!r} THEN {edge - 1}" for edge in range(1, 10))
        query = (
            f"SELECT step, COUNT(*) FROM (SELECT CASE {steps} ELSE 9 END AS step FROM (SELECT {score} AS score "
            f"FROM scorecards c WHERE {OF_RUN} AND c.score IS NOT NULL {gathered}) AS s) AS g GROUP BY step"
        )
        counts = [0] * 10
        with self._database.reading() as connection:
            for step, number in connection.run(query, of_run(info)):
                counts[step] = number
        return counts

    def reply_key(self, info: RunInfo, question_id: str, trial: int) -> ReplyKey:
        """The key of one reply of a run."""
        query = (
            f"SELECT q.ask_hash, t.name FROM scorecards c{_WITH_QUESTION} JOIN names t ON t.key = c.target "
            f"WHERE {OF_RUN} AND q.id = ? AND c.trial = ?"
        )
        with self._database.reading() as connection:
            row = connection.run(query, (*of_run(info), question_id.replace("\0", ""), trial)).fetchone()
        if row is None:
            raise UnknownNameError(
                f"run {info.id} has no reply to a question {question_id[:120]!r} in trial {trial}; "
                f"`answerkey show {info.id}` lists its questions"
            )
        return ReplyKey(info.id, row[0].hex(), trial, row[1])

    def history(self, question_id: str, *, limit: int = 50) -> list[HistoryPoint]:
        """The same question over runs, newest first, each under the run's current scoring."""
        query = (
            "SELECT runs.info, AVG(c.score), COUNT(*), MIN(c.score), MAX(c.score), MAX(c.error_kind), "
            "MAX(c.latency_ms) FROM questions q JOIN scorecards c ON c.question = q.key "
            "JOIN runs ON runs.key = c.run AND runs.scoring = c.scoring WHERE q.id = ? "
            "GROUP BY runs.key, runs.created_at, runs.id, runs.info "
            "ORDER BY runs.created_at DESC, runs.id DESC LIMIT ?"
        )
        with self._database.reading() as connection:
            rows = connection.run(query, (question_id.replace("\0", ""), limit)).fetchall()
        points = []
        for payload, mean, trials, lowest, highest, error_kind, latency_ms in rows:
            info, score = read_run_info(payload), None if mean is None else round_score(mean)
            points.append(
                HistoryPoint(
                    run_id=info.id,
                    run_name=info.name,
                    created_at=info.created_at,
                    target=info.target,
                    score=score,
                    grade=None if score is None else grade(score),
                    passed=score is not None and score >= info.pass_mark,
                    trials=trials,
                    lowest=lowest,
                    highest=highest,
                    error=error_kind,
                    latency_ms=latency_ms,
                )
            )
        return points


def _scored(score: str, wanted: RowFilter, info: RunInfo) -> Where:
    """What questions are filtered by, over their trials."""
    where = Where()
    if wanted.grade is not None:
        low, high = _BOUNDS[wanted.grade]
        where.add(f"{score} >= ? AND {score} < ?", low - EPSILON, high - EPSILON)
    if wanted.result == "failed":
        where.add(f"{score} IS NULL OR {score} < ?", info.pass_mark - EPSILON)
    elif wanted.result == "passed":
        where.add(f"{score} >= ?", info.pass_mark - EPSILON)
    elif wanted.result == "lost":
        where.add(f"{score} IS NULL OR {score} < ?", 1 - EPSILON)
    return where


def _rank(score: float | None) -> float:
    return -1.0 if score is None else score
