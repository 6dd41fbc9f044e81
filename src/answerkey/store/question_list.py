"""QuestionList: a run's questions page by page, filtered and sorted in the database; no run is ever read whole."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import fsum, isnan
from typing import Any

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.feedback import ReplyKey
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import grade, round_score
from answerkey.model.summary import QuestionRow
from answerkey.model.trial import Trial
from answerkey.store.database import EPSILON, Connection, Where, signs
from answerkey.store.packing import read_measures, read_run_info, unpack_values
from answerkey.store.row_filter import COUNTED, RowFilter, of_questions, of_trials
from answerkey.store.sql import RESULTS, SqlStore, read_result
from answerkey.store.writing import OF_RUN, of_run

_WITH_QUESTION = " JOIN questions q ON q.key = c.question"
_WITH_REPLIES = " JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target AND r.trial = c.trial"
# Questions whose rows are read at a time, where all are wanted.
_CHUNK = 500
# What a scorecard has in columns of its own.
_PLAIN = ("latency_ms", "cost")


class Facets(msgspec.Struct, frozen=True):
    """What a run's questions can be filtered by, with how many there are of each."""

    categories: dict[str, int]
    errors: dict[str, int]
    personas: dict[str, int] = {}
    tags: dict[str, int] = {}


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


class QuestionList:
    """Reads what lists of questions show."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def rows(
        self, info: RunInfo, wanted: RowFilter, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[QuestionRow], int]:
        """A page of a run's questions, and how many match in all."""
        with self._database.reading() as connection:
            if wanted.measures:
                every = self._by_measures(connection, info, wanted)
                positions, total = every[offset : offset + limit], len(every)
            else:
                positions, total = self._sorted(connection, info, wanted, limit, offset)
            found = self._chosen(connection, info, positions)
        return [found[position] for position in positions if position in found], total

    def every_row(self, info: RunInfo, wanted: RowFilter) -> Iterator[QuestionRow]:
        """All that match, in their order; never all of them in memory."""
        with self._database.reading() as connection:
            if wanted.measures:
                positions = self._by_measures(connection, info, wanted)
            else:
                positions, _ = self._sorted(connection, info, wanted, 2**31 - 1, 0)
        for start in range(0, len(positions), _CHUNK):
            part = positions[start : start + _CHUNK]
            with self._database.reading() as connection:
                found = self._chosen(connection, info, part)
            yield from (found[position] for position in part if position in found)

    def _sorted(
        self, connection: Connection, info: RunInfo, wanted: RowFilter, limit: int, offset: int
    ) -> tuple[list[int], int]:
        """The positions of a page's questions, and how many there are in all."""
        grouped, values = self._grouped(info, wanted)
        # Which ones first, and all about those afterwards: sorting narrow rows takes a tenth of sorting wide ones.
        # How many there are in all comes along where texts are searched, which are long: they are read once for both.
        searched = bool(wanted.text or wanted.tool)
        counted = "COUNT(*) OVER ()" if searched else "0"
        # What has no value is the worst: first where the smallest are, and last where the largest are.
        _, descending = wanted.order
        order = (
            "sorted IS NULL, sorted DESC, position" if descending else "sorted IS NOT NULL, sorted, position"
        )
        query = f"SELECT position, {counted} FROM ({grouped}) AS g ORDER BY {order} LIMIT ? OFFSET ?"
        chosen = connection.run(query, (*values, limit, offset)).fetchall()
        total = chosen[0][1] if searched and chosen else None
        if total is None:
            total = connection.value(f"SELECT COUNT(*) FROM ({grouped}) AS g", values)
        return [position for position, _ in chosen], int(total)

    def _by_measures(self, connection: Connection, info: RunInfo, wanted: RowFilter) -> list[int]:
        """The positions of all questions that match, where components or metrics decide which and in what order."""
        grouped, values = self._grouped(info, wanted)
        sorted_by = dict(connection.run(f"SELECT position, sorted FROM ({grouped}) AS g", values).fetchall())
        means = measure_means(connection, info, wanted.measures)
        for name in wanted.measures:
            if sorted_by and name not in means:
                raise UsageError(f"this run has no measure {name[:60]!r} to sort or filter by")
        limits = [one for one in wanted.ranges if one.name in wanted.measures]
        kept = [
            position
            for position in sorted_by
            if all(one.holds(means.get(one.name, {}).get(position)) for one in limits)
        ]
        name, descending = wanted.order
        by = means.get(name, sorted_by)
        known = sorted(
            (position for position in kept if by.get(position) is not None),
            key=lambda position: (-by[position], position) if descending else (by[position], position),
        )
        unknown = sorted(position for position in kept if by.get(position) is None)
        return known + unknown if descending else unknown + known

    def _chosen(
        self, connection: Connection, info: RunInfo, positions: Sequence[int]
    ) -> dict[int, QuestionRow]:
        if not positions:
            return {}
        query = f"{RESULTS} AND c.position IN ({signs(positions)}) ORDER BY c.position, c.trial"
        trials: dict[int, list[Trial]] = {}
        for row in connection.run(query, (*of_run(info), *positions)):
            trial = read_result(row)
            trials.setdefault(trial.position, []).append(trial)
        return {position: _row(info, asked) for position, asked in trials.items()}

    def _grouped(self, info: RunInfo, wanted: RowFilter) -> tuple[str, list[Any]]:
        """A query for the positions of a run's questions and what they are sorted by, with its values."""
        once = _asked_once(info)
        where = Where(OF_RUN, *of_run(info))
        trials = of_trials(wanted, self._database)
        searched = bool(wanted.text or wanted.tool)
        name, _ = wanted.order
        sorted_by = COUNTED.get(name, "c.position")
        by_question = _WITH_QUESTION if name in ("id", "category") else ""
        joined = by_question
        if searched or wanted.category is not None or wanted.persona is not None or wanted.tag is not None:
            joined = _WITH_QUESTION + (_WITH_REPLIES if searched else "")
        if trials and once:
            where.add(str(trials), *trials.values)
        elif trials:
            # A question is wanted if one of its trials is, and its figures are still those of all of them.
            some = f"SELECT c.position FROM scorecards c{joined} WHERE {OF_RUN} AND {trials}"
            where.add(f"c.position IN ({some})", *of_run(info), *trials.values)
            joined = by_question
        # Asked once, there is nothing to add up.
        value = (lambda name: _of_one(COUNTED[name])) if once else COUNTED.__getitem__
        scored = of_questions(wanted, info, value)
        if once:
            where.add(str(scored), *scored.values)
        sorted_by = _of_one(sorted_by) if once else sorted_by
        query = f"SELECT c.position, {sorted_by} AS sorted FROM scorecards c{joined} WHERE {where}"
        if once:
            return query, where.values
        return f"{query} GROUP BY c.position HAVING {scored}", [*where.values, *scored.values]

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
        once = _asked_once(info)
        score, gathered = ("c.score", "") if once else ("AVG(c.score)", "GROUP BY c.position")
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


