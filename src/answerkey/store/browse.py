"""Browser: pages of runs and of a run's questions, filtered and sorted in the database; no run is ever read whole."""

from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, and_, case, func, literal, or_, select

from answerkey.errors import UnknownNameError
from answerkey.feedback import ReplyKey
from answerkey.question import Question
from answerkey.reply import Reply
from answerkey.run import RunInfo
from answerkey.scorecard import Scorecard, grade, round_score
from answerkey.store import schema
from answerkey.store.listing import (
    Facets,
    Figures,
    HistoryPoint,
    Progress,
    QuestionRow,
    RowFilter,
    RunRow,
    Sort,
)
from answerkey.store.sql import SqlStore
from answerkey.summary import Result

__all__ = ["EPSILON", "Browser", "contains", "of_run"]

_decode_info = msgspec.json.Decoder(RunInfo).decode
_decode_question = msgspec.json.Decoder(Question).decode
_decode_replies = msgspec.json.Decoder(tuple[Reply, ...]).decode
_decode_scorecard = msgspec.json.Decoder(Scorecard).decode
_decode_figures = msgspec.json.Decoder(Figures).decode
# Scores are compared after rounding to 9 decimals; half of the last one does the same in SQL.
EPSILON = 5e-10
_BOUNDS = {"A": (0.9, 9.0), "B": (0.8, 0.9), "C": (0.7, 0.8), "D": (0.6, 0.7), "F": (-9.0, 0.6)}


