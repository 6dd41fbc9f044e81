"""Input files (local, compressed, from standard input, or remote, with the extra `remote`), and databases that are only read.

Inputs are Paths, and a Path makes one slash of two: `remote_url` restores the address. That of a database is encoded.

SQLite and PostgreSQL are read by one SELECT, in one transaction: for expectations that are computed from data, and for recorded
replies (`score sqlite:///app.db --sql "SELECT …"`).
"""

import gzip
import io
import math
import re
import sqlite3
import sys
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from glob import has_magic
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, cast
from urllib.parse import quote, unquote, urlsplit

import msgspec

from answerkey.errors import InputError, MissingExtraError, nearest_name
from answerkey.model.reply import Json, JsonObject
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import TEXT_NAMES, decode_json

_READ_SIZE = 1024 * 1024
# Two letters at least: C:/ is a drive.
_ADDRESS = lazy(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


def remote_url(path: Path) -> str | None:
    """The address of a remote file; None for a local path."""
    found = _ADDRESS.fullmatch(path.as_posix())
    if found is None or path.exists():
        return None
    scheme, rest = found.groups()
    return f"{scheme}:///{rest}" if scheme in ("file", "local") else f"{scheme}://{rest}"


_DATABASES = ("sqlite", "postgresql", "postgres")


def input_path(address: str | Path) -> Path:
    """An input as a Path; the address of a database is encoded, since its slashes matter."""
    scheme, colon, rest = str(address).partition("://")
    return (
        Path(f"{scheme}:{quote('//' + rest, safe='')}") if colon and scheme in _DATABASES else Path(address)
    )


def database_url(path: Path) -> str | None:
    """The address of a database; None for files."""
    scheme, colon, rest = str(path).partition(":%2F%2F")
    return f"{scheme}://{unquote(rest)}" if colon and scheme in _DATABASES else None


def shown_url(url: str) -> str:
    """The address of a database without password and options."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}"


def open_remote(url: str) -> io.BufferedReader:
    """The bytes at an address, read as they are needed."""
    with _opened(url) as (files, name):
        return io.BufferedReader(_RemoteBytes(files.open(name, "rb")), _READ_SIZE)


def find_remote(url: str) -> list[Path]:
    """The files at an address: those of a pattern, those in a folder and below, or the one file."""
    with _opened(url) as (files, name):
        if has_magic(url):
            inside = sorted(files.glob(name))
        elif url.startswith("http") or not files.isdir(name):
            return [Path(url)]
        else:
            inside = sorted(files.find(name))
        found = [one for one in inside if not one.rpartition("/")[2].startswith((".", "_"))]
        if not found:
            raise InputError("no file is found there", path=url)
        return [Path(files.unstrip_protocol(one)) for one in found]


def remote_stamp(url: str) -> tuple[str, int | None, str]:
    """The identity of a file: its address, size and state, as far as the server reports them."""
    with _opened(url) as (files, name):
        info = files.info(name)
        state = [
            str(info[key])
            for key in ("ETag", "etag", "LastModified", "updated", "mtime", "created")
            if key in info
        ]
        return url, info.get("size"), " ".join(state)


class _RemoteBytes(io.RawIOBase):
    """A file of fsspec whose errors are OSErrors: each file system has its own, as for a transfer that broke off."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._file.read(len(buffer))
        except Exception as error:  # noqa: BLE001  # whatever it raises, the file cannot be read
            raise OSError(first_line(error)) from None
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def _opened(url: str) -> Iterator[tuple[Any, str]]:
    """The file system of an address, and its name there; errors become one line."""
    try:
        from fsspec.core import url_to_fs  # an optional dependency
    except ImportError:
        raise MissingExtraError(f"reading {url}", "remote") from None
    try:
        yield url_to_fs(url)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("no such file", path=url) from None
    except Exception as error:  # noqa: BLE001  # a missing package, a login, a host that is not there
        raise InputError(f"cannot be read: {first_line(error)}", path=url) from None


# The bytes and the text of an input: plain, gzip or zstd, in any usual encoding.


STANDARD_INPUT = Path("-")  # as a file name
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
# The first bytes of a file that are inspected, and the share of NULs in UTF-16 text without a byte order mark.
PROBE, _NULS = 4096, 0.3
# How pictures, documents, recordings, fonts, programs, databases and archives begin.
_BINARY = (
    *(b"\x89PNG", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"%PDF-", b"ID3", b"OggS", b"wOFF", b"wOF2"),
    *(b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\0asm", b"SQLite format 3\0", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf"),
)
_UNPACK_SIZE = 64 * 1024
_LONGEST_UNPACKED = 256 * 1024 * 1024


def shown_path(path: Path) -> Path:
    """The name of an input in messages."""
    if path == STANDARD_INPUT:
        return Path("standard input")
    url = database_url(path)
    return path if url is None else Path(shown_url(url))


def _similar_file(path: Path) -> str:
    """The remedy for a mistyped name; empty where no file beside it is named alike."""
    try:
        close = nearest_name(path.name, [entry.name for entry in path.parent.iterdir()], 0.8)
    except OSError:
        return ""
    return f"; did you mean {str(path.with_name(close))!r}?" if close else ""


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading into one line."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"no such file{_similar_file(path)}", path=path) from None
    except IsADirectoryError:
        raise InputError("is a folder, not a file", path=path) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(
            "the compressed content is truncated or damaged; download it again", path=path
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path) from None


def open_bytes(path: Path) -> io.BufferedReader:
    """The unpacked bytes of a file here or elsewhere, or of standard input for "-"; the first ones can be peeked at."""
    with reading_errors(shown_path(path)):
        stream = _opened_file_bytes(path)
        head = stream.peek(4)[:4]
        if head[:2] == _GZIP:
            # A GzipFile has what is used of a BufferedReader: peek, readline, read and iteration.
            return cast("io.BufferedReader", _UnpackedGzip(fileobj=stream))
        return _unpacked_zstd(stream) if head == _ZSTD else stream


def _opened_file_bytes(path: Path) -> io.BufferedReader:
    if path == STANDARD_INPUT:
        return cast("io.BufferedReader", sys.stdin.buffer)
    try:
        return path.open("rb")
    except FileNotFoundError:
        url = remote_url(path)
        if url is None:
            raise
        return open_remote(url)


def _unpacked_zstd(stream: io.BufferedReader) -> io.BufferedReader:
    try:
        import pyarrow  # heavy, and only for such files
    except ImportError:
        raise MissingExtraError("reading zstd", "parquet") from None
    unpacked = pyarrow.CompressedInputStream(pyarrow.PythonFile(stream, "r"), "zstd")
    return _UnpackedReader(_ZstdBytes(unpacked), _UNPACK_SIZE)


class _Limited:
    """Refuses what unpacks to more than memory can be expected to hold: a small file may hold one line without end."""

    def readline(self, size: int | None = -1, /) -> bytes:
        line: bytes = super().readline(_LONGEST_UNPACKED + 1 if size is None or size < 0 else size)  # type: ignore[misc]
        return self._checked(line)

    def read(self, size: int | None = -1, /) -> bytes:
        content: bytes = super().read(_LONGEST_UNPACKED + 1 if size is None or size < 0 else size)  # type: ignore[misc]
        return self._checked(content)

    def _checked(self, content: bytes) -> bytes:
        if len(content) > _LONGEST_UNPACKED:
            megabytes = _LONGEST_UNPACKED // 1024 // 1024
            raise InputError(
                f"a line, or a document that is not JSON Lines, unpacks to more than {megabytes} MB; unpack it to read it"
            )
        return content


class _UnpackedGzip(_Limited, gzip.GzipFile):
    """A gzip file."""


class _UnpackedReader(_Limited, io.BufferedReader):
    """A reader of unpacked bytes, whose offsets are not those of the file."""


class _ZstdBytes(io.RawIOBase):
    """Unpacked bytes up to where the packed ones are truncated or damaged."""

    def __init__(self, unpacked: Any) -> None:
        self._unpacked = unpacked
        self._is_damaged = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._is_damaged:
            raise EOFError
        # pyarrow writes what it has unpacked and then says only that it failed. No UTF-8 text has this byte, so that where the
        # bytes end which were written can be seen.
        written = bytearray(b"\xff") * len(buffer)
        try:
            count = self._unpacked.readinto(written)
        except OSError as error:
            if error.errno is not None:
                # It is the reading that failed, not the unpacking.
                raise
            self._is_damaged = True
            count = len(written.rstrip(b"\xff"))
            if not count:
                raise EOFError from None
        buffer[:count] = written[:count]
        return int(count)

    def close(self) -> None:
        if not self.closed:
            self._unpacked.close()
        super().close()


def read_text(path: Path) -> str:
    """A whole text as UTF-8, with or without a byte order mark."""
    with reading_errors(shown_path(path)), open_bytes(path) as stream:
        content = stream.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError("not UTF-8 text; save the file as UTF-8", path=path, line=line) from None


def is_binary(probe: bytes) -> bool:
    """Whether a file that begins so is a picture, a program or the like, and no text in any encoding."""
    if probe.startswith(_BINARY):
        return True
    if b"\0" not in probe or any(probe.startswith(mark) for mark, _ in _BYTE_ORDER_MARKS):
        return False
    first, second = (probe[parity::2].count(0) / max(len(probe) // 2, 1) for parity in (0, 1))
    if max(first, second) > _NULS:
        # UTF-16 has them on one side.
        return min(first, second) > _NULS / 3
    try:
        # The last character may be cut.
        probe[:-3].decode()
    except UnicodeDecodeError:
        return True
    # Text with a stray NUL, which costs the line that has it.
    return False


def decode_text(content: bytes) -> tuple[str, str]:
    """A text in the encoding that it is most probably in, and that encoding's name where it is not UTF-8."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace"), "" if encoding == "utf-8-sig" else "UTF-16"
    probe = content[:PROBE]
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if probe[first::2].count(0) > _NULS * len(probe) / 2:
            return content.decode(encoding, "replace"), "UTF-16"
    try:
        return content.decode(), ""
    except UnicodeDecodeError:
        try:
            return content.decode("cp1252"), "Windows-1252"
        except UnicodeDecodeError:
            return content.decode("latin-1"), "Latin-1"


_LOCK_SECONDS = 5.0
# Rows that are fetched at once.
_FETCHED = 2000


class DatabaseError(ValueError):
    """A database cannot be opened, or a query fails; the message is one line."""


class Selected(msgspec.Struct, frozen=True):
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
            yield from _json_rows(self._connection.execute(query), texts)
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
        query = with_placeholders(query, "%({})s", escape_percent=True)
        try:
            # A failed query must not end the transaction, and with it the snapshot.
            with self._connection.transaction(), self._connection.cursor() as cursor:
                cursor.execute(query, dict(values))
                names = [column[0] for column in cursor.description or ()]
                return Selected(names, cursor.fetchmany(most) if names else [])
        except self._error as error:
            raise DatabaseError(self._problem(error)) from None

    def read(self, query: str, texts: Set[str]) -> Iterator[JsonObject]:
        """Every row of a query; `texts` are the columns that hold texts, also if they look like JSON."""
        # A cursor of the server: the rows may not fit into memory.
        try:
            with self._connection.cursor(name="answerkey") as cursor:
                # Without parameters, % and : are as they are.
                yield from _json_rows(cursor.execute(query.strip().rstrip(";")), texts)
        except self._error as error:
            raise DatabaseError(self._problem(error)) from None

    def _problem(self, error: Exception) -> str:
        kind = type(error).__name__
        if kind == "QueryCanceled":
            return too_slow(self._timeout)
        return WRITES if kind == "ReadOnlySqlTransaction" else first_line(error)

    def close(self) -> None:
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
_PARAMETER = lazy(
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


def _json_rows(cursor: Any, texts: Set[str]) -> Iterator[JsonObject]:
    """The rows of a cursor as JSON; a NULL is only kept where it is the reply: a null reply."""
    names = [column[0] for column in cursor.description or ()]
    while rows := cursor.fetchmany(_FETCHED):
        for row in rows:
            yield {
                name: _json_value(value, is_text=name in texts)
                for name, value in zip(names, row, strict=True)
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
