"""Pairs: the questions of two or more runs side by side, paired by id, filtered and sorted in the database."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, round_score
from answerkey.model.trial import Trial
from answerkey.store.database import EPSILON, Connection, Row, Where, signs
from answerkey.store.row_filter import words_condition
from answerkey.store.sql import RESULTS, SqlStore, read_result
from answerkey.store.writing import OF_RUN, of_run

__all__ = ["PairRow", "PairSort", "Pairs", "Show"]

Show = Literal["regressions", "improvements", "different", "all"]
PairSort = Literal["change", "-change", "position", "-position"]

_QUESTION_SHOWN = 300


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question in all of the runs; the first one is the base."""

    id: str
    category: str
    question: str
    scores: tuple[float | None, ...]
    # What each run replied last, in its first trial; None: a null reply.
    replies: tuple[str | None, ...]
    # Of each run's first trial; None: it has none.
    cards: tuple[Scorecard | None, ...]
    latencies_ms: tuple[float | None, ...]


class Pairs:
    """The base and the candidates."""

    def __init__(self, store: SqlStore, base: RunInfo, candidates: Sequence[RunInfo]) -> None:
        self._database = store.database
        self._infos = (base, *candidates)

    def page(
        self,
        *,
        show: Show = "all",
        sort: PairSort = "change",
        text: str | None = None,
        category: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> tuple[list[PairRow], int]:
        """A page of questions that all runs have, and how many match."""
        query, values = self._joined(show, sort, text, category)
        with self._database.reading() as connection:
            rows = connection.run(f"{query} LIMIT ? OFFSET ?", (*values, limit, offset)).fetchall()
            trials = [self._first_trials(connection, number, rows) for number in range(len(self._infos))]
        return [_pair(row, trials) for row in rows], int(rows[0][0]) if rows else 0

    def _joined(
        self, show: Show, sort: PairSort, text: str | None, category: str | None
    ) -> tuple[str, list[Any]]:
        """Rows of: how many match, then score and position in each run."""
        # Runs of the same set are paired by the place in it, which is the same as by id and faster.
        same_set = len({info.question_set_hash for info in self._infos}) == 1
        values: list[Any] = []
        tables = ""
        for number, info in enumerate(self._infos):
            paired = "position" if same_set else "id"
            on = f" ON g{number}.{paired} = g0.{paired}" if number else ""
            tables += (
                f"{' JOIN ' if number else ''}({_grouped(info, with_ids=not same_set)}) AS g{number}{on}"
            )
            values += of_run(info)
        where = Where()
        changes = [
            f"(COALESCE(g{number}.score, 0.0) - COALESCE(g0.score, 0.0))"
            for number in range(1, len(self._infos))
        ]
        if show == "regressions":
            where.add(" OR ".join(f"{change} < {-EPSILON!r}" for change in changes))
        elif show == "improvements":
            where.add(" OR ".join(f"{change} > {EPSILON!r}" for change in changes))
        elif show == "different":
            differ = [f"ABS({change}) > {EPSILON!r}" for change in changes]
            differ += [f"g{n}.reply_digest != g0.reply_digest" for n in range(1, len(self._infos))]
            where.add(" OR ".join(differ))
        if category is not None:
            in_category = (
                "SELECT c.position FROM scorecards c JOIN questions q ON q.key = c.question "
                f"WHERE {OF_RUN} AND q.category = ?"
            )
            where.add(f"g0.position IN ({in_category})", *of_run(self._infos[0]), category)
        if text:
            found: list[str] = []
            for number, info in enumerate(self._infos):
                condition, *wanted = words_condition(self._database, text)
                found.append(
                    f"g{number}.position IN (SELECT c.position FROM scorecards c JOIN questions q ON q.key = c.question "
                    "JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target "
                    f"AND r.trial = c.trial WHERE {OF_RUN} AND c.trial = 1 AND ({condition}))"
                )
                where.values += [*of_run(info), *wanted]
            where.add(" OR ".join(found))
        order = {
            "change": f"{changes[0]}, g0.position",
            "-change": f"{changes[0]} DESC, g0.position",
            "position": "g0.position",
            "-position": "g0.position DESC",
        }
        columns = ", ".join(f"g{number}.score, g{number}.position" for number in range(len(self._infos)))
        query = f"SELECT COUNT(*) OVER (), {columns} FROM {tables} WHERE {where} ORDER BY {order[sort]}"
        return query, [*values, *where.values]

    def _first_trials(self, connection: Connection, number: int, rows: Sequence[Row]) -> dict[int, Trial]:
        """Position → the first trial in one of the runs, for the questions of one page."""
        positions = [row[2 * number + 2] for row in rows]
        query = f"{RESULTS} AND c.trial = 1 AND c.position IN ({signs(positions)})"
        found = connection.run(query, (*of_run(self._infos[number]), *positions))
        return {trial.position: trial for trial in map(read_result, found)}


def _pair(row: Row, trials: Sequence[dict[int, Trial]]) -> PairRow:
    scores, positions = row[1::2], row[2::2]
    found = [known.get(position) for known, position in zip(trials, positions, strict=True)]
    asked = next((trial.question for trial in found if trial is not None), None)
    return PairRow(
        id="" if asked is None else asked.id,
        category="" if asked is None else asked.category,
        question="" if asked is None else asked.question[:_QUESTION_SHOWN],
        scores=tuple(None if score is None else round_score(score) for score in scores),
        replies=tuple(None if trial is None else trial.reply.text for trial in found),
        cards=tuple(None if trial is None else trial.scorecard for trial in found),
        latencies_ms=tuple(None if trial is None else trial.latency_ms for trial in found),
    )


def _grouped(info: RunInfo, *, with_ids: bool) -> str:
    """The questions of a run, over their trials; asked once, the table is read in its own order."""
    once = info.repeat == 1
    score, digest = ("c.score", "c.reply_digest") if once else ("AVG(c.score)", "MIN(c.reply_digest)")
    columns = f"c.position, {score} AS score, {digest} AS reply_digest"
    joined = " JOIN questions q ON q.key = c.question" if with_ids else ""
    if with_ids:
        columns += ", q.id" if once else ", MIN(q.id) AS id"
    gathered = "" if once else " GROUP BY c.position"
    return f"SELECT {columns} FROM scorecards c{joined} WHERE {OF_RUN}{gathered}"
