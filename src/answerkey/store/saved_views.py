"""SavedViews: pages with all that is chosen on them, which people keep under names of their own."""

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.store.database import now
from answerkey.store.schema import insert
from answerkey.store.sql import SqlStore

__all__ = ["SavedView", "SavedViews"]

_MOST = 100


class SavedView(msgspec.Struct, frozen=True):
    """A page under a name."""

    name: str
    # The path and the query of the page.
    address: str
    created_at: str


class SavedViews:
    """What one person has kept; of a server that only its machine can reach, everybody."""

    def __init__(self, store: SqlStore, person: str) -> None:
        self._database = store.database
        self._person = person

    def all(self) -> list[SavedView]:
        """By name."""
        query = "SELECT name, address, created_at FROM saved_views WHERE person = ? ORDER BY name"
        with self._database.reading() as connection:
            return [SavedView(*row) for row in connection.run(query, (self._person,))]

    def save(self, name: str, address: str) -> None:
        """Keep a page; what had the name before is forgotten."""
        if len(self.all()) >= _MOST:
            raise UsageError(f"{_MOST} views are saved already; delete one first")
        with self._database.transaction() as connection:
            connection.run(insert("saved_views", replace=True), (self._person, name, address, now()))

    def delete(self, name: str) -> None:
        """Forget one."""
        with self._database.transaction() as connection:
            sql = "DELETE FROM saved_views WHERE person = ? AND name = ?"
            if not connection.run(sql, (self._person, name)).rowcount:
                raise UnknownNameError(f"there is no saved view {name[:80]!r}")
