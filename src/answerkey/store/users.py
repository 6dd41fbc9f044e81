"""Users: who may use a dashboard that others can reach, and which sites may send to it.

A person has a token, shown once, to sign in with; their programs send it with every request. A browser gets a session
instead: a random id that ends when it is not used, at sign-out, or with the user. A site (role "site") has a key that
may add feedback and production replies and do nothing else. Of every secret only the digest is stored.
"""

import hashlib
import re
import secrets
import time
from contextlib import suppress
from typing import Literal

import msgspec

from answerkey.errors import StoreError, UnknownNameError, UsageError
from answerkey.store.database import insert, now
from answerkey.store.sql import SqlStore

Role = Literal["viewer", "reviewer", "admin", "site"]
# The roles of people; each may do what those before it may.
ROLES: tuple[Role, ...] = ("viewer", "reviewer", "admin")

_TOKEN_PREFIX = "ak_"  # noqa: S105  # marks tokens for secret scanners
_SITE_KEY_PREFIX = "ak_site_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DAY = 24 * 3600.0
# A session ends when it is not used for this long, and after SESSION_SECONDS in any case.
_IDLE_SECONDS = 7 * _DAY
SESSION_SECONDS = 90 * _DAY
# Minimum time between two updates of a session's last use, so that not every request writes.
_UPDATE_SECONDS = 3600.0
_MAX_VIEWS = 100


class User(msgspec.Struct, frozen=True):
    """A person or a site with access."""

    name: str
    role: Role
    created_at: str

    @property
    def sender(self) -> str:
        """The name under which what they send is stored."""
        return f"{'site' if self.role == 'site' else 'person'}:{self.name}"


class Users:
    """The users of a store, and their sessions."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def add(self, name: str, role: Role) -> str:
        """Give access; returns the only copy of the token or key."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"user name {name[:70]!r}: use up to 64 letters, digits and . _ @ -")
        secret = _new_secret(_SITE_KEY_PREFIX if role == "site" else _TOKEN_PREFIX)
        with self._database.transaction() as connection:
            if not connection.run(insert("users"), (name, role, _digest(secret), now())).rowcount:
                raise UsageError(f"there is already a user {name!r}; remove it first or use another name")
        return secret

    def all(self) -> list[User]:
        """All users, by name."""
        with self._database.reading() as connection:
            rows = connection.run("SELECT name, role, created_at FROM users ORDER BY name")
            return [User(*row) for row in rows]

    def remove(self, name: str) -> None:
        """Revoke access from the next request on, sessions included; what the user sent stays."""
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE user_name = ?", (name,))
            connection.run("DELETE FROM saved_views WHERE owner = ?", (f"person:{name}",))
            if connection.run("DELETE FROM users WHERE name = ?", (name,)).rowcount == 0:
                raise _unknown_user(name)

    def find_by_secret(self, secret: str) -> User | None:
        """The user with this token or key."""
        query = "SELECT name, role, created_at FROM users WHERE digest = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (_digest(secret),)).fetchone()
        return None if row is None else User(*row)

    def sign_in(self, user: User) -> str:
        """Begin a session; returns the only copy of its id."""
        session, moment = _new_secret(), time.time()
        row = (_digest(session), user.name, moment + SESSION_SECONDS, moment + _IDLE_SECONDS)
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE ends_at < ? OR idle_at < ?", (moment, moment))
            connection.run(insert("sessions"), row)
        return session

    def find_by_session(self, session: str) -> User | None:
        """The user of a session, which this use prolongs."""
        query = (
            "SELECT u.name, u.role, u.created_at, s.ends_at, s.idle_at FROM sessions s "
            "JOIN users u ON u.name = s.user_name WHERE s.digest = ?"
        )
        with self._database.reading() as connection:
            row = connection.run(query, (_digest(session),)).fetchone()
        moment = time.time()
        if row is None or min(row[3], row[4]) < moment:
            return None
        if row[4] < moment + _IDLE_SECONDS - _UPDATE_SECONDS:
            # Reading goes on while the store cannot be written; a later request updates it.
            with suppress(StoreError), self._database.transaction() as connection:
                later = (moment + _IDLE_SECONDS, _digest(session))
                connection.run("UPDATE sessions SET idle_at = ? WHERE digest = ?", later)
        return User(*row[:3])

    def sign_out(self, session: str) -> None:
        """End a session."""
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE digest = ?", (_digest(session),))

    def sign_out_everywhere(self, name: str) -> int:
        """End all sessions of a user, whose token stays valid; returns how many there were."""
        with self._database.transaction() as connection:
            if connection.value("SELECT name FROM users WHERE name = ?", (name,)) is None:
                raise _unknown_user(name)
            return int(connection.run("DELETE FROM sessions WHERE user_name = ?", (name,)).rowcount)


def _unknown_user(name: str) -> UnknownNameError:
    return UnknownNameError(f"no user {name!r}; `answerkey users list` shows them")


class SavedView(msgspec.Struct, frozen=True):
    """A page with a name."""

    name: str
    # The path and the query of the page.
    address: str
    created_at: str


class SavedViews:
    """The saved views of one user, or of everybody on a server that needs no sign-in."""

    def __init__(self, store: SqlStore, owner: str) -> None:
        self._database = store.database
        self._owner = owner

    def all(self) -> list[SavedView]:
        """All of them, by name."""
        query = "SELECT name, address, created_at FROM saved_views WHERE owner = ? ORDER BY name"
        with self._database.reading() as connection:
            return [SavedView(*row) for row in connection.run(query, (self._owner,))]

    def save(self, name: str, address: str) -> None:
        """Save a page; an earlier view with the same name is replaced."""
        if len(self.all()) >= _MAX_VIEWS:
            raise UsageError(f"{_MAX_VIEWS} views are saved already; delete one first")
        with self._database.transaction() as connection:
            connection.run(insert("saved_views", replace=True), (self._owner, name, address, now()))

    def delete(self, name: str) -> None:
        """Delete one."""
        with self._database.transaction() as connection:
            sql = "DELETE FROM saved_views WHERE owner = ? AND name = ?"
            if not connection.run(sql, (self._owner, name)).rowcount:
                raise UnknownNameError(f"there is no saved view {name[:80]!r}")


def _new_secret(prefix: str = "") -> str:
    """A secret of 256 random bits."""
    return prefix + secrets.token_urlsafe(32)


def _digest(secret: str) -> str:
    """What is stored of a secret. It has 256 random bits, so a plain digest cannot be reversed."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
