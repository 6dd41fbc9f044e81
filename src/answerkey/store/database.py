"""Database: one interface to SQLite and PostgreSQL, in plain SQL with a `?` for every value."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar, NamedTuple

from answerkey.errors import StoreError
from answerkey.store.schema import TABLES, VERSION, Dialect, create_statements, insert

# Connections that are kept open for later use.
_MAX_IDLE = 8
# Rows fetched at a time by a stream.
BATCH = 1000
# Arbitrary but constant: two processes must not create the tables at once.
_SCHEMA_LOCK = 7216001

Row = tuple[Any, ...]


class Sql(NamedTuple):
    """SQL text together with the values of its `?` placeholders, in their order; run it with `run(*query)`."""

    text: str
    values: tuple[Any, ...] = ()


def sql(template: str, *values: Any, **parts: "Sql | str") -> Sql:
    """Build SQL from a template: each `?` takes the next value, each `{name}` the part with that name.

    >>> sql("SELECT id FROM runs WHERE {where} LIMIT ?", 5, where=sql("name = ?", "nightly"))
    Sql(text='SELECT id FROM runs WHERE name = ? LIMIT ?', values=('nightly', 5))
    """
    text = ""
    bound: list[Any] = []
    used = 0
    for literal, name, _, _ in Formatter().parse(template):
        text += literal
        end = used + literal.count("?")
        bound += values[used:end]
        used = end
        if name is not None:
            part = parts[name]
            text += part.text if isinstance(part, Sql) else part
            bound += part.values if isinstance(part, Sql) else ()
    if used != len(values):
        raise ValueError(f"{used} placeholders for {len(values)} values in {template!r}")
    return Sql(text, tuple(bound))


def join_sql(separator: str, parts: Iterable[Sql]) -> Sql:
    """Parts with a separator between them."""
    listed = list(parts)
    return Sql(
        separator.join(part.text for part in listed), tuple(value for part in listed for value in part.values)
    )


def all_of(conditions: Iterable[Sql]) -> Sql:
    """A condition that holds if all of them do; without any it always holds."""
    return _combined(" AND ", conditions) or Sql("1 = 1")


def any_of(conditions: Iterable[Sql]) -> Sql:
    """A condition that holds if one of them does; without any it never holds."""
    return _combined(" OR ", conditions) or Sql("1 = 0")


def _combined(separator: str, conditions: Iterable[Sql]) -> Sql | None:
    wrapped = [Sql(f"({condition.text})", condition.values) for condition in conditions]
    return join_sql(separator, wrapped) if wrapped else None


def in_list(values: Sequence[Any]) -> Sql:
    """The list behind IN; nothing is in an empty one."""
    return Sql(f"({', '.join(['?'] * len(values)) or 'NULL'})", tuple(values))


def now() -> str:
    """The current time as the store writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Connection(ABC):
    """Statements within one transaction."""

    @abstractmethod
    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement; the result can be iterated and has `fetchone`, `fetchall` and `rowcount`."""

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
        """Write rows; an existing row with the same identity is left alone, or replaced."""
        self.run_many(insert(table, columns, replace=replace), rows)

    @abstractmethod
    def batches(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        """A query's rows in batches, so that memory does not grow with their number."""

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None if there is no row."""
        row = self.run(sql, values).fetchone()
        return None if row is None else row[0]


class Database(ABC):
    """A database. Its connections are pooled and can be used from any thread."""

    dialect: ClassVar[Dialect]
    # The comparison that ignores case.
    like: ClassVar[str]
    # What the driver raises.
    error: ClassVar[type[Exception]]
    # SQL for the database's own clock, in seconds since 1970.
    clock: ClassVar[str]
    # Where it is, without a password.
    address: str
    # Whether nothing can be written to it.
    read_only = False

    def __init__(self) -> None:
        self._idle: list[Any] = []

    @abstractmethod
    def _connect(self) -> Any:
        """Open a connection of the driver."""

    @abstractmethod
    def _connection(self, opened: Any) -> Connection:
        """Wrap a driver's connection."""

    @abstractmethod
    def _begin(self, opened: Any, *, writing: bool) -> None:
        """Begin a transaction."""

    @abstractmethod
    def _usable(self, opened: Any) -> bool:
        """Whether an idle connection still works."""

    @abstractmethod
    def explain(self, error: Exception, reason: str) -> StoreError:
        """A driver's error as one line with a remedy and without a password; `reason` is its first line."""

    @abstractmethod
    def journal_path(self, run_id: str) -> Path | None:
        """The file that holds a run's replies until the store has them; None for a temporary store."""

    def journals(self) -> list[Path]:
        """The existing journals of this store, also those of runs that it does not have."""
        pattern = self.journal_path("*")
        return [] if pattern is None else sorted(pattern.parent.glob(pattern.name))

    @abstractmethod
    def tables(self, connection: Connection) -> set[str]:
        """The names of the existing tables."""

    def tune_for_serving(self) -> None:  # noqa: B027  # optional
        """Prepare for serving pages, whose readers must not wait as long as a run that writes may."""

    def update_statistics(self) -> None:  # noqa: B027  # optional
        """Refresh the query planner's statistics after large writes."""

    def transaction(self) -> AbstractContextManager[Connection]:
        """A transaction that writes, completely or not at all."""
        return self._lend(writing=True)

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that only reads, and never waits for one that writes."""
        return self._lend(writing=False)

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """A query's rows, however many."""
        for rows in self.batches(sql, values):
            yield from rows

    def batches(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        """A query's rows in batches."""
        with self.reading() as connection:
            yield from connection.batches(sql, values)

    def contains(self, expression: str, text: str) -> Sql:
        """A condition: the expression contains a text, ignoring case."""
        pattern = _substring_pattern(text.replace("\0", "").casefold())
        return Sql(f"{expression} {self.like} ? ESCAPE '!'", (pattern,))

    def search(self, table: str, text: str) -> Sql:
        """SELECT the keys of the rows whose text contains this."""
        said = self.contains(str(TABLES[table].searched).format(row="s"), text)
        return Sql(f"SELECT s.key FROM {table} s WHERE {said.text}", said.values)

    def has_tool(self, expression: str, tool: str) -> Sql:
        """A condition: a list of tools, each between line breaks, contains this one."""
        return Sql(f"{expression} LIKE ? ESCAPE '!'", (_substring_pattern(f"\n{tool}\n".replace("\0", "")),))

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
            committed = False
            try:
                self._begin(opened, writing=writing)
                yield self._connection(opened)
                opened.commit()
                committed = True
            finally:
                if (committed or self._roll_back(opened)) and len(self._idle) < _MAX_IDLE:
                    self._idle.append(opened)
                else:
                    opened.close()
        except self.error as error:
            lines = str(error).strip().splitlines()
            raise self.explain(error, lines[0] if lines else type(error).__name__) from None

    def _roll_back(self, opened: Any) -> bool:
        """Roll back; False if the connection is broken."""
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
                # Another thread took the last one.
                break
            if self._usable(opened):
                return opened
            opened.close()
        return self._connect()


def _substring_pattern(text: str) -> str:
    """A LIKE pattern that finds a text anywhere, with % and _ escaped."""
    for character in "!%_":
        text = text.replace(character, f"!{character}")
    return f"%{text}%"


def create_tables(database: Database) -> None:
    """Create the tables of a new store, in one transaction; refuse a store with another schema."""
    with database.reading() as connection:
        if _has_schema(database, connection):
            return
    with database.transaction() as connection:
        if database.dialect == "postgresql":
            connection.run("SELECT pg_advisory_xact_lock(?)", (_SCHEMA_LOCK,))
        if _has_schema(database, connection):
            # Another process created them meanwhile.
            return
        connection.run("CREATE TABLE IF NOT EXISTS answerkey_schema (version INTEGER NOT NULL)")
        for statement in create_statements(database.dialect):
            connection.run(statement)
        connection.run("INSERT INTO answerkey_schema (version) VALUES (?)", (VERSION,))


def _has_schema(database: Database, connection: Connection) -> bool:
    """Whether the tables exist; raises StoreError if another version of answerkey made them."""
    version = 0
    if "answerkey_schema" in database.tables(connection):
        version = int(connection.value("SELECT MAX(version) FROM answerkey_schema") or 0)
    if version > VERSION:
        raise StoreError(
            f"store {database.address}: the store was made by a newer answerkey (schema {version}, this one reads "
            f"{VERSION}); upgrade answerkey or use another --store"
        )
    if 0 < version < VERSION:
        raise StoreError(
            f"store {database.address}: schema {version} is older than this answerkey's ({VERSION}) and cannot be "
            "read; use another --store"
        )
    return version == VERSION
