"""Input files: local, compressed, from standard input, or remote (s3://, gs://, https://, … with the extra `remote`).

Inputs are Paths, and a Path makes one slash of two: `remote_url` restores the address. That of a database is encoded.
"""

import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit

from answerkey.errors import InputError, MissingExtraError

_READ_SIZE = 1024 * 1024
# Two letters at least: C:/ is a drive.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


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
            raise OSError(_first_line(error)) from None
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


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
        raise InputError(f"cannot be read: {_first_line(error)}", path=url) from None


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


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading into one line."""
    try:
        yield
    except FileNotFoundError:
        raise InputError("no such file", path=path) from None
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
