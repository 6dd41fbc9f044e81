"""Database: one way of talking to SQLite and PostgreSQL, in plain SQL with a `?` for every value.

A new one is made from the schema, an older one is carried over, all in one transaction: whoever is killed on the way leaves
it as it was.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from answerkey.errors import StoreError
from answerkey.store.schema import TABLES, VERSION, Kind, create_statements, insert

# Scores are compared after rounding to 9 decimals; half of the last one does the same in SQL.
EPSILON = 5e-10
# Connections that are kept for later.
_MOST_IDLE = 8
# Rows fetched at a time by a stream.
BATCH = 1000

Row = tuple[Any, ...]


class Where:
    """Conditions with their values, all of which must hold."""

    def __init__(self, clause: str | None = None, *values: Any) -> None:
        self._clauses: list[str] = []
        self.values: list[Any] = []
        if clause is not None:
            self.add(clause, *values)

    def add(self, clause: str, *values: Any) -> "Where":
        """One more condition; it may be an OR."""
        self._clauses.append(f"({clause})")
        self.values.extend(values)
        return self

    def __bool__(self) -> bool:
        return bool(self._clauses)

    def __str__(self) -> str:
        return " AND ".join(self._clauses) or "1 = 1"


def now() -> str:
    """The time as the store writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def signs(values: Sequence[Any]) -> str:
    """The signs of a list of values, as in `IN (?, ?)`; an empty list is found nowhere."""
    return ", ".join("?" for _ in values) or "NULL"


