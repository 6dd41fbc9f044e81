"""Browser: runs page by page, one question of a run in full, and the same question over runs."""

import msgspec
from sqlalchemy import ColumnElement, and_, case, func, or_, select

from answerkey.errors import UnknownNameError
from answerkey.model.feedback import ReplyKey
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard, grade, round_score
from answerkey.model.trial import Trial
from answerkey.store import schema
from answerkey.store.conditions import contains, of_run
from answerkey.store.listing import (
    Figures,
    HistoryPoint,
    Progress,
    RunRow,
)
from answerkey.store.sql import SqlStore

__all__ = ["Browser"]

_decode_info = msgspec.json.Decoder(RunInfo).decode
_decode_question = msgspec.json.Decoder(Question).decode
_decode_replies = msgspec.json.Decoder(tuple[Reply, ...]).decode
_decode_scorecard = msgspec.json.Decoder(Scorecard).decode
_decode_figures = msgspec.json.Decoder(Figures).decode


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

    # One question

    def question(self, info: RunInfo, question_id: str, *, trials: int = 20) -> list[Trial]:
        """The trials of one question with all that was said; raises UnknownNameError if the run has none."""
        cards = schema.scorecards.c
        query = self._store.results_query(info, cards.question_id == question_id).limit(trials)
        with self._store.transaction() as connection:
            rows = connection.execute(query).all()
        if not rows:
            raise UnknownNameError(f"run {info.id} has no scored question {question_id[:120]!r}")
        return [
            Trial(
                question=_decode_question(row.question),
                number=row.trial,
                position=row.position,
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


def _rounded(score: float | None) -> float | None:
    return None if score is None else round_score(score)
