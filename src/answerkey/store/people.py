"""People: who may use a dashboard that others can reach, and the sessions in which they do.

A person has a token, shown once, with which they sign in; programs of theirs send it with every request. A browser gets
a session instead: a random id that means nothing by itself and ends when it is not used, at sign-out, or with the person.
"""

import time
from contextlib import suppress
from typing import Literal, get_args

import msgspec

from answerkey.errors import StoreError, UnknownNameError, UsageError
from answerkey.store.database import now
from answerkey.store.schema import insert
from answerkey.store.shown_once import check_name, digest, new_secret
from answerkey.store.sql import SqlStore

__all__ = ["ROLES", "SESSION_SECONDS", "People", "Person", "Role"]

# Each may what those before it may.
Role = Literal["viewer", "reviewer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)

_DAY = 24 * 3600.0
# A session ends when it was not used for so long, and at last after SESSION_SECONDS.
_IDLE_SECONDS = 7 * _DAY
SESSION_SECONDS = 90 * _DAY
# Between two notes that a session is in use: a write for every picture of a page would be too many.
_NOTED_SECONDS = 3600.0


class Person(msgspec.Struct, frozen=True):
    """Someone with a name and a role."""

    name: str
    role: Role
    created_at: str


class People:
    """The people of a store."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def add(self, name: str, role: Role) -> str:
        """Give someone access; what is returned is the only copy of their token."""
        check_name(name, "a person's")
        token = new_secret("ak_")
        with self._database.transaction() as connection:
            if not connection.run(insert("people"), (name, role, digest(token), now())).rowcount:
                raise UsageError(f"there is already a person {name!r}; remove them first or use another name")
        return token

    def all(self) -> list[Person]:
        """Everyone, by name."""
        with self._database.reading() as connection:
            rows = connection.run("SELECT name, role, created_at FROM people ORDER BY name")
            return [Person(*row) for row in rows]

    def remove(self, name: str) -> None:
        """Take someone's access away from the next request on, sessions included."""
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE person = ?", (name,))
            connection.run("DELETE FROM saved_views WHERE person = ?", (f"person:{name}",))
            if connection.run("DELETE FROM people WHERE name = ?", (name,)).rowcount == 0:
                raise UnknownNameError(f"no person {name!r}; `answerkey people list` shows them")

    def with_token(self, token: str) -> Person | None:
        """Whose token this is."""
        query = "SELECT name, role, created_at FROM people WHERE digest = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (digest(token),)).fetchone()
        return None if row is None else Person(*row)

    # Sessions

    def sign_in(self, person: Person) -> str:
        """Begin a session; what is returned is the only copy of its id."""
        session, moment = new_secret(), time.time()
        row = (digest(session), person.name, moment + SESSION_SECONDS, moment + _IDLE_SECONDS)
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
            row = connection.run(query, (digest(session),)).fetchone()
        moment = time.time()
        if row is None or min(row[3], row[4]) < moment:
            return None
        if row[4] < moment + _IDLE_SECONDS - _NOTED_SECONDS:
            # While the store cannot be written, looking goes on; a later request notes it.
            with suppress(StoreError), self._database.transaction() as connection:
                later = (moment + _IDLE_SECONDS, digest(session))
                connection.run("UPDATE sessions SET idle_at = ? WHERE digest = ?", later)
        return Person(*row[:3])

    def sign_out(self, session: str) -> None:
        """End a session."""
        with self._database.transaction() as connection:
            connection.run("DELETE FROM sessions WHERE digest = ?", (digest(session),))

    def sign_out_everywhere(self, name: str) -> int:
        """End all sessions of a person, who keeps their token; how many there were."""
        with self._database.transaction() as connection:
            if connection.value("SELECT name FROM people WHERE name = ?", (name,)) is None:
                raise UnknownNameError(f"no person {name!r}; `answerkey people list` shows them")
            return int(connection.run("DELETE FROM sessions WHERE person = ?", (name,)).rowcount)
