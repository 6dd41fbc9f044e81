"""Sites: chat pages and their servers, whose keys may add feedback and production replies and do nothing else."""

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.store.database import now
from answerkey.store.schema import insert
from answerkey.store.shown_once import check_name, digest, new_secret
from answerkey.store.sql import SqlStore

__all__ = ["SITE_KEY", "Site", "Sites"]

# How a site's key begins: it tells it from a person's token.
SITE_KEY = "ak_site_"


class Site(msgspec.Struct, frozen=True):
    """A place that feedback and replies come from."""

    name: str
    created_at: str


class Sites:
    """The sites of a store."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def add(self, name: str) -> str:
        """Let a site send; what is returned is the only copy of its key."""
        check_name(name, "a site's")
        key = new_secret(SITE_KEY)
        with self._database.transaction() as connection:
            if not connection.run(insert("sites"), (name, digest(key), now())).rowcount:
                raise UsageError(f"there is already a site {name!r}; remove it first or use another name")
        return key

    def all(self) -> list[Site]:
        """The sites there are, by name."""
        with self._database.reading() as connection:
            rows = connection.run("SELECT name, created_at FROM sites ORDER BY name")
            return [Site(*row) for row in rows]

    def remove(self, name: str) -> None:
        """Make a site's key worthless from the next request on; what it sent stays."""
        with self._database.transaction() as connection:
            if connection.run("DELETE FROM sites WHERE name = ?", (name,)).rowcount == 0:
                raise UnknownNameError(f"no site {name!r}; `answerkey sites list` shows them")

    def with_key(self, key: str) -> Site | None:
        """Whose key this is."""
        query = "SELECT name, created_at FROM sites WHERE digest = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (digest(key),)).fetchone()
        return None if row is None else Site(*row)