def _of_one(total: str) -> str:
    """What adds up trials, of a single one."""
    return "0.0" if " - " in total else re.sub(r"^[A-Z]+\((.*)\)$", r"\1", total)


def _row(info: RunInfo, trials: Sequence[Trial]) -> QuestionRow:
    asked, cards = trials[0], [trial.scorecard for trial in trials]
    scores = [card.total for card in cards if card.total is not None]
    score = round_score(fsum(scores) / len(scores)) if scores else None
    measured: dict[str, list[float | None]] = {}
    for card in cards:
        for name, part in card.components.items():
            measured.setdefault(name, []).append(part.value)
        for name, value in card.metrics.items():
            measured.setdefault(name, []).append(value)
    latencies = [trial.latency_ms for trial in trials if trial.latency_ms is not None]
    costs = [reply.usage.cost for trial in trials for reply in trial.replies if reply.usage is not None]
    known_costs = [cost for cost in costs if cost is not None]
    return QuestionRow(
        id=asked.question.id,
        position=asked.position,
        question=asked.question.question[:300],
        category=asked.question.category,
        persona=asked.question.persona,
        tags=asked.question.tags,
        score=score,
        grade=None if score is None else grade(score),
        passed=score is not None and score >= info.pass_mark,
        trials=len(trials),
        trials_passed=sum(card.passed for card in cards),
        lowest=min(scores, default=None),
        highest=max(scores, default=None),
        error=next((card.error.kind for card in cards if card.error is not None), None),
        latency_ms=max(latencies, default=None),
        cost=fsum(known_costs) if known_costs else None,
        tools=tuple(dict.fromkeys(name for reply in asked.replies for name in reply.tools_used)),
        measures={name: mean_of(values) for name, values in measured.items()},
        reply=(asked.replies[-1].text or "")[:300] if asked.replies else "",
        scorecard=min(cards, key=lambda card: -1.0 if card.total is None else card.total),
    )


def _asked_once(info: RunInfo) -> bool:
    # A log's own number of repeats may be wrong: earlier versions did not count the replies of each question.
    return info.repeat == 1 and not info.is_log


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of those that there are."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def measure_means(
    connection: Connection,
    info: RunInfo,
    names: Collection[str] | None = None,
    positions: Sequence[int] | None = None,
) -> dict[str, dict[int, float]]:
    """What is measured of a run's questions, out of packed columns that the database cannot look into.

    Component, metric, latency_ms or cost → position → its mean over the trials; a name that no trial has is left out.
    Of all names unless some are given, and of all questions unless some are.
    """
    chosen = "" if positions is None else f" AND c.position IN ({signs(positions)})"
    query = (
        "SELECT c.position, m.name, c.measured, c.latency_ms, c.cost FROM scorecards c "
        f"JOIN names m ON m.key = c.measures WHERE {OF_RUN}{chosen} ORDER BY c.position"
    )
    given: dict[str, dict[int, list[float]]] = {}
    places: dict[str, list[tuple[str, int]]] = {}
    for position, measures, measured, *plain in connection.run(query, (*of_run(info), *(positions or ()))):
        if measures not in places:
            read = read_measures(measures)
            columns = (*read.components, *read.metrics, *_PLAIN)
            places[measures] = [
                (name, place) for place, name in enumerate(columns) if names is None or name in names
            ]
        values = (*unpack_values(measured), *plain)
        for name, place in places[measures]:
            of_name = given.setdefault(name, {})
            if values[place] is not None and not isnan(values[place]):
                of_name.setdefault(position, []).append(values[place])
    return {
        name: {position: fsum(values) / len(values) for position, values in found.items()}
        for name, found in given.items()
    }
