"""Databases that are only read: SQLite and PostgreSQL, by one SELECT, in one transaction.

For expectations that are computed from data, and for recorded replies (`score sqlite:///app.db --sql "SELECT …"`).
"""

import math
import re
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from answerkey.errors import InputError, MissingExtraError
from answerkey.model.reply import Json, JsonObject
from answerkey.transcripts.files import decode_text, shown_url
from answerkey.transcripts.json_values import TEXT_NAMES, decode_json

_LOCK_SECONDS = 5.0
# Rows that are fetched at once.
_FETCHED = 2000


class DatabaseError(ValueError):
    """A database cannot be opened, or a query fails; the message is one line."""


class Selected(NamedTuple):
    """The columns of a query, and its rows."""

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Database(Protocol):
    """One database, read-only; every query sees the same snapshot."""

    def select(self, query: str, values: Mapping[str, Any], most: int) -> Selected:
        """The first rows of a query with parameters `:name`; raises DatabaseError."""

    def read(self, query: str, texts: Set[str]) -> Iterator[JsonObject]:
        """Every row of a query, as they are fetched; raises DatabaseError."""

    def close(self) -> None:
        """End the transaction and close the connection."""


def open_database(url: str, folder: Path = Path(), timeout: float = math.inf) -> Database:
    """Open sqlite:///path, relative to a folder, or postgresql://…; a query may take `timeout` seconds."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        path = unquote(urlsplit(url).path)
        return SqliteDatabase(
            Path(path) if path.startswith("//") else folder / path.removeprefix("/"), timeout
        )
    return PostgresDatabase(url, timeout)


class SqliteDatabase:
    """A SQLite file."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._timeout = timeout
        if not path.is_file():
            raise DatabaseError(f"{path}: no such file")
        try:
            self._connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro",
                uri=True,
                timeout=_LOCK_SECONDS,
                isolation_level=None,
                cached_statements=512,
                check_same_thread=False,
            )
            self._connection.set_authorizer(_allow_reading)
            # A deferred transaction takes its snapshot with the first query, and keeps it.
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            raise DatabaseError(f"{path}: {self._problem(error)}") from None
        self._deadline = math.inf
        if timeout < math.inf:
            # Called every few thousand steps of the virtual machine, which costs nothing measurable.
            self._connection.set_progress_handler(lambda: monotonic() > self._deadline, 10_000)

    def select(self, query: str, values: Mapping[str, Any], most: int) -> Selected:
        """The first rows of a query."""
        self._deadline = monotonic() + self._timeout
        try:
            cursor = self._connection.execute(query, dict(values))
            return Selected([column[0] for column in cursor.description or ()], cursor.fetchmany(most))
        except sqlite3.Error as error:
            raise DatabaseError(self._problem(error)) from None

    def read(self, query: str, texts: Set[str]) -> Iterator[JsonObject]:
        """Every row of a query; `texts` are the columns that hold texts, also if they look like JSON."""
        # A text that is not UTF-8 must not end the reading.
        self._connection.text_factory = lambda text: decode_text(text)[0]
        try:
            cursor = self._connection.execute(query)
            names = [column[0] for column in cursor.description or ()]
            while rows := cursor.fetchmany(_FETCHED):
                yield from [_json_row(names, row, texts) for row in rows]
        except sqlite3.Error as error:
            raise DatabaseError(self._problem(error)) from None

    def _problem(self, error: sqlite3.Error) -> str:
        message = first_line(error)
        if "interrupted" in message:
            return too_slow(self._timeout)
        if "locked" in message:
            return f"the database is locked by another program; close it and run again ({message})"
        if "not authorized" in message or "readonly" in message or "prohibited" in message:
            return WRITES
        if isinstance(error, sqlite3.ProgrammingError) and "one statement" in message:
            return SEVERAL_STATEMENTS
        return message

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


# SQLite's codes of what a query may do; anything else (writing, attaching, pragmas) is refused when it is prepared.
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
}


