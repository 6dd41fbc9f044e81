"""AccessTokens: who may use a dashboard that others can reach. Only digests are kept; a token is shown once."""

import hashlib
import hmac
import re
import secrets
from typing import Literal, get_args

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.store.database import now
from answerkey.store.schema import insert
from answerkey.store.sql import SqlStore

__all__ = ["ROLES", "AccessToken", "AccessTokens", "Role"]

# sender: may only send feedback and production replies, so that its token can stand in a public page.
Role = Literal["viewer", "annotator", "admin", "sender"]
ROLES: tuple[Role, ...] = get_args(Role)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class AccessToken(msgspec.Struct, frozen=True):
    """Who a token belongs to and what it allows."""

    name: str
    role: Role
    created_at: str


class AccessTokens:
    """Makes, checks and revokes the tokens of a store."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def add(self, name: str, role: Role) -> str:
        """Make a token; what is returned is the only copy of it."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"token name {name[:70]!r}: use up to 64 letters, digits and . _ @ -")
        secret = f"ak_{secrets.token_urlsafe(32)}"
        with self._database.transaction() as connection:
            if connection.value("SELECT name FROM access_tokens WHERE name = ?", (name,)) is not None:
                raise UsageError(f"there is already a token {name!r}; revoke it first or choose another name")
            connection.run(insert("access_tokens"), (name, role, _digest(secret), now()))
        return secret

    def all(self) -> list[AccessToken]:
        """The tokens there are, by name."""
        with self._database.reading() as connection:
            rows = connection.run("SELECT name, role, created_at FROM access_tokens ORDER BY name")
            return [AccessToken(*row) for row in rows]

    def revoke(self, name: str) -> None:
        """Make a token worthless from the next request on."""
        with self._database.transaction() as connection:
            if connection.run("DELETE FROM access_tokens WHERE name = ?", (name,)).rowcount == 0:
                raise UnknownNameError(f"no token {name!r}; `answerkey serve token list` shows them")

    def check(self, secret: str) -> AccessToken | None:
        """The token that this secret is, compared in constant time with every one there is."""
        digest = _digest(secret)
        found = None
        with self._database.reading() as connection:
            rows = connection.run("SELECT name, role, created_at, digest FROM access_tokens").fetchall()
        for name, role, created_at, known in rows:
            if hmac.compare_digest(digest, known):
                found = AccessToken(name, role, created_at)
        return found


def _digest(secret: str) -> str:
    # The secret has 256 random bits: a plain digest cannot be guessed back.
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