class Connection(ABC):
    """Statements within one transaction."""

    @abstractmethod
    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement; what is returned can be iterated and has `fetchone`, `fetchall` and `rowcount`."""

    @abstractmethod
    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for every row."""

    def insert(
        self,
        table: str,
        rows: Sequence[Sequence[Any]],
        *,
        columns: tuple[str, ...] | None = None,
        replace: bool = False,
    ) -> None:
        """Write rows; of those whose identity is there already, the old one stays or is replaced."""
        self.run_many(insert(table, columns, replace=replace), rows)

    @abstractmethod
    def batches(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        """A query's rows, some at a time, so that memory does not grow with their number."""

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None if there is no row."""
        row = self.run(sql, values).fetchone()
        return None if row is None else row[0]


class Database(ABC):
    """A database. Its connections are lent to whoever needs one, in any thread, and used again."""

    kind: ClassVar[Kind]
    # The comparison that sees no difference between A and a.
    like: ClassVar[str]
    # What the driver raises.
    error: ClassVar[type[Exception]]
    # SQL for its own clock, in seconds since 1970.
    clock: ClassVar[str]
    # Where it is, without a password.
    address: str
    # Whether nothing can be written to it.
    read_only = False
    # Whether it is being brought up to date.
    migrating = False

    def __init__(self) -> None:
        self._idle: list[Any] = []

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection of the driver."""

    @abstractmethod
    def _connection(self, opened: Any) -> Connection:
        """A driver's connection as the store uses it."""

    @abstractmethod
    def _begin(self, opened: Any, *, writing: bool) -> None:
        """Begin a transaction."""

    @abstractmethod
    def _usable(self, opened: Any) -> bool:
        """Whether a connection that lay idle still works."""

    @abstractmethod
    def explain(self, error: Exception, reason: str) -> StoreError:
        """What the driver raised as one line with a remedy and without a password; `reason` is its first line."""

    @abstractmethod
    def journal_path(self, run_id: str) -> Path | None:
        """Where the replies of a run are kept until the store has them; None: the store itself does not last."""

    @abstractmethod
    def tables(self, connection: Connection) -> set[str]:
        """The tables there are."""

    def work_on_a_copy(self) -> None:  # noqa: B027  # a server's database is never read-only as a whole
        """Read what cannot be written through a copy, which can be brought up to date."""

    def tune_for_serving(self) -> None:  # noqa: B027  # few kinds of database have something to tune
        """Serve readers at pages, who must not wait as long as a run that writes may."""

    def keep_statistics(self) -> None:  # noqa: B027  # few kinds of database plan by statistics that can be stale
        """To be called when much was written: queries are planned by what the tables hold now."""

    def transaction(self) -> AbstractContextManager[Connection]:
        """A transaction that writes. It happens whole or not at all."""
        return self._lend(writing=True)

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that only reads, and never waits for one that writes."""
        return self._lend(writing=False)

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """A query's rows, however many."""
        for rows in self.batches(sql, values):
            yield from rows

    def batches(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        """The same, some at a time."""
        with self.reading() as connection:
            yield from connection.batches(sql, values)

    def contains(self, expression: str, text: str) -> tuple[str, str]:
        """A condition with its value: whether words are in an expression, whatever their case."""
        return f"{expression} {self.like} ? ESCAPE '!'", _anywhere(text.replace("\0", "").casefold())

    def searching(self, table: str, row: str, text: str) -> tuple[str, str, str]:
        """A table, joined to an index of its texts where that must be named, and a condition with its value: whether words
        are in the text of a row, which is called `row`."""
        return f"{table} {row}", *self.contains(str(TABLES[table].searched).format(row=row), text)

    def has_tool(self, expression: str, tool: str) -> tuple[str, str]:
        """A condition with its value: whether a list of tools, each between line breaks, holds this one."""
        return f"{expression} LIKE ? ESCAPE '!'", _anywhere(f"\n{tool}\n".replace("\0", ""))

    @abstractmethod
    def json_text(self, expression: str, field: str) -> str:
        """SQL for a text in a JSON object."""

    @abstractmethod
    def json_texts(self, expression: str, field: str) -> str:
        """A query for the texts of a list in a JSON object."""

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _lend(self, *, writing: bool) -> Iterator[Connection]:
        try:
            opened = self._take()
            done = False
            try:
                self._begin(opened, writing=writing)
                yield self._connection(opened)
                opened.commit()
                done = True
            finally:
                if (done or self._undone(opened)) and len(self._idle) < _MOST_IDLE:
                    self._idle.append(opened)
                else:
                    opened.close()
        except self.error as error:
            lines = str(error).strip().splitlines()
            raise self.explain(error, lines[0] if lines else type(error).__name__) from None

    def _undone(self, opened: Any) -> bool:
        """Whether a transaction that failed could be taken back; if not, the connection was cut."""
        try:
            opened.rollback()
        except self.error:
            return False
        return True

    def _take(self) -> Any:
        while self._idle:
            try:
                opened = self._idle.pop()
            except IndexError:
                # Another thread was quicker.
                break
            if self._usable(opened):
                return opened
            opened.close()
        return self._connect()


def _anywhere(text: str) -> str:
    """A pattern in which % and _ mean themselves."""
    for sign in "!%_":
        text = text.replace(sign, f"!{sign}")
    return f"%{text}%"


# The schema of answerkey 0.1.0; what came before was never released.
_RELEASED = 6
# Any number that is always the same: two programs must not migrate at once.
_LOCK = 7216001


def bring_up_to_date(database: Database) -> None:
    """Make the tables or carry them over; a store from a newer answerkey is refused untouched."""
    with database.reading() as connection:
        version = _version(database, connection)
    if version == VERSION:
        return
    if database.read_only:
        # As on a mount that is read-only: only the copy that is read is changed.
        database.work_on_a_copy()
    database.migrating = True
    try:
        with database.transaction() as connection:
            _migrate(database, connection)
    finally:
        database.migrating = False


def _migrate(database: Database, connection: Connection) -> None:
    if database.kind == "postgresql":
        connection.run("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
    version = _version(database, connection)
    if version == VERSION:
        return
    if version == 0:
        connection.run("CREATE TABLE IF NOT EXISTS answerkey_schema (version INTEGER NOT NULL)")
        for statement in create_statements(database.kind):
            connection.run(statement)
    # Few stores are old, and every command opens one.
    elif version == _RELEASED:
        from answerkey.store.from_0_1_0 import carry_over

        carry_over(database, connection)
    else:
        from answerkey.store.from_schema import carry_on

        carry_on(database, connection, version)
    connection.run("INSERT INTO answerkey_schema (version) VALUES (?)", (VERSION,))


def _version(database: Database, connection: Connection) -> int:
    version = 0
    if "answerkey_schema" in database.tables(connection):
        version = int(connection.value("SELECT MAX(version) FROM answerkey_schema") or 0)
    if version > VERSION:
        raise StoreError(
            f"store {database.address}: the store was made by a newer answerkey (schema {version}, this one knows "
            f"{VERSION}); upgrade answerkey or use another --store"
        )
    if 0 < version < _RELEASED:
        raise StoreError(
            f"store {database.address}: it was made before answerkey 0.1.0 (schema {version}), by a version that was "
            "never released; use another --store"
        )
    return version
