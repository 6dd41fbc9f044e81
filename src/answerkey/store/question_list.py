"""QuestionList: a run's questions page by page, filtered and sorted in the database; no run is ever read whole."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, and_, case, func, literal, or_, select

from answerkey.model.question_figures import QuestionRow
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, grade, round_score
from answerkey.store import schema
from answerkey.store.conditions import EPSILON, contains, of_run
from answerkey.store.listing import Facets, RowFilter, Sort
from answerkey.store.sql import SqlStore

__all__ = ["QuestionList"]

_decode_scorecard = msgspec.json.Decoder(Scorecard).decode
_BOUNDS = {"A": (0.9, 9.0), "B": (0.8, 0.9), "C": (0.7, 0.8), "D": (0.6, 0.7), "F": (-9.0, 0.6)}


class QuestionList:
    """Reads what lists of questions show."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def rows(
        self, info: RunInfo, wanted: RowFilter, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[QuestionRow], int]:
        """A page of a run's questions, and how many match in all."""
        grouped = self._grouped(info, wanted).subquery()
        order = _order(grouped.c, wanted.sort)
        # Which ones first, and all about those afterwards: sorting narrow rows takes a tenth of sorting wide ones.
        chosen = select(grouped.c.position).order_by(*order).limit(limit).offset(offset)
        with self._store.transaction() as connection:
            total: int | None = None
            if wanted.text or wanted.tool:
                # Texts are long: they are read once for both.
                counted = connection.execute(chosen.add_columns(func.count().over().label("total"))).all()
                positions = [row.position for row in counted]
                total = counted[0].total if counted else None
            else:
                positions = list(connection.execute(chosen).scalars())
            if total is None:
                total = connection.execute(select(func.count()).select_from(grouped)).scalar_one()
            found = connection.execute(self._grouped(info, RowFilter(), positions)).all()
            page = sorted(found, key=lambda row: positions.index(row.position))
            cards = schema.scorecards.c
            worst: dict[int, Any] = {}
            texts: dict[str, Any] = {}
            if page:
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

    def _grouped(
        self, info: RunInfo, wanted: RowFilter, positions: Sequence[int] | None = None
    ) -> Select[Any]:
        cards = schema.scorecards.c
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
        if positions is not None:
            query = query.where(cards.position.in_(positions))
        where = _of_trials(wanted)
        if once:
            query = _with_texts(query, wanted).where(*where)
        elif where:
            # A question is wanted if one of its trials is, and its figures are still those of all of them.
            trials = _with_texts(select(cards.position), wanted).where(*of_run(info), *where)
            query = query.where(cards.position.in_(trials.scalar_subquery()))
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


def _of_trials(wanted: RowFilter) -> list[ColumnElement[bool]]:
    """What single trials are filtered by."""
    cards, table = schema.scorecards.c, schema.reply_texts.c
    where: list[ColumnElement[bool]] = []
    if wanted.text:
        where.append(contains(table.search, wanted.text.casefold()))
    if wanted.tool:
        where.append(contains(table.tools, f"\n{wanted.tool}\n"))
    if wanted.category is not None:
        where.append(cards.category == wanted.category)
    if wanted.error is not None:
        where.append(cards.error_kind == wanted.error)
    if wanted.result == "error":
        where.append(cards.error_kind.is_not(None))
    return where


def _with_texts(query: Select[Any], wanted: RowFilter) -> Select[Any]:
    if not (wanted.text or wanted.tool):
        return query
    cards, table = schema.scorecards.c, schema.reply_texts.c
    return query.join(
        schema.reply_texts,
        and_(table.run_id == cards.run_id, table.ask_hash == cards.ask_hash, table.trial == cards.trial),
    )


def _per_question(column: Any, gather: Any, once: bool) -> Any:
    return column if once else gather(column).label(column.name)


def _counts(rows: Iterable[Any]) -> dict[str, int]:
    return {row[0]: row[1] for row in rows}


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


def _row(row: Any, worst: Any, text: Any, info: RunInfo) -> QuestionRow:
    score = None if row.score is None else round_score(row.score)
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
