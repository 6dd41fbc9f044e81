"""Pairs: the questions of two or more runs side by side, paired by id, filtered and sorted in the database."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import Select, Subquery, and_, func, or_, select

from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import round_score
from answerkey.store import schema
from answerkey.store.conditions import EPSILON, contains, of_run
from answerkey.store.sql import SqlStore

__all__ = ["PairRow", "PairSort", "Pairs", "Show"]

Show = Literal["regressions", "improvements", "different", "all"]
PairSort = Literal["worst", "best", "order"]

_decode_replies = msgspec.json.Decoder(tuple[Reply, ...]).decode


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question in all of the runs; the first one is the base."""

    id: str
    category: str
    question: str
    scores: tuple[float | None, ...]
    # What each run replied last, in its first trial; None: a null reply.
    replies: tuple[str | None, ...]


class Pairs:
    """The base and the candidates."""

    def __init__(self, store: SqlStore, base: RunInfo, candidates: Sequence[RunInfo]) -> None:
        self._store = store
        self._infos = (base, *candidates)

    def page(
        self,
        *,
        show: Show = "all",
        sort: PairSort = "worst",
        text: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> tuple[list[PairRow], int]:
        """A page of questions that all runs have, and how many match."""
        query = self._joined(show, sort, text)
        with self._store.transaction() as connection:
            rows = connection.execute(query.limit(limit).offset(offset)).all()
            total = rows[0].total if rows else 0
            texts = self._texts(connection, rows)
        return [
            PairRow(
                id=row.question_id,
                category=row.category,
                question=texts.get((0, row.hash_0), (row.question_id, None))[0],
                scores=tuple(_rounded(row._mapping[f"score_{index}"]) for index in range(len(self._infos))),
                replies=tuple(
                    texts.get((index, row._mapping[f"hash_{index}"]), ("", None))[1]
                    for index in range(len(self._infos))
                ),
            )
            for row in rows
        ], int(total)

    def _joined(self, show: Show, sort: PairSort, text: str | None) -> Select[Any]:
        groups = [_grouped(info) for info in self._infos]
        joined: Any = self._join(groups)
        first = groups[0].c
        searched = []
        if text:
            for info, group in zip(self._infos, groups, strict=True):
                table = schema.reply_texts.alias()
                joined = joined.outerjoin(
                    table,
                    and_(table.c.run_id == info.id, table.c.ask_hash == group.c.ask_hash, table.c.trial == 1),
                )
                searched.append(table.c.search)
        changes = [
            func.coalesce(group.c.score, 0.0) - func.coalesce(first.score, 0.0) for group in groups[1:]
        ]
        query = select(
            first.question_id,
            first.category,
            *(group.c.score.label(f"score_{index}") for index, group in enumerate(groups)),
            *(group.c.ask_hash.label(f"hash_{index}") for index, group in enumerate(groups)),
            func.count().over().label("total"),
        ).select_from(joined)
        if show == "regressions":
            query = query.where(or_(*(change < -EPSILON for change in changes)))
        elif show == "improvements":
            query = query.where(or_(*(change > EPSILON for change in changes)))
        elif show == "different":
            query = query.where(
                or_(
                    *(func.abs(change) > EPSILON for change in changes),
                    *(group.c.reply_digest.is_distinct_from(first.reply_digest) for group in groups[1:]),
                )
            )
        if text:
            query = query.where(or_(*(contains(column, text.casefold()) for column in searched)))
        main = changes[0]
        order = {
            "worst": (main, first.position),
            "best": (main.desc(), first.position),
            "order": (first.position,),
        }
        return query.order_by(*order[sort])

    def _join(self, groups: Sequence[Subquery]) -> Any:
        """Paired by id; runs of the same set by the place in it, which is the same and faster."""
        same_set = len({info.question_set_hash for info in self._infos}) == 1
        key = "position" if same_set else "question_id"
        joined: Any = groups[0]
        for group in groups[1:]:
            joined = joined.join(group, group.c[key] == groups[0].c[key])
        return joined

    def _texts(self, connection: Any, rows: Sequence[Any]) -> dict[tuple[int, str], tuple[str, str | None]]:
        """(which run, ask hash) → the question and the last reply, for the questions of one page."""
        found: dict[tuple[int, str], tuple[str, str | None]] = {}
        replies, texts = schema.replies.c, schema.reply_texts.c
        for index, info in enumerate(self._infos):
            hashes = [row._mapping[f"hash_{index}"] for row in rows]
            if not hashes:
                continue
            query = (
                select(replies.ask_hash, replies.payload, texts.question)
                .outerjoin(
                    schema.reply_texts,
                    and_(
                        texts.run_id == replies.run_id,
                        texts.ask_hash == replies.ask_hash,
                        texts.trial == replies.trial,
                    ),
                )
                .where(replies.run_id == info.id, replies.ask_hash.in_(hashes), replies.trial == 1)
            )
            for ask_hash, payload, question in connection.execute(query):
                said = _decode_replies(payload)
                found[(index, ask_hash)] = (question or ask_hash, said[-1].text if said else None)
        return found


def _grouped(info: RunInfo) -> Subquery:
    cards = schema.scorecards.c
    if info.repeat == 1:
        # Nothing to average: the index is read in its own order.
        return (
            select(
                cards.question_id,
                cards.position,
                cards.category,
                cards.ask_hash,
                cards.score,
                cards.reply_digest,
            )
            .where(*of_run(info), cards.trial == 1)
            .subquery()
        )
    return (
        select(
            func.min(cards.question_id).label("question_id"),
            cards.position,
            func.min(cards.category).label("category"),
            func.min(cards.ask_hash).label("ask_hash"),
            func.avg(cards.score).label("score"),
            func.min(cards.reply_digest).label("reply_digest"),
        )
        .where(*of_run(info))
        .group_by(cards.position)
        .subquery()
    )


def _rounded(score: float | None) -> float | None:
    return None if score is None else round_score(score)
