"""People and sites: who may use a dashboard that others can reach, and which chat pages may send to it.

A person has a token, shown once, with which they sign in; programs of theirs send it with every request. A browser gets
a session instead: a random id that means nothing by itself and ends when it is not used, at sign-out, or with the person.
A site's key may add feedback and production replies and do nothing else. What is kept of a secret is its digest.
"""

import hashlib
import re
import secrets
import time
from contextlib import suppress
from typing import ClassVar, Generic, Literal, TypeVar, get_args

import msgspec

from answerkey.errors import StoreError, UnknownNameError, UsageError
from answerkey.store.database import now
from answerkey.store.schema import insert
from answerkey.store.sql import SqlStore

# Each may what those before it may.
Role = Literal["viewer", "reviewer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)

# How a site's key begins: it tells it from a person's token.
SITE_KEY = "ak_site_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DAY = 24 * 3600.0
# A session ends when it was not used for so long, and at last after SESSION_SECONDS.
_IDLE_SECONDS = 7 * _DAY
SESSION_SECONDS = 90 * _DAY
# Between two notes that a session is in use: a write for every picture of a page would be too many.
_NOTED_SECONDS = 3600.0
_MOST_VIEWS = 100


class Person(msgspec.Struct, frozen=True):
    """Someone with a name and a role."""

    name: str
    role: Role
    created_at: str


class Site(msgspec.Struct, frozen=True):
    """A place that feedback and replies come from."""

    name: str
    created_at: str


Holder = TypeVar("Holder", Person, Site)


class _Holders(Generic[Holder]):
    """Those who hold a secret, each under a name: what people and sites have in common."""

    # Of which there is a table, one of them, and how its secret begins: that tells people and scanners for leaks what it is.
    table: ClassVar[str]
    one: ClassVar[str]
    prefix: ClassVar[str]
    kind: type[Holder]
    # What goes with one: table → whose it is called there.
    belongings: ClassVar[dict[str, str]] = {}

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database
        self._columns = ", ".join(self.kind.__struct_fields__)

    def _add(self, name: str, *more: str) -> str:
        if not _NAME.fullmatch(name):
            raise UsageError(f"a {self.one}'s name {name[:70]!r}: use up to 64 letters, digits and . _ @ -")
        secret = _new_secret(self.prefix)
        with self._database.transaction() as connection:
            if not connection.run(insert(self.table), (name, *more, _digest(secret), now())).rowcount:
                raise UsageError(
                    f"there is already a {self.one} {name!r}; remove that first or use another name"
                )
        return secret

    def all(self) -> list[Holder]:
        """Each of them, by name."""
        with self._database.reading() as connection:
            rows = connection.run(f"SELECT {self._columns} FROM {self.table} ORDER BY name")
            return [self.kind(*row) for row in rows]

    def remove(self, name: str) -> None:
        """Make a secret worthless from the next request on, sessions included; what its holder sent stays."""
        with self._database.transaction() as connection:
            for table, owner in self.belongings.items():
                connection.run(f"DELETE FROM {table} WHERE person = ?", (owner.format(name),))
            if connection.run(f"DELETE FROM {self.table} WHERE name = ?", (name,)).rowcount == 0:
                raise self._unknown(name)

    def holder_of(self, secret: str) -> Holder | None:
        """Whose token or key this is."""
        query = f"SELECT {self._columns} FROM {self.table} WHERE digest = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (_digest(secret),)).fetchone()
        return None if row is None else self.kind(*row)

    def _unknown(self, name: str) -> UnknownNameError:
        return UnknownNameError(f"no {self.one} {name!r}; `answerkey {self.table} list` shows them")


class Sites(_Holders[Site]):
    """The sites of a store: chat pages and their servers."""

    table, one, prefix, kind = "sites", "site", SITE_KEY, Site

    def add(self, name: str) -> str:
        """Let a site send; what is returned is the only copy of its key."""
        return self._add(name)


class People(_Holders[Person]):
    """The people of a store."""

    table, one, prefix, kind = "people", "person", "ak_", Person
    belongings: ClassVar = {"sessions": "{}", "saved_views": "person:{}"}

    def add(self, name: str, role: Role) -> str:
        """Give someone access; what is returned is the only copy of their token."""
        return self._add(name, role)

    # Sessions

    def sign_in(self, person: Person) -> str:
        """Begin a session; what is returned is the only copy of its id."""
        session, moment = _new_secret(), time.time()
        row = (_digest(session), person.name, moment + SESSION_SECONDS, moment + _IDLE_SECONDS)
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE ends_at < ? OR idle_at < ?", (moment, moment))
            connection.run(insert("sessions"), row)
        return session

    def in_session(self, session: str) -> Person | None:
        """Whose session this is; being used, it goes on."""
        query = (
            "SELECT p.name, p.role, p.created_at, s.ends_at, s.idle_at FROM sessions s "
            "JOIN people p ON p.name = s.person WHERE s.digest = ?"
        )
        with self._database.reading() as connection:
            row = connection.run(query, (_digest(session),)).fetchone()
        moment = time.time()
        if row is None or min(row[3], row[4]) < moment:
            return None
        if row[4] < moment + _IDLE_SECONDS - _NOTED_SECONDS:
            # While the store cannot be written, looking goes on; a later request notes it.
            with suppress(StoreError), self._database.transaction() as connection:
                later = (moment + _IDLE_SECONDS, _digest(session))
                connection.run("UPDATE sessions SET idle_at = ? WHERE digest = ?", later)
        return Person(*row[:3])

    def sign_out(self, session: str) -> None:
        """End a session."""
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE digest = ?", (_digest(session),))

    def sign_out_everywhere(self, name: str) -> int:
        """End all sessions of a person, who keeps their token; how many there were."""
        with self._database.transaction() as connection:
            if connection.value("SELECT name FROM people WHERE name = ?", (name,)) is None:
                raise self._unknown(name)
            return int(connection.run("DELETE FROM sessions WHERE person = ?", (name,)).rowcount)


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
        if len(self.all()) >= _MOST_VIEWS:
            raise UsageError(f"{_MOST_VIEWS} views are saved already; delete one first")
        with self._database.transaction() as connection:
            connection.run(insert("saved_views", replace=True), (self._person, name, address, now()))

    def delete(self, name: str) -> None:
        """Forget one."""
        with self._database.transaction() as connection:
            sql = "DELETE FROM saved_views WHERE person = ? AND name = ?"
            if not connection.run(sql, (self._person, name)).rowcount:
                raise UnknownNameError(f"there is no saved view {name[:80]!r}")


def _new_secret(prefix: str = "") -> str:
    """A secret of 256 random bits."""
    return prefix + secrets.token_urlsafe(32)


def _digest(secret: str) -> str:
    """What is kept of a secret. It has 256 random bits: a plain digest cannot be guessed back."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
