"""Truth sources: where expectations are computed from.

A source gives the values of an expression: a query of a database or of files, a path in a document, a call of a Python
function. All keys of a run are computed before its first question, from one snapshot, and nothing is ever written.
"""

import datetime
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from answerkey.errors import ConfigError, MissingExtraError, TruthError, UsageError
from answerkey.model.question import TruthSettings, TruthValue
from answerkey.plugins import load_python
from answerkey.transcripts.files import (
    SEVERAL_STATEMENTS,
    WRITES,
    DatabaseError,
    first_line,
    open_database,
    parameters,
    too_slow,
    with_placeholders,
)

# What an expression of each method is called in messages.
_METHOD_OF_SOURCE = {"url": "sql", "files": "sql", "document": "fact", "python": "python"}


class TruthSource(Protocol):
    """Computes values. Implement this to add a kind of source (entry point `answerkey.truth`)."""

    # The method of the expressions that it computes: "sql", "fact" or "python".
    method: str

    def values(self, expression: str, arguments: Mapping[str, Any]) -> list[TruthValue]:
        """Every value of an expression, in order; raises TruthError with what is wrong and what to do."""

    def close(self) -> None:
        """Release connections."""


def open_source(name: str, settings: TruthSettings, folder: Path) -> TruthSource:
    """Open the source `[truth.NAME]`; paths are relative to `folder`."""
    given = [field for field in _METHOD_OF_SOURCE if getattr(settings, field)]
    if len(given) != 1:
        listed = " and ".join(given) if given else "none of them"
        raise ConfigError(
            f"[truth.{name}] needs exactly one of url, files, document, python; it has {listed}"
        )
    if settings.files:
        return FilesSource(name, settings, folder)
    if settings.document:
        return DocumentSource(name, folder / settings.document)
    if settings.python:
        return PythonSource(name, settings.python, folder)
    scheme = urlsplit(settings.url).scheme
    if scheme in ("sqlite", "postgresql", "postgres"):
        return DatabaseSource(name, settings, folder)
    raise ConfigError(
        f"[truth.{name}] url: use sqlite:///path or postgresql://…, not {scheme or settings.url!r}"
    )


# Databases.


class DatabaseSource:
    """A SQLite file or a PostgreSQL database, read-only, in one transaction."""

    method = "sql"

    def __init__(self, name: str, settings: TruthSettings, folder: Path) -> None:
        self._settings = settings
        try:
            self._database = open_database(settings.url, folder, settings.timeout)
        except DatabaseError as error:
            raise TruthError(f"[truth.{name}] url: {error}") from None

    def values(self, expression: str, arguments: Mapping[str, Any]) -> list[TruthValue]:
        """The one column of a query."""
        try:
            found = self._database.select(
                expression, _bound(expression, arguments), self._settings.max_rows + 1
            )
        except DatabaseError as error:
            raise TruthError(str(error)) from None
        return _one_column(found.names, found.rows, self._settings.max_rows)

    def close(self) -> None:
        self._database.close()


class FilesSource:
    """CSV, Parquet and JSON files as tables, queried with SQL by DuckDB; read once, before the first query."""

    method = "sql"

    def __init__(self, name: str, settings: TruthSettings, folder: Path) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError(f"[truth.{name}] files", "truth") from None
        self._settings, self._duckdb = settings, duckdb
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        for table, pattern in settings.files.items():
            self._load(name, table, folder / pattern)
        # From here on, queries see the tables and nothing else of this machine.
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _load(self, name: str, table: str, path: Path) -> None:
        where = f"[truth.{name}] files: {table} = {path}"
        if not table.isidentifier():
            raise ConfigError(f"{where}: the name of a table must be letters, digits and underscores")
        reader = _FILE_READERS.get(path.suffix.lower())
        if reader is None:
            raise ConfigError(f"{where}: use .csv, .tsv, .parquet, .json or .jsonl files")
        if not sorted(path.parent.glob(path.name)):
            raise TruthError(f"{where}: no such file")
        try:
            self._connection.execute(f'CREATE TABLE "{table}" AS SELECT * FROM {reader}', [str(path)])  # noqa: S608  # the name is an identifier
        except self._duckdb.Error as error:
            raise TruthError(f"{where}: {first_line(error)}") from None

    def values(self, expression: str, arguments: Mapping[str, Any]) -> list[TruthValue]:
        """The one column of a query."""
        query = with_placeholders(expression, "${}")
        limit = threading.Timer(self._settings.timeout, self._connection.interrupt)
        limit.daemon = True
        limit.start()
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1:
                raise TruthError(SEVERAL_STATEMENTS)
            if statements[0].type.name != "SELECT":
                raise TruthError(WRITES)
            cursor = self._connection.execute(query, _bound(expression, arguments) or None)
            rows = cursor.fetchmany(self._settings.max_rows + 1)
        except self._duckdb.InterruptException:
            raise TruthError(too_slow(self._settings.timeout)) from None
        except self._duckdb.Error as error:
            raise TruthError(first_line(error)) from None
        finally:
            limit.cancel()
        names = [column[0] for column in cursor.description or ()]
        return _one_column(names, rows, self._settings.max_rows)

    def close(self) -> None:
        self._connection.close()


_FILE_READERS = {
    ".csv": "read_csv(?)",
    ".tsv": "read_csv(?)",
    ".parquet": "read_parquet(?)",
    ".json": "read_json(?)",
    ".jsonl": "read_json(?, format = 'newline_delimited')",
    ".ndjson": "read_json(?, format = 'newline_delimited')",
}