class Browser:
    """Reads what pages show."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    # Runs

    def runs(
        self, *, text: str | None = None, question_set: str | None = None, limit: int = 25, offset: int = 0
    ) -> tuple[list[RunRow], int]:
        """Runs newest first, and how many there are in all."""
        runs = schema.runs.c
        where: list[ColumnElement[bool]] = []
        if text:
            where.append(
                or_(
                    *(contains(func.lower(column), text.lower()) for column in (runs.name, runs.target)),
                    runs.id.startswith(text, autoescape=True),
                )
            )
        if question_set:
            where.append(runs.question_set == question_set)
        query = (
            select(runs.info, runs.summary)
            .where(*where)
            .order_by(runs.created_at.desc(), runs.id.desc())
            .limit(limit)
            .offset(offset)
        )
        names: dict[str, list[str]] = {}
        for name, run_id in self._store.baselines().items():
            names.setdefault(run_id, []).append(name)
        with self._store.transaction() as connection:
            total = connection.execute(
                select(func.count()).select_from(schema.runs).where(*where)
            ).scalar_one()
            rows = [(_decode_info(info), summary) for info, summary in connection.execute(query)]
        return [
            RunRow(
                info,
                None if summary is None else _decode_figures(summary),
                tuple(sorted(names.get(info.id, ()))),
            )
            for info, summary in rows
        ], int(total)

    def question_sets(self) -> list[tuple[str, int]]:
        """(name, runs) of the golden sets that were asked, the one asked last first."""
        runs = schema.runs.c
        query = (
            select(runs.question_set, func.count())
            .group_by(runs.question_set)
            .order_by(func.max(runs.created_at).desc())
            .limit(50)
        )
        with self._store.transaction() as connection:
            return [(name, number) for name, number in connection.execute(query)]

    def progress(self, info: RunInfo) -> Progress:
        """How far a run is, from its scorecards so far."""
        cards, items = schema.scorecards.c, schema.set_items.c
        query = select(
            func.count(),
            func.avg(cards.score),
            func.sum(case((cards.passed, 1), else_=0)),
            func.count(cards.error_kind),
        ).where(*of_run(info))
        planned = select(func.count()).where(items.set_hash == info.question_set_hash)
        with self._store.transaction() as connection:
            done, score, passed, errors = connection.execute(query).one()
            questions = connection.execute(planned).scalar_one()
            status = connection.execute(
                select(schema.runs.c.status).where(schema.runs.c.id == info.id)
            ).scalar()
        return Progress(
            id=info.id,
            status=status or info.status,
            done=done,
            planned=max(questions * info.repeat, done),
            score=None if score is None else round_score(score),
            grade=None if score is None else grade(score),
            passed=int(passed or 0),
            errors=int(errors),
        )

    # Questions of a run

    def rows(
        self, info: RunInfo, wanted: RowFilter, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[QuestionRow], int]:
        """A page of a run's questions, and how many match in all."""
        grouped = self._grouped(info, wanted).subquery()
        query = select(grouped, func.count().over().label("total")).order_by(*_order(grouped.c, wanted.sort))
        with self._store.transaction() as connection:
            page = connection.execute(query.limit(limit).offset(offset)).all()
            if page:
                total = page[0].total
            else:
                total = (
                    connection.execute(select(func.count()).select_from(grouped)).scalar_one()
                    if offset
                    else 0
                )
            cards = schema.scorecards.c
            worst: dict[int, Any] = {}
            texts: dict[str, Any] = {}
            if page:
                positions = [row.position for row in page]
                details = connection.execute(
                    select(cards.position, cards.score, cards.payload)
                    .where(*of_run(info), cards.position.in_(positions))
                    .order_by(cards.position, cards.trial)
                )
                for card in details:
                    known = worst.get(card.position)
                    if known is None or _rank(card.score) < _rank(known.score):
                        worst[card.position] = card
                table = schema.reply_texts.c
                shown = connection.execute(
                    select(table.ask_hash, table.question, table.tools).where(
                        table.run_id == info.id,
                        table.ask_hash.in_([row.ask_hash for row in page]),
                        table.trial == 1,
                    )
                )
                texts = {row.ask_hash: row for row in shown}
        return [_row(row, worst[row.position], texts.get(row.ask_hash), info) for row in page], int(total)

    def _grouped(self, info: RunInfo, wanted: RowFilter) -> Select[Any]:
        cards, table = schema.scorecards.c, schema.reply_texts.c
        # Asked once, there is nothing to average, and the index is read as it is.
        once = info.repeat == 1
        score: ColumnElement[Any] = cards.score if once else func.avg(cards.score)
        passed = case((cards.passed, 1), else_=0)
        query = select(
            cards.position,
            _per_question(cards.question_id, func.min, once),
            _per_question(cards.category, func.min, once),
            _per_question(cards.ask_hash, func.min, once),
            score.label("score"),
            (literal(1) if once else func.count()).label("trials"),
            (passed if once else func.sum(passed)).label("trials_passed"),
            _per_question(cards.error_kind, func.max, once),
            _per_question(cards.latency_ms, func.max, once),
            _per_question(cards.cost, func.sum, once),
        ).where(*of_run(info))
        if wanted.text or wanted.tool:
            query = query.join(
                schema.reply_texts,
                and_(
                    table.run_id == cards.run_id,
                    table.ask_hash == cards.ask_hash,
                    table.trial == cards.trial,
                ),
            )
        if wanted.text:
            query = query.where(contains(table.search, wanted.text.casefold()))
        if wanted.tool:
            query = query.where(contains(table.tools, f"\n{wanted.tool}\n"))
        if wanted.category is not None:
            query = query.where(cards.category == wanted.category)
        if wanted.error is not None:
            query = query.where(cards.error_kind == wanted.error)
        if wanted.result == "error":
            query = query.where(cards.error_kind.is_not(None))
        query = query if once else query.group_by(cards.position)
        narrowed = query.where if once else query.having
        if wanted.grade is not None:
            low, high = _BOUNDS[wanted.grade]
            query = narrowed(score >= low - EPSILON, score < high - EPSILON)
            narrowed = query.where if once else query.having
        if wanted.result == "failed":
            query = narrowed(or_(score.is_(None), score < info.pass_mark - EPSILON))
        elif wanted.result == "passed":
            query = narrowed(score >= info.pass_mark - EPSILON)
        elif wanted.result == "lost":
            query = narrowed(or_(score.is_(None), score < 1 - EPSILON))
        return query

    def facets(self, info: RunInfo) -> Facets:
        """The categories and error kinds of a run."""
        cards = schema.scorecards.c
        with self._store.transaction() as connection:
            categories = connection.execute(
                select(cards.category, func.count(func.distinct(cards.position)))
                .where(*of_run(info))
                .group_by(cards.category)
                .order_by(cards.category)
                .limit(500)
            ).all()
            errors = connection.execute(
                select(cards.error_kind, func.count())
                .where(*of_run(info), cards.error_kind.is_not(None))
                .group_by(cards.error_kind)
                .order_by(func.count().desc())
            ).all()
        return Facets(_counts(categories), _counts(errors))

    def distribution(self, info: RunInfo) -> list[int]:
        """Questions by score: ten equal steps, the last one includes 1.0."""
        cards = schema.scorecards.c
        scored = select(cards.score).where(*of_run(info), cards.score.is_not(None))
        if info.repeat > 1:
            scored = (
                select(func.avg(cards.score).label("score"))
                .where(*of_run(info), cards.score.is_not(None))
                .group_by(cards.position)
            )
        scores = scored.subquery()
        step = case(*((scores.c.score < edge / 10 - EPSILON, edge - 1) for edge in range(1, 10)), else_=9)
        counts = [0] * 10
        with self._store.transaction() as connection:
            for bucket, number in connection.execute(select(step, func.count()).group_by(step)):
                counts[bucket] = number
        return counts

    # One question

    def question(self, info: RunInfo, question_id: str, *, trials: int = 20) -> list[Result]:
        """The trials of one question with all that was said; raises UnknownNameError if the run has none."""
        cards = schema.scorecards.c
        query = self._store.results_query(info, cards.question_id == question_id).limit(trials)
        with self._store.transaction() as connection:
            rows = connection.execute(query).all()
        if not rows:
            raise UnknownNameError(f"run {info.id} has no scored question {question_id[:120]!r}")
        return [
            Result(
                question=_decode_question(row.question),
                trial=row.trial,
                replies=_decode_replies(row.replies),
                scorecard=_decode_scorecard(row.payload),
            )
            for row in rows
        ]

    def reply_key(self, info: RunInfo, question_id: str, trial: int) -> ReplyKey:
        """The key of one reply of a run."""
        cards = schema.scorecards.c
        with self._store.transaction() as connection:
            ask_hash = connection.execute(
                select(cards.ask_hash).where(
                    *of_run(info), cards.question_id == question_id, cards.trial == trial
                )
            ).scalar()
        if ask_hash is None:
            raise UnknownNameError(
                f"run {info.id} has no reply to a question {question_id[:120]!r} in trial {trial}; "
                f"`answerkey show {info.id}` lists its questions"
            )
        return ReplyKey(info.id, ask_hash, trial)

    def history(self, question_id: str, *, limit: int = 50) -> list[HistoryPoint]:
        """The same question over runs, newest first, each under the run's current scoring."""
        cards, runs = schema.scorecards.c, schema.runs.c
        query = (
            select(
                runs.id,
                runs.name,
                runs.created_at,
                runs.target,
                runs.info,
                func.avg(cards.score).label("score"),
                func.count().label("trials"),
                func.min(cards.score).label("lowest"),
                func.max(cards.score).label("highest"),
                func.max(cards.error_kind).label("error_kind"),
                func.max(cards.latency_ms).label("latency_ms"),
            )
            .join(schema.runs, and_(runs.id == cards.run_id, runs.scoring_hash == cards.scoring_hash))
            .where(cards.question_id == question_id)
            .group_by(runs.id, runs.name, runs.created_at, runs.target, runs.info)
            .order_by(runs.created_at.desc(), runs.id.desc())
            .limit(limit)
        )
        with self._store.transaction() as connection:
            rows = connection.execute(query).all()
        return [
            HistoryPoint(
                run_id=row.id,
                run_name=row.name,
                created_at=row.created_at,
                target=row.target,
                score=_rounded(row.score),
                grade=None if row.score is None else grade(row.score),
                passed=row.score is not None and round_score(row.score) >= _decode_info(row.info).pass_mark,
                trials=row.trials,
                lowest=row.lowest,
                highest=row.highest,
                error=row.error_kind,
                latency_ms=row.latency_ms,
            )
            for row in rows
        ]


