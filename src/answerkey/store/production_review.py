"""The review queue of production replies: a random sample of those that meet a filter."""

from typing import TYPE_CHECKING

from answerkey.store.database import all_of, sql
from answerkey.store.production import MAX_COUNTED, ProductionFilter, ProductionReplies

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

_REVIEWED = "EXISTS (SELECT 1 FROM feedback f WHERE f.production_id = p.id AND f.source = 'review')"
# A fixed random order: a multiplicative hash of the row's number.
_RANDOM = "(CAST(p.key AS BIGINT) * 2654435761) % 4294967296"


class ProductionQueue:
    """Replies without a review, in a random order that stays the same."""

    def __init__(self, store: "SqlStore", criteria: ProductionFilter) -> None:
        self._database = store.database
        self._matching = ProductionReplies(store).filter_condition(criteria)

    def next_id(self, offset: int = 0) -> str | None:
        """The id of the next reply to review after `offset` others; None if there is none."""
        query = sql(
            "SELECT p.id FROM production_replies p WHERE {where} ORDER BY {order} LIMIT 1 OFFSET ?",
            offset,
            where=all_of([self._matching, sql(f"NOT {_REVIEWED}")]),
            order=_RANDOM,
        )
        with self._database.reading() as connection:
            found = connection.value(*query)
        return None if found is None else str(found)

    def counts(self) -> tuple[int, int]:
        """How many replies wait, counted up to a limit, and how many have a review."""
        with self._database.reading() as connection:
            waiting, done = (
                connection.value(
                    *sql(
                        "SELECT COUNT(*) FROM (SELECT 1 FROM production_replies p WHERE {where} LIMIT ?) AS t",
                        MAX_COUNTED,
                        where=all_of([self._matching, sql(condition)]),
                    )
                )
                for condition in (f"NOT {_REVIEWED}", _REVIEWED)
            )
        return int(waiting), int(done)

    def trusted(self) -> tuple[int, int]:
        """Of the reviewed replies, how many the majority trusts, and how many there are."""
        query = sql(
            "SELECT SUM(CASE WHEN value > 0.5 THEN 1 ELSE 0 END), COUNT(*) FROM (SELECT AVG(f.value) AS value "
            "FROM feedback f JOIN production_replies p ON p.id = f.production_id "
            "WHERE f.source = 'review' AND {where} GROUP BY p.id) AS t",
            where=self._matching,
        )
        with self._database.reading() as connection:
            trusted, judged = connection.run(*query).fetchone()
        return int(trusted or 0), int(judged)