def _bound(expression: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a query has parameters for."""
    wanted = parameters(expression)
    missing = sorted(wanted - arguments.keys())
    if missing:
        raise TruthError(
            f"no value for :{missing[0]}; add it to params, or to the question as a field {missing[0]!r}"
        )
    return {name: arguments[name] for name in wanted}


def _one_column(names: Sequence[str], rows: Sequence[Sequence[Any]], max_rows: int) -> list[TruthValue]:
    if not names:
        raise TruthError("the query returns nothing; use a SELECT")
    if len(names) != 1:
        raise TruthError(f"the query returns {len(names)} columns ({', '.join(names[:5])}); select one")
    if len(rows) > max_rows:
        raise TruthError(
            f"the query returns more than {max_rows:,} rows; aggregate, or raise max_rows under [truth]"
        )
    return [plain_value(row[0]) for row in rows]


# Documents and functions.


class DocumentSource:
    """A YAML, JSON or TOML document; an expression is a JMESPath such as `entity.formation_date`."""

    method = "fact"

    def __init__(self, name: str, path: Path) -> None:
        self._where = f"[truth.{name}] document: {path}"
        self._content = _read_document(path, self._where)

    def values(self, expression: str, arguments: Mapping[str, Any]) -> list[TruthValue]:
        """The value at a path; a list is several values."""
        import jmespath
        from jmespath.exceptions import JMESPathError

        try:
            found = jmespath.search(expression, self._content)
        except JMESPathError as error:
            raise TruthError(f"not a valid path: {first_line(error)}") from None
        if found is None:
            raise TruthError(f"no value at {expression!r}; {self._nearest(expression)}")
        if isinstance(found, dict):
            raise TruthError(
                f"{expression!r} is an object with {', '.join(list(found)[:6])}; name one of them"
            )
        return [plain_value(value) for value in (found if isinstance(found, list) else [found])]

    def _nearest(self, expression: str) -> str:
        """The names beside the first one that does not exist."""
        place, shown = self._content, "the document"
        for name in expression.split("."):
            if not isinstance(place, dict):
                return f"{shown} has no names"
            if name not in place:
                return f"{shown} has {', '.join(map(str, list(place)[:8])) or 'nothing'}"
            place, shown = place[name], name
        return f"{shown} is empty"

    def close(self) -> None:
        """Nothing is open."""


def _read_document(path: Path, where: str) -> Any:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise TruthError(f"{where}: {reason or error}") from None
    suffix = path.suffix.lower()
    try:
        if suffix == ".json":
            import json

            return json.loads(text)
        if suffix == ".toml":
            import tomllib

            return tomllib.loads(text)
        if suffix in (".yml", ".yaml"):
            from answerkey.transcripts.yaml_documents import decode_yaml

            return decode_yaml(text)
    except ValueError as error:
        raise TruthError(f"{where}: cannot be read: {first_line(error)}") from None
    raise ConfigError(f"{where}: use a .yml, .json or .toml file")


class PythonSource:
    """Functions of a Python file, which return a value, a list, a date or None."""

    method = "python"

    def __init__(self, name: str, file: str, folder: Path) -> None:
        self._file, self._folder = file, folder
        self._module: ModuleType | None = None
        if not (folder / file).is_file():
            raise TruthError(f"[truth.{name}] python: {folder / file}: no such file")

    def values(self, expression: str, arguments: Mapping[str, Any]) -> list[TruthValue]:
        """What the function returns; a list or set is several values."""
        function = self._function(expression)
        try:
            returned = function(**arguments)
        except Exception as error:  # noqa: BLE001  # the user's code may raise anything
            raise TruthError(f"{expression}() raised {type(error).__name__}: {first_line(error)}") from None
        several = list(returned) if isinstance(returned, list | tuple | set | frozenset) else [returned]
        return [plain_value(value) for value in several]

    def _function(self, name: str) -> Callable[..., Any]:
        """A function of the file, which is run once however many of its functions are used."""
        if self._module is None:
            try:
                _, self._module = load_python(f"{self._file}:{name}", self._folder)
            except UsageError as error:
                raise TruthError(str(error)) from None
        function = getattr(self._module, name, None)
        if not callable(function):
            known = [
                other for other, part in vars(self._module).items() if other[0] != "_" and callable(part)
            ]
            raise TruthError(
                f"{self._file} has no function {name!r}; it has {', '.join(known[:10]) or 'none'}"
            )
        return cast("Callable[..., Any]", function)

    def close(self) -> None:
        """Nothing is open."""


def plain_value(value: Any) -> TruthValue:
    """A computed value as a number, a text, a date or None; anything else is refused."""
    if value is None or isinstance(value, str | datetime.date):
        return value.date() if isinstance(value, datetime.datetime) and not _has_time(value) else value
    if isinstance(value, datetime.time):
        return value.isoformat("minutes")
    if isinstance(value, bool):
        raise TruthError("the value is true or false; return the text or number that a reply should say")
    if isinstance(value, int | float | Decimal):
        if not math.isfinite(value):
            raise TruthError(f"the value is {value}, which is not a number that a reply can say")
        return value if isinstance(value, int) else float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        raise TruthError("the value is binary (a BLOB); select a text, number or date")
    raise TruthError(f"the value is a {type(value).__name__}; it must be a number, a text or a date")


def _has_time(value: datetime.datetime) -> bool:
    return value.time() != datetime.time()