def _allow_reading(action: int, *names: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


class PostgresDatabase:
    """A PostgreSQL database, in one repeatable-read transaction."""

    def __init__(self, url: str, timeout: float) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError(shown_url(url), "postgres") from None
        self._timeout, self._error = timeout, psycopg.Error
        try:
            self._connection = psycopg.connect(url, connect_timeout=10, autocommit=False)
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True
            milliseconds = 0 if timeout == math.inf else int(timeout * 1000)
            self._connection.execute(f"SET LOCAL statement_timeout = {milliseconds}")
        except psycopg.Error as error:
            raise DatabaseError(first_line(error)) from None

    def select(self, query: str, values: Mapping[str, Any], most: int) -> Selected:
        """The first rows of a query."""
        query = with_placeholders(query, "%({})s", escape_percent=True)
        try:
            # A failed query must not end the transaction, and with it the snapshot.
            with self._connection.transaction(), self._connection.cursor() as cursor:
                cursor.execute(query, dict(values))
                names = [column.name for column in cursor.description or ()]
                return Selected(names, cursor.fetchmany(most) if names else [])
        except self._error as error:
            raise DatabaseError(self._problem(error)) from None

    def read(self, query: str, texts: Set[str]) -> Iterator[JsonObject]:
        """Every row of a query; `texts` are the columns that hold texts, also if they look like JSON."""
        # A cursor of the server: the rows may not fit into memory.
        try:
            with self._connection.cursor(name="answerkey") as cursor:
                # Without parameters, % and : are as they are.
                cursor.execute(query.strip().rstrip(";"))
                names = [column.name for column in cursor.description or ()]
                while rows := cursor.fetchmany(_FETCHED):
                    yield from [_json_row(names, row, texts) for row in rows]
        except self._error as error:
            raise DatabaseError(self._problem(error)) from None

    def _problem(self, error: Exception) -> str:
        kind = type(error).__name__
        if kind == "QueryCanceled":
            return too_slow(self._timeout)
        return WRITES if kind == "ReadOnlySqlTransaction" else first_line(error)

    def close(self) -> None:
        """End the transaction and close the connection."""
        with suppress(self._error):
            self._connection.rollback()
        self._connection.close()


WRITES = "the query writes or changes settings; the database is read-only, use a SELECT"
SEVERAL_STATEMENTS = "the query has several statements; write one SELECT"


def too_slow(seconds: float) -> str:
    """What is wrong with a query that exceeds its time."""
    return f"the query took longer than {seconds:g} s; make it faster or raise timeout under [truth]"


def first_line(error: Exception) -> str:
    """The first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# A parameter `:name`, outside quotes, comments and casts (`::date`).
_PARAMETER = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|::|(?P<parameter>:(?P<name>[A-Za-z_]\w*))",
    re.DOTALL,
)


@lru_cache(maxsize=1024)
def parameters(query: str) -> frozenset[str]:
    """The names of a query's parameters."""
    return frozenset(match["name"] for match in _PARAMETER.finditer(query) if match["name"])


@lru_cache(maxsize=1024)
def with_placeholders(query: str, form: str, *, escape_percent: bool = False) -> str:
    """A query with `:name` in the form of another database."""
    parts: list[str] = []
    position = 0
    for match in _PARAMETER.finditer(query):
        if match["name"]:
            parts += query[position : match.start()], "\0" + match["name"] + "\0"
            position = match.end()
    text = "".join([*parts, query[position:]])
    if escape_percent:
        text = text.replace("%", "%%")
    return re.sub("\0(\\w+)\0", lambda match: form.format(match[1]), text)


# Rows of recorded replies and questions.


def read_database(url: str, query: str, texts: Iterable[str] = ()) -> Iterator[tuple[int | None, JsonObject]]:
    """The numbered rows of a query; raises InputError with what is wrong.

    `texts` are columns that hold texts, beside those with a text's usual name.
    """
    if not query.strip():
        raise InputError('is a database; add --sql "SELECT …"', path=shown_url(url))
    number = 0
    try:
        with closing(open_database(url)) as database:
            for number, row in enumerate(database.read(query, _TEXT_COLUMNS.union(texts)), start=1):
                yield number, row
    except DatabaseError as error:
        after = f" (after {number:,} rows)" if number else ""
        raise InputError(f"{error}{after}", path=shown_url(url)) from None
    if not number:
        raise InputError("the query returns no rows", path=shown_url(url))


# Columns that hold texts: replies and questions.
_TEXT_COLUMNS = frozenset({*TEXT_NAMES, "question"})


def _json_row(names: Sequence[str], row: Sequence[Any], texts: Set[str]) -> JsonObject:
    """A row as JSON; a NULL is only kept where it is the reply: a null reply."""
    values = zip(names, row, strict=True)
    return {
        name: _json_value(value, is_text=name in texts)
        for name, value in values
        if value is not None or (name in texts and name != "question")
    }


def _json_value(value: Any, *, is_text: bool) -> Json:
    if isinstance(value, bytes | bytearray | memoryview):
        value = decode_text(bytes(value))[0]
    if isinstance(value, str):
        if not is_text and value.lstrip()[:1] in ("[", "{"):
            # Text that is not JSON is the value itself.
            with suppress(ValueError):
                return decode_json(value)
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta | uuid.UUID):
        return str(value)
    json: Json = value
    return json