def contains(column: Any, text: str) -> ColumnElement[bool]:
    """Whether a column contains a text, in which % and _ mean themselves."""
    found: ColumnElement[bool] = column.contains(text.replace("\x00", ""), autoescape=True)
    return found


def _per_question(column: Any, gather: Any, once: bool) -> Any:
    return column if once else gather(column).label(column.name)


def _counts(rows: Iterable[Any]) -> dict[str, int]:
    return {row[0]: row[1] for row in rows}


def of_run(info: RunInfo) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The scorecards of a run under its current scoring."""
    cards = schema.scorecards.c
    return cards.run_id == info.id, cards.scoring_hash == info.scoring_hash


def _order(columns: Any, sort: Sort) -> tuple[Any, ...]:
    match sort:
        case "best":
            return func.coalesce(columns.score, -1.0).desc(), columns.position
        case "slowest":
            return func.coalesce(columns.latency_ms, -1.0).desc(), columns.position
        case "costliest":
            return func.coalesce(columns.cost, -1.0).desc(), columns.position
        case "order":
            return (columns.position,)
        case _:
            return func.coalesce(columns.score, -1.0), columns.position


def _rank(score: float | None) -> float:
    return -1.0 if score is None else score


def _rounded(score: float | None) -> float | None:
    return None if score is None else round_score(score)


def _row(row: Any, worst: Any, text: Any, info: RunInfo) -> QuestionRow:
    score = _rounded(row.score)
    return QuestionRow(
        id=row.question_id,
        position=row.position,
        question=row.question_id if text is None else text.question,
        category=row.category,
        score=score,
        grade=None if score is None else grade(score),
        passed=score is not None and score >= info.pass_mark,
        trials=row.trials,
        trials_passed=int(row.trials_passed),
        error=row.error_kind,
        latency_ms=row.latency_ms,
        cost=row.cost,
        tools=() if text is None else tuple(name for name in text.tools.split("\n") if name),
        scorecard=_decode_scorecard(worst.payload),
    )
